"""A message about a hop has the same outcome, events and reason by whichever channel it comes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from aof.api.fabric import Fabric
from aof.service.bootstrap import open_fabric
from aof.workflows.model import workflow_of
from tests.support.messages import prefixed, report, update
from tests.support.service import Up, chart, scripted, workflow
from tests.support.workflows import REVIEW
from tests.surfaces.doors import DOORS, WHO, python_door
from tests.surfaces.tape import TAG
from tests.surfaces.test_channels import MAINTAINED, plain, sent

_SAID = ("protocol.", "task.hop.", "task.completed", "task.attempt.", "task.transitioned")


def table(task_id: str, other_run: str, *senders: str) -> list[str]:
    """What rev and eve say at the second hop: good, not entitled, stale, and again; or only what some of them say."""
    rejects = report(task_id, "rev", "needs_review", blockers=["no test for expiry"], notes="not yet")
    said = [
        update(task_id, "rev", progress="half of it"),
        update(task_id, "eve", progress="not mine"),
        report(task_id, "rev", "needs_review"),
        report(task_id, "rev", "done") | {"runId": other_run},
        update(task_id, "rev", status="done", notes="move it"),
        rejects,
        rejects,
    ]
    return [prefixed(one) for one in said if not senders or one["fromAgent"] in senders]


class Outcome(NamedTuple):
    """What came of it: in the log, where the hops stand, and the answers of a channel that gives any."""

    events: list[Any]
    hops: dict[str, str]
    answers: list[tuple[str, str | None]] | None


def prepared(root: Path, fabric: Fabric) -> tuple[str, str]:
    """A task whose first hop is done; the run of that one is over."""
    workflow(root, REVIEW)
    chart(root, {"dev": {"roles": ["developer"]}, "rev": {"roles": ["reviewer"]}, "rel": {"roles": ["releaser"]}})
    task_id = fabric.create("Gated", workflow="review").task_id
    first = fabric.claim(task_id, agent="dev").run_id
    fabric.complete(task_id, run=first, outcome="complete")
    return task_id, first


def told(root: Path, task_id: str, answers: list[tuple[str, str | None]] | None) -> Outcome:
    """Who carried a message differs, and how a process ended: that is the channel itself."""
    with open_fabric(root, actor=WHO) as fabric:
        found = [
            [one.type, one.actor, one.run_id, {k: v for k, v in one.payload.items() if k not in _OWN}]
            for one in fabric.events(task_id=task_id)
            if one.type.startswith(_SAID)
        ]
        return Outcome(_comparable(found), dict(workflow_of(fabric.get(task_id)).statuses()), answers)


_OWN = ("calledBy", "expiresAt", "ttlMs", "worker", "sentAt", "secretDigest", "ranBy")


def _comparable(found: list[Any]) -> list[Any]:
    """A hop is claimed and ended by whoever does it on that channel."""
    moves = ("task.attempt.", "task.hop.", "task.transitioned")
    alike = [[kind, None if kind.startswith(moves) else actor, run, payload] for kind, actor, run, payload in found]
    plain: list[Any] = json.loads(TAG.sub(r"\1", json.dumps(alike)))
    return plain


def by_door(name: str, folder: Path, *senders: str) -> Outcome:
    """Rev has claimed the hop, and the table is said."""
    with DOORS[name](folder, MAINTAINED) as door:
        task_id, first = prepared(door.root, door.elsewhere)
        run = door.elsewhere.claim(task_id, agent="rev", hop="code-review").run_id
        answers = [(one["outcome"], one.get("reason")) for one in sent(door, table(task_id, first, *senders), run)]
        door.elsewhere.session_end(run=run)
        return told(door.root, task_id, answers)


def by_worker(folder: Path) -> Outcome:
    """Rev is a process that prints its part of the table."""
    with python_door(folder, MAINTAINED) as door:
        task_id, first = prepared(door.root, door.elsewhere)
        words = (f"say={line}" for line in table(task_id, first, "rev"))
        pulling = {"dev": {"roles": ["developer"]}, "rel": {"roles": ["releaser"]}}
        chart(door.root, {"rev": {"roles": ["reviewer"], "runner": plain(scripted(*words))}} | pulling)
        with Up(door.root, "--once", "--actor", WHO) as up:
            assert up.finish() == 0, up.lines
        return told(door.root, task_id, None)


@pytest.fixture(scope="module")
def expected(tmp_path_factory: pytest.TempPathFactory) -> Outcome:
    """What comes of the table in Python."""
    return by_door("python", tmp_path_factory.mktemp("python"))


def test_in_python_each_message_is_answered_by_what_it_is(expected: Outcome) -> None:
    assert expected.answers == [
        ("accepted", None),
        ("rejected", "not_lease_holder"),
        ("rejected", "invalid"),
        ("rejected", "stale_lease"),
        ("accepted", "outcome_required"),
        ("accepted", None),
        ("noop", None),
    ]
    assert expected.hops == {"implement": "ready", "code-review": "rejected", "ship": "waiting"}


@pytest.mark.parametrize("name", ["cli", "http", "mcp"])
def test_every_surface_says_and_does_the_same(name: str, tmp_path: Path, expected: Outcome) -> None:
    assert by_door(name, tmp_path) == expected


def test_a_worker_that_prints_messages_does_the_same(tmp_path: Path) -> None:
    said, printed = by_door("python", tmp_path / "python", "rev"), by_worker(tmp_path / "worker")
    assert printed.events == said.events
    assert printed.hops == said.hops
