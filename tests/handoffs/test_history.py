"""Which part of a conversation a handoff takes along."""

from __future__ import annotations

from typing import Any

import pytest

from aof.errors import AofError
from aof.handoffs.model import HandoffType
from aof.handoffs.payload import (
    BYTES,
    DEFAULT_MODES,
    MESSAGE_KINDS,
    TRANSFER_MODES,
    ConversationMessage,
    HistoryInclude,
    HistoryPolicy,
    TransferredHistory,
    messages_from,
    policy_from,
    transferred,
)
from tests.handoffs.test_context import OTHER, TOP, task

FIFTY = tuple(ConversationMessage(content=f"message {number}") for number in range(50))
ONE_EACH = tuple(ConversationMessage(content=kind, kind=kind) for kind in MESSAGE_KINDS)


def sent(
    messages: tuple[ConversationMessage, ...], kind: HandoffType = "escalation", **policy: Any
) -> TransferredHistory:
    history = transferred(messages, kind, HistoryPolicy(**policy), task(body="Write the endpoint.\n"))
    assert isinstance(history, TransferredHistory), history
    return history


def test_full_delivers_every_message_and_the_other_modes_deliver_less() -> None:
    got = {mode: sent(FIFTY, transfer_mode=mode) for mode in TRANSFER_MODES}
    assert got["full"].messages == FIFTY
    assert (got["full"].omitted, len(got["relevant_only"].messages), got["relevant_only"].omitted) == (0, 10, 40)
    (summary,) = got["summary"].messages
    assert "50 messages" in summary.content
    assert "message 0" in summary.content
    assert "message 49" in summary.content
    unknown = policy_from({"transfer_mode": "none"})
    assert isinstance(unknown, AofError)
    assert unknown.kind == "invalid"


def test_relevant_is_what_is_marked_or_about_the_task() -> None:
    about = ConversationMessage(content="the port", task_id=TOP)
    named = ConversationMessage(content=f"see {TOP}")
    marked = ConversationMessage(content="the key", task_id=OTHER, relevant=True)
    others = (ConversationMessage(content="lunch"), ConversationMessage(content="the door", task_id=OTHER))
    assert sent((about, *others, named, marked), transfer_mode="relevant_only").messages == (about, named, marked)
    assert sent(others, transfer_mode="relevant_only").messages == ()


def test_the_senders_own_summary_is_delivered_as_it_is() -> None:
    (summary,) = sent(FIFTY, transfer_mode="summary", summary="All agreed on REST.").messages
    assert summary.content == "All agreed on REST."


@pytest.mark.parametrize("mode", TRANSFER_MODES)
@pytest.mark.parametrize("most", [0, 1, 10])
def test_no_more_than_max_messages_are_transferred_and_they_are_the_last(mode: str, most: int) -> None:
    got = sent(FIFTY, transfer_mode=mode, max_messages=most).messages
    assert len(got) <= most
    if mode == "full":
        assert got == FIFTY[len(FIFTY) - most :]
    assert len(sent(FIFTY, transfer_mode="full").messages) == len(FIFTY)


@pytest.mark.parametrize(
    ("switch", "kind"),
    [
        ("system_messages", "system"),
        ("tool_calls", "tool_call"),
        ("tool_results", "tool_result"),
        ("agent_reasoning", "reasoning"),
    ],
)
def test_each_switch_takes_out_exactly_its_kind(switch: str, kind: str) -> None:
    got = sent(ONE_EACH, transfer_mode="full", include=HistoryInclude(**{switch: False})).messages
    assert {one.kind for one in ONE_EACH} - {one.kind for one in got} == {kind}


def test_without_a_mode_the_type_of_the_handoff_decides() -> None:
    modes = {kind: sent(FIFTY, kind).transfer_mode for kind in DEFAULT_MODES}
    assert modes == DEFAULT_MODES
    assert (modes["sequential"], modes["delegation"], modes["escalation"]) == ("relevant_only", "summary", "full")
    assert sent(FIFTY, "escalation").messages == FIFTY
    assert sent(FIFTY, "delegation").subtask == "Add refresh endpoint\n\nWrite the endpoint."
    assert sent(FIFTY, "sequential").subtask is None


@pytest.mark.parametrize(
    "given",
    [
        "text",
        [{"kind": "message"}],
        [{"content": "a", "kind": "song"}],
        [{"content": "x" * 10_001}],
        [{"content": "a", "agent": "../x"}],
        [{"content": "a\x00b"}],
        ["a"] * 1_001,
        [3],
    ],
)
def test_what_is_no_conversation_is_refused(given: object) -> None:
    found = messages_from(given)
    assert isinstance(found, AofError)
    assert found.kind == "invalid"
    assert found.hint


@pytest.mark.parametrize(
    "given",
    [
        {"max_messages": -1},
        {"max_messages": True},
        {"include": {"jokes": True}},
        {"include": {"tool_calls": "no"}},
        {"mode": "full"},
        {"summary": "x" * 10_001},
    ],
)
def test_what_is_no_policy_is_refused(given: dict[str, Any]) -> None:
    found = policy_from(given)
    assert isinstance(found, AofError)
    assert found.hint


def test_texts_and_objects_are_messages() -> None:
    assert messages_from(["hello", {"content": "ls", "kind": "tool_call", "agent": "ada"}]) == (
        ConversationMessage(content="hello"),
        ConversationMessage(content="ls", kind="tool_call", agent="ada"),
    )
    assert policy_from({"transfer_mode": "full", "max_messages": 3}) == HistoryPolicy(
        transfer_mode="full", max_messages=3
    )


def test_a_history_has_a_limit_in_bytes_and_the_refusal_says_what_fits() -> None:
    long = tuple(ConversationMessage(content="x" * 9_000) for _ in range(BYTES // 9_000 + 1))
    refusal = transferred(long, "escalation", HistoryPolicy(), task())
    assert isinstance(refusal, AofError)
    assert "max_messages" in refusal.hint
    assert len(sent(long, max_messages=3).messages) == 3
