"""Documents under crashes, races and editors: nothing is lost, nothing is doubled, and the file can always be read."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from aof.api.fabric import Fabric
from aof.documents.worklog_text import parse_worklog
from aof.service.bootstrap import open_fabric
from aof.store.files.store import FilesystemStore
from aof.testing import FakeClock
from tests.support.deaths import die_at_every_step, opened
from tests.support.disks import SteppingDisk
from tests.support.processes import together
from tests.support.requirements import requirement

MONDAY = "2026-03-02T09:00:00Z"
DAY = 86_400
PERSON = "\n### maintainer: By hand\n\nKept as it is.\n"
Act = Callable[[Fabric], object]


def say(fabric: Fabric, subject: str, **given: Any) -> object:
    return fabric.worklog_add("escalation.requested", agent="ada", subject=subject, **given)


def first(fabric: Fabric) -> object:
    return say(fabric, "The very first")


def post(fabric: Fabric) -> object:
    say(fabric, "Before")  # from here on the file is as AOF left it, and entries are appended
    return say(fabric, "One more", body="Of some length. " * 40)


def decide(fabric: Fabric) -> object:
    return fabric.worklog_decide("use it", owner="ada")


def now(fabric: Fabric) -> object:
    return fabric.worklog_now("the parser", agent="ada")


def work(fabric: Fabric) -> object:
    fabric.create("Write it", review=False)
    run = fabric.claim("001", agent="ada").run_id
    fabric.complete("001", run=run)
    return fabric.worklog_show()


def compact(fabric: Fabric) -> object:
    return fabric.worklog_compact()


def prepared(root: Path) -> None:
    """Two sessions, a decision, and something that a person wrote."""
    clock = FakeClock(MONDAY)
    FilesystemStore.create(str(root), SteppingDisk())
    fabric = opened(root, clock)
    say(fabric, "First")
    fabric.worklog_decide("decided before", owner="ada")
    with (root / "WORKLOG.md").open("a") as file:
        file.write(PERSON)
    clock.sleep(DAY)
    say(fabric, "Second")
    fabric.close()


def empty(root: Path) -> None:
    """Nothing was ever said."""
    FilesystemStore.create(str(root), SteppingDisk())


def a_day_later() -> FakeClock:
    return FakeClock("2026-03-03T09:00:00Z")


def checked(root: Path, boot: str) -> None:
    """What the log has stands in the files once, the person's text is there, and work goes on."""
    fabric = opened(root, a_day_later(), boot=boot)
    try:
        shown = fabric.worklog_show(archived=True)
        subjects = Counter(one["subject"] for one in shown.entries)
        said = [event.payload for event in fabric.store.events() if event.type == "document.worklog.entry"]
        assert all(count == 1 for count in subjects.values()), subjects
        assert {" ".join(one["text"].split("\n")[0].partition(": ")[2].split()) for one in said} <= subjects.keys()
        assert [one["decision"] for one in shown.decisions] == [one["decision"] for one in said if "decision" in one]
        report = fabric.worklog_check()
        assert [one for one in report.problems if one["severity"] == "error"] == []
        whole = _text(root, "WORKLOG.md") + _text(root, "WORKLOG_ARCHIVE.md")
        assert whole.count(PERSON) == int((root / "prepared").exists())
        assert all(whole.count(f"## Session {number} ") <= 1 for number in range(1, 4))
        say(fabric, "It goes on")
        assert fabric.worklog_show().entries[-1]["subject"] == "It goes on"
    finally:
        fabric.close()


def _text(root: Path, name: str) -> str:
    path = root / name
    return path.read_text() if path.exists() else ""


@requirement("comms.worklog.compact-move", "comms.event.decision-recorded")
@pytest.mark.parametrize("act", [first, post, decide, now, work, compact], ids=lambda act: act.__name__)
@pytest.mark.usefixtures("few_stripes")
def test_whatever_step_a_writer_dies_at_everything_stands_there_once(shm_path: Path, act: Act) -> None:
    before = shm_path / "before"
    (empty if act is first else prepared)(before)
    if act is not first:
        (before / "prepared").touch()
    assert die_at_every_step(before, a_day_later, act, checked) > 3


@requirement("comms.worklog.append")
def test_entries_of_twenty_processes_at_once_all_arrive_whole(root: Path) -> None:
    def one(number: int) -> str:
        with open_fabric(root, actor="pm") as mine:
            said = mine.worklog_add("escalation.requested", agent=f"agent-{number}", subject=f"Entry {number}")
            if number % 4 == 0:
                mine.as_actor(f"agent-{number}").worklog_now(f"entry {number}")
            return said.event_id

    answers = together(20, one)

    with open_fabric(root) as fabric:
        shown = fabric.worklog_show()
        assert {entry["event_id"] for entry in shown.entries} == set(answers)
        assert len(shown.entries) == len(answers) == 20
        assert {line["key"] for line in shown.status} >= {f"agent-{number}" for number in range(0, 20, 4)}
        assert fabric.worklog_check().problems == []


def test_an_editor_that_saves_while_others_post_loses_nothing_and_takes_nothing_away(root: Path) -> None:
    path = root / "WORKLOG.md"
    with open_fabric(root, actor="pm") as fabric:
        fabric.worklog_add("escalation.requested", agent="ada", subject="Begin")

    def one(number: int) -> int:
        if number == 0:  # an editor: reads, changes, and puts its version in place
            for turn in range(30):
                text = path.read_text()
                (root / "tmp" / "edited").write_text(text + f"\n### editor: Hand {turn}\n\n**Escalation:** x\n")
                os.replace(root / "tmp" / "edited", path)
            return 0
        with open_fabric(root, actor="pm") as mine:
            for turn in range(5):
                mine.worklog_add("escalation.requested", agent=f"agent-{number}", subject=f"Entry {number}-{turn}")
        return 1

    together(9, one)

    with open_fabric(root) as fabric:
        subjects = Counter(entry["subject"] for entry in fabric.worklog_show().entries)
        assert {f"Entry {number}-{turn}" for number in range(1, 9) for turn in range(5)} <= subjects.keys()
        assert {f"Hand {turn}" for turn in range(30)} <= subjects.keys()
        assert max(subjects.values()) == 1


@requirement("comms.delivery.eventual")
def test_readers_see_whole_entries_and_a_part_of_what_the_file_becomes_while_ten_write(root: Path) -> None:
    path = root / "WORKLOG.md"
    with open_fabric(root, actor="pm") as fabric:
        fabric.worklog_add("escalation.requested", agent="ada", subject="First", body="x " * 200)

    def one(number: int) -> list[str]:
        with open_fabric(root, actor="pm") as mine:
            if number >= 2:
                for turn in range(5):
                    mine.worklog_add("escalation.requested", agent="ada", subject=f"{number}-{turn}", body="x " * 200)
                return []
            seen: list[str] = []
            for _ in range(20):
                shown = mine.worklog_show()
                assert shown.as_of
                assert all(entry["payload"]["details"].count("x") == 200 for entry in shown.entries)
                seen.append(path.read_text())
            return seen

    answers = together(12, one)

    whole = path.read_text()
    assert len(parse_worklog(whole).entries) == 51
    for text in (text for seen in answers for text in seen):
        assert whole.startswith(text)
