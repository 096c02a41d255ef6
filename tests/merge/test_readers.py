"""What reads the log understands a merge: runs, WORKLOG lines, portable views, `aof log` for people."""

from __future__ import annotations

import io

import pytest

from aof.documents import worklog
from aof.kernel.events import Event, as_written
from aof.portable.model import Lives
from aof.portable.operations import lines
from aof.store.port import Scope
from aof.surfaces.cli.commands.data import typed_line
from aof.surfaces.cli.screen import Screen
from tests.support.forks import Clone, Repository


@pytest.fixture
def merged() -> Clone:
    """A task that was done in two clones, and renumbered ones."""
    repository = Repository()
    task = repository.root.fabric.create("done twice", review=False).task_id
    other = repository.root.fork("bob")
    for clone, agent in ((repository.root, "ann"), (other, "ben")):
        repository.clock.sleep(60)
        run = clone.fabric.claim(task, agent=agent).run_id
        clone.fabric.progress(task, run=run, note=f"{agent} began")
        clone.fabric.complete(task, run=run, summary=f"by {agent}")
        clone.fabric.create(f"of {agent}")
    repository.root.pull(other)
    return repository.root


def _superseded(clone: Clone) -> list[Event]:
    return [event for event in clone.log if event.type == "task.superseded"]


def test_a_superseded_event_can_be_read_as_its_author_wrote_it(merged: Clone) -> None:
    written = [as_written(event) for event in _superseded(merged)]
    assert {"task.attempt.started", "task.completed", "task.progress"} <= {event.type for event in written}
    assert (
        next(event for event in written if event.type == "task.progress").payload["workLog"] == "ben: Notes: ben began"
    )
    assert as_written(merged.log[0]) is merged.log[0]


def test_the_worklog_keeps_the_lines_of_superseded_runs(merged: Clone) -> None:
    with merged.store.unit(Scope()) as facts:
        said = [line for event in merged.log if (line := worklog.automatic_line(event, facts)) is not None]
    for agent in ("ann", "ben"):
        assert len([line for line in said if f"{agent}: claimed" in line]) == 1
        assert len([line for line in said if f"{agent}: completed" in line]) == 1
    assert all(event.type.startswith(worklog.TYPES) for event in _superseded(merged))


def test_a_portable_view_shows_a_superseded_run_as_an_attempt_with_its_result(merged: Clone) -> None:
    lives = Lives()
    for event in merged.log:
        lives.add(event)
    attempts = lives.by_id[merged.log[0].task_id].attempts
    assert {one.run.agent_id: (one.run.status, one.result and one.result.notes) for one in attempts} == {
        "ann": ("completed", "by ann"),
        "ben": ("superseded", "by ben"),
    }


def test_the_portable_log_tells_of_a_merge_only_where_there_is_something_to_tell(merged: Clone) -> None:
    told = [line for line in lines(merged.log) if line["payload"].get("changed") == ["merged"]]
    named = {event.task_id for event in merged.log if event.type == "task.merged" and "conflicts" in event.payload}
    assert {line["taskId"] for line in told} == named
    assert len(named) < len([event for event in merged.log if event.type == "task.merged"])
    completed = [line for line in lines(merged.log) if line["type"] == "task.completed"]
    assert len(completed) == 1


def test_the_log_says_in_words_what_was_superseded_and_merged(merged: Clone) -> None:
    out = io.StringIO()
    screen = Screen(out)
    for event in merged.log:
        typed_line(screen, event, 0)
    text = out.getvalue()
    assert "task.progress in another clone: ben: Notes: ben began" in text
    assert "done twice: the result of ann stands" in text
