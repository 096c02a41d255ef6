"""Disagreements between agents, and what a team had better not do."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from aof.api.fabric import Fabric
from aof.errors import (
    ConflictNotFound,
    ConflictSettled,
    InvalidInput,
    MissingPart,
    NotAllowed,
    RebuttalLate,
    RebuttalUsed,
)
from aof.testing import FakeClock
from tests.support.requirements import requirement
from tests.support.served import aof

# --- proposals with objection windows, counter-recommendations, the ladder of escalation, and what settles them


PROPOSAL = {
    "subject": "One log format",
    "scope": "all services",
    "proposal": "JSON Lines everywhere",
    "risks": ["larger files"],
    "rollback": "keep the old writer for a week",
    "deadline": "2026-03-03",
}


@pytest.fixture
def fabric(opened: Fabric) -> Fabric:
    """A fabric of `pm`."""
    return opened


def proposed(fabric: Fabric, agent: str = "ada", **given: Any) -> str:
    said = fabric.worklog_add("proposal.created", agent=agent, **(PROPOSAL | given))
    return str(said.payload["id"])


def countered(fabric: Fabric, agent: str = "bob", other: str = "ada", *links: str, **given: Any) -> str:
    said: dict[str, Any] = {
        "subject": "CSV is enough",
        "other": other,
        "recommended": "JSON Lines everywhere",
        "counter": "CSV where people read it",
        "reasons": ["people open it in a spreadsheet"],
    }
    return fabric.worklog_add("objection.raised", agent=agent, links=list(links), **(said | given)).event_id


@requirement("comms.proposal.form")
def test_a_proposal_has_an_id_of_its_own_and_nine_fields(root: Path, fabric: Fabric) -> None:
    first, second = proposed(fabric), proposed(fabric, "bob", subject="Another one")
    assert (first, second) == ("PROP-001", "PROP-002")
    told = json.loads(aof(root, "conflict", "show", first, "--json").stdout)["data"]["standing"]["fields"]
    assert told == {
        "ID": "PROP-001",
        "Author": "ada",
        "Date": "2026-03-02",
        "Scope": "all services",
        "Proposal": "JSON Lines everywhere",
        "Risks": "- larger files",
        "Rollback": "keep the old writer for a week",
        "Objection deadline": "2026-03-03",
        "Status": "open",
    }
    text = (root / "WORKLOG.md").read_text(encoding="utf-8")
    assert all(f"**{key}:**" in text for key in told)
    with pytest.raises(InvalidInput, match="rollback"):
        proposed(fabric, rollback="")


@requirement("comms.proposal.amend")
def test_only_the_author_amends_and_silence_makes_ready_to_decide_and_no_decision(
    root: Path, fabric: Fabric, clock: FakeClock
) -> None:
    name = proposed(fabric)
    with pytest.raises(NotAllowed, match="cannot amend"):
        fabric.worklog_add("proposal.amended", agent="bob", proposal_id=name, proposal="XML")
    before = (root / "WORKLOG.md").read_text(encoding="utf-8")
    clock.sleep(60)
    fabric.worklog_add("proposal.amended", agent="ada", proposal_id=name, proposal="JSON Lines, gzipped")
    assert (root / "WORKLOG.md").read_text(encoding="utf-8").startswith(before.rstrip("\n"))
    shown = fabric.conflict_show(name)
    assert (shown.state, shown.standing["fields"]["Proposal"]) == ("open", "JSON Lines, gzipped")
    assert [("gzipped" in one["text"]) for one in shown.standing["versions"]] == [False, True]
    clock.sleep(86_400 * 2)
    (ready,) = fabric.conflict_list().proposals
    assert ready.state == "ready"
    assert fabric.worklog_show().decisions == []
    with pytest.raises(NotAllowed, match="may not settle"):
        fabric.conflict_settle(name, "We do it", agent="bob", actor="bob")
    fabric.as_actor("ada").conflict_settle(name, "JSON Lines it is", reasons=["nobody objected"])
    assert fabric.conflict_list().proposals == ()
    assert [row["decision"] for row in fabric.worklog_show().decisions] == ["JSON Lines it is"]


def test_agents_do_not_decide_a_proposal_before_its_time_or_over_an_objection(fabric: Fabric, clock: FakeClock) -> None:
    name = proposed(fabric)
    with pytest.raises(NotAllowed, match="PROP-001 is open"):
        fabric.as_actor("ada").conflict_settle(name, "We do it")
    dispute = countered(fabric, "bob", "ada", name)
    clock.sleep(86_400 * 2)
    (objected,) = fabric.conflict_list().proposals
    assert (objected.state, objected.objections) == ("objected", (dispute,))
    with pytest.raises(NotAllowed, match="PROP-001 is objected"):
        fabric.as_actor("ada").conflict_settle(name, "We do it")
    fabric.conflict_settle(name, "CSV for people, JSON Lines for machines")
    assert fabric.conflict_list().proposals == ()


@requirement("comms.counter.form")
def test_a_counter_recommendation_has_its_bold_lines_in_order(root: Path, fabric: Fabric) -> None:
    countered(fabric, compromise="CSV for reports only")
    lines = [line for line in (root / "WORKLOG.md").read_text(encoding="utf-8").splitlines() if line.startswith("**")]
    assert [line.split(":**")[0].strip("*") for line in lines] == [
        "ada recommended",
        "bob's counter-recommendation",
        "Reasoning",
        "Proposed compromise",
        "Agreed action",
    ]
    (entry,) = fabric.worklog_show(type="objection.raised").entries
    assert entry["payload"]["counter"] == "CSV where people read it"
    assert entry["payload"]["reasoning"] == "- people open it in a spreadsheet"
    with pytest.raises(InvalidInput, match="reason"):
        countered(fabric, reasons=[])
    with pytest.raises(InvalidInput, match="itself"):
        countered(fabric, "ada", "ada")


@requirement("comms.counter.resolution")
def test_what_was_agreed_is_a_later_entry_that_links_back(root: Path, fabric: Fabric) -> None:
    dispute = countered(fabric)
    (open_one,) = fabric.conflict_list().disputes
    assert (open_one.id, open_one.level, open_one.settled_by) == (dispute, 1, None)
    before = (root / "WORKLOG.md").read_text(encoding="utf-8")
    block = before[before.index("### bob: CSV is enough") :]
    with pytest.raises(NotAllowed):
        fabric.as_actor("eve").conflict_settle(dispute, "XML")
    settled = fabric.as_actor("ada").conflict_settle(dispute, "CSV for reports only")
    assert dispute in settled.links
    assert block.rstrip("\n") in (root / "WORKLOG.md").read_text(encoding="utf-8")
    assert fabric.conflict_list().disputes == ()
    (over,) = fabric.conflict_list(settled=True).disputes
    assert over.settled_by == settled.event_id
    with pytest.raises(ConflictSettled):
        countered(fabric, "ada", "bob", dispute)
    assert [one["actor"] for one in fabric.conflict_show(dispute).entries] == ["bob", "ada"]


@requirement("comms.counter.ladder")
def test_a_disagreement_climbs_from_one_rebuttal_each_to_the_maintainer(fabric: Fabric) -> None:
    dispute = countered(fabric)
    countered(fabric, "ada", "bob", dispute)
    countered(fabric, "bob", "ada", dispute)
    for agent, other in (("ada", "bob"), ("bob", "ada")):
        with pytest.raises(RebuttalUsed, match="has had its rebuttal") as refused:
            countered(fabric, agent, other, dispute)
        assert refused.value.hint == "agree, or escalate it to the maintainer"
    assert fabric.conflict_list().disputes[0].level == 2
    default = fabric.conflict_default(dispute, "keep CSV for now", agent="ada", reasons=["nothing breaks"])
    assert fabric.conflict_list().disputes[0].level == 3
    (review,) = fabric.conflict_list().reviews
    assert (review.id, review.decides, dispute in review.about) == (default.event_id, "Maintainer", True)
    with pytest.raises(NotAllowed):
        fabric.worklog_decide("CSV", owner="ada", level=4, links=[dispute])
    fabric.conflict_settle(default.event_id, "CSV stays")
    assert fabric.conflict_list() == type(fabric.conflict_list())(proposals=(), disputes=(), reviews=())
    assert [row["owner"] for row in fabric.worklog_show().decisions] == ["pm"]


@requirement("comms.charter.escalation")
@pytest.mark.parametrize("cycles", [1, 2])
def test_the_charter_says_how_many_turns_a_rebuttal_may_take(fabric: Fabric, cycles: int) -> None:
    shown = fabric.charter_init(rebuttal_cycles=cycles, participants=["ada", "bob"], tie_break="the safer way")
    assert shown.escalation.levels == (
        "Counter-recommendation",
        "Time-boxed rebuttal",
        "Risk-minimizing default",
        "Maintainer adjudication",
    )
    assert (shown.escalation.rebuttal_cycles, shown.escalation.tie_break) == (cycles, "the safer way")
    dispute = countered(fabric)
    for _ in range(2):
        fabric.as_actor("ada").turn_began("ada", "prime")
        fabric.as_actor("ada").turn_ended("ada", "prime")
    if cycles == 1:
        with pytest.raises(RebuttalLate, match="1 of ada's turns"):
            countered(fabric, "ada", "bob", dispute)
    else:
        countered(fabric, "ada", "bob", dispute)


def test_a_charter_may_leave_every_decision_to_the_maintainer(fabric: Fabric) -> None:
    fabric.charter_init(decision_mode="maintainer-adjudicated")
    dispute = countered(fabric)
    with pytest.raises(NotAllowed, match="may not settle"):
        fabric.as_actor("ada").conflict_settle(dispute, "CSV")
    fabric.conflict_settle(dispute, "CSV")
    assert fabric.conflict_list().disputes == ()


def test_a_conflict_that_is_not_there_is_named(fabric: Fabric) -> None:
    for call in (fabric.conflict_show, lambda name: fabric.conflict_settle(name, "x")):
        with pytest.raises(ConflictNotFound, match="PROP-404"):
            call("PROP-404")


def test_hand_written_conflicts_count_as_well(root: Path, fabric: Fabric) -> None:
    fabric.worklog_now("the release", line="focus")
    path = root / "WORKLOG.md"
    path.write_text(
        path.read_text(encoding="utf-8") + "\n## Session 7 — 2026-03-02\n\n### bob: CSV\n\n2026-03-02 10:00 UTC\n\n"
        "**ada recommended:** JSON\n\n**bob's counter-recommendation:** CSV\n\n**Reasoning:**\n\n- people\n\n"
        "**Agreed action:** open\n",
        encoding="utf-8",
    )
    (found,) = fabric.conflict_list().disputes
    assert (found.agent, found.other, found.level) == ("bob", "ada", 1)
    fabric.as_actor("bob").conflict_settle(found.id, "JSON, then")
    assert fabric.conflict_list().disputes == ()


# --- what the channels must not be used for is reported, and where it can be, refused


HANDOFF: dict[str, Any] = {
    "status": "Ready for review",
    "changed": ["src/a.py"],
    "tests": ["10 passed"],
    "risks": ["none"],
    "blocking": ["none"],
}


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
    (event,) = fabric.store.events_of_types(("document.worklog.restored",))
    assert "99 passed" in event.payload["edits"][0]["text"], "the change is not lost"
