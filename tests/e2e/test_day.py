"""A day in the life of three agents and a maintainer, as the page of the tutorial tells it: by files and commands."""

from __future__ import annotations

import re
from itertools import pairwise
from pathlib import Path

from aof.adapters.system import SystemClock
from aof.core.model.times import iso
from aof.entrypoints.bootstrap import open_fabric
from tests.docs.test_tutorial import DOCS, fits, steps
from tests.support.terminal import aof

PAGE = DOCS / "tutorial/a-day-with-three-agents.md"
_SHOWN = re.compile(r"^````markdown\n(.*?)^````", re.MULTILINE | re.DOTALL)
_NAMED = re.compile(r"\b(WL)-[0-9a-f]{16}|\b(MSG)-\d{8}-(\d{3})")


def test_a_day_with_three_agents_ends_with_everything_decided_and_documents_for_people(tmp_path: Path) -> None:
    assert len(steps(PAGE)) > 35
    for place in (tmp_path / "first", tmp_path / "second"):
        place.mkdir()
        today = _today()
        _lived(place)
        if today == _today():  # at midnight the WORKLOG begins a new session
            break
    _documents(place / ".aof")
    _facts(place / ".aof")


def _today() -> str:
    return iso(SystemClock().now())[:10]


def _lived(place: Path) -> None:
    """Run the commands of the page, each with the IDs that those before have shown."""
    last: dict[str, str] = {}
    for words, expected in steps(PAGE):
        said = aof(*(_filled(word, last) for word in words), cwd=place)
        told = said.out + said.err
        for shown in expected:
            assert any(fits(shown, line) for line in told.splitlines()), f"{words}: no {shown!r} in\n{told}"
        last |= {f"{one[1] or one[2]}-…{'-' + one[3] if one[3] else ''}": one[0] for one in _NAMED.finditer(told)}


def _filled(word: str, last: dict[str, str]) -> str:
    """The word with the IDs that the commands before have shown."""
    for shown in sorted(last, key=len, reverse=True):
        word = word.replace(shown, last[shown])
    return word


def _documents(root: Path) -> None:
    """The documents are what the page shows, line by line."""
    shown = _SHOWN.findall(PAGE.read_text(encoding="utf-8"))
    for text, name in zip(shown, ("WORKLOG.md", "MAILBOX.md"), strict=True):
        written = (root / name).read_text(encoding="utf-8").splitlines()
        for line, real in zip(text.splitlines(), written, strict=True):
            assert bool(line) == bool(real), (name, line, real)
            assert fits(line, real), (name, line, real)


def _facts(root: Path) -> None:
    """What the day has come to, as the log has it."""
    with open_fabric(root, actor="mia") as fabric:
        assert {row.status for row in fabric.list().tasks} == {"done"}
        assert len(fabric.worklog_show().decisions) == 4
        assert fabric.mail_list().messages == ()
        assert [one.state for one in fabric.conflict_list(settled=True).proposals] == ["decided"]
        assert fabric.charter_show().unsigned == ()
        assert fabric.doctor().ok
        events = list(fabric.store.events())
    assert all(before.seq < after.seq for before, after in pairwise(events))
    assert aof("worklog", "check", "--json", cwd=root.parent).data["problems"] == []
