"""Who may do what, found out by really calling every operation; `python -m tests.support.rights` writes the page.

A case is one operation on a task in some state; a column is a kind of caller under some settings. Every case has a
fabric of its own in memory, so that the whole table takes seconds.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping
from functools import cache
from types import MappingProxyType
from typing import Any, Final, Literal, NamedTuple

from aof.api.call import Caller, parameters, perform, wire_names
from aof.api.catalogue import BY_NAME, OPERATIONS
from aof.api.fabric import Fabric
from aof.errors import AofError, Call
from aof.kernel.model import Policy
from aof.org.model import OrgChart
from aof.testing import memory_fabric
from tests.support.messages import update
from tests.support.team import chart_of

PERSON: Final = "pm"  # a maintainer outside the chart, who prepares everything
OTHER: Final = "ada"  # whose work it is where it is not the caller's
CHART: Final[dict[str, Any]] = {
    "schemaVersion": 1,
    "agents": [
        {"id": "ada", "team": "eng", "roles": ["dev"]},
        {"id": "bob", "team": "eng", "roles": ["dev"]},
        {"id": "rev", "roles": ["reviewer"]},
        {"id": "lea"},
        {"id": "orc"},
    ],
    "teams": [{"id": "eng", "lead": "lea", "orchestrator": "orc"}],
}
WORKFLOW: Final[dict[str, Any]] = {"name": "build", "hops": [{"id": "build", "role": "dev"}]}
Subject = Literal[
    "none", "free", "routed", "running", "reviewed", "blocked", "paused", "done", "dead", "waiting", "linked", "gated",
    "received", "mailed", "chartered", "disputed", "sent", "handed", "taken", "escalated",
    "scheduled", "archived", "asked",
]  # fmt: skip


class Column(NamedTuple):
    """One kind of caller under some settings."""

    title: str
    name: str
    chart: bool = True
    policy: Policy = Policy(maintainers=(PERSON, "own"))


COLUMNS: Final = (
    Column("worker", "bob"),
    Column("reviewer", "rev"),
    Column("lead", "lea"),
    Column("orchestrator", "orc"),
    Column("maintainer", "own"),
    Column("unlisted", "stray"),
    Column("unlisted, `refuse`", "stray", policy=Policy(maintainers=(PERSON, "own"), refuse_unlisted=True)),
    Column("no chart: anybody", "bob", chart=False),
    Column("strict: anybody", "bob", chart=False, policy=Policy(maintainers=(PERSON, "own"), strict=True)),
    Column("strict: maintainer", "own", chart=False, policy=Policy(maintainers=(PERSON, "own"), strict=True)),
)
LISTED: Final = COLUMNS[:6]  # the kinds that a chart tells apart


class Case(NamedTuple):
    """One operation on one task: another's, or one that the caller made, runs or has run (`own`)."""

    what: str
    operation: str
    subject: Subject = "free"
    own: bool = False
    given: Mapping[str, Any] = MappingProxyType({})
    everywhere: bool = False  # also called on every surface in the usual run


def _both(operation: str, subject: Subject, what: str, *, everywhere: bool = False, **given: Any) -> Iterator[Case]:
    yield Case(f"{what}, another's", operation, subject, given=given, everywhere=everywhere)
    yield Case(f"{what}, own", operation, subject, own=True, given=given)


_TABLE: Final = [{"name": "tasks.csv", "text": "id,title\n1,New\n"}]
_ESCALATION: Final = {"type": "escalation.requested", "subject": "two owners of one file"}
CASES: Final[tuple[Case, ...]] = (
    Case("create a task", "create", "none", given={"title": "New", "brief": "Do it."}, everywhere=True),
    Case("claim a task for anybody", "claim", everywhere=True),
    Case("claim a task reserved for another", "claim", "routed", everywhere=True),
    Case("steal a task reserved for another", "claim", "routed", given={"steal": True}),
    Case("claim a hop for the role dev", "claim", "gated"),
    Case("claim in the name of a worker", "claim", given={"agent": OTHER}, everywhere=True),
    Case("create in the name of a worker", "create", "none", given={"title": "New", "brief": "x", "actor": OTHER}),
    *_both("heartbeat", "running", "heartbeat of a run"),
    *_both("progress", "running", "progress of a run", text="half"),
    *_both("ask", "running", "ask about a run", text="Which?"),
    *_both("answer", "asked", "answer a question", text="This."),
    *_both("update", "running", "new body of a running task", body="New."),
    *_both("release", "running", "release a run"),
    *_both("fail", "running", "fail a run"),
    *_both("complete", "running", "complete a run"),
    *_both("deliver", "running", "delivery of a run"),
    *_both("deliver", "done", "delivery of a finished task"),
    *_both("session_end", "running", "end a session"),
    *_both("complete", "reviewed", "approve by complete"),
    *_both("update", "reviewed", "approve by update", status="done"),
    *_both("approve", "reviewed", "approve", everywhere=True),
    *_both("reject", "reviewed", "reject", blockers=["not yet"]),
    *_both("comment", "free", "comment on a waiting task", text="Have you seen this?"),
    *_both("comment", "running", "comment on a running task", text="Have you seen this?"),
    Case("complete a task that nobody has claimed", "complete"),
    *_both("assign", "routed", "assign a reserved task", agent="rev"),
    *_both("edit", "free", "edit title of a waiting task", title="Other"),
    *_both("edit", "free", "edit gates of a waiting task", metadata={"reviewRequired": False}),
    *_both("edit", "running", "edit gates of a running task", everywhere=True, metadata={"reviewRequired": False}),
    *_both("cancel", "free", "cancel", everywhere=True),
    *_both("block", "free", "block", reason="in the way"),
    *_both("block", "running", "block a running task", reason="in the way"),
    *_both("unblock", "blocked", "unblock"),
    *_both("pause", "free", "pause"),
    *_both("pause", "running", "pause a running task"),
    *_both("resume", "paused", "resume"),
    *_both("retry", "dead", "retry a dead task", reason="again"),
    *_both("archive", "done", "archive"),
    *_both("unarchive", "archived", "unarchive"),
    *_both("reopen", "archived", "reopen"),
    *_both("bulk", "free", "cancel many", command="cancel", reason="no"),
    *_both("undo", "free", "undo the last change of a task"),
    *_both("dep_add", "free", "add a dependency"),
    *_both("dep_remove", "waiting", "remove a dependency"),
    *_both("link", "free", "link", kind="evidence", target="outputs/x.md"),
    *_both("unlink", "linked", "unlink", kind="evidence", target="outputs/x.md"),
    *_both("lock", "running", "lock a file for a run", path="src/api.py", lock_type="exclusive"),
    *_both("unlock", "running", "give back a run's locks"),
    *_both("context_set", "running", "write to the shared context", variables={"branch": "main"}, scope="shared"),
    *_both("context_decide", "running", "record a decision", description="REST"),
    *_both("context_artifact", "running", "record an artifact", path="outputs/api.md"),
    Case("ask whether to begin a task", "preflight"),
    *_both("preflight", "running", "ask how long a run may go on", point="duration", amount=5),
    Case("send a message of one's own", "send", given={"messages": "self"}),
    Case("send an approval in the name of a reviewer", "send", "reviewed", given={"messages": "rev"}),
    Case("create the charter", "charter_init", "none"),
    Case("amend the charter", "charter_amend", "chartered", given={"risk_tier": "High", "reason": "new data"}),
    Case("sign the handshake", "charter_sign", "chartered"),
    *_both("conflict_settle", "disputed", "settle a disagreement", text="use JSON"),
    *_both("conflict_default", "disputed", "a lower-risk default", text="keep it as it is"),
    *_both("handoff_new", "running", "escalate a running task", type="escalation", reason="unclear", rationale="why"),
    *_both("handoff_accept", "handed", "accept a handoff", everywhere=True),
    *_both("handoff_reject", "handed", "reject a handoff", reason="no time"),
    *_both("handoff_defer", "handed", "defer a handoff", reason="later"),
    *_both("handoff_return", "taken", "return a handoff", status="success"),
    *_both("handoff_answer", "handed", "answer a handoff", text="yes"),
    *_both("handoff_escalate", "escalated", "escalate a handoff further", rationale="beyond me"),
    *_both("handoff_reroute", "sent", "reroute a handoff", reason="away"),
    *_both("handoff_withdraw", "sent", "withdraw a handoff", reason="not needed"),
    *_both("handoff_resend", "sent", "send a handoff again"),
    Case("attach a workflow", "workflow_attach", "gated"),
    Case("send mail", "mail_send", "none", given={"to": OTHER, "subject": "Question"}, everywhere=True),
    Case(
        "send mail in the name of a worker",
        "mail_send",
        "none",
        given={"to": "rev", "subject": "x", "from_agent": OTHER},
    ),
    *_both("mail_ack", "received", "acknowledge mail", everywhere=True, reason="read"),
    *_both("mail_action", "received", "action mail", reason="done"),
    *_both("mail_block", "received", "block mail", reason="waits for the tests"),
    *_both("mail_close", "mailed", "close mail", disposition="resolved", reason="thanks"),
    *_both("mail_escalate", "mailed", "escalate mail", reason="no answer"),
    Case("archive closed mail", "mail_archive", "none"),
    Case("one's own pinned line", "worklog_now", "none", given={"text": "the parser"}),
    Case("the pinned line of another", "worklog_now", "none", given={"text": "the parser", "agent": OTHER}),
    Case("the maintainer's focus", "worklog_now", "none", given={"text": "the release", "line": "focus"}),
    Case("an entry of one's own", "worklog_add", "none", given=_ESCALATION, everywhere=True),
    Case("an entry in the name of a worker", "worklog_add", "none", given={**_ESCALATION, "agent": OTHER}),
    Case("a decision", "worklog_decide", "none", given={"text": "use SQLite"}),
    Case("a decision at the end of the ladder", "worklog_decide", "none", given={"text": "use it", "level": 4}),
    Case("compact the WORKLOG", "worklog_compact", "none"),
    Case("add a job", "job_add", "none", given={"job_id": "nightly", "title": "Check", "cron": "@daily"}),
    Case("pause a job", "job_pause", "scheduled"),
    Case("resume a job", "job_resume", "scheduled"),
    Case("run a job", "job_run", "scheduled"),
    Case("remove a job", "job_rm", "scheduled"),
    Case("import tasks", "import_tasks", "none", given={"source": "csv", "files": _TABLE}),
    Case("tick", "tick", "none"),
    Case("recover", "recover", "none"),
    Case("sync", "sync", "none"),
    Case("merge histories", "merge", "none"),
    Case("doctor", "doctor", "none"),
    Case("prune audit files", "audit_prune", "none"),
)
READS: Final = tuple(one.name for one in OPERATIONS if one.effect == "read")


def prepare(fabric: Fabric, case: Case, who: str) -> dict[str, Any]:
    """Bring a task into the state of the case, as a maintainer; the arguments of the call."""
    given = dict(case.given)
    if case.subject == "none":
        return given
    if case.subject in ("received", "mailed", "disputed", "chartered", "scheduled"):
        return given | _said(fabric, case, who)
    task_id = _subject(fabric, case, who)
    if case.operation in ("dep_add", "dep_remove"):
        waited = fabric.get(task_id).depends_on
        given["blocker_id"] = waited[0] if waited else fabric.create("First").task_id
    if case.operation == "send":
        agent, status = (who, "in-progress") if given["messages"] == "self" else ("rev", "done")
        return {"messages": [json.dumps(update(task_id, agent, status=status))]}
    if case.subject in ("sent", "handed", "taken", "escalated"):
        return given | {"handoff_id": _handoff(fabric, case, task_id, who)}
    if case.operation == "session_end":
        return {"agent": who if case.own else OTHER}
    return given | ({"task_ids": [task_id]} if case.operation == "bulk" else {"task_id": task_id})


def _mail(fabric: Fabric, case: Case, who: str) -> str:
    """A message for the caller, or from it; where nobody of that name gets or sends any, another's."""
    own = who if case.own else OTHER
    parties = (PERSON, own) if case.subject == "received" else (own, PERSON)
    try:
        sent = fabric.mail_send(parties[1], "Question", from_agent=parties[0])
    except AofError:
        sent = fabric.mail_send(OTHER, "Question", from_agent=PERSON)
    if case.operation == "mail_block":
        to = fabric.mail_show(sent.message_id).receiver
        fabric.mail_ack(sent.message_id, agent=to, reason="read")
    return sent.message_id


def _said(fabric: Fabric, case: Case, who: str) -> dict[str, Any]:
    """What was said in a document before, and how the call names it."""
    if case.subject == "disputed":
        return {"conflict_id": _dispute(fabric, who if case.own else OTHER)}
    if case.subject == "chartered":
        fabric.charter_init(participants=[f"{who}:Developer:all"], lanes=[f"all:{who}:src/**"])
        return {}
    if case.subject == "scheduled":
        if not fabric.job_list().jobs:
            fabric.job_add("nightly", title="Check", cron="@daily", actor=PERSON)
        return {"job_id": "nightly"}
    return {"message_id": _mail(fabric, case, who)}


def _dispute(fabric: Fabric, other: str) -> str:
    said = fabric.worklog_add(
        "objection.raised", subject="CSV", other=other, recommended="JSON", counter="CSV", reasons=["people read it"]
    )
    return said.event_id


def _subject(fabric: Fabric, case: Case, who: str) -> str:
    worker = who if case.own else OTHER
    made: dict[str, Any] = {"title": "Work", "actor": who if case.own and case.subject != "dead" else PERSON}
    more: dict[str, dict[str, Any]] = {"routed": {"agent": OTHER}, "gated": {"workflow": "build"}}
    if case.subject == "waiting":
        made["depends_on"] = [fabric.create("First").task_id]
    task_id = fabric.create(**made, **more.get(case.subject, {})).task_id
    if case.subject in ("running", "asked", "reviewed", "done", "archived", "dead"):
        held = fabric.claim(task_id, agent=OTHER if case.subject in ("done", "archived") else worker)
        if case.subject == "dead":
            held.fail("no", retryable=False)
        elif case.subject == "asked":
            fabric.ask(task_id, text="Which?", run=held.run_id)
        elif case.subject != "running":
            held.complete("did it")
    if case.subject in ("done", "archived"):
        fabric.approve(task_id)
    if case.subject == "archived":
        fabric.archive(task_id)
    if case.subject in ("blocked", "paused"):
        hold = fabric.block if case.subject == "blocked" else fabric.pause
        hold(task_id, reason="in the way")
    if case.subject == "linked":
        fabric.link(task_id, "evidence", "outputs/x.md")
    return task_id


def _handoff(fabric: Fabric, case: Case, task_id: str, who: str) -> str:
    """A handoff of the task: to the caller, from it, or between others."""
    own = who if case.own else OTHER
    sender, receiver = (own if case.own else PERSON, OTHER) if case.subject == "sent" else (PERSON, own)
    given: dict[str, Any] = {"type": "delegation", "timeout": 60}
    if case.subject == "escalated":
        given = {"type": "escalation", "rationale": "why"}
    made = fabric.handoff_new(task_id=task_id, from_agent=sender, to=[receiver], reason="help", **given)
    if case.subject in ("taken", "escalated"):
        fabric.handoff_accept(made.handoff_id, agent=receiver)
    return made.handoff_id


def outcome(fabric: Fabric, case: Case, caller: Caller) -> str:
    """What becomes of the case in memory: `yes`, or the code of the refusal."""
    try:
        values = prepare(fabric, case, caller.actor)
        row = BY_NAME[case.operation]
        said = perform(fabric, row, parameters(row, wire_names(Call(case.operation, values))), caller)
    except AofError as error:
        return error.code
    if case.operation == "bulk":
        return said.items[0].error.code if said.items[0].error is not None else "yes"
    return of_messages(said.results[0]) if case.operation == "send" else "yes"


def of_messages(row: dict[str, Any]) -> str:
    """What became of a message: it counts only if it did what it says."""
    return "yes" if row["outcome"] == "accepted" and not row.get("reason") else str(row["reason"])


@cache
def _chart() -> OrgChart:
    return chart_of(**CHART)


def fabric_of(column: Column) -> Fabric:
    """A fabric under the settings of a column."""
    return memory_fabric(PERSON, policy=column.policy, org=_chart() if column.chart else None, workflows=[WORKFLOW])


def by_session(case: Case, column: Column) -> str:
    """What a session or a token of that name gets."""
    return outcome(fabric_of(column), case, Caller(column.name, session=column.name))


def by_name(case: Case, column: Column) -> str:
    """What somebody gets who only says that name: on the command line, or in Python."""
    return outcome(fabric_of(column), case, Caller(column.name))


def cell(case: Case, column: Column) -> str:
    """Both, where they differ."""
    bound, named = by_session(case, column), by_name(case, column)
    return _shown(bound) if bound == named else f"{_shown(bound)} (by name: {_shown(named)})"


def _shown(code: str) -> str:
    return code if code == "yes" else f"`{code}`"


def page() -> str:
    """The whole page."""
    head = " | ".join(("operation", "case", *(column.title for column in COLUMNS)))
    lines = [f"| {head} |", "| " + " | ".join(["---"] * (len(COLUMNS) + 2)) + " |"]
    for case in CASES:
        cells = " | ".join(cell(case, column) for column in COLUMNS)
        lines.append(f"| `{case.operation}` | {case.what} | {cells} |")
    return _TEXT.format(table="\n".join(lines), reads=", ".join(f"`{name}`" for name in READS))


_TEXT: Final = """\
# Rights

Generated by calling every operation: `python -m tests.support.rights > docs/reference/rights.md`. A test compares this
page with what really happens: in Python, on the command line, over MCP (stdio and HTTP) and over HTTP.

`yes`: it is done. Anything else is the code of the refusal. "Own" is a task that the caller made, runs or has run,
"another's" one that it did not. The first seven columns are with an org chart: kinds of agents that it lists, a
maintainer of `aof.toml` who is not an agent of the chart, and a name that neither knows. A session, a token and a run
are one actor. On the command line and in Python, without a run's secret, only a name is given; where that makes a
difference, the cell says so. [Security](../explanation/security.md) says why.

{table}

Reading needs no right beyond reaching the data: {reads}.

The table is for tokens with the scope `admin`. With `read` a token only reads; with `work` it approves, rejects,
cancels, pauses, retries and archives nothing, by no operation and no message ([HTTP](http.md#tokens)). A process with
a run's secret acts as that run's agent, and may not use `aof admin token`, `aof trust`, `aof init`, `aof import` or
`aof up`. Once the run has ended its writes are `stale_lease`.

An MCP session on stdio without `AOF_ACTOR` has the first name that it uses, else the user's, and nobody has proven that
name. With a chart or strict identity it is a worker's: the name of a maintainer, a lead or a reviewer is refused with
`unauthenticated`, and such a session approves and rejects nothing, nor takes what is for a role. Without either it may
use any name, but it is never a maintainer.

What gates read is `reviewRequired`, `risk`, `profile`, `workflow`, `routing`, `acceptance`, `constraints`, `resource`,
`maxAttempts`, `delegationDepth`, `owner`, every field that a condition of the workflow names, and `priority` where
a gate of the charter names it. Without a chart and without strict identity anybody changes it, and anybody blocks or
pauses a task while another works on it; the log says who did. `aof sync --accept` and `--refuse` are for maintainers.

"Approve by complete, own" answers with the result that stands and approves nothing. "Own" counts also for the
session, token or name that claimed for an agent; a maintainer at the command line may approve what an agent did
for them. `selfReview = true` in `aof.toml` lifts this, and the log says so. A child is put below a task by its
holder, owner or creator, a lead or a maintainer; without a chart or strict identity, where names are only
attributions, this protects tasks that somebody runs. With `[review] required`, only a maintainer at the command
line, or with a token of their own, creates a task without review (`review_required`).
"""


if __name__ == "__main__":
    sys.stdout.write(page())
