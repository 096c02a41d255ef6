"""What people do with a gated task: create it, begin its workflow, let it go on, run it again, edit it.

And the questions that agents ask about their task, gated or not, with the answers of people and others.
"""

from __future__ import annotations

from typing import Any, Final

import msgspec

from aof.errors import (
    AlreadyAnswered,
    AofError,
    Call,
    InvalidInput,
    InvalidTransition,
    NoQuestion,
    NotAttached,
    QuestionRequired,
    SelfAnswer,
)
from aof.kernel import commands, limits
from aof.kernel.commands import Decision, Records, Verdict
from aof.kernel.events import Draft
from aof.kernel.evolve import evolve_draft
from aof.kernel.model import FINISHED, iso
from aof.org import rights
from aof.runs import leases as runs_leases
from aof.runs import results as runs_results
from aof.tasks import lifecycle
from aof.tasks import rules as tasks_rules
from aof.tasks.model import Question, Task
from aof.tasks.rules import close_run, to_blocked
from aof.workflows import hops
from aof.workflows.hops import Walk, reset_by, state_of
from aof.workflows.model import ENDED, LOST, begun, builtins, leases, workflow_of
from aof.workflows.templates import usable


def create(records: Records, command: commands.CreateGated, now: int) -> Verdict:
    """Create a task with a snapshot of its workflow, and open the first hops."""
    template = usable(command.template, command.workflow)
    if isinstance(template, AofError):
        return template
    workflow = begun(template)
    verdict = tasks_rules.create(records, command, now, {"workflow": builtins(workflow)})
    if isinstance(verdict, AofError) or verdict.replayed is not None:
        return verdict
    task = evolve_draft(verdict.drafts[0], iso(now))
    walk = Walk(records, task, now, workflow)
    walk.settle()
    first, *others = verdict.drafts
    opened = (first, *walk.drafts, *others)
    if others and others[-1].type == "task.transitioned":  # a dependency is dead: it is held from the start
        return Decision(drafts=opened)
    return Decision(drafts=(*opened, *_over_at_once(walk)))


def _over_at_once(walk: Walk) -> tuple[Draft, ...]:
    """The events that finish a task at once where no hop's condition holds."""
    if walk.task.status != "ready" or state_of(walk.workflow) == "ready":
        return ()
    walk.drafts = []
    return walk.finish("every hop was skipped").drafts


def attach(records: Records, command: commands.Attach, now: int) -> Verdict:
    """Begin the workflow that the task names; one that it has begun goes on as it is."""
    task = records.task(command.task_id)
    if task.gated:
        return Decision()
    template = usable(command.template, task.routing.workflow)
    if isinstance(template, AofError):
        return template
    workflow = begun(template)
    if task.lease is not None or task.routing.workflow != workflow.name:
        return InvalidInput(
            f"{task.id} cannot begin the workflow '{workflow.name}' now",
            "name the workflow in its routing while nobody runs it",
            Call("show", {"task_id": task.id}),
        )
    walk = Walk(records, task, now, workflow)
    walk.settle()
    begins = Draft(type="task.workflow.attached", task_id=task.id, payload={"workflow": builtins(workflow)})
    opened = (begins, *walk.drafts)
    return Decision(drafts=(*opened, *_over_at_once(walk)))


def not_attached(task: Task) -> NotAttached:
    """The refusal for a task that names a workflow and has not begun it."""
    return NotAttached(
        f"{task.id} names the workflow '{task.routing.workflow}' and has not begun it",
        "begin it first",
        Call("workflow_attach", {"task_id": task.id}),
        task_id=task.id,
        workflow=task.routing.workflow,
    )


def unblock(records: Records, command: commands.Unblock, now: int) -> Verdict:
    """Let the task and every hop that is held go on."""
    task = records.task(command.task_id)
    workflow = workflow_of(task)
    held = [hop for hop in workflow.hops if hop.status == "blocked"]
    if task.status != "blocked" and (not held or task.status in (*FINISHED, "backlog")):
        return lifecycle.unblock(records, command, now)
    if task.metadata.get("draft"):
        return lifecycle.unblock(records, command, now)
    walk = Walk(records, task, now, workflow)
    for hop in held:
        walk.step(hop.id, "unblocked", "ready", agent=command.acting)
    return walk.finish(f"unblocked by {command.acting}")


def resume(records: Records, command: commands.Resume, now: int) -> Verdict:
    """Let a paused task go on where it was."""
    task = records.task(command.task_id)
    if task.blocked is None or task.blocked.kind != "paused" or task.blocked.was == "backlog":
        return lifecycle.resume(records, command, now)
    return Walk(records, task, now).finish("resumed")


def promote(records: Records, command: commands.Promote, now: int) -> Verdict:
    """Move the task from backlog to where its hops are, once it waits for nothing."""
    verdict = lifecycle.promote(records, command, now)
    if isinstance(verdict, AofError) or not verdict.drafts:
        return verdict
    return Walk(records, records.task(command.task_id), now).finish(command.reason)


def retry(records: Records, command: commands.RetryTask, now: int) -> Verdict:
    """Run a finished task again: what was not done, or all of it where everything was; or end the waits of hops."""
    task = records.task(command.task_id)
    verdict = runs_results.retry(records, command, now)
    if isinstance(verdict, AofError):
        return verdict
    walk = Walk(records, task, now)
    if task.status == "ready":
        waiting = [hop for hop in walk.workflow.hops if hop.not_before is not None and hop.status == "ready"]
        for hop in waiting:
            walk.add("task.retrying", hop.id, reason=command.reason, cause="rerun", byHand=True)
        whole = verdict.drafts if task.retry.waits_for_children else ()
        return Decision(drafts=(*whole, *walk.drafts))
    statuses = {hop.id: hop.status for hop in walk.workflow.hops}
    lost = tuple(name for name, status in statuses.items() if status in LOST or status not in ENDED)
    again = lost if task.status != "done" and lost else tuple(statuses)
    for name in reset_by(walk.workflow, again):
        role = walk.workflow.template.by_id[name].role
        walk.step(name, "reset", "waiting", reason=command.reason, rejections=0, role=role, escalated=False)
    revived = [draft for draft in verdict.drafts if draft.type != "task.transitioned" or draft.task_id != task.id]
    decision = walk.finish(command.reason)
    return msgspec.structs.replace(decision, drafts=(*revived, *decision.drafts))


def edit(records: Records, command: commands.Edit, now: int) -> Verdict:
    """A workflow that was begun is not exchanged for another one."""
    task = records.task(command.task_id)
    routing = command.changes.get("routing", {})
    named = routing.get("workflow", task.routing.workflow) if isinstance(routing, dict) else None
    if "routing" in command.changes and named != task.routing.workflow:
        return InvalidInput(
            f"{task.id} has begun the workflow '{task.routing.workflow}' and keeps it",
            "create another task for another workflow",
            Call("create", {"title": task.title, "brief": "…", "workflow": "…"}),
        )
    return tasks_rules.edit(records, command, now)


ASKED: Final = "task.question.asked"
ANSWERED: Final = "task.question.answered"
WAITS: Final = "waits_for_answer"
ANSWER: Final = 4_000  # characters
_CHOICES: Final = 10
_OPEN: Final = 8  # questions of one task


def ask(records: Records, command: commands.Ask, now: int) -> Verdict:
    """Record the question, which is also a heartbeat; the same text again is the same open question."""
    task = records.task(command.task_id)
    if task.gated:
        return _ask_at_hop(records, task, command, now)
    holder = runs_leases.authorize(task, command)
    if isinstance(holder, AofError):
        return holder
    assert task.lease is not None
    asked = _asked(task, command, holder, task.lease.run_id)
    if isinstance(asked, AofError):
        return asked
    if not command.leave:
        return Decision(drafts=asked, heartbeat=runs_leases.next_beat(records, task, now), agent=holder)
    reason = _shortened(command.text)
    closed = close_run(task, now, status="released", code=WAITS, message=reason)
    blocked = to_blocked(task, now, kind="waiting_input", reason=reason, by=holder)
    return Decision(drafts=(*asked, *closed, blocked), agent=holder)


def _ask_at_hop(records: Records, task: Task, command: commands.Ask, now: int) -> Verdict:
    hop = hops.held_hop(task, workflow_of(task), command)
    if isinstance(hop, AofError):
        return hop
    holder = hop.agent or command.acting
    asked = _asked(task, command, holder, str(hop.run_id), hop.id)
    if isinstance(asked, AofError):
        return asked
    if not command.leave:
        return Decision(drafts=asked, heartbeat=hops.next_beat(records, task, hop, now), agent=holder)
    walk, reason = Walk(records, task, now), _shortened(command.text)
    walk.drafts += asked
    walk.end_run(hop, status="released", code=WAITS, message=reason)
    walk.step(hop.id, "blocked", "blocked", hop.run_id, agent=holder, reason=reason)
    return walk.finish(WAITS, agent=holder)


def _asked(
    task: Task, command: commands.Ask, agent: str, run: str, hop: str | None = None
) -> tuple[Draft, ...] | AofError:
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
    question: dict[str, Any] = {"id": known.id if known is not None else _next_id(task), "text": text, "by": agent}
    question |= {"runId": run} | ({"hop": hop} if hop is not None else {})
    if command.choices:
        question["choices"] = [choice.strip() for choice in command.choices]
    return (Draft(type=ASKED, task_id=task.id, run_id=run, payload={"question": question}),)


def _malformed(task: Task, command: commands.Ask, text: str) -> AofError | None:
    problem = limits.text("text", text, limits.PROGRESS, required=True) or limits.items(
        "choices", command.choices, _CHOICES, single_line=True
    )
    if problem is not None:
        problem.call = Call("ask", {"task_id": task.id, "text": "Which of both?", "choices": ["this", "that"]})
    return problem


def _next_id(task: Task) -> str:
    """Questions of a task are numbered; the last one is always on record."""
    return f"Q{max((int(one.id[1:]) for one in task.questions), default=0) + 1}"


def _shortened(text: str) -> str:
    words = " ".join(text.split())
    return words if len(words) <= limits.REASON else f"{words[: limits.REASON - 1]}…"


def answer(records: Records, command: commands.AnswerQuestion, now: int) -> Verdict:
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
    payload: dict[str, Any] = {
        "question": question.id,
        "text": command.text.strip(),
        "by": command.acting,
        "askedBy": question.by,
    }
    if all(one.id != question.id for one in task.questions):
        payload["asked"] = {"id": question.id, "text": question.text, "by": question.by, "at": question.at}
    answered = Draft(type=ANSWERED, task_id=task.id, run_id=question.run_id, payload=payload)
    return _set_free(records, task, question, command.acting, answered, now)


def _own_question(
    records: Records, task: Task, question: Question, command: commands.AnswerQuestion
) -> SelfAnswer | None:
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


def _meant(task: Task, command: commands.AnswerQuestion) -> Question | AofError:
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
            return _no_question(task, f"{task.id} has no question {command.question[:40]!r}")
        return named if named.answer is None else _answered_already(task, named)
    return waiting[0] if len(waiting) == 1 else _none_meant(task, waiting)


def _none_meant(task: Task, waiting: tuple[Question, ...]) -> AofError:
    """Why an answer that names no question is refused."""
    if waiting:
        return QuestionRequired(
            f"several questions of {task.id} are open: {', '.join(one.id for one in waiting)}",
            "name the one that you answer",
            Call("answer", {"task_id": task.id, "question": waiting[0].id, "text": "…"}),
            questions=[one.id for one in waiting],
        )
    if task.questions:
        return _answered_already(task, task.questions[-1])
    return _no_question(task, f"no agent has asked anything about {task.id}")


def _blocking(task: Task) -> tuple[Question, ...]:
    """What a task without questions waits for, as a question; where a handoff asks, its return is the answer."""
    held = task.blocked
    if held is None or held.kind != "waiting_input" or task.handoffs:
        return ()
    return (Question(id=_next_id(task), text=held.reason, by=held.by, at=held.since),)


def _answered_already(task: Task, question: Question) -> AlreadyAnswered:
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


def _no_question(task: Task, why: str) -> NoQuestion:
    return NoQuestion(why, "see what it waits for", Call("show", {"task_id": task.id}))


def _set_free(  # noqa: PLR0917 - what a decision is made of
    records: Records, task: Task, question: Question, by: str, answered: Draft, now: int
) -> Verdict:
    """The answer, and what it sets free: a task or a hop that nobody runs and that only waited for it."""
    others = [one for one in task.open_questions if one.id != question.id]
    if task.gated:
        held = next((hop for hop in workflow_of(task).hops if hop.id == question.hop), None)
        free = held is not None and held.status == "blocked" and not any(one.hop == question.hop for one in others)
        paused = task.blocked is not None and task.blocked.kind == "paused"
        if held is None or not free or paused or task.status == "backlog":
            return Decision(drafts=(answered,), agent=by)
        walk = Walk(records, task, now)
        walk.drafts.append(answered)
        walk.step(held.id, "unblocked", "ready", agent=by, reason=f"answered by {by}")
        return walk.finish(f"answered by {by}", agent=by)
    waits = task.blocked is not None and task.blocked.kind == "waiting_input" and not task.handoffs and not others
    if not waits or leases(task):
        return Decision(drafts=(answered,), agent=by)
    back = "backlog" if task.metadata.get("draft") else "ready"
    returned = tasks_rules.back_to_waiting(records, task, back, now, reason=f"answered by {by}")
    return Decision(drafts=(answered, *returned), agent=by)
