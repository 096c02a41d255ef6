"""Many processes that send, acknowledge and close mail at once, while somebody reads the file from outside."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from aof.documents import mail_rules
from aof.documents.mail_cards import cards_of
from aof.service.bootstrap import open_fabric
from tests.support.mail import objections
from tests.support.processes import together
from tests.support.requirements import requirement


def _works(root: Path, number: int, messages: int) -> list[str]:
    """Send so many messages to oneself and see each of them to its end."""
    me, sent = f"agent-{number}", []
    with open_fabric(root, actor=me) as mine:
        for count in range(messages):
            sent.append(mine.mail_send(me, f"{me} {count}", body=f"Body of {me} {count}.", priority="P1").message_id)
            if count % 2:
                mine.mail_ack(sent[-2], reason="read")
                mine.mail_close(sent[-2], disposition="resolved", reason="done")
        for one in sent[-1:] if messages % 2 else sent[1::2]:
            mine.mail_ack(one, reason="read")
            mine.mail_close(one, disposition="resolved", reason="done")
    return sent


def _watches(root: Path, others: int) -> list[str]:
    """Read the file again and again until all others are done; everything that was ever wrong with it."""
    wrong: list[str] = []
    seen = 0
    while len(list(root.parent.glob("done-*"))) < others:
        if (root / mail_rules.PATH).exists():
            wrong += objections((root / mail_rules.PATH).read_text())
            seen += 1
    return [*wrong, f"read {seen} times"]


def _mailed(root: Path, processes: int, messages: int) -> int:
    def work(number: int) -> list[str]:
        if not number:
            return _watches(root, processes)
        try:
            return _works(root, number, messages)
        finally:
            (root.parent / f"done-{number}").touch()

    watched, *sent = together(processes + 1, work)
    assert len(watched) == 1, watched
    ids = [one for own in sent for one in own]
    assert Counter(ids).most_common(1)[0][1] == 1
    assert len(ids) == processes * messages
    day = ids[0].rpartition("-")[0]
    assert set(ids) == {f"{day}-{number:03d}" for number in range(1, len(ids) + 1)}
    archive = (root / mail_rules.ARCHIVE).read_text()
    assert Counter(place.title for place in cards_of(archive)) == Counter(ids)
    for number in range(1, processes + 1):
        for count in range(messages):
            assert archive.count(f"\nBody of agent-{number} {count}.\n") == 1
    with open_fabric(root, actor="pm") as fabric:
        assert fabric.mail_list().total == 0
        assert fabric.mail_list(status="closed").total == len(ids)
        assert fabric.mail_check().problems == ()
    return len(ids)


@requirement("comms.message.id")
def test_many_processes_lose_and_double_no_message(root: Path) -> None:
    assert _mailed(root, 10, 4) == 40


@pytest.mark.full
def test_thirty_processes_see_a_thousand_messages_to_their_end(root: Path) -> None:
    assert _mailed(root, 30, 34) == 1020


@requirement("comms.sla.escalation")
def test_two_schedulers_at_once_escalate_a_message_once(root: Path) -> None:
    with open_fabric(root, actor="ada") as fabric:
        sent = fabric.mail_send("bob", "Port?", priority="P0").message_id
        fabric.turn_began("bob", "test")
        fabric.turn_ended("bob", "test")

    def tick(_number: int) -> list[str | None]:
        with open_fabric(root) as mine:
            return [one.message_id for _ in range(3) for one in mine.tick().actions]

    assert [one for own in together(4, tick) for one in own] == [sent]
    with open_fabric(root, actor="pm") as fabric:
        assert [event.payload["messageId"] for event in fabric.events() if event.type == mail_rules.ESCALATED] == [sent]
        assert fabric.mail_show(sent).status == "unread"
