"""Every pair of status, actor and target has one answer."""

from __future__ import annotations

import itertools

import pytest

from aof.documents.mail_rules import STATUSES, Ack, MailMessage, MailStanding, StatusChange, move_message
from aof.errors import AofError
from tests.support.mail import AT, message
from tests.support.requirements import requirement

_WHO = {
    "sender": MailStanding(sender=True),
    "receiver": MailStanding(receiver=True),
    "maintainer": MailStanding(maintainer=True),
    "third": MailStanding(),
}
_RECEIVER = {
    ("unread", "acknowledged"),
    ("unread", "actioned"),
    ("acknowledged", "actioned"),
    ("acknowledged", "blocked"),
    ("blocked", "acknowledged"),
    ("blocked", "actioned"),
}
_CLOSE = {(status, "closed") for status in STATUSES if status != "closed"}


def _asked(status: str, target: str, who: str, disposition: str | None = "resolved") -> StatusChange | AofError | None:
    acks = () if status == "unread" else (Ack("receiver", AT, "read"),)
    return move_message(
        message(status=status, acks=acks), target, who, _WHO[who], reason="because", disposition=disposition
    )


@requirement("comms.lifecycle.forbidden", "comms.lifecycle.statuses")
@pytest.mark.parametrize(("status", "target", "who"), list(itertools.product(STATUSES, STATUSES, _WHO)))
def test_each_pair_of_status_and_target_has_one_answer_for_each_actor(status: str, target: str, who: str) -> None:
    answer = _asked(status, target, who)
    closer = who in ("sender", "maintainer")
    allowed = (who == "receiver" and (status, target) in _RECEIVER) or (closer and (status, target) in _CLOSE)
    if allowed:
        assert isinstance(answer, StatusChange)
        assert answer.status == target
    elif status == target and ((target == "closed" and closer) or (who == "receiver" and target in _own(target))):
        assert answer is None
    else:
        assert isinstance(answer, AofError)
        assert answer.kind in ("refused", "invalid")
        assert answer.hint


def _own(target: str) -> tuple[str, ...]:
    return () if target in ("unread", "closed") else (target,)


@requirement("comms.lifecycle.acknowledge")
def test_only_the_receiver_acknowledges() -> None:
    assert _asked("unread", "acknowledged", "receiver") == StatusChange("acknowledged", "because")
    for who in ("sender", "maintainer", "third"):
        answer = _asked("unread", "acknowledged", who)
        assert isinstance(answer, AofError)
        assert answer.code == "not_receiver"


@requirement("comms.lifecycle.action")
def test_the_receiver_actions_from_every_open_status_and_nobody_else_does() -> None:
    for status in ("unread", "acknowledged", "blocked"):
        assert _asked(status, "actioned", "receiver") == StatusChange("actioned", "because")
        assert isinstance(_asked(status, "actioned", "sender"), AofError)


@requirement("comms.lifecycle.block-and-resume")
def test_a_block_names_what_it_waits_for_and_can_be_resumed() -> None:
    assert _asked("acknowledged", "blocked", "receiver") == StatusChange("blocked", "because")
    nothing = move_message(message(status="acknowledged"), "blocked", "bob", MailStanding(receiver=True), reason=" ")
    assert isinstance(nothing, AofError)
    assert _asked("blocked", "acknowledged", "receiver") == StatusChange("acknowledged", "because")
    too_early = _asked("unread", "blocked", "receiver")
    assert isinstance(too_early, AofError)
    assert too_early.code == "status_not_allowed"


@requirement("comms.lifecycle.close")
@pytest.mark.parametrize("kind", ["request", "notify"])
def test_the_sender_or_a_maintainer_closes_whatever_the_type(kind: str) -> None:
    for status in ("unread", "acknowledged", "blocked", "actioned"):
        for who, standing in _WHO.items():
            answer = move_message(
                message(status=status, type=kind), "closed", who, standing, reason="x", disposition="resolved"
            )
            assert isinstance(answer, StatusChange if who in ("sender", "maintainer") else AofError)


@requirement("comms.lifecycle.dispositions")
def test_a_message_is_closed_with_a_disposition_that_its_closer_may_state() -> None:
    def closed(who: MailStanding, disposition: str | None) -> StatusChange | AofError | None:
        return move_message(message(), "closed", "x", who, reason="why", disposition=disposition)

    sender, maintainer = _WHO["sender"], _WHO["maintainer"]
    allowed = ((sender, "resolved"), (sender, "superseded"), (sender, "withdrawn"), (maintainer, "resolved"))
    for who, given in allowed:
        assert closed(who, given) == StatusChange("closed", f"Closed ({given}): why", given)
    refused: tuple[tuple[MailStanding, str | None], ...] = (
        (sender, None),
        (maintainer, "withdrawn"),
        (sender, "abandoned"),
        (maintainer, "abandoned"),
        (sender, "x"),
    )
    for who, disposition in refused:
        assert isinstance(closed(who, disposition), AofError)
    cases: tuple[tuple[int | None, type], ...] = ((None, AofError), (1, AofError), (2, StatusChange))
    for turns, answer in cases:
        assert isinstance(closed(MailStanding(maintainer=True, unanswered=turns), "abandoned"), answer)
    assert closed(maintainer, "deferred") == StatusChange("unread", "Deferred: why")
    assert isinstance(closed(sender, "deferred"), AofError)


@requirement("comms.message.ack-line")
@pytest.mark.parametrize("target", ["acknowledged", "actioned", "closed"])
def test_no_change_without_a_reason(target: str) -> None:
    everybody = MailStanding(sender=True, receiver=True, maintainer=True)
    for reason in ("", "  ", "two\nlines", "x" * 513):
        answer = move_message(message(), target, "x", everybody, reason=reason, disposition="resolved")
        assert isinstance(answer, AofError)
        assert answer.kind == "invalid"


def test_the_first_of_many_receivers_leaves_the_message_unread_for_the_others() -> None:
    everybody = MailStanding(receiver=True, others=True)
    assert move_message(message(receiver="all"), "acknowledged", "bob", everybody, reason="r") == StatusChange(
        "unread", "r"
    )
    again = message(receiver="all", acks=(Ack("bob", AT, "r"),))
    assert move_message(again, "acknowledged", "bob", everybody, reason="r") is None
    last = MailStanding(receiver=True)
    assert move_message(again, "acknowledged", "cyd", last, reason="r") == StatusChange("acknowledged", "r")


def test_a_closed_message_is_answered_by_a_new_one() -> None:
    answer = _asked("closed", "acknowledged", "receiver")
    assert isinstance(answer, AofError)
    assert answer.code == "message_closed"
    assert answer.call is not None
    assert answer.call.arguments["related"] == "MSG-20260221-001"
    assert isinstance(message(), MailMessage)
