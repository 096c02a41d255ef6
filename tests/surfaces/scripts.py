"""What is asked of every surface: scripts of calls that cover all operations, each with what it must refuse."""

from __future__ import annotations

from collections.abc import Callable

from tests.surfaces.tape import Tape

MISSING = "TASK-1999-01-01-001"
Script = Callable[[Tape], None]


def creating(tape: Tape) -> None:
    first = tape.task("First", priority="high", tags=["api", "auth"], agent="swe", role="dev", team="eng")
    tape.ask(
        "create", title="Second", brief="- [ ] one\n", depends_on=[first], parent_id=first, metadata={"a": {"b": [1]}}
    )
    tape.refused("create", "task_not_found", title="Third", brief="x", depends_on=[MISSING])
    tape.refused("create", "invalid", title=" ", brief="x")
    tape.refused("create", "invalid", title="Third", brief="x", priority="urgent")
    tape.refused("create", "payload_too_large", title="x" * 501, brief="x")
    tape.ask("create", title="Keyed", brief="x", key="k1")
    tape.ask("create", title="Keyed", brief="x", key="k1")
    tape.refused("create", "key_conflict", title="Other", brief="x", key="k1")


def a_whole_life(tape: Tape) -> None:
    task_id = tape.task("Life")
    tape.ask("claim", task_id=task_id, agent="tester")
    tape.ask("progress", task_id=task_id, text="half way", percent=50)
    tape.ask("heartbeat", task_id=task_id)
    tape.ask("update", task_id=task_id, body="# New\n")
    tape.ask("complete", task_id=task_id, summary="all of it")
    tape.ask("reject", task_id=task_id, blockers=["no tests"])
    tape.ask("claim", task_id=task_id, agent="tester")
    run = tape.elsewhere.get(task_id).lease
    assert run is not None
    tape.ask("complete", task_id=task_id, outcome="complete", summary="again", caller_role="developer", run=run.run_id)
    tape.ask("deliver", task_id=task_id, state="queued", target="channel:releases")
    tape.refused("deliver", "invalid", task_id=task_id, state="sent")
    tape.ask("approve", task_id=task_id, reason="good")
    tape.ask("output", task_id=task_id, attempt=1, stream="stderr", offset=0, limit=10)
    tape.refused("output", "no_such_attempt", task_id=task_id, attempt=9)
    tape.ask("complete", task_id=task_id)
    tape.ask("show", task_id=task_id)
    tape.ask("log", task_id=task_id)
    tape.ask("archive", task_id=task_id)
    tape.refused("approve", "not_ready", task_id=tape.task("Not in review"))


def claiming(tape: Tape) -> None:
    free, held, later = tape.task("Free"), tape.task("Held"), tape.task("Later", metadata={"draft": True})
    tape.elsewhere.claim(held, agent="bob")
    tape.refused("claim", "already_claimed", task_id=held, agent="tester")
    tape.refused("claim", "not_ready", task_id=later, agent="tester")
    tape.refused("claim", "task_not_found", task_id=MISSING, agent="tester")
    tape.refused("claim", "invalid", task_id=free, agent="not a name")
    for operation in ("heartbeat", "release", "fail", "complete"):
        tape.refused(operation, "not_lease_holder", task_id=held)
    tape.refused("progress", "not_lease_holder", task_id=held, text="mine")
    tape.refused("update", "not_lease_holder", task_id=held, body="mine")
    tape.ask("claim", task_id=free, agent="tester")
    tape.ask("release", task_id=free, reason="not today")
    tape.ask("claim", task_id=free, agent="tester")
    lease = tape.elsewhere.get(free).lease
    assert lease is not None
    tape.ask("fail", task_id=free, run=lease.run_id, code="tests_failed", message="3 of 20", retryable=False)
    tape.refused("heartbeat", "stale_lease", task_id=free, run=lease.run_id)
    tape.refused("complete", "stale_lease", task_id=held, run="RUN-2020-01-01-001-1")
    tape.ask("retry", task_id=free, reason="the service is back")


def moving(tape: Tape) -> None:
    task_id = tape.task("Moved")
    tape.ask("update", task_id=task_id, status="backlog", reason="not yet")
    tape.ask("update", task_id=task_id, status="backlog")
    tape.refused("update", "invalid_transition", task_id=task_id, status="done")
    tape.refused("update", "invalid", task_id=task_id, status="open")
    tape.ask("update", task_id=task_id, status="ready", body="# Both\n")
    tape.refused("update", "task_not_found", task_id=MISSING, status="ready")
    tape.ask("edit", task_id=task_id, title="Moved on", priority="low", routing={"agent": "ada", "tags": ["x"]})
    tape.ask("edit", task_id=task_id, description="Other words\n", metadata={"estimate": 3})
    tape.ask("edit", task_id=task_id, title="Moved on")
    tape.refused("edit", "invalid", task_id=task_id, title=" ")
    tape.refused("edit", "invalid", task_id=task_id)
    tape.refused("edit", "task_not_found", task_id=MISSING, title="x")


def holding(tape: Tape) -> None:
    task_id, other = tape.task("Stuck"), tape.task("Other")
    tape.ask("block", task_id=task_id, reason="waiting for credentials")
    tape.ask("blocked")
    tape.refused("block", "invalid", task_id=other, reason="  ")
    tape.ask("unblock", task_id=task_id)
    tape.ask("unblock", task_id=task_id)
    tape.ask("pause", task_id=task_id, reason="lunch")
    tape.ask("resume", task_id=task_id)
    tape.ask("cancel", task_id=task_id, reason="superseded")
    tape.ask("cancel", task_id=task_id)
    tape.refused("unblock", "invalid_transition", task_id=task_id)
    tape.refused("archive", "invalid_transition", task_id=other)
    tape.ask("archive", task_id=task_id)
    for operation in ("cancel", "unblock", "pause", "resume", "archive"):
        tape.refused(operation, "task_not_found", task_id=MISSING)
    tape.refused("retry", "task_not_found", task_id=MISSING, reason="x")
    tape.refused("reject", "task_not_found", task_id=MISSING, blockers=["x"])


def ordering(tape: Tape) -> None:
    first, second, third = tape.task("One"), tape.task("Two"), tape.task("Three")
    tape.ask("dep_add", task_id=second, blocker_id=first)
    tape.ask("dep_add", task_id=second, blocker_id=first)
    tape.ask("dep_add", task_id=third, blocker_id=second)
    tape.refused("dep_add", "dependency_cycle", task_id=first, blocker_id=third)
    tape.refused("dep_add", "task_not_found", task_id=first, blocker_id=MISSING)
    tape.refused("claim", "not_ready", task_id=second, agent="tester")
    tape.ask("dep_remove", task_id=second, blocker_id=first)
    tape.ask("dep_remove", task_id=second, blocker_id=first)
    tape.ask("link", task_id=second, kind="source_task", target=first, reason="came from it")
    tape.ask("show", task_id=second)
    tape.ask("unlink", task_id=second, kind="source_task", target=first)
    tape.refused("link", "invalid", task_id=second, kind="friend", target=first)
    tape.ask("graph", task_id=second, format="dot")
    tape.refused("graph", "task_not_found", task_id=MISSING)


def looking(tape: Tape) -> None:
    task_id = tape.task("Needle in the hay", tags=["hay"], agent="tester")
    tape.ask("list", status="ready", tag="hay", limit=5)
    tape.ask("list", search="needle")
    tape.ask("ready", agent="tester", limit=2)
    tape.ask("ready", tag="hay", explain=True)
    tape.ask("status", agent="tester", limit=1)
    tape.ask("status", compact=True)
    tape.refused("list", "invalid", status="open")
    tape.refused("show", "task_not_found", task_id=MISSING)
    tape.refused("show", "ambiguous_id", task_id=task_id[:9])
    tape.refused("log", "task_not_found", task_id=MISSING)
    head = tape.elsewhere.store.head()
    tape.ask("log", after=head - 2, limit=1)
    tape.ask("log", task_id=task_id, type="task.created")
    tape.ask("show", task_id=task_id, at=head)
    tape.ask("replay", at=head)
    tape.refused("replay", "invalid", at=head + 1000)
    tape.ask("portable_log", task_id=task_id)
    tape.ask("portable_log", after=head - 2, type="task.created", limit=1)
    tape.refused("portable_log", "task_not_found", task_id=MISSING)
    tape.ask("snapshot")
    tape.ask("snapshot", at=head, archived=True)
    tape.refused("snapshot", "invalid", at=head + 1000)
    tape.ask("prime", agent="tester")


def looking_after(tape: Tape) -> None:
    task_id = tape.task("Edited by hand")
    path = tape.elsewhere.store.path_of(tape.elsewhere.get(task_id))
    tape.edit(path, 'title: "Edited by hand"', 'title: "Edited by a person"')
    tape.ask("sync")
    tape.ask("show", task_id=task_id)
    tape.ask("recover")
    tape.ask("doctor")
    tape.ask("doctor", fix=True)


def teaming(tape: Tape) -> None:
    task_id = tape.task("Routed", agent="tester")
    tape.ask("org_show")
    tape.ask("org_check")
    tape.ask("org_route", agent="tester")
    tape.ask("handoffs", task=task_id)
    tape.refused("handoff", "handoff_not_found", handoff_id="HO-1999-01-01-001-1")
    tape.ask("tick", dry_run=True)
    tape.ask("session_end", agent="nobody")
    tape.ask("send", messages=["this is not a message of the protocol"])
    tape.refused("session_end", "invalid", run="nothing")


def gating(tape: Tape) -> None:
    task_id = tape.task("In no workflow")
    tape.ask("workflow_check")
    tape.refused("workflow_check", "workflow_not_found", name="nothing")
    tape.refused("workflow_show", "workflow_not_found", name="nothing")
    tape.refused("workflow_show", "invalid", name=task_id)
    tape.refused("workflow_attach", "invalid", task_id=task_id)
    tape.refused("workflow_attach", "task_not_found", task_id=MISSING)


SCRIPTS: tuple[Script, ...] = (
    creating,
    a_whole_life,
    claiming,
    moving,
    holding,
    ordering,
    looking,
    teaming,
    gating,
    looking_after,
)
