"""What is asked of every surface: scripts of calls that cover all operations, each with what it must refuse."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tests.support.present import present
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
    run = present(tape.elsewhere.get(task_id).lease)
    tape.ask("complete", task_id=task_id, outcome="complete", summary="again", caller_role="developer", run=run.run_id)
    tape.ask("deliver", task_id=task_id, state="queued", target="channel:releases")
    tape.refused("deliver", "invalid", task_id=task_id, state="sent")
    tape.ask("complete", task_id=task_id, summary="again")
    tape.refused("approve", "own_work", task_id=task_id)
    tape.refused("update", "own_work", task_id=task_id, status="done")
    tape.elsewhere.approve(task_id, reason="good")
    theirs = tape.task("Another's")
    tape.elsewhere.complete(theirs, agent="ada")
    tape.ask("approve", task_id=theirs, reason="good")
    tape.ask("output", task_id=task_id, attempt=1, stream="stderr", offset=0, limit=10)
    tape.refused("output", "no_such_attempt", task_id=task_id, attempt=9)
    tape.ask("complete", task_id=task_id)
    tape.ask("show", task_id=task_id)
    tape.ask("log", task_id=task_id)
    tape.ask("archive", task_id=task_id)
    tape.refused("approve", "invalid_transition", task_id=tape.task("Not in review"))


def commenting(tape: Tape) -> None:
    task_id = tape.task("Discussed", due="2026-04-01")
    tape.ask("comment", task_id=task_id, text="First\n## not a heading", agent="eve")
    tape.ask("comment", task_id=task_id, text="Second", key="c1")
    tape.ask("comment", task_id=task_id, text="Second", key="c1")
    tape.refused("comment", "key_conflict", task_id=task_id, text="Third", key="c1")
    tape.refused("comment", "invalid", task_id=task_id, text=" ")
    tape.refused("comment", "task_not_found", task_id=MISSING, text="x")
    tape.ask("templates")
    tape.refused("create", "invalid", title="Third", brief="x", template="absent")
    tape.ask("search", text="HEAD firs", status="ready", limit=5)
    tape.refused("search", "invalid", text="  ")
    tape.ask("show", task_id=task_id)


def revisions(tape: Tape) -> None:
    task_id = tape.task("Seen")
    seen = tape.elsewhere.get(task_id).rev
    tape.elsewhere.edit(task_id, title="Changed meanwhile")
    for operation, given in (
        ("edit", {"priority": "high"}),
        ("update", {"body": "# New\n"}),
        ("claim", {"agent": "tester"}),
        ("block", {"reason": "no key"}),
        ("cancel", {}),
    ):
        tape.refused(operation, "revision_conflict", task_id=task_id, expect_rev=seen, **given)
    tape.ask("edit", task_id=task_id, expect_rev=tape.elsewhere.get(task_id).rev, priority="high")


def second_thoughts(tape: Tape) -> None:
    task_id = tape.task("Maybe")
    tape.ask("edit", task_id=task_id, title="Certainly")
    tape.ask("undo", dry_run=True)
    tape.ask("undo", task_id=task_id)
    tape.ask("cancel", task_id=task_id, reason="no")
    tape.ask("archive", task_id=task_id)
    tape.ask("unarchive", task_id=task_id)
    tape.ask("archive", task_id=task_id)
    tape.ask("reopen", task_id=task_id, reason="yes", backlog=True)
    tape.ask("reopen", task_id=task_id)
    tape.ask("undo", seq=tape.elsewhere.store.head())
    now = tape.task("Now")
    tape.ask("claim", task_id=now, agent="tester")
    tape.refused("undo", "not_undoable")
    tape.ask("release", task_id=now)
    tape.refused("undo", "not_undoable")
    tape.refused("undo", "invalid", seq=99_999)
    tape.refused("undo", "task_not_found", task_id=MISSING)


def many(tape: Tape) -> None:
    first, second, third = (tape.task(f"Many {number}", tags=["many"]) for number in range(3))
    tape.elsewhere.claim(third, agent="bob")
    tape.ask("bulk", command="edit", tag="many", changes={"priority": "high", "tags": ["much"]}, dry_run=True)
    tape.ask("bulk", command="edit", tag="many", changes={"priority": "high", "tags": ["much"]})
    tape.ask("bulk", command="archive", task_ids=[first, second])
    tape.ask("bulk", command="cancel", task_ids=[first, second], reason="no", expect_revs={first: 1})
    tape.ask("bulk", command="retry", task_ids=[second], reason="again")
    tape.refused("bulk", "invalid", command="cancel")
    tape.refused("bulk", "invalid", command="cancel", limit=3, archived=True)
    tape.refused("bulk", "invalid", command="cancel", task_ids=[first], status="ready")
    tape.refused("bulk", "invalid", command="retry", task_ids=[first])
    tape.refused("bulk", "task_not_found", command="cancel", task_ids=[first, MISSING])


def moving_in(tape: Tape) -> None:
    rows = "id,title,status,dependsOn,parent,colour\n1,One,done,,,red\n2,Two,open,1,1,\n"
    table = {"source": "csv", "files": [{"name": "tasks.csv", "text": rows}]}
    tape.ask("import_tasks", **table, dry_run=True)
    made = tape.ask("import_tasks", **table)
    tape.made(*(one["taskId"] for one in made["items"]))
    tape.ask("import_tasks", **table)
    twice = {"source": "csv", "files": [{"name": "tasks.csv", "text": "id,title\n1,A\n1,B\n"}]}
    tape.refused("import_tasks", "invalid", **twice)
    circle = {"source": "csv", "files": [{"name": "tasks.csv", "text": "id,title,dependsOn\n8,A,9\n9,B,8\n"}]}
    tape.refused("import_tasks", "dependency_cycle", **circle)
    tape.ask("export_tasks", format="csv", search="Two")
    tape.ask("export_tasks", format="json", search="Two")


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
    lease = present(tape.elsewhere.get(free).lease)
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
    tape.ask("assign", task_id=task_id, nobody=True)
    tape.ask("assign", task_id=task_id, agent="ada")
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
    tape.task("Another needle")
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


def supervising(tape: Tape) -> None:
    task_id = tape.task("Deploy the API")
    tape.ask("claim", task_id=task_id, agent="ada")
    tape.ask("ask", task_id=task_id, text="Which region?", choices=["eu", "us"], agent="ada")
    tape.refused("ask", "no_question", task_id=task_id, question="Q7", agent="ada")
    tape.ask("inbox", kind=["question"], limit=5)
    tape.refused("inbox", "invalid", cursor="no cursor")
    tape.ask("moves", task_id=task_id)
    tape.ask("answer", task_id=task_id, text="eu", question="Q1")
    tape.refused("answer", "already_answered", task_id=task_id, text="us", question="Q1")
    tape.ask("agents", agent="ada")
    tape.ask("timeline", task_id=task_id)
    tape.ask("neighbourhood", task_id=task_id)
    tape.ask("task_at", task_id=task_id)
    tape.refused("task_at", "task_not_found", task_id=MISSING)
    tape.ask("flow", days=1)
    tape.ask("verify")


def looking_after(tape: Tape) -> None:
    tape.knows_me()
    task_id = tape.task("Edited by hand")
    path = tape.elsewhere.store.path_of(tape.elsewhere.get(task_id))
    tape.edit(path, 'title: "Edited by hand"', 'title: "Edited by a person"')
    tape.ask("sync")
    tape.ask("show", task_id=task_id)
    tape.ask("recover")
    tape.ask("merge", dry_run=True)
    tape.ask("merge")
    tape.ask("doctor")
    tape.ask("doctor", fix=True)


def teaming(tape: Tape) -> None:
    task_id = tape.task("Routed", agent="tester")
    tape.ask("org_show")
    tape.ask("org_check")
    tape.ask("org_route", agent="tester")
    tape.ask("handoff_list", task=task_id)
    tape.refused("handoff_show", "handoff_not_found", handoff_id="HO-1999-01-01-001-1")
    tape.ask("audit", task=task_id)
    tape.ask("audit_verify")
    tape.ask("audit_prune", dry_run=True)
    tape.ask("tick", dry_run=True)
    tape.ask("session_end", agent="nobody")
    tape.ask("send", messages=["this is not a message of the protocol"])
    tape.refused("session_end", "invalid", run="nothing")


def chartering(tape: Tape) -> None:
    tape.refused("charter_show", "no_charter")
    tape.refused("charter_check", "no_charter")
    tape.refused("charter_init", "not_allowed", milestone="First")
    tape.elsewhere.charter_init(participants=["tester:Developer:api"], lanes=["api:tester:src/**"])
    tape.ask("charter_sign", notes="with pleasure")
    tape.refused("charter_sign", "invalid", status="maybe")
    tape.refused("charter_amend", "not_allowed", risk_tier="High", done=[1, 2], reason="new data")
    tape.refused("charter_amend", "invalid", reason="nothing")
    tape.ask("charter_show")
    tape.ask("charter_check", agent="tester", changed=["src/a.py", "elsewhere.py"])


def scheduling(tape: Tape) -> None:
    tape.ask("job_add", job_id="nightly", title="Check", cron="0 2 * * *", timezone="UTC", missed="all", tags=["ci"])
    tape.refused("job_add", "job_exists", job_id="nightly", title="Check", cron="@daily")
    tape.refused("job_add", "invalid", job_id="odd", title="Check", cron="61 * * * *")
    tape.refused("job_add", "invalid", job_id="odd", title="Check", at="2001-01-01T00:00Z")
    tape.refused("job_add", "invalid", job_id="odd")
    tape.ask("job_add", job_id="batch", items=[{"title": "One"}, {"title": "Two", "workflow": "nowhere"}])
    tape.ask("job_pause", job_id="nightly")
    tape.ask("job_resume", job_id="nightly")
    tape.ask("job_run", job_id="nightly")
    tape.ask("job_run", job_id="batch")
    tape.ask("job_run", job_id="batch")
    tape.ask("job_show", job_id="batch")
    tape.ask("job_list")
    for job_id in ("batch", "nightly"):
        tape.ask("job_rm", job_id=job_id)
    tape.refused("job_show", "job_not_found", job_id="batch")


def noting(tape: Tape) -> None:
    tape.ask("worklog_now", text="the parser")
    tape.refused("worklog_now", "not_allowed", text="the release", line="focus")
    tape.ask("worklog_add", type="escalation.requested", subject="Which port?", reasons=["two are in use"])
    tape.refused("worklog_add", "invalid", type="handoff.posted", subject="The parser")
    tape.ask("worklog_decide", text="port 8080")
    tape.ask("worklog_show", limit=1)
    tape.ask("worklog_check")
    tape.refused("worklog_compact", "not_allowed")


def disagreeing(tape: Tape) -> None:
    tape.ask("conflict_list")
    tape.refused("conflict_show", "conflict_not_found", conflict_id="PROP-404")
    tape.refused("conflict_settle", "conflict_not_found", conflict_id="PROP-404", text="x")
    raised: dict[str, Any] = {"other": "ada", "recommended": "JSON", "counter": "CSV", "reasons": ["people read it"]}
    dispute = tape.elsewhere.worklog_add("objection.raised", agent="tester", subject="CSV", **raised).event_id
    tape.ask("conflict_list", settled=True)
    tape.ask("conflict_show", conflict_id=dispute)
    tape.ask("conflict_default", conflict_id=dispute, text="keep it", reasons=["nothing breaks"])
    tape.ask("conflict_settle", conflict_id=dispute, text="use CSV")
    tape.refused("conflict_settle", "conflict_settled", conflict_id=dispute, text="again")


def sharing(tape: Tape) -> None:
    top = tape.task("Shared")
    task_id = tape.task("Part", parent_id=top)
    tape.ask("claim", task_id=task_id, agent="tester")
    tape.ask("context_set", task_id=task_id, variables={"plan": {"steps": [1, 2.5, "drei ü", None]}}, scope="shared")
    tape.ask("context_set", task_id=task_id, variables={"plan": "b"}, base=1)
    tape.refused("context_set", "context_conflict", task_id=task_id, variables={"plan": "c"}, base=1)
    tape.refused("context_set", "out_of_scope", task_id=task_id, variables={"own": 1}, scope="bob")
    tape.refused("context_set", "invalid", task_id=task_id, variables={"task_status": "stuck"})
    tape.refused("context_set", "invalid", task_id=task_id)
    tape.ask("context_decide", task_id=task_id, description="REST, no GraphQL")
    tape.ask("lock", path="src/api.py", task_id=task_id, also=["docs"], lock_type="shared")
    tape.ask("lock", path="./src//api.py", task_id=task_id)
    tape.ask("context_show", task_id=top)
    tape.ask("locks", path="src")
    tape.ask("locks", agent="nobody")
    tape.refused("lock", "invalid", path="../etc/passwd", task_id=task_id)
    tape.refused("lock", "invalid", path="src/api.py", task_id=task_id, lock_type="advisory")
    tape.refused("lock", "stale_lease", path="src/api.py", task_id=top)
    other = tape.task("Rival")
    run = tape.elsewhere.claim(other, agent="bob").run_id
    tape.refused("lock", "not_lease_holder", path="src/api.py", task_id=other)
    tape.refused("lock", "file_locked", path="src", task_id=other, run=run)
    tape.refused("context_artifact", "lock_required", task_id=task_id, path="src/other.py")
    tape.ask("context_artifact", task_id=task_id, path="src/api.py", type="code", description="the endpoint")
    tape.ask("context_artifact", task_id=task_id, path="https://example.org/api", status="final")
    tape.refused("context_artifact", "invalid", task_id=task_id, path="src/api.py", type="picture")
    tape.refused("context_artifact", "invalid", task_id=task_id, path="/etc/passwd")
    tape.ask("preflight", task_id=task_id, point="write", subject="src/api.py")
    tape.ask("preflight", task_id=task_id, point="write", subject="src/other.py")
    tape.ask("preflight", task_id=task_id, point="lines", amount=40)
    tape.ask("preflight", task_id=top, agent="bob", risk="high")
    tape.refused("preflight", "invalid", task_id=task_id, point="write")
    tape.refused("preflight", "invalid", task_id=task_id, point="thought", subject="x")
    tape.refused("preflight", "stale_lease", task_id=top, point="read", subject="src")
    tape.ask("unlock", path="docs", task_id=task_id)
    tape.ask("unlock", task_id=task_id)
    tape.ask("unlock", task_id=task_id)
    tape.refused("unlock", "task_not_found", task_id=MISSING)
    tape.refused("context_show", "task_not_found", task_id=MISSING)


def handing(tape: Tape) -> None:
    top = tape.task("Whole")
    tape.ask("claim", task_id=top, agent="tester")
    part, other = tape.task("Part", parent_id=top), tape.task("Other")
    new = {"type": "delegation", "task_id": part, "to": ["bob"], "reason": "needs a test"}
    tape.refused("handoff_new", "invalid", **(new | {"timeout": "soon"}))
    tape.refused("handoff_new", "invalid", **(new | {"type": "parallel"}))
    tape.refused("handoff_new", "invalid", type="escalation", task_id=top, reason="unclear")
    tape.refused("handoff_new", "task_not_found", **(new | {"task_id": MISSING, "timeout": "5m"}))
    tape.refused("handoff_new", "segment_open", **(new | {"type": "sequential", "task_id": top}))
    tape.ask("handoff_new", **new, timeout="5m", capabilities=["python:0.5"], variables={"input": {"rows": [1]}})
    (one,) = tape.elsewhere.handoff_list()
    tape.refused("handoff_return", "handoff_not_accepted", handoff_id=one.id, agent="bob", status="success")
    tape.refused("handoff_accept", "not_addressee", handoff_id=one.id, agent="cem")
    tape.refused("handoff_reject", "invalid", handoff_id=one.id, agent="bob", reason=" ")
    tape.ask("handoff_defer", handoff_id=one.id, agent="bob", reason="after lunch")
    tape.ask("handoff_resend", handoff_id=one.id)
    tape.ask("handoff_accept", handoff_id=one.id[:8], agent="bob", estimated_completion="2026-03-02T12:00:00Z")
    tape.ask("handoff_show", handoff_id=one.id)
    tape.ask(
        "handoff_return", handoff_id=one.id, agent="bob", status="partial", result={"left": [2]}, tokens_consumed=7
    )
    tape.refused("handoff_return", "already_returned", handoff_id=one.id, agent="bob", status="success")
    tape.ask("handoff_new", type="broadcast", task_id=top, to=["bob", "cem"], reason="look", aggregation="any")
    first = next(one for one in tape.elsewhere.handoff_list(task=top) if one.to_agent == "bob" and one.task_id == top)
    tape.refused("handoff_reroute", "handoff_closed", handoff_id=one.id, reason="away")
    tape.ask("handoff_withdraw", handoff_id=first.id, reason="never mind")
    tape.ask("handoff_group", group_id=first.id)
    tape.refused("handoff_group", "handoff_not_found", group_id=one.id)
    tape.ask("handoff_new", type="escalation", task_id=other, to=["bob"], reason="unclear", rationale="two readings")
    up = tape.elsewhere.handoff_list(task=other)[0]
    tape.refused("handoff_escalate", "handoff_not_accepted", handoff_id=up.id, agent="bob", rationale="not me")
    tape.elsewhere.handoff_accept(up.id, agent="bob")
    tape.ask("handoff_escalate", handoff_id=up.id, agent="bob", to_agent="cem", rationale="not me")
    last = tape.elsewhere.handoff_list(task=other)[-1]
    tape.ask("handoff_answer", handoff_id=last.id, agent="cem", text="the first one")
    tape.ask("handoff_list", task=other, from_agent="tester", state="completed")
    tape.ask("handoff_chain", task_id=other)


def gating(tape: Tape) -> None:
    task_id = tape.task("In no workflow")
    tape.ask("workflow_check")
    tape.refused("workflow_check", "workflow_not_found", name="nothing")
    tape.refused("workflow_show", "workflow_not_found", name="nothing")
    tape.refused("workflow_show", "invalid", name=task_id)
    tape.refused("workflow_attach", "invalid", task_id=task_id)
    tape.refused("workflow_attach", "task_not_found", task_id=MISSING)


def mailing(tape: Tape) -> None:
    first = tape.ask("mail_send", from_agent="tester", to="bob", subject="Which port?", priority="P1", body="Please.")
    message_id = str(first["messageId"])
    tape.ask("mail_inbox", agent="bob")
    tape.ask("mail_list", from_agent="tester", status="unread")
    tape.ask("mail_show", message_id=message_id)
    tape.refused("mail_show", "message_not_found", message_id="MSG-19990101-001")
    tape.refused("mail_ack", "not_receiver", message_id=message_id, reason="read")
    tape.refused("mail_block", "not_receiver", message_id=message_id, reason="waits")
    tape.refused("mail_action", "not_receiver", message_id=message_id, reason="done")
    tape.refused("mail_send", "invalid", to="bob", subject=" ")
    tape.refused("mail_send", "invalid", to="bob", subject="x", type="objection")
    tape.refused("mail_send", "payload_too_large", to="bob", subject="x", body="x" * 70_000)
    own = tape.elsewhere.mail_send("tester", "For you", from_agent="bob").message_id
    tape.ask("mail_ack", message_id=own, reason="read")
    tape.ask("mail_ack", message_id=own, reason="read again")
    tape.ask("mail_block", message_id=own, reason="waits for the tests")
    tape.ask("mail_action", message_id=own, reason="done")
    tape.refused("mail_ack", "status_not_allowed", message_id=own, reason="read")
    tape.ask("mail_escalate", message_id=message_id, reason="no answer")
    tape.ask("mail_close", message_id=message_id, disposition="resolved", reason="thanks")
    tape.refused("mail_escalate", "message_closed", message_id=message_id, reason="no answer")
    tape.refused("mail_close", "message_not_found", message_id="MSG-19990101-001", disposition="resolved", reason="x")
    tape.ask("mail_check")
    tape.ask("mail_check", turn_end=True, agent="tester")
    tape.refused("mail_archive", "not_allowed", days=0)
    tape.ask("mail_export")


SCRIPTS: tuple[Script, ...] = (
    creating,
    a_whole_life,
    commenting,
    revisions,
    second_thoughts,
    many,
    moving_in,
    claiming,
    moving,
    holding,
    ordering,
    looking,
    supervising,
    teaming,
    sharing,
    handing,
    gating,
    chartering,
    scheduling,
    noting,
    disagreeing,
    mailing,
    looking_after,
)
