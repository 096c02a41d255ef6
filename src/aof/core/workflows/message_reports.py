"""What a protocol message does to a hop. The run that sends it names the hop; without one, the only hop of the sender.

A report goes on record and the hop moves when the session ends, as with every task. Must not know the wire.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from aof.core.engine.decide import decide
from aof.core.engine.needs import needs
from aof.core.messages.message import Message
from aof.core.model.commands import Claim, Fail
from aof.core.model.errors import AofError, Call, InvalidInput, NotLeaseHolder
from aof.core.model.events import Draft
from aof.core.model.ids import run_place
from aof.core.model.records import Decision, Needs, Records, Verdict
from aof.core.model.run import Result
from aof.core.model.task import Task
from aof.core.model.workflow_state import HopState, has_open_hop, workflow_of
from aof.core.workflows.claim import wrong_role
from aof.core.workflows.hop_lease import held
from aof.core.workflows.transaction import Walk

if TYPE_CHECKING:
    from aof.core.messages.completion import CompletionReport
    from aof.core.messages.status import StatusUpdate


def places(task: Task) -> frozenset[str]:
    """What the results of the hops go by that anybody has run."""
    return frozenset(run_place(task.id, hop["id"]) for hop in task.workflow["hops"] if "runId" in hop)


def held_hop(task: Task, message: Message) -> HopState | AofError:
    """The hop that the sender holds; naming a run does not make one its holder."""
    hop = held(task, workflow_of(task), message)
    if isinstance(hop, HopState) and hop.agent != message.actor:
        return NotLeaseHolder(
            f"hop '{hop.id}' of {task.id} is held by {hop.agent}, not by {message.actor}",
            f"only {hop.agent} may report on it",
            Call("workflow_show", {"name": task.id}),
            holder=hop.agent,
        )
    return hop


def report(records: Records, task: Task, message: CompletionReport) -> Verdict:
    """Put the result of a hop's run on record, once."""
    hop = held_hop(task, message)
    if isinstance(hop, AofError):
        return Decision() if _repeated(records, task, message) else hop
    agent = str(hop.agent)
    refusal = wrong_role(records, task, hop, agent) or _says_nothing(task, hop, message)
    if refusal is not None:
        return refusal
    if _same(records.results[run_place(task.id, hop.id)], hop, message):
        return Decision()
    payload = {"hop": hop.id, "outcome": message.outcome, "result": message.result_of(agent)}
    drafts = (Draft(type="task.completed", task_id=task.id, run_id=hop.run_id, payload=payload),)
    return Decision(drafts=drafts, agent=agent)


def _says_nothing(task: Task, hop: HopState, message: CompletionReport) -> AofError | None:
    """Who sends work back says what has to change."""
    rule = workflow_of(task).template.by_id[hop.id]
    rejects = message.outcome == "needs_review" and rule.can_reject and bool(rule.depends_on)
    if not rejects or any(text.strip() for text in message.blockers):
        return None
    return InvalidInput(
        f"outcome 'needs_review' rejects at hop '{hop.id}' of {task.id} and needs 'blockers': say what has to change",
        "give at least one blocker",
        Call("complete", {"task_id": task.id, "outcome": "needs_review", "blockers": ["no test for expiry"]}),
        hop=hop.id,
    )


def _repeated(records: Records, task: Task, message: CompletionReport) -> bool:
    """Whether a hop's last run has said the same before, whatever has become of the hop since."""
    own = (hop for hop in workflow_of(task).hops if hop.agent == message.actor and hop.run_id is not None)
    return any(
        message.run in (None, hop.run_id) and _same(records.results.get(run_place(task.id, hop.id)), hop, message)
        for hop in own
    )


def _same(earlier: Result | AofError | None, hop: HopState, message: CompletionReport) -> bool:
    return isinstance(earlier, Result) and earlier.run_id == hop.run_id and message.repeats(earlier, str(hop.agent))


def update_needs(known: Records, message: StatusUpdate, base: Needs) -> Needs:
    """What a hop that is held up may let its task come to."""
    if message.status != "blocked":
        return base
    ending = needs(Fail(actor=message.actor, task_id=message.task_id, code="blocked", message=""), known)
    write = base.write | ending.write
    read = (base.read | ending.read) - write
    return msgspec.structs.replace(base, write=write, read=read, dependents=ending.dependents)


def unentitled(task: Task, message: StatusUpdate) -> AofError | None:
    """Why the sender may not speak of a task whose hops others hold; None when it may, or takes a hop that is free."""
    if message.run is None and message.status == "in-progress" and has_open_hop(task):
        return None
    hop = held_hop(task, message)
    return hop if isinstance(hop, AofError) else None


def moved(records: Records, task: Task, message: StatusUpdate, now: int) -> Verdict | None:
    """What only a hop's holder, or who takes one, means by a status; None where it is meant for the whole task."""
    hop = held_hop(task, message)
    if isinstance(hop, AofError):
        free = message.run is None and isinstance(hop, NotLeaseHolder) and has_open_hop(task)
        takes = free and message.status == "in-progress"
        return decide(records, Claim(actor=message.actor, task_id=task.id), now) if takes else None
    if message.status != "blocked":
        return None
    walk = Walk(records, task, now)
    walk.by = str(hop.agent)
    reason = message.reason() or f"blocked by {hop.agent}"
    walk.end_run(hop, status="cancelled", code="blocked", message=reason)
    walk.step(hop.id, "blocked", "blocked", hop.run_id, agent=hop.agent, **(message.said() | {"reason": reason}))
    return walk.finish(reason, agent=hop.agent)
