"""Questions of running agents, and their answers: of a task's own run and of a hop's.

An agent that asks keeps its run and its lease and waits, or leaves: then the run ends, the task is blocked, and the
answer makes it ready. A question outlives the run that asked it. Must not know how an agent waits, nor who is told.
"""

from __future__ import annotations

from typing import Any, Final

from aof.core.errors.base import AofError, Call
from aof.core.errors.runs import AlreadyAnswered, NoQuestion, QuestionRequired, SelfAnswer
from aof.core.errors.tasks import InvalidTransition
from aof.core.model import commands as c
from aof.core.model.events import Draft
from aof.core.model.lifecycle import FINISHED
from aof.core.model.records import Decision, Records, Verdict
from aof.core.model.task import Question, Task
from aof.core.model.workflow import leases, workflow_of
from aof.core.org import rights
from aof.core.runs import lease
from aof.core.tasks import dependencies
from aof.core.tasks.attempts import close_run
from aof.core.tasks.transitions import to_blocked
from aof.core.validation import limits
from aof.core.workflows import hop_lease
from aof.core.workflows.transaction import Walk

ASKED: Final = "task.question.asked"
ANSWERED: Final = "task.question.answered"
WAITS: Final = "waits_for_answer"
ANSWER: Final = 4_000  # characters
_CHOICES: Final = 10
_OPEN: Final = 8  # questions of one task


def ask(records: Records, command: c.Ask, now: int) -> Verdict:
    """Record the question, which is also a heartbeat; the same text again is the same open question."""
    task = records.task(command.task_id)
    if task.gated:
        return _ask_at_hop(records, task, command, now)
    holder = lease.authorize(task, command)
    if isinstance(holder, AofError):
        return holder
    assert task.lease is not None
    asked = _asked(task, command, holder, task.lease.run_id)
    if isinstance(asked, AofError):
        return asked
    if not command.leave:
        return Decision(drafts=asked, heartbeat=lease.next_beat(records, task, now), agent=holder)
    reason = _short(command.text)
    closed = close_run(task, now, status="released", code=WAITS, message=reason)
    held = to_blocked(task, now, kind="waiting_input", reason=reason, by=holder)
    return Decision(drafts=(*asked, *closed, held), agent=holder)


def _ask_at_hop(records: Records, task: Task, command: c.Ask, now: int) -> Verdict:
    hop = hop_lease.held(task, workflow_of(task), command)
    if isinstance(hop, AofError):
        return hop
    holder = hop.agent or command.acting
    asked = _asked(task, command, holder, str(hop.run_id), hop.id)
    if isinstance(asked, AofError):
        return asked
    if not command.leave:
        return Decision(drafts=asked, heartbeat=hop_lease.next_beat(records, task, hop, now), agent=holder)
    walk, reason = Walk(records, task, now), _short(command.text)
    walk.drafts += asked
    walk.end_run(hop, status="released", code=WAITS, message=reason)
    walk.step(hop.id, "blocked", "blocked", hop.run_id, agent=holder, reason=reason)
    return walk.finish(WAITS, agent=holder)


def _asked(task: Task, command: c.Ask, agent: str, run: str, hop: str | None = None) -> tuple[Draft, ...] | AofError:
    """The event of a question; none where this run has already asked it; or the refusal."""
    text = command.text.strip()
    if problem := _malformed(task, command, text):
        return problem
    known = next((one for one in task.open_questions if one.text == text), None)
    if known is not None and known.run_id == run:
        return ()
    if known is None and len(task.open_questions) >= _OPEN:
        return QuestionRequired(
            f"{task.id} has {_OPEN} open questions already",
            "wait for the answer to one of them",
            Call("show", {"task_id": task.id}),
        )
    said: dict[str, Any] = {"id": known.id if known is not None else _next_id(task), "text": text, "by": agent}
    said |= {"runId": run} | ({"hop": hop} if hop is not None else {})
    if choices := [choice.strip() for choice in command.choices]:
        said["choices"] = choices
    return (Draft(type=ASKED, task_id=task.id, run_id=run, payload={"question": said}),)


def _malformed(task: Task, command: c.Ask, text: str) -> AofError | None:
    problem = limits.text("text", text, limits.PROGRESS, required=True) or limits.items(
        "choices", command.choices, _CHOICES, single_line=True
    )
    if problem is not None:
        problem.call = Call("ask", {"task_id": task.id, "text": "Which of both?", "choices": ["this", "that"]})
    return problem


def _next_id(task: Task) -> str:
    """Questions of a task are numbered; the last one is always on record."""
    return f"Q{max((int(one.id[1:]) for one in task.questions), default=0) + 1}"


def _short(text: str) -> str:
    words = " ".join(text.split())
    return words if len(words) <= limits.REASON else f"{words[: limits.REASON - 1]}…"


def answer(records: Records, command: c.AnswerQuestion, now: int) -> Verdict:
    """Record the answer, once; what was blocked by the question can be done again."""
    task = records.task(command.task_id)
    if problem := limits.text("text", command.text, ANSWER, required=True):
        problem.call = Call("answer", {"task_id": task.id, "text": "…"})
        return problem
    question = _meant(task, command)
    if isinstance(question, AofError):
        return question
    if refusal := _own_question(records, task, question, command):
        return refusal
    said: dict[str, Any] = {
        "question": question.id,
        "text": command.text.strip(),
        "by": command.acting,
        "askedBy": question.by,
    }
    if all(one.id != question.id for one in task.questions):
        said["asked"] = _recorded(question)
    told = Draft(type=ANSWERED, task_id=task.id, run_id=question.run_id, payload=said)
    return _followed(records, task, question, command, told, now)


def _own_question(records: Records, task: Task, question: Question, command: c.AnswerQuestion) -> SelfAnswer | None:
    """Refuse an answer to one's own question, where callers are authenticated: no agent permits itself anything."""
    policy = records.policy
    bound = policy.binds or command.proven is not None or command.vouched is not None
    own = question.by in (command.acting, command.session)
    if not own or not bound or rights.is_person(policy.org, command.acting, policy.maintainers):
        return None
    return SelfAnswer(
        f"{question.by} has asked question {question.id} of {task.id} and cannot answer it",
        "let a person or another agent answer it",
        Call("show", {"task_id": task.id}),
        question=question.id,
    )


def _recorded(question: Question) -> dict[str, Any]:
    return {"id": question.id, "text": question.text, "by": question.by, "at": question.at}


def _meant(task: Task, command: c.AnswerQuestion) -> Question | AofError:
    """The open question that is answered, or why there is none."""
    if task.status in FINISHED:
        return InvalidTransition(
            f"{task.id} is {task.status}: nobody waits for an answer any more",
            "say it in a comment",
            Call("comment", {"task_id": task.id, "text": "…"}),
            status=task.status,
        )
    waiting = task.open_questions or _blocking(task)
    if command.question is not None:
        named = next((one for one in (*task.questions, *waiting) if one.id == command.question), None)
        if named is None:
            return _none(task, f"{task.id} has no question {command.question[:40]!r}")
        return named if named.answer is None else _too_late(task, named)
    return waiting[0] if len(waiting) == 1 else _unclear(task, waiting)


def _unclear(task: Task, waiting: tuple[Question, ...]) -> AofError:
    """Why an answer that names no question is refused."""
    if waiting:
        names = ", ".join(one.id for one in waiting)
        return QuestionRequired(
            f"several questions of {task.id} are open: {names}",
            "name the one that you answer",
            Call("answer", {"task_id": task.id, "question": waiting[0].id, "text": "…"}),
            questions=[one.id for one in waiting],
        )
    if task.questions:
        return _too_late(task, task.questions[-1])
    return _none(task, f"no agent has asked anything about {task.id}")


def _blocking(task: Task) -> tuple[Question, ...]:
    """What a task without questions waits for, as a question; where a handoff asks, its return is the answer."""
    held = task.blocked
    if held is None or held.kind != "waiting_input" or task.handoffs:
        return ()
    return (Question(id=_next_id(task), text=held.reason, by=held.by, at=held.since),)


def _too_late(task: Task, question: Question) -> AlreadyAnswered:
    given = question.answer
    assert given is not None
    return AlreadyAnswered(
        f"question {question.id} of {task.id} was answered by {given.by} at {given.at}",
        "say more in a comment",
        Call("comment", {"task_id": task.id, "text": "…"}),
        question=question.id,
        answered_by=given.by,
        answered_at=given.at,
    )


def _none(task: Task, why: str) -> NoQuestion:
    return NoQuestion(why, "see what it waits for", Call("show", {"task_id": task.id}))


def _followed(  # noqa: PLR0917 - what a decision is made of
    records: Records, task: Task, question: Question, command: c.AnswerQuestion, told: Draft, now: int
) -> Verdict:
    """The answer, and what it sets free: a task or a hop that nobody runs and that only waited for it."""
    by = command.acting
    others = [one for one in task.open_questions if one.id != question.id]
    if task.gated:
        held = next((hop for hop in workflow_of(task).hops if hop.id == question.hop), None)
        free = held is not None and held.status == "blocked" and not any(one.hop == question.hop for one in others)
        paused = task.blocked is not None and task.blocked.kind == "paused"
        if held is None or not free or paused or task.status == "backlog":
            return Decision(drafts=(told,), agent=by)
        walk = Walk(records, task, now)
        walk.drafts.append(told)
        walk.step(held.id, "unblocked", "ready", agent=by, reason=f"answered by {by}")
        return walk.finish(f"answered by {by}", agent=by)
    waits = task.blocked is not None and task.blocked.kind == "waiting_input" and not task.handoffs and not others
    if not waits or leases(task):
        return Decision(drafts=(told,), agent=by)
    back = "backlog" if task.metadata.get("draft") else "ready"
    returned = dependencies.back(records, task, back, now, reason=f"answered by {by}")
    return Decision(drafts=(told, *returned), agent=by)
