"""What may be sent, who may answer it, and when an answer is overdue."""

from __future__ import annotations

import itertools
from typing import Any

import pytest

from aof.documents.mail_rules import (
    MAIL_TYPES,
    PRIORITIES,
    SCOPES,
    STATUSES,
    Ack,
    Mail,
    MailMessage,
    MailStanding,
    StatusChange,
    is_message_id,
    message_id,
    message_to_send,
    move_message,
    number_of,
    overdue,
)
from aof.errors import AofError
from aof.kernel.model import Policy, millis
from aof.org.model import Agent, OrgChart
from tests.support.mail import AT, POLICY, message
from tests.support.requirements import requirement

# --- what may be sent, and what a message says where its sender left something out


_NOW = millis("2026-02-21T09:00:00Z")
_CHART = Policy(maintainers=("maya",), org=OrgChart(agents=(Agent(id="ada"), Agent(id="bob"))))


def _sent(policy: Policy = POLICY, **given: Any) -> MailMessage | AofError:
    return message_to_send(Mail(**({"sender": "ada", "receiver": "bob", "subject": "s"} | given)), policy, 1, _NOW)


def _refused(policy: Policy = POLICY, **given: Any) -> AofError:
    answer = _sent(policy, **given)
    assert isinstance(answer, AofError)
    assert answer.hint
    return answer


@requirement("comms.message.types")
def test_one_of_each_type_is_accepted_and_any_other_refused() -> None:
    for kind in MAIL_TYPES:
        assert isinstance(_sent(type=kind, related="MSG-20260220-001"), MailMessage)
    assert "notify, request" in _refused(type="chat").hint
    assert "must name what it objects to" in _refused(type="objection").message
    assert isinstance(_sent(type="objection", subject="Against MSG-20260220-004"), MailMessage)
    notice = _sent(type="notify", priority="P0")
    assert isinstance(notice, MailMessage)
    assert notice.response_needed_by == "none"


@requirement("comms.message.closure-owner")
def test_the_closure_owner_is_the_sender_or_the_maintainer() -> None:
    assert "closure owner" in _refused(closure_owner="none").message
    assert "closure owner" in _refused(closure_owner="bob").message
    for kind in ("request", "notify"):
        sent = _sent(type=kind)
        assert isinstance(sent, MailMessage)
        assert sent.closure_owner == "ada"
    for owner in ("maintainer", "maya"):
        sent = _sent(closure_owner=owner)
        assert isinstance(sent, MailMessage)
        assert sent.closure_owner == owner
    sent = _sent(type="notify", closure_owner="none")
    assert isinstance(sent, MailMessage)
    assert sent.closure_owner == "none"


@requirement("comms.message.card-fields")
def test_what_no_card_may_say_is_refused_with_what_it_may() -> None:
    assert ", ".join(PRIORITIES) in _refused(priority="P3").hint
    assert ", ".join(SCOPES) in _refused(review_scope="some").hint
    for field in ("sender", "receiver"):
        refused = _refused(_CHART, **{field: "bobby"})
        assert "bob" in refused.hint
        assert "org chart" in refused.message
    assert isinstance(_sent(_CHART, receiver="maya"), MailMessage)


@requirement("comms.sla.due-date")
@pytest.mark.parametrize(
    ("given", "written"),
    [
        ({}, "none"),
        ({"priority": "P0"}, "next session"),
        ({"priority": "P1"}, "next session"),
        ({"response_needed_by": "2026-02-21T17:00:00Z"}, "2026-02-21T17:00:00Z"),
        ({"response_needed_by": "next session"}, "next session"),
        ({"priority": "P0", "response_needed_by": "none"}, "none"),
        ({"response_needed_by": "soon"}, None),
    ],
)
def test_an_answer_is_needed_by_a_time_the_next_session_or_never(given: dict[str, Any], written: str | None) -> None:
    sent = _sent(**given)
    if written is None:
        assert isinstance(sent, AofError)
    else:
        assert isinstance(sent, MailMessage)
        assert sent.response_needed_by == written


@requirement("comms.message.id")
def test_an_id_has_the_day_and_three_digits_or_more() -> None:
    sent = _sent()
    assert isinstance(sent, MailMessage)
    assert sent.message_id == "MSG-20260221-001"
    assert message_id("2026-02-21", 1000) == "MSG-20260221-1000"
    assert [is_message_id(one) for one in ("MSG-20260221-001", "MSG-20260221-1000", "MSG-20260221-1")] == [
        True,
        True,
        False,
    ]
    assert not is_message_id("MSG-20260221-0100")
    assert not is_message_id("MSG-20260221-001\n")
    assert number_of("MSG-20260221-1000", "2026-02-21") == 1000
    assert number_of("MSG-20260220-1000", "2026-02-21") == 0


def test_a_message_of_five_megabytes_is_refused() -> None:
    assert _refused(body="x" * 5_000_000).code == "payload_too_large"
    assert _refused(subject="x\ny").kind == "invalid"
    assert _refused(sender="all").kind == "invalid"
    assert _refused(receiver="a -> b").kind == "invalid"


def test_a_role_and_the_maintainer_can_be_named() -> None:
    chart = Policy(
        maintainers=("maya",),
        org=OrgChart(agents=(Agent(id="ada", roles=("developer",)), Agent(id="bob", roles=("reviewer",)))),
    )
    for named, written in (("role:reviewer", "role:reviewer"), ("reviewer", "role:reviewer"), ("maintainer", "maya")):
        sent = _sent(chart, receiver=named)
        assert isinstance(sent, MailMessage)
        assert sent.receiver == written
    assert isinstance(_sent(receiver="role:reviewer"), AofError)


# --- every pair of status, actor and target has one answer


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


# --- response times, counted in turns


_MONTH = 30 * 86_400_000


def _tier(turns: list[int], *, now: int = _NOW, **given: Any) -> str | None:
    found = overdue(message(**given), "bob", 10, turns, now)
    return None if found is None else found.tier


@requirement("comms.sla.p0")
def test_a_p0_message_expires_with_the_end_of_the_next_turn() -> None:
    assert _tier([], priority="P0") is None
    assert _tier([9], priority="P0") is None  # that turn had begun before the message came
    assert _tier([11], priority="P0") == "P0"
    assert _tier([11], priority="P0", status="acknowledged") is None


@requirement("comms.sla.p1")
def test_a_p1_message_expires_with_the_end_of_the_turn_after_the_next() -> None:
    assert _tier([11], priority="P1") is None
    assert _tier([11, 12], priority="P1") == "P1"


@requirement("comms.sla.no-duty")
@pytest.mark.parametrize(
    "given",
    [
        {"priority": "P2", "response_needed_by": "none"},
        {"priority": "P0", "type": "notify"},
        {"priority": "P0", "status": "blocked"},
    ],
)
def test_what_asks_for_no_answer_never_expires(given: dict[str, str]) -> None:
    assert _tier(list(range(11, 21)), now=_NOW + _MONTH, **given) is None


@requirement("comms.sla.turns")
def test_windows_are_counted_in_turns_and_end_with_the_acknowledgement() -> None:
    assert _tier([], priority="P0", now=_NOW + _MONTH) is None
    assert _tier([11, 12, 13], priority="P0", status="acknowledged", now=_NOW + _MONTH) is None


@requirement("comms.sla.due-date")
def test_the_stricter_of_date_and_priority_holds() -> None:
    hour = 3_600_000
    due: dict[str, Any] = {"priority": "P1", "response_needed_by": "2026-02-21T10:00:00Z"}
    assert _tier([], now=_NOW + hour, **due) is None
    assert _tier([], now=_NOW + hour + 1, **due) == "due date"
    assert _tier([11], priority="P0", response_needed_by="none") == "P0"
    decision: dict[str, Any] = {
        "priority": "P2",
        "type": "decision-required",
        "response_needed_by": "2026-02-21T10:00:00Z",
    }
    found = overdue(message(**decision), "bob", 10, [], _NOW + 2 * hour)
    assert found is not None
    assert found.escalates
    plain = overdue(message(**(decision | {"type": "request"})), "bob", 10, [], _NOW + 2 * hour)
    assert plain is not None
    assert not plain.escalates
    assert _tier([11, 12], priority="P2", response_needed_by="next session") == "P1"
