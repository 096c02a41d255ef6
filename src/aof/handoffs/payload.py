"""A new handoff as its sender proposes it, and the payload that its receiver gets: context and conversation."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any, Final, Literal

import msgspec

from aof.errors import AofError, Call, InvalidInput, PayloadTooLarge
from aof.handoffs import model
from aof.handoffs.access import writer_of
from aof.handoffs.context import RecordedArtifact, Write, builtins, oversize, snapshot, top_of, write
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

TransferMode = Literal["full", "summary", "relevant_only"]
MessageKind = Literal["message", "system", "tool_call", "tool_result", "reasoning"]
TRANSFER_MODES: Final[tuple[TransferMode, ...]] = ("full", "summary", "relevant_only")
MESSAGE_KINDS: Final[tuple[MessageKind, ...]] = ("message", "system", "tool_call", "tool_result", "reasoning")
DEFAULT_MODES: Final[dict[model.HandoffType, TransferMode]] = {
    "sequential": "relevant_only",
    "delegation": "summary",
    "broadcast": "relevant_only",
    "escalation": "full",
}
MESSAGES: Final = 1_000
BYTES: Final = 131_072
_LATEST: Final = 10  # messages that count as relevant where none says what it is about
_EXCERPT: Final = 200  # characters
_SWITCHES: Final = {
    "system": "system_messages",
    "tool_call": "tool_calls",
    "tool_result": "tool_results",
    "reasoning": "agent_reasoning",
}


class ConversationMessage(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One message of a conversation.

    `task_id` says which task it is about, and `relevant` that the receiver needs it whatever it is about.
    """

    content: str
    kind: MessageKind = "message"
    role: str | None = None
    agent: str | None = None
    timestamp: str | None = None
    task_id: str | None = None
    relevant: bool = False


class HistoryInclude(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which kinds of messages are transferred beside the plain ones."""

    system_messages: bool = True
    tool_calls: bool = True
    tool_results: bool = True
    agent_reasoning: bool = True


class HistoryPolicy(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How much of a conversation is transferred; without a mode the handoff's type decides."""

    transfer_mode: TransferMode | None = None
    max_messages: int | None = None
    include: HistoryInclude = HistoryInclude()
    summary: str | None = None


class TransferredHistory(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What the receiver gets; `omitted` messages stayed behind. A delegation comes with the subtask's description."""

    transfer_mode: TransferMode
    messages: tuple[ConversationMessage, ...] = ()
    omitted: int = 0
    max_messages: int | None = None
    include: HistoryInclude = HistoryInclude()
    subtask: str | None = None


def messages_from(given: object) -> tuple[ConversationMessage, ...] | AofError:
    """A conversation as a caller gave it: texts, or objects with `content`, `kind` and what else a message has."""
    if not isinstance(given, list | tuple):
        return InvalidInput("'conversation_history' must be a list of messages", "use [] or [{'content': '…'}]")
    if len(given) > MESSAGES:
        return PayloadTooLarge(
            f"'conversation_history' has {len(given):,} messages, the limit is {MESSAGES:,}", "send the last ones"
        )
    whole = [{"content": one} if isinstance(one, str) else one for one in given]
    try:
        found = msgspec.convert(whole, prepare_type(tuple[ConversationMessage, ...]))
    except msgspec.ValidationError as error:
        kinds = ", ".join(MESSAGE_KINDS)
        return InvalidInput(
            f"'conversation_history' is malformed: {str(error)[:200]}", f"give 'content' and a 'kind' of: {kinds}"
        )
    for message in found:
        problem = (
            limits.text("content", message.content, limits.NOTES)
            or limits.line("role", message.role, limits.ITEM)
            or limits.line("timestamp", message.timestamp, limits.ITEM)
            or limits.name("agent", message.agent)
            or limits.line("task_id", message.task_id, limits.ITEM)
        )
        if problem is not None:
            return problem
    return found


def policy_from(given: dict[str, Any]) -> HistoryPolicy | AofError:
    """How much to transfer, as a caller gave it."""
    mode, most = given.get("transfer_mode"), given.get("max_messages")
    if mode is not None and (problem := limits.choice("transfer_mode", mode, TRANSFER_MODES)):
        return problem
    if most is not None and not (type(most) is int and most >= 0):
        return InvalidInput(f"'max_messages' cannot be {str(most)[:80]!r}", "give a whole number from 0 up")
    try:
        policy = msgspec.convert(given, prepare_type(HistoryPolicy))
    except msgspec.ValidationError as error:
        return InvalidInput(
            f"the history's policy is malformed: {str(error)[:200]}",
            f"'include' has the switches {', '.join(_SWITCHES.values())}, each true or false",
        )
    return limits.text("summary", policy.summary, limits.NOTES) or policy


def transferred(
    messages: Sequence[ConversationMessage], kind: model.HandoffType, policy: HistoryPolicy, task: Task
) -> TransferredHistory | AofError:
    """What the receiver of a handoff of that type gets of the conversation."""
    mode = policy.transfer_mode or DEFAULT_MODES[kind]
    chosen = [one for one in messages if one.kind == "message" or getattr(policy.include, _SWITCHES[one.kind])]
    if mode == "relevant_only":
        chosen = _relevant(chosen, task)
    elif mode == "summary":
        chosen = _summary(chosen, policy.summary)
    if policy.max_messages is not None:
        chosen = chosen[len(chosen) - min(policy.max_messages, len(chosen)) :]
    history = TransferredHistory(
        transfer_mode=mode,
        messages=tuple(chosen),
        omitted=max(len(messages) - len(chosen), 0) if mode != "summary" else len(messages),
        max_messages=policy.max_messages,
        include=policy.include,
        subtask=_shortened(f"{task.title}\n\n{task.body}".strip(), limits.NOTES) if kind == "delegation" else None,
    )
    size = len(msgspec.json.encode(history))
    if size <= BYTES:
        return history
    return PayloadTooLarge(
        f"the history takes {size:,} bytes, the limit is {BYTES:,}",
        "transfer a summary, or fewer messages: max_messages",
    )


def _relevant(messages: list[ConversationMessage], task: Task) -> list[ConversationMessage]:
    """What is marked, about the task, or names it; the latest, where no message says what it is about."""
    about = [one for one in messages if one.relevant or one.task_id == task.id or task.id in one.content]
    marked = any(one.relevant or one.task_id is not None for one in messages)
    return about if about or marked else messages[-_LATEST:]


def _summary(messages: list[ConversationMessage], text: str | None) -> list[ConversationMessage]:
    """One message in the place of all: the sender's own summary, else counts and excerpts of the first and last."""
    if not messages:
        return []
    if not text:
        counted = Counter(one.kind for one in messages)
        counts = ", ".join(f"{counted[kind]} {kind}" for kind in MESSAGE_KINDS if counted[kind])
        plain = [one for one in messages if one.kind == "message"] or messages
        text = f"{len(messages)} messages ({counts}). First: {_excerpt(plain[0])}"
        if len(plain) > 1:
            text += f" Last: {_excerpt(plain[-1])}"
    return [ConversationMessage(content=text, role="summary")]


def _excerpt(message: ConversationMessage) -> str:
    return _shortened(" ".join(message.content.split()), _EXCERPT)


def _shortened(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[: most - 1]}…"


class HandoffKind(msgspec.Struct, frozen=True, kw_only=True):
    """The rules of one type. With `timeout`, a return has the time of the settings where the sender gives none.

    `waits` says whether the sender's task is held until the return unless it says so.
    """

    returns: bool
    several: bool = False
    timeout: bool = False
    rationale: bool = False
    waits: bool = False


KINDS: Final[dict[model.HandoffType, HandoffKind]] = {
    "sequential": HandoffKind(returns=False),
    "delegation": HandoffKind(returns=True, timeout=True),
    "broadcast": HandoffKind(returns=True, several=True),
    "escalation": HandoffKind(returns=True, rationale=True, waits=True),
}
URGENCY: Final[dict[Priority, model.Urgency]] = {
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

    type: model.HandoffType
    to: tuple[str, ...] = ()
    reason: str
    rationale: str = ""
    risk: Risk = "low"
    timeout: str | None = None
    on_timeout: model.OnTimeout = "retry"
    capabilities: tuple[Any, ...] = ()
    autonomy_budget: int | None = None
    aggregation: model.Aggregation | None = None
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
    trigger: model.Trigger | None = None


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
    return limits.choice("aggregation", asked.aggregation or "all", model.AGGREGATIONS)


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


def required_of_receiver(given: tuple[Any, ...]) -> tuple[str | model.RequiredCapability, ...]:
    """The required capabilities as the record has them: a plain name where any proficiency will do."""
    asked = asked_for({KEY: list(given)})
    return tuple(
        model.RequiredCapability(capability_id=name, min_proficiency=least) if least else name
        for name, least in asked.items()
    )


class Addition(msgspec.Struct, frozen=True, kw_only=True):
    """What an agent adds to the shared context: the events, and the topmost task as it then is."""

    drafts: tuple[Draft, ...]
    top: Task
    refusals: tuple[AofError, ...] = ()


def assembled_payload(
    records: Records, task: Task, asked: HandoffProposal, between: tuple[str, str], now: int
) -> tuple[model.HandoffContext, TransferredHistory, tuple[Draft, ...]] | AofError:
    """The context and history that a receiver needs to go on, and what is shared for it; all of it, or a refusal."""
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
    context = model.HandoffContext(
        task_id=task.id,
        conversation_history=tuple(msgspec.to_builtins(one) for one in carried.messages),
        context_variables=msgspec.to_builtins(taken.context_variables),
        artifacts=tuple(msgspec.to_builtins(one) for one in taken.artifacts),
        constraints=model.Constraints(budget=asked.budget, deadline=asked.deadline),
    )
    return context, carried, added.drafts


def addition(  # noqa: PLR0917 - who adds what
    records: Records, task: Task, agent: str, variables: dict[str, Any], artifacts: tuple[Any, ...], now: int
) -> Addition | AofError:
    """What an agent's variables and artifacts come to in the shared context, under the rules of any write."""
    top = top_of(records, task)
    made = [_artifact(records, task, agent, number, one, now) for number, one in enumerate(artifacts)]
    if bad := next((one for one in made if isinstance(one, AofError)), None):
        return bad
    known = tuple(one for one in made if not isinstance(one, AofError))
    writes = tuple(Write(name=name, value=value) for name, value in variables.items())
    written = write(top, writes, writer=writer_of(records, agent), task_id=task.id)
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
    own = {"id": model.uuid4(records.entropy, _ARTIFACTS + number), "createdBy": agent, "createdAt": iso(now)}
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
