"""How a run ends: with a result, its review, without success and tried again, or too late. Must not know hops."""

from __future__ import annotations

from typing import Any, Final, get_args

import msgspec

from aof.errors import (
    AofError,
    Call,
    InvalidInput,
    InvalidTransition,
    NotClaimed,
    NotFound,
    NotLeaseHolder,
    QuestionOpen,
    RunRequired,
    StaleLease,
)
from aof.kernel import limits as kernel_limits
from aof.kernel.commands import (
    Approve,
    Complete,
    Decision,
    Exited,
    Expire,
    Fail,
    OnTask,
    Records,
    Reject,
    RetryTask,
    Verdict,
)
from aof.kernel.events import Draft
from aof.kernel.kinds import Outcome
from aof.kernel.limits import ITEM, NOTES, REASON, choice, line, text
from aof.kernel.model import CAUSES, FINISHED, Policy, attempt_of, iso, run_id, task_of_run
from aof.runs import authentication
from aof.runs.authentication import ran_work
from aof.runs.leases import authorize, stale_lease, start
from aof.runs.model import OUTCOMES, RunResult, lease_end
from aof.support.hashing import hexdigest
from aof.tasks import fields, graph, lifecycle
from aof.tasks import rules as tasks_rules
from aof.tasks.model import Question, Task
from aof.tasks.rules import (
    by_hand,
    close_run,
    dead_lettered,
    failure,
    next_cause,
    no_edge,
    revived,
    to_blocked,
    transition,
)
from aof.workflows.model import leases

_TOOL_OUTCOMES: Final = {"complete": "done", None: "done"}
LEADS_TO: Final = {"done": "review", "needs_review": "review", "partial": "review", "blocked": "blocked"}

_TOLD: Final = ("summary", "summary_ref", "deliverables", "tests", "blockers", "notes", "acceptance")
_FINISHES: Final = ("done", "partial")  # after `needs_review` or `blocked` the run is not the one that ended the task


def complete(records: Records, command: Complete, now: int) -> Verdict:
    """Close run and task together, over legal edges; a runnable ready task is claimed in the same commit."""
    task = records.task(command.task_id)
    outcome = str(_TOOL_OUTCOMES.get(command.outcome, command.outcome))
    if (
        task.status == "done"
        and outcome in LEADS_TO
        and command.run is None
        and not authentication.ran_work(task, command.acting)
    ):
        again = outcome == "done"  # the approval, once more
        return Decision() if again else no_edge(task, LEADS_TO[outcome], *graph.way_on(task, command.acting))
    if problem := malformed_report(command, task, outcome):
        return problem
    if task.status != "in-progress":
        return _without_a_run(records, task, command, outcome, now)
    holder = authorize(task, command)
    if isinstance(holder, AofError):
        replaced = isinstance(holder, StaleLease | NotLeaseHolder) and not (task.lease and task.lease.contested)
        return _late(records, task, command, outcome, holder) if replaced else holder
    run = task.lease.run_id if task.lease else ""
    if problem := not_reconciled(records, task, command, outcome) or question_open(
        task, command, outcome, (holder, run)
    ):
        return problem
    return Decision(drafts=_report(records, task, command, outcome=outcome, by=(holder, run), now=now), agent=holder)


def _late(records: Records, task: Task, command: Complete, outcome: str, refusal: AofError) -> Verdict:
    agent = command.acting
    report = report_of(records, task, command, outcome, (agent, command.run or ""))
    return kept_refusal(records.policy, task, command, agent, report.payload["result"], refusal)


def not_reconciled(records: Records, task: Task, command: Complete, outcome: str) -> AofError | None:
    """The refusal of a report that calls a task done while something that the task declares is open."""
    if outcome != "done":
        return None
    open_now = lifecycle.open_points(records, task, reports=command.acceptance, tests=command.tests)
    return lifecycle.not_reconciled(task, open_now)


def not_claimed(task: Task, command: Complete) -> NotClaimed | None:
    """The refusal of a session's report on work that nobody has claimed: it may have meant another task.

    A person at the command line, or a program in Python, claims and completes it in one step.
    """
    if command.session is None:
        return None
    return NotClaimed(
        f"{task.id} is {graph.stands(task)}, and {command.acting} has not claimed it",
        "claim it first",
        Call("claim", {"task_id": task.id, "agent": command.acting}),
    )


def _own_questions(task: Task, by: tuple[str, str], hop: str | None) -> tuple[Question, ...]:
    """What the agent of a run has asked and nobody has answered; of a hop only what was asked there."""
    agent, run = by
    return tuple(one for one in task.open_questions if one.run_id == run or (one.by, one.hop) == (agent, hop))


def question_open(
    task: Task, command: Complete, outcome: str, by: tuple[str, str], hop: str | None = None
) -> QuestionOpen | None:
    """The refusal of a report that calls the work done while its agent has not heard what it asked."""
    asked = _own_questions(task, by, hop) if outcome == "done" and not command.withdraw_questions else ()
    if not asked:
        return None
    own = {"run": by[1]} if by[1] else {}
    refusal = QuestionOpen(
        f"nobody has answered {', '.join(one.id for one in asked)} of {task.id} yet, which {by[0]} has asked",
        "wait for the answer",
        Call("ask", {"task_id": task.id, "question": asked[0].id, "wait": 60} | own),
        questions=[one.id for one in asked],
    )
    again = Call("complete", {"task_id": task.id, "withdraw_questions": True, "summary": "…"} | own)
    refusal.otherwise = ("complete the work without it, which withdraws the question", again)
    return refusal


def withdrawn(task: Task, by: tuple[str, str], hop: str | None = None) -> tuple[Draft, ...]:
    """The events that close the open questions of a run whose work is done.

    The report of a run that cannot be asked back, such as that of a process that has ended, withdraws them by itself.
    """
    said = {"text": "withdrawn: the work was done without an answer", "by": by[0], "withdrawn": True}
    return tuple(
        Draft(
            type="task.question.answered",
            task_id=task.id,
            run_id=one.run_id,
            payload={"question": one.id, "askedBy": one.by, **said},
        )
        for one in _own_questions(task, by, hop)
    )


def _without_a_run(records: Records, task: Task, command: Complete, outcome: str, now: int) -> Verdict:
    """Nobody runs the task: whoever ran it reports again or too late, anybody else approves, rejects or begins."""
    if command.run is not None or (task.status != "ready" and authentication.ran_work(task, command.acting)):
        return _reported_again(records, task, command, outcome, now)
    if task.status == "review":
        return _judged(records, task, command, outcome, now)
    if task.status == "blocked" and outcome == "blocked":
        return Decision()
    if task.status != "ready":
        target = LEADS_TO[outcome] if task.status == "done" else "done"
        return no_edge(task, target, *graph.way_on(task, command.acting))
    if authentication.ran_work(task, command.acting) and (
        repeated := _perhaps_repeated(records, task, command, outcome)
    ):
        return repeated
    refusal = (
        graph.readiness(records, task, now)
        or not_claimed(task, command)
        or not_reconciled(records, task, command, outcome)
        or question_open(task, command, outcome, (command.acting, ""))
    )
    return refusal or _claim_and_report(records, task, command, outcome, now)


def _judged(records: Records, task: Task, command: Complete, outcome: str, now: int) -> Verdict:
    """What a verdict by somebody who did not run it makes of the work in review."""
    if outcome == "blocked":
        return no_edge(task, "done", *graph.way_on(task, command.acting))
    if outcome == "partial" or authentication.is_own(records.policy, task, command, authentication.authors(task)):
        return Decision()  # the caller behind the run repeats its report
    if outcome == "needs_review":
        return send_back(records, task, command.acting, command.blockers, now)
    return accept(records, task, command.acting, command.summary)


def _reported_again(records: Records, task: Task, command: Complete, outcome: str, now: int) -> Verdict:
    """A report by a run that has ended: one that stands changes nothing, any other one comes too late.

    The author of the work in review may take it back with `needs_review`.
    """
    standing = records.results.get(task.id)
    result = standing if isinstance(standing, RunResult) and standing.run_id == task.last_run else None
    last = command.run == task.last_run if command.run is not None else result is None or _is_by(result, command)
    same = result is not None and _is_by(result, command) and _says(records, task, command, outcome, result)
    arrived = outcome in _FINISHES if task.status == "done" else LEADS_TO[outcome] == task.status
    if last and (same or (arrived and (result is None or not _tells(command)))):
        return Decision()
    if last and task.status == "review" and outcome == "needs_review" and command.run is None:
        return send_back(records, task, command.acting, command.blockers, now)
    if last and arrived:
        report = report_of(records, task, command, outcome, (command.acting, command.run or ""))
        draft = draft_of(task, command.acting, command.run, report.payload["result"])
        if draft is not None:
            draft.payload["again"] = True
        return Decision(drafts=(draft,) if draft is not None else ())
    refusal = stale_lease(task, command.run) if command.run is not None else _ended(task, command)
    return _late(records, task, command, outcome, refusal)


def _ended(task: Task, command: Complete) -> StaleLease:
    return StaleLease(
        f"{task.id} is {graph.stands(task)}, and {command.acting} runs it no longer",
        "stop this work",
        Call("show", {"task_id": task.id}),
        status=task.status,
    )


def _perhaps_repeated(records: Records, task: Task, command: Complete, outcome: str) -> RunRequired | None:
    """The refusal of a report that says what the agent's last run said: nobody has claimed the task since."""
    result = records.results.get(task.id)
    if not isinstance(result, RunResult) or not _is_by(result, command):
        return None
    if not _says(records, task, command, outcome, result):
        return None
    return RunRequired(
        f"{command.acting} has reported exactly this of {task.id} before, and it is {task.status} again",
        "if this is the work of another run, claim the task first",
        Call("claim", {"task_id": task.id, "agent": command.acting}),
    )


def _is_by(result: RunResult, command: Complete) -> bool:
    if command.run is not None:
        return result.run_id == command.run
    return result.agent_id.casefold() == command.acting.casefold()


def _says(records: Records, task: Task, command: Complete, outcome: str, result: RunResult) -> bool:
    report = report_of(records, task, command, outcome, (command.acting, ""))
    return report_content(report.payload["result"]) == report_content(result)


def _tells(command: Complete) -> bool:
    """Whether the call says more than that the work is done."""
    return any(getattr(command, name) for name in _TOLD)


def _claim_and_report(records: Records, task: Task, command: Complete, outcome: str, now: int) -> Verdict:
    started = start(records, task, command.acting, now)
    if isinstance(started, AofError):
        return started
    run = run_id(task.id, task.retry.attempts + 1, records.run_tag)
    reported = _report(records, task, command, outcome=outcome, by=(command.acting, run), now=now)
    return Decision(drafts=started.drafts + reported, heartbeat=started.heartbeat, agent=command.acting)


def malformed_report(command: Complete, task: Task, outcome: str) -> AofError | None:
    """What is wrong with a report, whatever it is about."""
    if outcome not in OUTCOMES:
        return InvalidInput(
            f"'outcome' cannot be {outcome[:80]!r}",
            kernel_limits.choices("outcome", get_args(Outcome)),
            Call("complete", {"task_id": task.id, "outcome": "complete", "summary": "…"}),
        )
    problem = (
        kernel_limits.text("summary", command.summary, kernel_limits.NOTES)
        or kernel_limits.text("notes", command.notes, kernel_limits.NOTES)
        or kernel_limits.items("blockers", command.blockers, kernel_limits.BLOCKERS)
        or kernel_limits.items("deliverables", command.deliverables, kernel_limits.ITEMS, single_line=True)
        or kernel_limits.line("summary_ref", command.summary_ref, kernel_limits.ITEM)
        or kernel_limits.name("caller_role", command.caller_role)
        or kernel_limits.data("acceptance", command.acceptance)
        or miscounted("tests", command.tests)
    )
    if problem:
        return problem
    if outcome == "blocked" and not command.blockers:
        return InvalidInput(
            "outcome 'blocked' needs at least one blocker",
            "say what is in the way",
            Call("complete", {"task_id": task.id, "outcome": "blocked", "blockers": ["…"]}),
        )
    return fields.escaping_reference(
        ("summary_ref", command.summary_ref), *(("deliverables", ref) for ref in command.deliverables)
    )


def miscounted(field: str, tests: dict[str, int] | None) -> AofError | None:
    """The refusal for tests that cannot have been counted so."""
    counts = tests or {}
    whole = all(type(count) is int and 0 <= count < 2**53 for count in counts.values())
    if not whole or not counts.keys() <= {"total", "passed", "failed"}:
        return InvalidInput(f"'{field}' must hold counts", "use total, passed and failed, each 0 or more")
    if "total" in counts and counts.get("passed", 0) + counts.get("failed", 0) > counts["total"]:
        return InvalidInput(f"'{field}' counts more passed and failed than there are", "correct the total")
    return None


def _report(
    records: Records, task: Task, command: Complete, *, outcome: str, by: tuple[str, str], now: int
) -> tuple[Draft, ...]:
    return (report_of(records, task, command, outcome, by), *_applied(task, outcome, by, command.blockers, now))


def report_of(records: Records, task: Task, command: Complete, outcome: str, by: tuple[str, str]) -> Draft:
    """The event of a run's report, with the digests of the files that it delivers."""
    agent, run = by
    result: dict[str, Any] = {
        "agentId": agent,
        "outcome": outcome,
        "summaryRef": command.summary_ref,
        "deliverables": list(command.deliverables),
        "tests": command.tests,
        "blockers": list(command.blockers),
        "notes": command.notes or command.summary,
        "acceptance": list(command.acceptance),
    }
    payload: dict[str, Any] = {"result": {name: value for name, value in result.items() if value}}
    found = {path: records.digests.get((task.id, path)) for path in command.deliverables}
    if digests := {path: digest for path, digest in found.items() if digest is not None}:
        payload["digests"] = digests
    if command.caller_role:
        payload["callerRole"] = command.caller_role
    if command.summary:
        payload["workLog"] = f"{agent}: {command.summary}"
    return Draft(type="task.completed", task_id=task.id, run_id=run, payload=payload)


def apply_result(
    records: Records, task: Task, result: RunResult, now: int, reason: str | None, **more: Any
) -> tuple[Draft, ...]:
    """The transitions of a result that is on record already, as recovery and session end need them.

    It goes no further than to `review` while something that the task declares is open. Whose run it was is known from
    the lease: what the worker's file says of that is only a claim.
    """
    open_now = lifecycle.open_points(records, task) if result.outcome == "done" else ()
    if open_now:
        more |= {"open": list(open_now)}
    said = more | ({"notes": result.notes} if result.notes else {})
    by = (result.agent_id if task.lease is None else task.lease.agent, result.run_id)
    return _applied(task, result.outcome, by, result.blockers or (), now, reason=reason, said=said)


def submit(task: Task, by: tuple[str, str], now: int, reason: str | None, said: dict[str, Any]) -> tuple[Draft, ...]:
    """Close the run and put the task into review, without a result; `said` goes into the event beside the reason."""
    return _applied(task, "needs_review", by, (), now, reason=reason, said=said)


def _applied(
    task: Task,
    outcome: str,
    by: tuple[str, str],
    blockers: tuple[str, ...],
    now: int,
    *,
    reason: str | None = None,
    said: dict[str, Any] | None = None,
) -> tuple[Draft, ...]:
    """Close the run and walk the task through the transitions of its outcome.

    `said` comes as one value: its keys are a sender's, and must never meet the names of parameters.
    """
    agent, run = by
    ended = {"agent": agent, "outcome": outcome}
    closed = Draft(type="task.attempt.completed", task_id=task.id, run_id=run, payload=ended)
    named: dict[str, Any] = (said or {}) | ({"blockers": list(blockers)} if blockers else {})
    if outcome == "blocked":
        held = "; ".join(blockers) or "the run reported that it is blocked"
        moved = to_blocked(task, now, kind="blocked", reason=held, by=agent, origin="in-progress", **named)
        if reason:
            moved.payload["reason"] = reason
        return (closed, moved)
    ended_with = (*withdrawn(task, by), closed) if outcome == "done" else (closed,)
    reviewed = transition(task, "review", origin="in-progress", reason=reason or outcome, **named)
    if outcome == "done" and task.metadata.get("reviewRequired") is False and "open" not in named:
        return (*ended_with, reviewed, transition(task, "done", origin="review", reason=reason or outcome))
    return (*ended_with, reviewed)


def approve(records: Records, command: Approve, _now: int) -> Verdict:
    """Accept what is in review."""
    task = records.task(command.task_id)
    if task.status == "done":
        return Decision()
    if task.status != "review":
        way_on = _before_approval(task, command.acting)
        return no_edge(task, "done", *way_on, only="only a task in review can be approved")
    return kernel_limits.text("reason", command.reason, kernel_limits.REASON) or accept(
        records, task, command.acting, command.reason
    )


def _before_approval(task: Task, acting: str) -> tuple[str, Call]:
    """What has to come first; only the holder of a run is advised to complete it."""
    if task.status == "ready" and not graph.is_draft(task):
        return "complete it first", Call("complete", {"task_id": task.id, "summary": "…"})
    if task.lease is None:
        return graph.way_on(task, acting)
    if task.lease.agent != acting:
        return f"{task.lease.agent} has to complete it first", Call("show", {"task_id": task.id})
    return "complete it first", Call("complete", {"task_id": task.id, "summary": "…", "run": task.lease.run_id})


def accept(records: Records, task: Task, by: str, text: str | None) -> Verdict:
    """The approval itself, unless the task is being cancelled or something that it declares is open.

    Whoever approves vouches for the criteria that nobody reported on.
    """
    open_now = lifecycle.open_points(records, task, approved=True)
    if refusal := graph.being_cancelled(task) or lifecycle.not_reconciled(task, open_now):
        return refusal
    more = lifecycle.vouched(task) | ({"workLog": f"{by}: {text}"} if text else {})
    return Decision(drafts=(transition(task, "done", reason="approved", by=by, **more),))


def reject(records: Records, command: Reject, now: int) -> Verdict:
    """Send what is in review back to `ready`, with the reasons in the work log."""
    task = records.task(command.task_id)
    return kernel_limits.items("blockers", command.blockers, kernel_limits.BLOCKERS) or send_back(
        records, task, command.acting, command.blockers, now
    )


def send_back(records: Records, task: Task, by: str, blockers: tuple[str, ...], now: int) -> Verdict:
    """The rejection itself: it says what has to change."""
    if not blockers:
        return InvalidInput(
            "a rejection needs a reason",
            "say what has to change",
            Call("reject", {"task_id": task.id, "blockers": ["…"]}),
        )
    if task.status != "review":
        return no_edge(task, "ready", "see how it stands", only="only a task in review can be rejected")
    said = "; ".join(blockers)
    more: dict[str, Any] = {"blockers": list(blockers), "workLog": f"{by} rejected: {said}"}
    return graph.being_cancelled(task) or Decision(
        drafts=tasks_rules.back_to_waiting(records, task, "ready", now, reason=said, **more)
    )


def apply_reported(
    records: Records, task: Task, result: RunResult, now: int, reason: str | None, **more: Any
) -> tuple[Draft, ...]:
    """The outcome's transitions; files that the result refers to and that are not there are only warned of."""
    return (*missing_files(records, task, result), *apply_result(records, task, result, now, reason, **more))


def missing_files(records: Records, task: Task, result: RunResult) -> tuple[Draft, ...]:
    """A warning for each file that the result refers to and that is not there."""
    refs = (ref for ref in (result.summary_ref, result.handoff_ref) if ref and (task.id, ref) in records.missing)
    return tuple(_warning(task, result, ref) for ref in refs)


def _warning(task: Task, result: RunResult, ref: str) -> Draft:
    detail = f"the result of {result.run_id} refers to {ref}, which is not there"
    payload = {"code": "missing_file", "path": ref, "detail": detail}
    return Draft(type="task.warning", task_id=task.id, run_id=result.run_id, payload=payload)


def referred_files(known: Records, task_id: str) -> frozenset[tuple[str, str]]:
    """The files that results of a task or its hops refer to, and those that the task requires."""
    hops = f"{task_id}/hops/"
    found = (result for place, result in known.results.items() if place == task_id or place.startswith(hops))
    refs = (ref for one in found if isinstance(one, RunResult) for ref in (one.summary_ref, one.handoff_ref))
    return frozenset((task_id, ref) for ref in refs if ref is not None) | lifecycle.required_files(
        known.tasks.get(task_id)
    )


AGAIN: Final = ("F-DEP", "F-ENV", "F-EXE", "F-TMO", "F-RES")
FINAL: Final = ("F-INP", "F-SEC", "F-VAL", "F-REV", "F-UNK")


def unknown_code(code: str) -> InvalidInput | None:
    """Refuse what has the form of such a code and is none."""
    if not code.upper().startswith("F-") or code in (*AGAIN, *FINAL):
        return None
    return InvalidInput(
        f"'code' cannot be {code[:80]!r}",
        f"use one of {', '.join(AGAIN)} (tried again) or {', '.join(FINAL)} (not), or a word of your own",
    )


def backoff_ms(policy: Policy, failures: int) -> int:
    """How long to wait after the nth failure in a row."""
    exponent = min(max(failures - 1, 0), 40)
    return int(min(policy.retry_base_ms * policy.retry_factor**exponent, policy.retry_cap_ms))


def requeue_or_dead_letter(
    records: Records, task: Task, now: int, *, code: str, message: str, cause: str, retryable: bool, reason: str
) -> tuple[Draft, ...]:
    """After a counted failure: `ready` with a wait while attempts are left, else `deadletter`, its dependents told."""
    failures = task.retry.failures + 1
    if not retryable or failures >= task.retry.max_attempts:
        return dead_lettered(records, task, now, reason=reason, error=failure(task, now, code, message, cause))
    payload: dict[str, Any] = {
        "reason": reason,
        "attempt": task.retry.attempts + 1,
        "notBefore": iso(now + backoff_ms(records.policy, failures)),
        "cause": next_cause(cause, code),
    }
    waiting = Draft(type="task.retrying", task_id=task.id, payload=payload)
    return (waiting, *tasks_rules.back_to_waiting(records, task, "ready", now, reason=reason))


def malformed_failure(command: Fail) -> AofError | None:
    """What is wrong with what is said about a failure, whatever failed."""
    return (
        text("message", command.message, NOTES)
        or line("code", command.code, ITEM, required=True)
        or unknown_code(command.code)
        or choice("cause", command.cause, CAUSES)
    )


def tries_again(command: Fail) -> bool:
    """Whether another run makes sense, by what is said of the failure."""
    return command.retryable and command.code not in FINAL


def fail(records: Records, command: Fail, now: int) -> Verdict:
    """End the run as failed."""
    task = records.task(command.task_id)
    holder = authorize(task, command)
    if isinstance(holder, AofError):
        return holder
    if problem := malformed_failure(command):
        return problem
    what: dict[str, Any] = {"code": command.code, "message": command.message, "cause": command.cause}
    ended = close_run(task, now, status="failed", counts=True, **what)
    followed = requeue_or_dead_letter(records, task, now, retryable=tries_again(command), reason=command.code, **what)
    limit = Draft(type="task.timed_out", task_id=task.id, run_id=ended[0].run_id, payload={"limit": command.code})
    first = (limit,) if command.cause == "timed_out" else ()
    return Decision(drafts=(*first, *ended, *followed), agent=holder)


def retry(records: Records, command: RetryTask, now: int) -> Verdict:
    """Make a finished task ready again, or end the wait before the next try."""
    task = records.task(command.task_id)
    problem = text("reason", command.reason, REASON, required=True) or _not_again(records, task)
    if problem:
        return problem
    if task.status == "ready":
        at = graph.retry_at(task)
        waits = task.retry.waits_for_children or (at is not None and at > now)
        return Decision(drafts=(by_hand(task, command.reason),) if waits else ())
    return Decision(drafts=revived(records, task, now, command.reason))


def _not_again(records: Records, task: Task) -> AofError | None:
    if task.archived:
        return NotFound(f"{task.id} is archived; archived tasks are not retried", *graph.way_on(task))
    if task.status not in FINISHED and task.status != "ready":
        return InvalidTransition(
            f"{task.id} is {task.status}; only a done, cancelled or dead task is retried",
            "see who works on it" if task.status == "in-progress" else "see where it is",
            Call("show", {"task_id": task.id}),
        )
    if task.parent_id is None or records.find(task.parent_id) is None:
        return None
    return graph.closed_to_children(records, task.parent_id)


def expire(records: Records, command: Expire, now: int) -> Verdict:
    """Recover one task; one that has moved on, whose lease was renewed or whose run has ended is left alone."""
    task = records.task(command.task_id)
    lease = task.lease
    if lease is None or (task.cancel is not None and task.cancel.stopped):
        return Decision()
    if lease_end(lease, records.heartbeats[task.id]) > now:
        return Decision()
    result = records.results[task.id]
    if isinstance(result, AofError) and task.cancel is None:
        return result  # what was reported cannot be told, so nothing is guessed
    if isinstance(result, RunResult) and result.run_id == lease.run_id and task.cancel is None:
        reason = f"stale_heartbeat_{result.outcome}"
        return Decision(drafts=apply_reported(records, task, result, now, reason), agent=lease.agent)
    late = left_behind(task, result)
    lost = Draft(type="task.lost", task_id=task.id, run_id=lease.run_id, payload={"agent": lease.agent})
    code, message = "stale_heartbeat", f"{lease.agent} gave no sign of life and reported no result"
    closed = close_run(
        task, now, status="expired", code=code, message=message, cause="lost", counts=task.cancel is None
    )
    if task.cancel is not None:
        return Decision(drafts=(lost, *closed, *lifecycle.settled(records, task, now)))
    followed = requeue_or_dead_letter(
        records,
        task,
        now,
        code=code,
        message=message,
        cause="lost",
        retryable=True,
        reason="stale_heartbeat_reclaim",
    )
    return Decision(drafts=(lost, *closed, *followed, *late))


def exited(records: Records, command: Exited, _now: int) -> Verdict:
    """How the worker ended, and where its output lies; also for a run that has ended already."""
    task = records.task(command.task_id)
    if command.run is None or task_of_run(command.run) != task.id:
        return InvalidInput(f"a worker's end needs the run of {task.id} that it was", "give the run")
    if problem := kernel_limits.line("stopped", command.stopped, kernel_limits.ITEM) or kernel_limits.data(
        "output", command.output
    ):
        return problem
    payload: dict[str, Any] = {"exitCode": command.exit_code, "signal": command.signal, "stopped": command.stopped}
    payload = {name: value for name, value in payload.items() if value is not None} | {"output": command.output}
    return Decision(drafts=(Draft(type="run.exited", task_id=task.id, run_id=command.run, payload=payload),))


KIND: Final = "task.late_result"
MOST: Final = 8  # of one task: none is replaced, so that nobody pushes another's out
_WHOSE: Final = ("agentId", "taskId", "runId", "completedAt", "hop", "handoffRef")


def report_content(report: RunResult | dict[str, Any]) -> dict[str, Any]:
    """What a report says, without whose it is: by this two reports are compared."""
    whole: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(report))
    return {name: value for name, value in whole.items() if value and name not in _WHOSE}


def draft_of(task: Task, agent: str, run: str | None, report: RunResult | dict[str, Any]) -> Draft | None:
    """The event that keeps the report; None where it is kept already, there is no more room, or it is not theirs."""
    result = report_content(report)
    digest = hexdigest(msgspec.json.encode([agent, run, result], order="deterministic"))[:16]
    kept = {one.digest for one in task.late_results}
    if digest in kept or len(kept) >= MOST:
        return None
    payload = {"agent": agent, "digest": digest, "result": result}
    return Draft(type=KIND, task_id=task.id, run_id=run, payload=payload)


def left_behind(task: Task, found: RunResult | AofError | None) -> tuple[Draft, ...]:
    """The event that keeps a result file which an earlier run wrote after its end; it is applied to no other run."""
    current = task.lease.run_id if task.lease is not None else task.last_run
    if not isinstance(found, RunResult) or found.run_id in ("", current) or not ran_work(task, found.agent_id):
        return ()
    draft = draft_of(task, found.agent_id, found.run_id, found) if _is_run(task, found.run_id) else None
    return () if draft is None else (draft,)


def _is_run(task: Task, run: str) -> bool:
    """Whether the task may have had a run of this ID; the random part of earlier ones is not on its record."""
    return task_of_run(run) == task.id and 1 <= attempt_of(run) <= task.retry.attempts


def _entitled(policy: Policy, task: Task, command: OnTask, agent: str) -> bool:
    """Whether the report is one by who ran the task; where names prove nothing, a run's ID will do.

    Whoever was asked for a secret and sent none has shown no part in the task.
    """
    if command.run is not None and not _is_run(task, command.run):
        return False
    shown = command.proof != "" or command.vouched == "token"
    ended = command.run is not None and all(lease.run_id != command.run for lease in leases(task))
    return shown and (ran_work(task, agent) or (ended and not policy.binds))


def kept_refusal(  # noqa: PLR0917 - whose report it is, what it says, and why it is refused
    policy: Policy, task: Task, command: OnTask, agent: str, report: dict[str, Any], verdict: Verdict
) -> Verdict:
    """The refusal of a report that comes too late, which says that the report was kept; any other verdict as it is."""
    refusal = verdict if isinstance(verdict, AofError) else verdict.refusal
    if refusal is None or not _entitled(policy, task, command, agent):
        return verdict
    draft = draft_of(task, agent, command.run, report)
    full = draft is None and len(task.late_results) >= MOST
    where = f"not kept: {task.id} has {MOST} late results already" if full else f"kept with {task.id} as a late result"
    late = StaleLease(
        f"{refusal.message}; the report came too late and is {where}",
        "stop this work: the reviewer and the next worker see what was reported",
        Call("show", {"task_id": task.id}),
        **(refusal.details | {"late": not full}),
    )
    drafts = (draft,) if draft is not None else ()
    if isinstance(verdict, Decision):
        return msgspec.structs.replace(verdict, drafts=verdict.drafts + drafts, refusal=late)
    return Decision(drafts=drafts, refusal=late)
