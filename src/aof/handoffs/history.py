"""The conversation that a handoff takes along: its messages, how much of them is transferred, and a summary."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any, Final, Literal

import msgspec

from aof.errors import AofError, InvalidInput, PayloadTooLarge
from aof.handoffs.model import HandoffType
from aof.kernel import limits
from aof.support.typed import prepare_type
from aof.tasks.model import Task

TransferMode = Literal["full", "summary", "relevant_only"]
MessageKind = Literal["message", "system", "tool_call", "tool_result", "reasoning"]
TRANSFER_MODES: Final[tuple[TransferMode, ...]] = ("full", "summary", "relevant_only")
MESSAGE_KINDS: Final[tuple[MessageKind, ...]] = ("message", "system", "tool_call", "tool_result", "reasoning")
DEFAULT_MODES: Final[dict[HandoffType, TransferMode]] = {
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
    messages: Sequence[ConversationMessage], kind: HandoffType, policy: HistoryPolicy, task: Task
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
