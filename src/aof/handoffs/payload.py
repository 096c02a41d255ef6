"""A new handoff as its sender proposes it, and the payload that its receiver gets: context and conversation."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import msgspec

from aof.errors import AofError, Call, InvalidInput
from aof.handoffs.context import RecordedArtifact, apply_updates, builtins, oversize, snapshot, top_of
from aof.handoffs.history import TransferredHistory, messages_from, policy_from, transferred
from aof.handoffs.model import (
    AGGREGATIONS,
    Aggregation,
    Constraints,
    HandoffContext,
    HandoffType,
    OnTimeout,
    RequiredCapability,
    Trigger,
    Urgency,
    uuid4,
)
from aof.handoffs.participants import writer_of
from aof.kernel import limits
from aof.kernel.commands import Records
from aof.kernel.events import Draft
from aof.kernel.kinds import Priority
from aof.kernel.limits import bad_reference
from aof.kernel.model import EXAMPLES, duration_ms, iso, millis
from aof.org.model import Risk
from aof.support.typed import prepare_type
from aof.tasks.fields import KEY, bad_capabilities
from aof.tasks.fields import required_capabilities as asked_for
from aof.tasks.model import FileLock, Task


class HandoffKind(msgspec.Struct, frozen=True, kw_only=True):
    """The rules of one type. With `timeout`, a return has the time of the settings where the sender gives none.

    `waits` says whether the sender's task is held until the return unless it says so.
    """

    returns: bool
    several: bool = False
    timeout: bool = False
    rationale: bool = False
    waits: bool = False


KINDS: Final[dict[HandoffType, HandoffKind]] = {
    "sequential": HandoffKind(returns=False),
    "delegation": HandoffKind(returns=True, timeout=True),
    "broadcast": HandoffKind(returns=True, several=True),
    "escalation": HandoffKind(returns=True, rationale=True, waits=True),
}
URGENCY: Final[dict[Priority, Urgency]] = {
    "critical": "immediate",
    "high": "immediate",
    "normal": "normal",
    "low": "low",
}
MOST_TARGETS: Final = 20
_MOST_AUTONOMY: Final = 3
_ARTIFACTS: Final = 1_000_000  # the numbers of artifacts' IDs, beyond those of any handoffs
_GIVEN: Final = frozenset({"path", "type", "status", "description"})


class HandoffProposal(msgspec.Struct, frozen=True, kw_only=True):
    """A handoff as its sender wants it. `to` may be empty for an escalation: the chain decides.

    `no_return` are targets of a broadcast that owe no return. `wait` says whether the sender's own task is held until
    the return; None leaves that to the type. `segment_complete` says that the sender's part of the task is done.
    `transfer` says how much of the `history` goes along. With `coordinate`, the receivers of a broadcast see what the
    others bring back.
    """

    type: HandoffType
    to: tuple[str, ...] = ()
    reason: str
    rationale: str = ""
    risk: Risk = "low"
    timeout: str | None = None
    on_timeout: OnTimeout = "retry"
    capabilities: tuple[Any, ...] = ()
    autonomy_budget: int | None = None
    aggregation: Aggregation | None = None
    no_return: tuple[str, ...] = ()
    wait: bool | None = None
    segment_complete: bool = False
    history: tuple[Any, ...] = ()
    transfer: dict[str, Any] = {}
    variables: dict[str, Any] = {}
    artifacts: tuple[Any, ...] = ()
    coordinate: bool = False
    budget: float | None = None
    deadline: str | None = None
    trigger: Trigger | None = None


def malformed_proposal(asked: HandoffProposal, sender: str, task_id: str) -> AofError | None:
    """What is wrong with a proposal, whatever it is about."""
    level: InvalidInput | None = None
    if asked.autonomy_budget is not None and not 0 <= asked.autonomy_budget <= _MOST_AUTONOMY:
        level = InvalidInput(f"'autonomy_budget' cannot be {asked.autonomy_budget}", "give a level from 0 to 3")
    return (
        limits.text("reason", asked.reason, limits.REASON, required=True)
        or limits.text("rationale", asked.rationale, limits.NOTES)
        or _bad_targets(asked, sender, task_id)
        or _bad_return(asked)
        or _lacks_rationale(asked, sender, task_id)
        or bad_capabilities("capabilities", list(asked.capabilities))
        or level
        or bad_moment("deadline", asked.deadline)
    )


def _bad_targets(asked: HandoffProposal, sender: str, task_id: str) -> AofError | None:
    if not asked.to and asked.type != "escalation":
        return InvalidInput(
            "'to' must name an agent", "say who gets it", _example(asked, sender, task_id), parameter="to"
        )
    problem = limits.names(**{"from_agent": sender} | {f"to[{n}]": one for n, one in enumerate(asked.to)})
    if problem or len(asked.to) > MOST_TARGETS:
        return problem or InvalidInput(f"'to' names {len(asked.to)} agents, the limit is {MOST_TARGETS}", "name fewer")
    if len(asked.to) > 1 and not KINDS[asked.type].several:
        return InvalidInput(f"a {asked.type} goes to one agent", "use the type broadcast for several")
    if len(set(asked.to)) < len(asked.to) or sender in asked.to:
        return InvalidInput("'to' names an agent twice, or the sender", "name each other agent once")
    if stray := set(asked.no_return) - set(asked.to):
        return InvalidInput(f"'no_return' names {min(stray)[:80]!r}, which is no target", "name targets only")
    return None


def _bad_return(asked: HandoffProposal) -> AofError | None:
    if asked.timeout is not None and duration_ms(asked.timeout) is None:
        return InvalidInput(f"'timeout' is no duration: {asked.timeout[:80]!r}", f"use one such as {EXAMPLES}")
    if asked.aggregation is not None and not KINDS[asked.type].several:
        return InvalidInput(f"a {asked.type} has no 'aggregation'", "leave it out, or use the type broadcast")
    return limits.choice("aggregation", asked.aggregation or "all", AGGREGATIONS)


def _lacks_rationale(asked: HandoffProposal, sender: str, task_id: str) -> InvalidInput | None:
    if not KINDS[asked.type].rationale or asked.rationale.strip():
        return None
    return InvalidInput(
        f"an {asked.type} needs 'rationale' (audit.decision_rationale): why it goes beyond the sender",
        "say why",
        _example(asked, sender, task_id),
        parameter="rationale",
    )


def _example(asked: HandoffProposal, sender: str, task_id: str) -> Call:
    given: dict[str, Any] = {"type": asked.type, "task_id": task_id, "from_agent": sender}
    given |= {"to": list(asked.to) or ["…"], "reason": asked.reason[:80] or "…"}
    given |= {"rationale": "…"} if KINDS[asked.type].rationale else {}
    return Call("handoff_new", given)


def bad_moment(field: str, text: str | None) -> InvalidInput | None:
    """Refuse what is no moment in ISO-8601."""
    try:
        if text is not None:
            millis(text)
    except (ValueError, OverflowError):
        return InvalidInput(f"'{field}' is no moment: {str(text)[:80]!r}", "use one such as 2026-02-21T12:00:00Z")
    return None


def required_of_receiver(given: tuple[Any, ...]) -> tuple[str | RequiredCapability, ...]:
    """The required capabilities as the record has them: a plain name where any proficiency will do."""
    asked = asked_for({KEY: list(given)})
    return tuple(
        RequiredCapability(capability_id=name, min_proficiency=least) if least else name
        for name, least in asked.items()
    )


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


def assembled_payload(
    records: Records, task: Task, asked: HandoffProposal, between: tuple[str, str], now: int
) -> HandoffPayload | AofError:
    """Everything that a receiver needs to go on from the payload alone; all of it, or a refusal."""
    sender, receiver = between
    messages, policy = messages_from(list(asked.history)), policy_from(asked.transfer)
    if isinstance(messages, AofError):
        return messages
    if isinstance(policy, AofError):
        return policy
    carried = transferred(messages, asked.type, policy, task)
    if isinstance(carried, AofError):
        return carried
    added = addition(records, task, sender, asked.variables, asked.artifacts, now)
    if isinstance(added, AofError) or added.refusals:
        return added if isinstance(added, AofError) else added.refusals[0]
    taken = snapshot(
        task,
        asked.type,
        top=added.top,
        files=tuple(_locks_below(records, added.top)),
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
    after = msgspec.structs.replace(top, context=builtins(context))
    return Addition(drafts=(*written.drafts, *drafts), top=after, refusals=written.refusals)


def _artifact(  # noqa: PLR0917 - who records what
    records: Records, task: Task, agent: str, number: int, given: Any, now: int
) -> RecordedArtifact | AofError:
    fields = {"path": given} if isinstance(given, str) else given
    if not isinstance(fields, dict) or not fields.keys() <= _GIVEN or "path" not in fields:
        return InvalidInput(
            "an artifact is a path, or an object with path, type, status and description", "give {'path': '…'}"
        )
    own = {"id": uuid4(records.entropy, _ARTIFACTS + number), "createdBy": agent, "createdAt": iso(now)}
    try:
        made = msgspec.convert({"type": "file"} | fields | own | {"taskId": task.id}, prepare_type(RecordedArtifact))
    except msgspec.ValidationError as error:
        return InvalidInput(f"an artifact is malformed: {str(error)[:200]}", "look at its type and status")
    return bad_reference("path", made.path) or made


def _locks_below(records: Records, top: Task) -> Iterator[FileLock]:
    """The locks of all tasks of the tree."""
    waiting = [top.id]
    for one in waiting:
        yield from records.file_locks.get(one, ())
        waiting += [child for child in records.children.get(one, ()) if child not in waiting]
