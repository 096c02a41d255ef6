"""Every type of event that AOF writes has a rule in the merge."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

import pytest

import aof
from aof.errors import UnmergeableHistory
from aof.kernel import events
from aof.merge.model import RULES, rule_of

_SOURCE = Path(aof.__file__).parent
_SUBJECTS = "task|handoff|delegation|context|file|document|agent|a2a|http|protocol|autonomy|run|budget|escalation"
_DOTTED = re.compile(rf'"((?:{_SUBJECTS})\.[a-z_]+(?:\.[a-z_]+)*)"')
# What looks like the type of an event and is none.
_OTHERS = {
    # types of WORKLOG entries and of AOF/1 messages
    "task.claimed", "handoff.posted", "escalation.requested", "handoff.request",
    # names that other tools know events by: what `aof log --format agentruntime` writes
    "task.started", "task.waiting", "task.blocked", "task.paused", "task.resumed", "task.cancelled", "task.failed",
    # files, messages of the web server, and what sentences are filled in with
    "handoff.reason",
    "run.json", "task.html", "http.request", "http.response.start", "http.response.body", "http.disconnect",
}  # fmt: skip


@cache
def _written() -> dict[str, str]:
    """Every text in the source that could be the type of an event, and a module that has it."""
    found: dict[str, str] = {}
    for path in _SOURCE.rglob("*.py"):
        module = path.relative_to(_SOURCE)
        if module.parts[:3] != ("core", "engine", "merge"):
            found |= dict.fromkeys(_DOTTED.findall(path.read_text("utf-8")), module.as_posix())
    return found


def test_every_type_of_event_in_the_source_has_a_rule() -> None:
    missing = {kind: where for kind, where in _written().items() if kind not in RULES and kind not in _OTHERS}
    missing = {kind: where for kind, where in missing.items() if not kind.startswith("task.hop.")}
    assert not missing


def test_no_rule_is_for_a_type_that_nobody_writes() -> None:
    assert not {kind for kind in RULES if kind not in _written()} - {"document.superseded"}


def test_what_changes_no_record_is_a_remark_for_the_merge_too() -> None:
    remarks = {kind for kind, rule in RULES.items() if rule == "remark"}
    assert remarks == events._REMARKS


@pytest.mark.parametrize("kind", ["task.superseded", "task.merged", "document.superseded", "task.unheard_of"])
def test_a_lane_of_a_clone_never_has_what_only_merge_lanes_have(kind: str) -> None:
    with pytest.raises(UnmergeableHistory):
        rule_of(kind)


def test_every_step_of_a_hop_is_life() -> None:
    assert rule_of("task.hop.opened") == rule_of("task.hop.anything") == "life"
