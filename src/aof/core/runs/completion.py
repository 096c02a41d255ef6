"""How a run ends with a result. Must not know hops, nor what a review makes of it."""

from __future__ import annotations

from typing import Any, Final, get_args

from aof.core.errors.base import AofError, Call, InvalidInput
from aof.core.errors.runs import NotClaimed, NotLeaseHolder, QuestionOpen, RunRequired, StaleLease
from aof.core.model.commands import Complete
from aof.core.model.events import Draft
from aof.core.model.ids import run_id
from aof.core.model.kinds import Outcome
from aof.core.model.records import Decision, Records, Verdict
from aof.core.model.run import OUTCOMES, RunResult
from aof.core.model.task import Question, Task
from aof.core.runs import late_result
from aof.core.runs.lease import authorize, stale, start
from aof.core.runs.review import accept, send_back
from aof.core.tasks import authorship, declared, graph
from aof.core.tasks.transitions import no_edge, to_blocked, transition
from aof.core.validation import limits, output

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
        and not authorship.did(task, command.acting)
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
    return late_result.kept(records.policy, task, command, agent, report.payload["result"], refusal)


def not_reconciled(records: Records, task: Task, command: Complete, outcome: str) -> AofError | None:
    """The refusal of a report that calls a task done while something that the task declares is open."""
    if outcome != "done":
        return None
    open_now = declared.open_points(records, task, reports=command.acceptance, tests=command.tests)
    return declared.not_reconciled(task, open_now)


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
    """What closes the open questions of a run whose work is done, so that nobody is asked for nothing.

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
    if command.run is not None or (task.status != "ready" and authorship.did(task, command.acting)):
        return _reported_again(records, task, command, outcome, now)
    if task.status == "review":
        return _judged(records, task, command, outcome, now)
    if task.status == "blocked" and outcome == "blocked":
        return Decision()
    if task.status != "ready":
        target = LEADS_TO[outcome] if task.status == "done" else "done"
        return no_edge(task, target, *graph.way_on(task, command.acting))
    if authorship.did(task, command.acting) and (repeated := _perhaps_repeated(records, task, command, outcome)):
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
    if outcome == "partial" or authorship.is_own(records.policy, task, command, authorship.authors(task)):
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
        draft = late_result.draft_of(task, command.acting, command.run, report.payload["result"])
        if draft is not None:
            draft.payload["again"] = True
        return Decision(drafts=(draft,) if draft is not None else ())
    refusal = stale(task, command.run) if command.run is not None else _ended(task, command)
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
    return late_result.said(report.payload["result"]) == late_result.said(result)


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
            limits.choices("outcome", get_args(Outcome)),
            Call("complete", {"task_id": task.id, "outcome": "complete", "summary": "…"}),
        )
    problem = (
        limits.text("summary", command.summary, limits.NOTES)
        or limits.text("notes", command.notes, limits.NOTES)
        or limits.items("blockers", command.blockers, limits.BLOCKERS)
        or limits.items("deliverables", command.deliverables, limits.ITEMS, single_line=True)
        or limits.line("summary_ref", command.summary_ref, limits.ITEM)
        or limits.name("caller_role", command.caller_role)
        or limits.data("acceptance", command.acceptance)
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
    return output.escaping(
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
    open_now = declared.open_points(records, task) if result.outcome == "done" else ()
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
