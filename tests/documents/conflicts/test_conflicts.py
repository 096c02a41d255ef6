"""Proposals with objection windows, counter-recommendations, the ladder of escalation, and what settles them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from aof.api.fabric import Fabric
from aof.errors import ConflictNotFound, ConflictSettled, InvalidInput, NotAllowed, RebuttalLate, RebuttalUsed
from aof.testing import FakeClock
from tests.support.requirements import requirement
from tests.support.served import aof

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
