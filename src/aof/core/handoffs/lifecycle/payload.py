"""What a handoff carries, put together from the shared context, the conversation and what the sender adds.

What the sender adds becomes part of the shared context, so that it lasts beyond the handoff; so does what a return
brings back. Must not know who gets it, beyond what the receiver may write.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import msgspec

from aof._support.typed import prepare_type
from aof.core.errors.base import AofError, InvalidInput
from aof.core.handoffs import history
from aof.core.handoffs.author import writer_of
from aof.core.handoffs.context import apply_updates, oversize, snapshot, top_of
from aof.core.handoffs.lifecycle.proposal import HandoffProposal
from aof.core.model.events import Draft
from aof.core.model.handoffs import context as shared
from aof.core.model.handoffs.history import TransferredHistory
from aof.core.model.handoffs.ids import uuid4
from aof.core.model.handoffs.record import Constraints, HandoffContext
from aof.core.model.records import Records
from aof.core.model.task import FileLock, Task
from aof.core.model.times import iso
from aof.core.validation.project_paths import bad_reference

_ARTIFACTS: Final = 1_000_000  # the numbers of artifacts' IDs, beyond those of any handoffs
_GIVEN: Final = frozenset({"path", "type", "status", "description"})


class Addition(msgspec.Struct, frozen=True, kw_only=True):
    """What an agent adds to the shared context: the events, and the topmost task as it then is."""

    drafts: tuple[Draft, ...]
    top: Task
    refusals: tuple[AofError, ...] = ()


class HandoffPayload(msgspec.Struct, frozen=True, kw_only=True):
    """What a receiver gets, and what was added to the shared context for it."""

    context: HandoffContext
    history: TransferredHistory
    drafts: tuple[Draft, ...]


def assembled(
    records: Records, task: Task, asked: HandoffProposal, between: tuple[str, str], now: int
) -> HandoffPayload | AofError:
    """Everything that a receiver needs to go on from the payload alone; all of it, or a refusal."""
    sender, receiver = between
    messages, policy = history.messages_from(list(asked.history)), history.policy_from(asked.transfer)
    if isinstance(messages, AofError):
        return messages
    if isinstance(policy, AofError):
        return policy
    carried = history.transferred(messages, asked.type, policy, task)
    if isinstance(carried, AofError):
        return carried
    added = addition(records, task, sender, asked.variables, asked.artifacts, now)
    if isinstance(added, AofError) or added.refusals:
        return added if isinstance(added, AofError) else added.refusals[0]
    taken = snapshot(
        task,
        asked.type,
        top=added.top,
        files=tuple(_files(records, added.top)),
        receiver=writer_of(records, receiver),
        names=tuple(asked.variables),
        rationale=asked.rationale or None,
    )
    context = HandoffContext(
        task_id=task.id,
        conversation_history=tuple(msgspec.to_builtins(one) for one in carried.messages),
        context_variables=msgspec.to_builtins(taken.context_variables),
        artifacts=tuple(msgspec.to_builtins(one) for one in taken.artifacts),
        constraints=Constraints(budget=asked.budget, deadline=asked.deadline),
    )
    return HandoffPayload(context=context, history=carried, drafts=added.drafts)


def addition(  # noqa: PLR0917 - who adds what
    records: Records, task: Task, agent: str, variables: dict[str, Any], artifacts: tuple[Any, ...], now: int
) -> Addition | AofError:
    """What an agent's variables and artifacts come to in the shared context, under the rules of any write."""
    top = top_of(records, task)
    made = [_artifact(records, task, agent, number, one, now) for number, one in enumerate(artifacts)]
    if bad := next((one for one in made if isinstance(one, AofError)), None):
        return bad
    known = tuple(one for one in made if not isinstance(one, AofError))
    written = apply_updates(top, variables, writer=writer_of(records, agent), task_id=task.id)
    context = msgspec.structs.replace(written.context, artifacts=(*written.context.artifacts, *known))
    if too_large := oversize(top, context):
        return too_large
    drafts = tuple(
        Draft(type="context.artifact", task_id=top.id, payload={"artifact": msgspec.to_builtins(one)}) for one in known
    )
    after = msgspec.structs.replace(top, context=shared.builtins(context))
    return Addition(drafts=(*written.drafts, *drafts), top=after, refusals=written.refusals)


def _artifact(  # noqa: PLR0917 - as above
    records: Records, task: Task, agent: str, number: int, given: Any, now: int
) -> shared.RecordedArtifact | AofError:
    fields = {"path": given} if isinstance(given, str) else given
    if not isinstance(fields, dict) or not fields.keys() <= _GIVEN or "path" not in fields:
        return InvalidInput(
            "an artifact is a path, or an object with path, type, status and description", "give {'path': '…'}"
        )
    whole = (
        {"type": "file"}
        | fields
        | {
            "id": uuid4(records.entropy, _ARTIFACTS + number),
            "createdBy": agent,
            "createdAt": iso(now),
            "taskId": task.id,
        }
    )
    try:
        made = msgspec.convert(whole, prepare_type(shared.RecordedArtifact))
    except msgspec.ValidationError as error:
        return InvalidInput(f"an artifact is malformed: {str(error)[:200]}", "look at its type and status")
    return bad_reference("path", made.path) or made


def _files(records: Records, top: Task) -> Iterator[FileLock]:
    """The locks of all tasks of the tree."""
    waiting = [top.id]
    for one in waiting:
        yield from records.file_locks.get(one, ())
        waiting += [child for child in records.children.get(one, ()) if child not in waiting]
