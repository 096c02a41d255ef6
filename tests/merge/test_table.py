"""What becomes of two changes of one thing, row by row."""

from __future__ import annotations

import io
import re
from functools import cache
from pathlib import Path

import pytest

import aof
from aof.documents import worklog
from aof.errors import AofError, StaleLease, UnmergeableHistory
from aof.kernel import events
from aof.kernel.events import Event, as_written
from aof.merge.model import RULES, Merged, TaskReport, rule_of
from aof.portable.model import Lives
from aof.portable.operations import lines
from aof.store.port import Scope
from aof.surfaces.cli.commands.data import typed_line
from aof.surfaces.cli.screen import Screen
from aof.tasks.body import comments_of
from aof.tasks.model import Task
from tests.support.forks import Clone, Repository

# --- what comes together, and how: each row of the table in the decision page, on histories that real fabrics wrote


_DAY = "TASK-2026-11-16"


class Fork:
    """Two clones of one history, a before b; what both do is merged at the end."""

    def __init__(self) -> None:
        self.repository = Repository()
        self.base = self.repository.root.fabric
        self.a: Clone = self.repository.root
        self.b: Clone = self.repository.root

    def split(self) -> None:
        self.b = self.repository.root.fork("bob")

    def wait(self) -> None:
        self.repository.clock.sleep(60)

    def merge(self) -> Merged:
        merged = self.a.pull(self.b)
        self.b.adopt(self.a.tip())
        return merged

    def task(self, task_id: str) -> Task:
        return self.a.task(task_id)


@pytest.fixture
def fork() -> Fork:
    return Fork()


def _create(clone: Clone, title: str, **given: object) -> str:
    made = clone.fabric.create(title, review=False, **given)  # type: ignore[arg-type]
    return made.task_id


def _note(merged: Merged, task_id: str) -> TaskReport:
    return next(one for one in merged.report.tasks if one.task_id == task_id)


def test_two_tasks_of_one_number_both_stay_and_one_gets_a_number_from_its_birth(fork: Fork) -> None:
    old = _create(fork.a, "shared")
    fork.split()
    mine = _create(fork.a, "mine")
    theirs = _create(fork.b, "theirs")
    assert mine == theirs == f"{_DAY}-002"
    follower = _create(fork.b, "follower", depends_on=[theirs])
    merged = fork.merge()
    (moved,) = merged.report.renumbered
    assert (moved.old, moved.title) == (theirs, "theirs")
    assert int(moved.new.rpartition("-")[2]) >= 1_000_000
    assert fork.task(mine).title == "mine"
    assert fork.task(moved.new).title == "theirs"
    assert fork.task(moved.new).aliases == (theirs,)
    assert fork.task(follower).depends_on == (moved.new,)
    assert fork.task(old).title == "shared"


def test_edits_of_different_fields_both_stay_and_nobody_is_told(fork: Fork) -> None:
    task = _create(fork.a, "a title", brief="one\n\ntwo\n\nthree\n")
    fork.split()
    fork.a.fabric.edit(task, title="another title", description="ONE\n\ntwo\n\nthree\n")
    fork.wait()
    fork.b.fabric.edit(task, priority="high", routing={"tags": ["x"]}, description="one\n\ntwo\n\nTHREE\n")
    merged = fork.merge()
    after = fork.task(task)
    assert (after.title, after.priority, after.routing.tags) == ("another title", "high", ("x",))
    assert after.body.strip() == "ONE\n\ntwo\n\nTHREE"
    assert not merged.report.tasks


def test_of_two_edits_of_one_field_the_later_stands_and_the_other_is_named(fork: Fork) -> None:
    task = _create(fork.a, "a title", brief="one\n")
    fork.split()
    fork.a.fabric.edit(task, title="first", description="from a\n")
    fork.wait()
    fork.b.fabric.edit(task, title="second", description="from b\n")
    merged = fork.merge()
    assert fork.task(task).title == "second"
    assert fork.task(task).body.strip() == "from b"
    clashes = {clash.field: (clash.kept, clash.other) for clash in _note(merged, task).clashes}
    assert clashes == {"title": ("second", "first"), "description": ("from b", "from a")}
    assert any('"second" stands, the other was "first"' in note for note in _note(merged, task).notes)
    last = next(event for event in reversed(fork.a.log) if event.task_id == task)
    assert last.type == "task.merged"
    assert last.payload["conflicts"] == list(_note(merged, task).notes)


def test_lists_and_objects_merge_by_their_parts(fork: Fork) -> None:
    task = _create(fork.a, "parts", tags=["kept", "gone"], metadata={"x": 1, "y": 1})
    one, two = _create(fork.a, "one"), _create(fork.a, "two")
    fork.split()
    fork.a.fabric.edit(task, routing={"tags": ["kept", "gone", "a"]}, metadata={"x": 2})
    fork.a.fabric.dep_add(task, one)
    fork.wait()
    fork.b.fabric.edit(task, routing={"tags": ["kept", "b"]}, metadata={"y": 3})
    fork.b.fabric.dep_add(task, two)
    merged = fork.merge()
    after = fork.task(task)
    assert after.routing.tags == ("kept", "a", "b")
    assert (after.metadata["x"], after.metadata["y"]) == (2, 3)
    assert after.depends_on == (one, two)
    assert not merged.report.tasks


def test_of_two_claims_the_earlier_keeps_the_lease_and_the_other_is_stale(fork: Fork) -> None:
    task = _create(fork.a, "claimed twice")
    fork.split()
    kept = fork.a.fabric.claim(task, agent="ann")
    fork.wait()
    lost = fork.b.fabric.claim(task, agent="ben")
    fork.wait()
    fork.a.fabric.progress(task, run=kept.run_id, text="ann goes on", note="a note by ann")
    fork.b.fabric.progress(task, run=lost.run_id, text="ben goes on", note="a note by ben")
    merged = fork.merge()
    after = fork.task(task)
    assert after.lease is not None
    assert (after.lease.run_id, after.lease.contested) == (kept.run_id, True)
    assert "a note by ann" in after.body
    assert "a note by ben" in after.body
    with pytest.raises(StaleLease):
        fork.b.fabric.progress(task, run=lost.run_id, text="still here")
    with pytest.raises(StaleLease):
        fork.a.fabric.complete(task, run=kept.run_id, summary="whose write is this?")
    ann = fork.a.fabric.on_behalf_of(fork.a.fabric.services.principal.as_run(str(kept.secret)))
    ann.complete(task, run=kept.run_id, summary="done by ann")
    told = _note(merged, task)
    assert [(run.run_id, run.agent) for run in told.superseded] == [(lost.run_id, "ben")]
    assert told.notes[0] == "claimed twice: ann keeps the lease; the run of ben is superseded"
    runs = [(run.run_id, run.status, run.attempt) for run in fork.a.folded()[task].runs]
    assert runs == [(lost.run_id, "superseded", 1), (kept.run_id, "completed", 1)]


def test_a_completion_stands_against_a_claim(fork: Fork) -> None:
    task = _create(fork.a, "done or claimed")
    fork.split()
    claim = fork.a.fabric.claim(task, agent="ann")
    fork.wait()
    fork.b.fabric.complete(task, agent="ben", summary="finished by ben")
    merged = fork.merge()
    assert fork.task(task).status == "done"
    assert [run.agent for run in _note(merged, task).superseded] == ["ann"]
    with pytest.raises(StaleLease):
        fork.a.fabric.progress(task, run=claim.run_id, text="still here")


def test_of_two_completions_the_earlier_result_stands_and_the_other_is_kept_as_an_attempt(fork: Fork) -> None:
    task = _create(fork.a, "done twice")
    fork.split()
    fork.a.fabric.complete(task, agent="ann", summary="by ann")
    fork.wait()
    fork.b.fabric.complete(task, agent="ben", summary="by ben")
    merged = fork.merge()
    folded = fork.a.folded()[task]
    assert folded.task is not None
    assert folded.task.status == "done"
    assert folded.result is not None
    assert folded.result.notes == "by ann"
    (lost,) = [run for run in folded.runs if run.status == "superseded"]
    assert (lost.agent_id, folded.results[lost.run_id].notes) == ("ben", "by ben")
    assert _note(merged, task).superseded[0].outcome == "done"
    assert "done twice: the result of ann stands" in _note(merged, task).notes[0]


def test_a_completion_stands_against_a_cancellation_that_came_too_late(fork: Fork) -> None:
    task = _create(fork.a, "done or cancelled")
    fork.split()
    fork.a.fabric.cancel(task, reason="not wanted")
    fork.wait()
    fork.b.fabric.complete(task, agent="ben", summary="finished")
    merged = fork.merge()
    assert fork.task(task).status == "done"
    assert fork.task(task).cancel is None
    assert "cancelled too late by root" in _note(merged, task).notes[0]


@pytest.mark.parametrize(("verb", "status"), [("cancel", "cancelled"), ("block", "blocked")])
def test_a_claim_gives_way_to_a_cancellation_or_a_block(fork: Fork, verb: str, status: str) -> None:
    task = _create(fork.a, "stopped elsewhere")
    fork.split()
    claim = fork.a.fabric.claim(task, agent="ann")
    fork.wait()
    getattr(fork.b.fabric, verb)(task, reason="stop")
    merged = fork.merge()
    after = fork.task(task)
    assert (after.status, after.lease, after.retry.attempts) == (status, None, 1)
    assert [run.agent for run in _note(merged, task).superseded] == ["ann"]
    with pytest.raises(StaleLease):
        fork.a.fabric.progress(task, run=claim.run_id, text="still here")


def test_the_next_run_has_a_greater_epoch_than_any_clone_has_given_out(fork: Fork) -> None:
    task = _create(fork.a, "often run")
    fork.split()
    for _ in range(2):
        fork.a.fabric.release(task, run=fork.a.fabric.claim(task, agent="ann").run_id)
    fork.wait()
    fork.b.fabric.block(task, reason="wait")
    fork.merge()
    fork.a.fabric.unblock(task)
    assert fork.a.fabric.claim(task, agent="ann").epoch == 3


def test_of_a_cycle_over_two_clones_the_later_edge_is_left_out(fork: Fork) -> None:
    one, two = _create(fork.a, "one"), _create(fork.a, "two")
    fork.split()
    fork.a.fabric.dep_add(one, two)
    fork.wait()
    fork.b.fabric.dep_add(two, one)
    merged = fork.merge()
    assert fork.task(one).depends_on == (two,)
    assert fork.task(two).depends_on == ()
    assert _note(merged, two).left_out == (one,)
    assert "would close a cycle" in _note(merged, two).notes[0]


def test_a_task_never_comes_to_stand_below_itself(fork: Fork) -> None:
    one, two = _create(fork.a, "one"), _create(fork.a, "two")
    fork.split()
    fork.a.fabric.edit(one, parent_id=two)
    fork.wait()
    fork.b.fabric.edit(two, parent_id=one)
    merged = fork.merge()
    assert (fork.task(one).parent_id, fork.task(two).parent_id) == (two, None)
    assert _note(merged, two).left_out == (one,)


def test_a_child_that_was_added_below_a_cancelled_parent_is_held(fork: Fork) -> None:
    parent = _create(fork.a, "parent")
    fork.split()
    fork.a.fabric.cancel(parent)
    fork.wait()
    child = _create(fork.b, "child", parent_id=parent)
    merged = fork.merge()
    after = fork.task(child)
    assert after.status == "blocked"
    assert after.blocked is not None
    assert parent in after.blocked.reason
    assert _note(merged, child).held_by == parent


def test_a_running_child_of_a_parent_that_was_cancelled_elsewhere_is_held_and_its_run_ends(fork: Fork) -> None:
    parent = _create(fork.a, "parent")
    fork.split()
    fork.a.fabric.cancel(parent)
    fork.wait()
    child = _create(fork.b, "child", parent_id=parent)
    fork.b.fabric.claim(child, agent="ben")
    fork.merge()
    assert fork.task(child).status == "blocked"
    assert [run.status for run in fork.a.folded()[child].runs] == ["released"]


def test_a_held_child_stays_free_once_somebody_who_knew_of_both_has_acted(fork: Fork) -> None:
    parent = _create(fork.a, "parent")
    fork.split()
    third = fork.a.fork("cas")
    fork.a.fabric.cancel(parent)
    fork.wait()
    child = _create(fork.b, "child", parent_id=parent)
    fork.merge()
    fork.wait()
    fork.a.fabric.unblock(child)
    fork.a.fabric.claim(child, agent="ann")
    third.fabric.create("something else")
    fork.a.pull(third)
    assert fork.task(child).status == "in-progress"


def test_a_task_is_blocked_whose_dependency_was_given_up_elsewhere(fork: Fork) -> None:
    needed = _create(fork.a, "needed")
    fork.split()
    fork.a.fabric.cancel(needed)
    fork.wait()
    late = _create(fork.b, "late", depends_on=[needed])
    merged = fork.merge()
    after = fork.task(late)
    assert after.blocked is not None
    assert after.blocked.dependency == needed
    assert _note(merged, late).held_by == needed


def test_a_task_is_free_again_whose_dependency_was_finished_after_all(fork: Fork) -> None:
    needed = _create(fork.a, "needed")
    waiting = _create(fork.a, "waiting", depends_on=[needed])
    fork.split()
    fork.a.fabric.cancel(needed)
    assert fork.a.task(waiting).status == "blocked"
    fork.wait()
    fork.b.fabric.complete(needed, agent="ben", summary="finished")
    fork.merge()
    assert fork.task(waiting).status == "ready"
    assert fork.a.fabric.claim(waiting, agent="ann").task_id == waiting


def test_an_archived_task_that_was_edited_is_both(fork: Fork) -> None:
    task = _create(fork.a, "put away")
    fork.a.fabric.complete(task, agent="ann", summary="done")
    fork.split()
    fork.a.fabric.archive(task)
    fork.wait()
    fork.b.fabric.edit(task, title="edited")
    fork.merge()
    assert (fork.task(task).archived, fork.task(task).title) == (True, "edited")


def test_a_retry_stands_against_the_archive(fork: Fork) -> None:
    task = _create(fork.a, "put away or retried")
    fork.a.fabric.complete(task, agent="ann", summary="done")
    fork.split()
    fork.a.fabric.archive(task)
    fork.wait()
    fork.b.fabric.retry(task, reason="again")
    merged = fork.merge()
    assert (fork.task(task).archived, fork.task(task).status) == (False, "ready")
    assert "ready by bob stands" in _note(merged, task).notes[0]


def test_what_was_done_and_archived_stands_against_a_claim_that_knew_of_neither(fork: Fork) -> None:
    task = _create(fork.a, "done and put away")
    fork.split()
    fork.a.fabric.complete(task, agent="ann", summary="done")
    fork.a.fabric.archive(task)
    fork.wait()
    fork.b.fabric.claim(task, agent="ben")
    fork.merge()
    assert (fork.task(task).archived, fork.task(task).status) == (True, "done")


def test_one_resource_that_was_claimed_twice_is_a_warning_and_both_run(fork: Fork) -> None:
    one, two = (_create(fork.a, title, resource="gpu") for title in ("one", "two"))
    fork.split()
    fork.a.fabric.claim(one, agent="ann")
    fork.wait()
    fork.b.fabric.claim(two, agent="ben")
    merged = fork.merge()
    assert (fork.task(one).status, fork.task(two).status) == ("in-progress", "in-progress")
    assert merged.report.notes == (f"resource gpu is in use by several tasks: {one}, {two}",)


def test_comments_and_notes_of_all_clones_stand_in_the_canonical_order(fork: Fork) -> None:
    task = _create(fork.a, "talked about")
    fork.split()
    for number, clone in enumerate((fork.a, fork.b, fork.a, fork.b)):
        fork.wait()
        clone.fabric.comment(task, f"comment {number}")
        clone.fabric.update(task, note=f"note {number}")
    fork.merge()
    body = fork.task(task).body
    assert [one.text for one in comments_of(body)] == [f"comment {number}" for number in range(4)]
    assert [body.index(f"note {number}") for number in range(4)] == sorted(
        body.index(f"note {number}") for number in range(4)
    )


def test_references_follow_what_their_author_saw(fork: Fork) -> None:
    fork.split()
    mine, theirs = _create(fork.a, "mine"), _create(fork.b, "theirs")
    assert mine == theirs
    claim = fork.b.fabric.claim(theirs, agent="ben")
    child = _create(fork.b, "child", parent_id=theirs)
    fork.b.fabric.link(child, "source_task", theirs)
    merged = fork.merge()
    ids = {one.title: one.new for one in merged.report.renumbered}
    after = fork.task(ids["theirs"])
    assert after.lease is not None
    assert after.lease.run_id == claim.run_id.replace(theirs[5:], ids["theirs"][5:])
    below = next(task for task in (one.task for one in fork.a.folded().values()) if task and task.title == "child")
    assert below.parent_id == ids["theirs"]
    assert [link.target_id for link in below.links] == [ids["theirs"]]
    fork.b.fabric.progress(ids["theirs"], run=after.lease.run_id, text="goes on")


def test_a_task_that_nobody_else_touched_is_as_it_was(fork: Fork) -> None:
    _create(fork.a, "shared")
    fork.split()
    fork.a.fabric.edit(f"{_DAY}-001", title="changed")
    task = _create(fork.b, "alone", brief="text\n", priority="high")
    fork.b.fabric.claim(task, agent="ben")
    before, runs = fork.b.task(task), fork.b.folded()[task].runs
    fork.merge()
    after = fork.task(task)
    volatile = {"rev", "updated_at", "aliases"}
    for name in set(Task.__struct_fields__) - volatile:
        assert getattr(after, name) == getattr(before, name), name
    assert fork.a.folded()[task].runs == runs


def test_errors_of_both_sides_are_no_errors_of_the_merge(fork: Fork) -> None:
    task = _create(fork.a, "refused")
    fork.split()
    with pytest.raises(AofError):
        fork.a.fabric.progress(task, agent="nobody", text="x")
    fork.a.fabric.comment(task, "a")
    fork.b.fabric.comment(task, "b")
    fork.merge()
    assert len(comments_of(fork.task(task).body)) == 2


def test_a_third_clone_does_not_undo_what_an_earlier_merge_has_chosen(fork: Fork) -> None:
    task = _create(fork.a, "claimed twice")
    fork.split()
    third = fork.a.fork("cas")
    kept = fork.a.fabric.claim(task, agent="ann")
    fork.wait()
    lost = fork.b.fabric.claim(task, agent="ben")
    fork.merge()
    fork.wait()
    fork.a.as_run(kept.secret).complete(task, run=kept.run_id, summary="by ann")
    before, runs = fork.task(task), fork.a.folded()[task].runs
    third.fabric.comment(task, "by cas")
    fork.a.pull(third)
    after = fork.task(task)
    assert fork.a.folded()[task].runs == runs
    assert [(run.run_id, run.status) for run in runs] == [(lost.run_id, "superseded"), (kept.run_id, "completed")]
    assert (after.status, after.retry, after.ended_at) == (before.status, before.retry, before.ended_at)


def test_the_number_of_a_task_follows_from_its_birth_however_many_others_there_are(fork: Fork) -> None:
    fork.split()
    third = fork.a.fork("cas")
    for clone in (fork.a, fork.b, third):
        fork.wait()
        _create(clone, f"of {clone.actor}")
    first = fork.merge().report.renumbered
    second = fork.a.pull(third).report.renumbered
    assert [one.new for one in first] == [one.new for one in second if one.title == "of bob"]
    assert {one.title for one in second} == {"of bob", "of cas"}


# --- every type of event that AOF writes has a rule in the merge


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


# --- what reads the log understands a merge: runs, WORKLOG lines, portable views, `aof log` for people


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
