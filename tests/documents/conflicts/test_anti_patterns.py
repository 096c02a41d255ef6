"""What the channels must not be used for is reported, and where it can be, refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from aof.api.fabric import Fabric
from aof.errors import MissingPart
from tests.support.requirements import requirement
from tests.support.served import aof

HANDOFF: dict[str, Any] = {
    "status": "Ready for review",
    "changed": ["src/a.py"],
    "tests": ["10 passed"],
    "risks": ["none"],
    "blocking": ["none"],
}


@pytest.fixture
def fabric(opened: Fabric) -> Fabric:
    """A fabric of `pm`."""
    return opened


def write(root: Path, *paragraphs: str) -> None:
    """Entries by hand, in a session of their own."""
    path = root / "WORKLOG.md"
    old = path.read_text(encoding="utf-8") if path.exists() else "# Worklog — x\n\n## Decision Index\n"
    path.write_text(f"{old}\n## Session 5 — 2026-03-02\n\n" + "\n\n".join(paragraphs) + "\n", encoding="utf-8")


def codes(fabric: Fabric) -> list[str]:
    return [one["code"] for one in fabric.worklog_check().problems]


@requirement("comms.anti-pattern.chat-room")
def test_free_conversation_in_the_worklog_is_reported_as_a_run_of_entries(root: Path, fabric: Fabric) -> None:
    fabric.as_actor("ada").worklog_add("handoff.posted", subject="Parser", next_owner="bob", **HANDOFF)
    fabric.as_actor("bob").worklog_add("handoff.posted", subject="Docs", next_owner="ada", **HANDOFF)
    assert codes(fabric) == []
    write(root, "### bob: Which port?\n\n2026-03-02 10:00 UTC\n\nIs 8080 the port of the API?")
    assert codes(fabric) == []
    talk = [f"### {who}: hm\n\n2026-03-02 10:0{n} UTC\n\nI think so." for n, who in enumerate(("ada", "bob") * 2, 1)]
    path = root / "WORKLOG.md"
    path.write_text(path.read_text(encoding="utf-8") + "\n" + "\n\n".join(talk) + "\n", encoding="utf-8")
    checked = fabric.worklog_check()
    assert checked.ok, "it is a warning"
    (run,) = [one for one in checked.problems if one["code"] == "chat_room"]
    assert "entries in a row" in run["detail"]
    assert "free conversation" in run["detail"]


@requirement("comms.anti-pattern.assumed-read")
def test_nobody_is_said_to_have_read_or_agreed_before_it_could_and_did(fabric: Fabric) -> None:
    fabric.charter_init(participants=["ada", "bob"])
    ada, bob = fabric.as_actor("ada"), fabric.as_actor("bob")
    bob.turn_began("bob", "prime")
    posted = ada.worklog_add("handoff.posted", subject="Parser", next_owner="bob", **HANDOFF).event_id

    def unseen() -> list[str]:
        return [one["event_id"] for one in fabric.worklog_show(unseen_by="bob").entries]

    assert unseen() == [posted]
    bob.turn_ended("bob", "prime")
    assert unseen() == [posted]
    bob.turn_began("bob", "prime")
    assert unseen() == []
    decided = ada.worklog_decide("Use JSON Lines, in consent with bob", links=[posted])
    problems = [one for one in fabric.worklog_check().problems if one["code"] == "agreement_unproven"]
    assert [one["detail"] for one in problems] == [
        "'Use JSON Lines, in consent with bob' says that bob agrees, and nothing of bob says so"
    ]
    bob.worklog_decide("Agreed", links=[decided.event_id])
    assert "agreement_unproven" not in codes(fabric)


@requirement("comms.anti-pattern.mailbox-only-decision")
@pytest.mark.parametrize("closes", [True, False], ids=["closed", "actioned"])
def test_a_decision_that_stands_only_in_the_mailbox_is_reported(fabric: Fabric, *, closes: bool) -> None:
    ada, bob = fabric.as_actor("ada"), fabric.as_actor("bob")
    sent = ada.mail_send(to="bob", type="decision-required", priority="P1", subject="Which format?").message_id
    asked = ada.mail_send(to="bob", type="request", priority="P1", subject="Please look").message_id
    for name in (sent, asked):
        bob.mail_action(name, reason="JSON Lines, see the WORKLOG")
    if closes:
        ada.mail_close(sent, disposition="resolved", reason="thanks, it is in the WORKLOG")
    checked = fabric.mail_check()
    found = [one.detail for one in checked.problems if one.code == "decision_only_in_mailbox"]
    assert [detail.partition(" ")[0] for detail in found] == [sent]
    fabric.worklog_decide("JSON Lines", links=[sent])
    assert fabric.mail_check().problems == checked.problems[:0]


def test_an_answer_that_does_not_refer_to_the_decision_is_warned_of(fabric: Fabric) -> None:
    ada, bob = fabric.as_actor("ada"), fabric.as_actor("bob")
    sent = ada.mail_send(to="bob", type="decision-required", priority="P1", subject="Which format?").message_id
    bob.mail_action(sent, reason="JSON Lines")
    fabric.worklog_decide("JSON Lines", links=[sent])
    checked = fabric.mail_check()
    assert checked.ok
    assert [one.code for one in checked.problems] == ["decision_not_referred_to"]


@requirement("comms.anti-pattern.mailbox-only-handoff")
def test_a_handoff_that_stands_only_in_the_mailbox_is_refused_and_reported(root: Path, fabric: Fabric) -> None:
    ada = fabric.as_actor("ada")
    mail = {"to": "bob", "type": "handoff-ready", "priority": "P1", "subject": "The parser is yours"}
    with pytest.raises(MissingPart, match="posted no handoff") as refused:
        ada.mail_send(**mail, body="see the parser")
    assert refused.value.call is not None
    assert refused.value.call.operation == "worklog_add"
    assert not (root / "MAILBOX.md").exists()
    posted = ada.worklog_add("handoff.posted", subject="Parser", next_owner="bob", **HANDOFF).event_id
    sent = ada.mail_send(**mail, body=f"see {posted}").message_id
    assert [one.code for one in fabric.mail_check().problems] == []
    path = root / "MAILBOX.md"
    by_hand = (
        path.read_text(encoding="utf-8").replace(f"see {posted}", "see the parser").replace(sent, f"{sent[:-3]}900")
    )
    path.write_text(by_hand, encoding="utf-8")
    assert "handoff_only_in_mailbox" in [one.code for one in fabric.mail_check().problems]


def test_a_handoff_of_a_task_is_enough_to_refer_to(fabric: Fabric) -> None:
    ada = fabric.as_actor("ada")
    task_id = fabric.create("The parser").task_id
    ada.claim(task_id, agent="ada")
    ada.complete(task_id, summary="done")
    assert ada.mail_send(to="bob", type="handoff-ready", priority="P1", subject=f"{task_id} is yours").message_id


@requirement("comms.anti-pattern.foreign-edit")
@pytest.mark.parametrize("end", ["\n", "\r\n"], ids=["unix", "windows"])
def test_a_changed_entry_is_shown_in_both_versions_and_settled_on_request_only(
    root: Path, fabric: Fabric, end: str
) -> None:
    ada, path = fabric.as_actor("ada"), root / "WORKLOG.md"
    ada.worklog_add("handoff.posted", subject="Parser", next_owner="bob", **HANDOFF)
    ada.worklog_add("handoff.posted", subject="Lexer", next_owner="bob", **HANDOFF)
    original = path.read_text(encoding="utf-8").replace("\n", end).encode()
    edited = original.replace(b"10 passed", b"99 passed", 1)
    path.write_bytes(edited)
    told = aof(root, "worklog", "check", "--json")
    assert told.returncode == 1
    (problem,) = json.loads(told.stdout)["data"]["problems"]
    assert problem["code"] == "entry_edited"
    assert "ada" in problem["detail"]
    assert "Parser" in problem["detail"]
    assert "10 passed" in problem["detail"]
    assert "99 passed" in problem["detail"]
    assert "counter-recommendation" in problem["fix"]
    assert path.read_bytes() == edited
    fabric.doctor()
    assert path.read_bytes() == edited, "who only looks changes nothing"
    fabric.worklog_show()
    assert path.read_bytes() == original
    kept = (root / "WORKLOG_EDITS.md").read_text(encoding="utf-8")
    assert "99 passed" in kept
    assert [one["code"] for one in fabric.worklog_check().problems] == ["entry_edited"], "until somebody settles it"
    fabric.doctor(fix=True)
    assert path.read_bytes() == original
    assert fabric.worklog_check().ok
    (event,) = fabric.store.told(("document.worklog.restored",))
    assert "99 passed" in event.payload["edits"][0]["text"], "the change is not lost"
