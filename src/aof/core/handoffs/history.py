"""Which part of a conversation a handoff takes along. Pure selection: nothing is rewritten but by a summary.

Must not know where the conversation comes from.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any, Final

import msgspec

from aof._support.typed import prepare_type
from aof.core.errors.base import AofError, InvalidInput, PayloadTooLarge
from aof.core.model.handoffs.history import (
    MESSAGE_KINDS,
    TRANSFER_MODES,
    ConversationMessage,
    HistoryPolicy,
    TransferMode,
    TransferredHistory,
)
from aof.core.model.task import Task
from aof.core.validation import limits

DEFAULT_MODES: Final[dict[str, TransferMode]] = {
    "sequential": "relevant_only",
    "delegation": "summary",
    "broadcast": "relevant_only",
    "escalation": "full",
}
MESSAGES: Final = 1_000
BYTES: Final = 131_072
_LATEST: Final = 10  # what counts as relevant where no message says what it is about
_EXCERPT: Final = 200
_SWITCHES: Final = {
    "system": "system_messages",
    "tool_call": "tool_calls",
    "tool_result": "tool_results",
    "reasoning": "agent_reasoning",
}


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
    return next((problem for one in found if (problem := _bad(one))), found)


def _bad(message: ConversationMessage) -> AofError | None:
    return (
        limits.text("content", message.content, limits.NOTES)
        or limits.line("role", message.role, limits.ITEM)
        or limits.line("timestamp", message.timestamp, limits.ITEM)
        or limits.name("agent", message.agent)
        or limits.line("task_id", message.task_id, limits.ITEM)
    )


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
    messages: Sequence[ConversationMessage], kind: str, policy: HistoryPolicy, task: Task
) -> TransferredHistory | AofError:
    """What the receiver of a handoff of that type gets of the conversation."""
    mode = policy.transfer_mode or DEFAULT_MODES[kind]
    included = [one for one in messages if _included(one, policy)]
    chosen = _SELECT[mode](included, policy, task)
    if policy.max_messages is not None:
        chosen = chosen[len(chosen) - min(policy.max_messages, len(chosen)) :]
    history = TransferredHistory(
        transfer_mode=mode,
        messages=tuple(chosen),
        omitted=max(len(messages) - len(chosen), 0) if mode != "summary" else len(messages),
        max_messages=policy.max_messages,
        include=policy.include,
        subtask=_described(task) if kind == "delegation" else None,
    )
    size = len(msgspec.json.encode(history))
    if size <= BYTES:
        return history
    return PayloadTooLarge(
        f"the history takes {size:,} bytes, the limit is {BYTES:,}",
        "transfer a summary, or fewer messages: max_messages",
    )


def _included(message: ConversationMessage, policy: HistoryPolicy) -> bool:
    switch = _SWITCHES.get(message.kind)
    return switch is None or bool(getattr(policy.include, switch))


def _full(messages: list[ConversationMessage], _policy: HistoryPolicy, _task: Task) -> list[ConversationMessage]:
    return messages


def _relevant(messages: list[ConversationMessage], _policy: HistoryPolicy, task: Task) -> list[ConversationMessage]:
    """What is marked, about the task, or names it; the latest, where no message says what it is about."""
    about = [one for one in messages if one.relevant or one.task_id == task.id or task.id in one.content]
    said = any(one.relevant or one.task_id is not None for one in messages)
    return about if about or said else messages[-_LATEST:]


def _summary(messages: list[ConversationMessage], policy: HistoryPolicy, _task: Task) -> list[ConversationMessage]:
    """One message in the place of all: the sender's own summary, else what can be told without understanding them."""
    if not messages:
        return []
    if policy.summary:
        return [ConversationMessage(content=policy.summary, role="summary")]
    counted = Counter(one.kind for one in messages)
    counts = ", ".join(f"{counted[kind]} {kind}" for kind in MESSAGE_KINDS if counted[kind])
    plain = [one for one in messages if one.kind == "message"] or messages
    text = f"{len(messages)} messages ({counts}). First: {_excerpt(plain[0])}"
    if len(plain) > 1:
        text += f" Last: {_excerpt(plain[-1])}"
    return [ConversationMessage(content=text, role="summary")]


def _excerpt(message: ConversationMessage) -> str:
    text = " ".join(message.content.split())
    return text if len(text) <= _EXCERPT else f"{text[: _EXCERPT - 1]}…"


def _described(task: Task) -> str:
    text = f"{task.title}\n\n{task.body}".strip()
    return text if len(text) <= limits.NOTES else f"{text[: limits.NOTES - 1]}…"


_SELECT: Final = {"full": _full, "summary": _summary, "relevant_only": _relevant}
