"""Mail under crashes: whatever step a writer dies at, every message stands in one place, once and whole."""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from aof.api.fabric import Fabric
from aof.documents import mail_rules
from aof.documents.mail_cards import cards_of
from aof.documents.mailbox import Mailbox
from aof.store.files.store import FilesystemStore
from aof.testing import FakeClock
from tests.support.deaths import die_at_every_step, opened
from tests.support.disks import SteppingDisk
from tests.support.mail import objections
from tests.support.requirements import requirement

pytestmark = pytest.mark.usefixtures("few_stripes")

MONDAY = "2026-03-02T09:00:00Z"
FIRST, SECOND = "MSG-20260302-001", "MSG-20260302-002"
BODIES = {FIRST: "The first body.", SECOND: "The second body."}
Act = Callable[[Fabric], object]


def send(fabric: Fabric) -> object:
    return fabric.mail_send("bob", "Third", from_agent="ada", body="The third body.")


def ack(fabric: Fabric) -> object:
    return fabric.mail_ack(FIRST, agent="bob", reason="read")


def close(fabric: Fabric) -> object:
    return fabric.mail_close(FIRST, agent="ada", disposition="resolved", reason="thanks")


def _prepared(root: Path) -> None:
    FilesystemStore.create(str(root), SteppingDisk())
    fabric = opened(root, FakeClock(MONDAY))
    for number, body in enumerate(BODIES.values(), 1):
        fabric.mail_send("bob", f"Number {number}", from_agent="ada", body=body)
    fabric.close()


def _assert_checked(root: Path, boot: str) -> None:
    """What the log says of each message is what the files say, and mail goes on."""
    fabric = opened(root, FakeClock(MONDAY), boot=boot)
    try:
        closed = [event.payload["messageId"] for event in fabric.store.events() if event.type == mail_rules.CLOSED]
        sent = [event.payload["messageId"] for event in fabric.store.events() if event.type == mail_rules.SENT]
        acked = [event.payload["messageId"] for event in fabric.store.events() if event.type == mail_rules.CHANGED]
        assert {one.message_id for one in fabric.mail_list().messages} == set(sent) - set(closed)
        text = (root / mail_rules.PATH).read_text()
        archive = (root / mail_rules.ARCHIVE).read_text() if (root / mail_rules.ARCHIVE).exists() else ""
        active = [place.title for place in Mailbox(text).outline.cards]
        assert Counter([*active, *(place.title for place in cards_of(archive))]) == Counter(sent)
        assert list(Mailbox(text).closed_ids) == closed
        for one, body in BODIES.items():
            assert (text + archive).count(f"\n{body}\n") == 1
            assert len(fabric.mail_show(one).acks) == (one in closed) + (one in acked)
        assert objections(text) == []
        assert fabric.mail_check().problems == ()
        assert fabric.mail_send("bob", "It goes on", from_agent="ada").message_id not in sent
    finally:
        fabric.close()


@requirement("comms.lifecycle.archive-on-close")
@pytest.mark.parametrize("act", [send, ack, close], ids=lambda act: act.__name__)
def test_whatever_step_a_writer_dies_at_every_message_is_in_one_place(shm_path: Path, act: Act) -> None:
    before = shm_path / "before"
    _prepared(before)
    assert die_at_every_step(before, lambda: FakeClock(MONDAY), act, _assert_checked) > 3


def test_a_mailbox_that_a_power_cut_has_taken_comes_back_from_the_log(shm_path: Path) -> None:
    _prepared(shm_path / "dead")
    mailbox = shm_path / "dead" / mail_rules.PATH
    whole = mailbox.read_bytes()
    for left in (b"", b"\0" * len(whole), whole[:200] + b"\0" * 400 + whole[600:]):
        mailbox.write_bytes(left)
        root = shm_path / "rebooted"
        shutil.copytree(shm_path / "dead", root)
        _assert_checked(root, "two")
        shutil.rmtree(root)
