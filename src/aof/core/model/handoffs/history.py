"""The conversation that a handoff takes along, and which part of it. Must not know what the messages say."""

from __future__ import annotations

from typing import Final, Literal

import msgspec

TransferMode = Literal["full", "summary", "relevant_only"]
TRANSFER_MODES: Final[tuple[TransferMode, ...]] = ("full", "summary", "relevant_only")
MessageKind = Literal["message", "system", "tool_call", "tool_result", "reasoning"]
MESSAGE_KINDS: Final[tuple[MessageKind, ...]] = ("message", "system", "tool_call", "tool_result", "reasoning")


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
