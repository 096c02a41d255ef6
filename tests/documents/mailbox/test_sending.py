"""What may be sent, and what a message says where its sender left something out."""

from __future__ import annotations

from typing import Any

import pytest

from aof.documents.mail_rules import (
    MAIL_TYPES,
    PRIORITIES,
    SCOPES,
    Mail,
    MailMessage,
    is_message_id,
    message_id,
    message_to_send,
    number_of,
)
from aof.errors import AofError
from aof.kernel.model import Policy, millis
from aof.org.model import Agent, OrgChart
from tests.support.mail import POLICY
from tests.support.requirements import requirement

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
