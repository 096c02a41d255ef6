"""The WORKLOG as a team uses it: entries, decisions, pinned lines, automatic lines, compaction."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import pytest

from aof.api.fabric import Fabric
from aof.documents.worklog_text import Entry, parse_worklog
from aof.errors import AofError
from aof.kernel.model import Policy, WorklogPolicy
from aof.service.upkeep import diagnose, export_data_dir, import_data_dir
from aof.store.files import disk, documents
from aof.testing import FakeClock, memory_fabric
from tests.support.command_line import Aof
from tests.support.requirements import requirement
from tests.support.room import Room
from tests.support.team import chart_of

# --- the WORKLOG as a team uses it: entries, decisions, pinned lines, automatic lines, compaction


FULL: dict[str, Any] = {
    "subject": "Parser",
    "status": "Ready for review",
    "changed": ["src/a.py"],
    "tests": ["pytest: 10 passed"],
    "risks": ["none"],
    "blocking": ["none"],
    "next_owner": "bob",
}
COUNTER: dict[str, Any] = {"other": "ada", "recommended": "a parser", "counter": "a regex", "reasons": ["simpler"]}
DAY = 86_400


def refused(call: Any, *given: Any, **named: Any) -> str:
    with pytest.raises(AofError) as found:
        call(*given, **named)
    return found.value.code


def codes(fabric: Fabric) -> list[str]:
    return [one["code"] for one in fabric.worklog_check().problems]


@requirement("comms.worklog.layout")
def test_the_file_reads_from_title_to_sessions_with_the_newest_entry_last(
    fabric: Fabric, worklog: Path, clock: FakeClock
) -> None:
    fabric.worklog_add("escalation.requested", agent="ada", subject="first")
    clock.sleep(DAY)
    fabric.worklog_decide("second", owner="ada")
    fabric.worklog_add("escalation.requested", agent="ada", subject="third")
    lines = worklog.read_text().split("\n")
    headings = [line for line in lines if line.startswith(("# ", "## "))]
    assert headings == [
        "# Worklog — pilot",
        "## Decision Index",
        "## Session 1 — 2026-03-02",
        "## Session 2 — 2026-03-03",
    ]
    assert [one.subject for one in parse_worklog(worklog.read_text()).entries] == ["first", "second", "third"]
    assert codes(fabric) == []


@requirement("comms.worklog.append", "comms.entry.identity")
def test_a_new_entry_comes_after_everything_and_keeps_every_byte(fabric: Fabric, worklog: Path) -> None:
    fabric.worklog_add("handoff.posted", agent="ada", **FULL)
    before = worklog.read_bytes()
    posted = fabric.worklog_add("escalation.requested", agent="ada", subject="Stuck", body="Owner: bob\n\n### bob: no")
    after = worklog.read_bytes()
    assert after.startswith(before)
    assert b"### ada: Stuck\n\n2026-03-02 09:00 UTC\n" in after
    assert (posted.actor, posted.subject) == ("ada", "Stuck")
    shown = fabric.worklog_show().entries
    assert [one["actor"] for one in shown] == ["ada", "ada"]
    assert shown[-1]["event_id"] == posted.event_id


@requirement("comms.event.task-claimed", "comms.event.task-completed", "comms.channel.worklog-primary")
def test_claims_and_completions_write_one_line_each_and_only_the_worker_says_so(
    fabric: Fabric, room: Room, worklog: Path
) -> None:
    fabric.create("Write it", review=False)
    run = fabric.claim("001", agent="ada").run_id
    assert refused(fabric.worklog_add, "task.claimed", agent="bob", task="001") == "not_allowed"
    fabric.complete("001", run=run, tests={"total": 10, "passed": 10, "failed": 0})
    assert not worklog.exists(), "a commit does not write the document"
    task = "TASK-2026-03-02-001"
    entries = fabric.worklog_show().entries
    assert [(one["event_type"], one["actor"], one["links"]) for one in entries] == [
        ("task.claimed", "ada", [task]),
        ("task.completed", "ada", [task]),
    ]
    assert refused(fabric.worklog_add, "task.completed", agent="bob", task="001", **FULL | {"status": "Complete"}) == (
        "not_allowed"
    )
    full = fabric.worklog_add("task.completed", agent="ada", task="001", **FULL | {"status": "Complete"})
    assert full.payload["status"] == "Complete"
    assert codes(fabric) == []
    fabric.create("Moved by hand")
    fabric.claim("002", agent="bob")
    for old, new in (("in-progress", "review"), ("review", "done")):
        (room.root / f"tasks/{old}/TASK-2026-03-02-002.md").rename(room.root / f"tasks/{new}/TASK-2026-03-02-002.md")
        fabric.sync(accept="002")
    (found,) = fabric.worklog_check().problems
    assert (found["code"], "TASK-2026-03-02-002" in found["detail"]) == ("no_handoff", True)


@requirement("comms.entry.evidence")
def test_a_completion_says_what_was_tested(fabric: Fabric, worklog: Path) -> None:
    for number, tests in (("001", {"total": 10, "passed": 10, "failed": 0}), ("002", None)):
        fabric.create("Write it", review=False)
        run = fabric.claim(number, agent="ada").run_id
        fabric.complete(number, run=run, tests=tests)
    fabric.worklog_show()
    lines = [line for line in worklog.read_text().split("\n") if "completed" in line]
    assert ["Tests run: 10 of 10 passed" in lines[0], "Tests run: none" in lines[1]] == [True, True]


def test_automatic_lines_can_be_switched_off(room: Room, clock: FakeClock) -> None:
    quiet = Fabric(room.fabric.store, clock, Policy(worklog=WorklogPolicy(automatic=False)), "pm")
    quiet.create("Write it", review=False)
    quiet.claim("001", agent="ada")
    assert quiet.worklog_show().entries == []
    quiet.worklog_add("escalation.requested", agent="ada", subject="Stuck")
    assert [one["subject"] for one in quiet.worklog_show().entries] == ["Stuck"]


@requirement("comms.event.handoff-posted")
def test_a_handoff_names_another_owner_and_only_its_owner_posts_it(fabric: Fabric) -> None:
    posted = fabric.worklog_add("handoff.posted", agent="ada", **FULL)
    assert (posted.event_type, posted.actor, posted.payload["next_owner"]) == ("handoff.posted", "ada", "bob")
    assert refused(fabric.worklog_add, "handoff.posted", agent="bob", **FULL) == "invalid"
    assert refused(fabric.as_actor("bob").worklog_add, "handoff.posted", agent="ada", **FULL) == "actor_mismatch"


@requirement("comms.event.proposal-created", "comms.event.proposal-amended")
def test_proposals_are_numbered_and_amended_by_their_author_alone(room: Room, clock: FakeClock) -> None:
    chart = chart_of(schemaVersion=1, agents=[{"id": "ada"}, {"id": "bob"}])
    fabric = memory_fabric("pm", clock, Policy(maintainers=("pm",)), chart)
    said: dict[str, Any] = {
        "subject": "Cache",
        "scope": "api",
        "proposal": "Add one.",
        "risks": ["stale"],
        "deadline": "2026-03-09",
    }
    first = fabric.worklog_add("proposal.created", agent="ada", rollback="remove it", **said)
    second = fabric.worklog_add("proposal.created", agent="bob", rollback="remove it", **said)
    assert [first.payload["id"], second.payload["id"]] == ["PROP-001", "PROP-002"]
    assert [first.actor, second.actor] == ["ada", "bob"]
    assert refused(fabric.worklog_add, "proposal.created", agent="eve", rollback="x", **said) == "not_allowed"
    assert refused(fabric.worklog_add, "proposal.created", agent="ada", **said) == "invalid"
    amend: dict[str, Any] = {"proposal_id": "PROP-001", "proposal": "Add a small one."}
    assert refused(fabric.worklog_add, "proposal.amended", agent="bob", **amend) == "not_allowed"
    assert refused(fabric.worklog_add, "proposal.amended", agent="ada", **amend | {"proposal_id": "PROP-009"}) == (
        "not_found"
    )
    amended = fabric.worklog_add("proposal.amended", agent="ada", **amend)
    assert (amended.payload["proposal"], amended.payload["rollback"]) == ("Add a small one.", "remove it")
    kinds = [one["event_type"] for one in fabric.worklog_show().entries]
    assert kinds == ["proposal.created", "proposal.created", "proposal.amended"]
    assert amended.links == first.links == ["PROP-001"]


@requirement("comms.event.objection-raised")
def test_an_objection_is_the_objectors_and_links_to_what_it_objects_to(fabric: Fabric) -> None:
    first = fabric.worklog_add("handoff.posted", agent="ada", **FULL)
    posted = fabric.worklog_add("objection.raised", agent="bob", subject="No", links=[first.event_id], **COUNTER)
    assert (posted.event_type, posted.actor, posted.links) == ("objection.raised", "bob", [first.event_id])
    assert refused(fabric.worklog_add, "objection.raised", agent="ada", subject="No", **COUNTER) == "invalid"
    assert refused(fabric.worklog_add, "objection.raised", agent="bob", subject="No", **COUNTER | {"reasons": []}) == (
        "invalid"
    )
    as_ada = fabric.as_actor("ada").worklog_add
    assert refused(as_ada, "objection.raised", agent="bob", subject="No", **COUNTER) == "actor_mismatch"


@requirement("comms.event.decision-recorded", "comms.decision-index.table")
def test_a_decision_is_an_entry_and_a_row_with_its_owner_and_caller(fabric: Fabric, worklog: Path) -> None:
    text = "use a | b\nand no \\ c"
    posted = fabric.worklog_decide(text, owner="ada", reasons=["it is fast"])
    (row,) = fabric.worklog_show().decisions
    assert (row["decision"], row["owner"], row["section"]) == (text, "ada", "Session 1")
    assert posted.payload["decision"] == text
    assert "| use a \\| b<br>and no \\\\ c | ada | 2026-03-02 09:00 UTC | Session 1 |\n" in worklog.read_text()
    event = list(fabric.store.events())[-1]
    assert (event.actor, event.agent, event.payload["actor"]) == ("pm", "ada", "ada")
    assert refused(fabric.worklog_decide, "mine", owner="ada", level=4) == "not_allowed"
    assert fabric.worklog_decide("the maintainer's", level=4).actor == "pm"


@requirement("comms.decision-index.append-only")
def test_a_changed_swapped_or_deleted_row_is_named(fabric: Fabric, worklog: Path, clock: FakeClock) -> None:
    for text in ("first", "second", "third"):
        fabric.worklog_decide(text, owner="ada")
        clock.sleep(60)
    whole = worklog.read_text()
    rows = [line for line in whole.split("\n") if line.startswith("| ") and "ada" in line]
    assert [row.split(" | ")[0] for row in rows] == ["| first", "| second", "| third"]
    for old, new, code in (
        (rows[0], rows[0].replace("first", "1st"), "entry_edited"),
        (f"{rows[0]}\n{rows[1]}", f"{rows[1]}\n{rows[0]}", "decision_moved"),
        (f"{rows[1]}\n", "", "decision_deleted"),
    ):
        worklog.write_text(whole.replace(old, new))
        assert code in codes(fabric)
        assert not fabric.worklog_check().ok
    worklog.write_text(whole)
    assert codes(fabric) == []


@requirement("comms.event.escalation-requested")
def test_an_escalation_names_what_is_stuck_and_who_decides(fabric: Fabric) -> None:
    counter = fabric.worklog_add("objection.raised", agent="bob", subject="No", **COUNTER)
    posted = fabric.worklog_add(
        "escalation.requested", agent="bob", subject="Parser or regex", links=[counter.event_id]
    )
    assert (posted.event_type, posted.links) == ("escalation.requested", [counter.event_id])
    assert (posted.payload["escalation"], posted.payload["decides"]) == ("Parser or regex", "Maintainer")


@requirement("comms.status-block.lines", "comms.status-block.own-line")
def test_each_agent_has_one_line_of_its_own(room: Room, worklog: Path, clock: FakeClock) -> None:
    names = [{"id": "ada"}, {"id": "bob"}, {"id": "eve"}]
    store = room.fabric.store
    fabric = Fabric(store, clock, Policy(maintainers=("pm",)), "pm", org=_chart(names))
    fabric.worklog_now("the parser", agent="ada")
    fabric.worklog_now("the lexer", agent="ada")
    body = worklog.read_text().partition("## Decision Index")[2]
    pinned = [line for line in worklog.read_text().split("\n") if line.startswith("Now Working")]
    assert pinned == ["Now Working (ada): the lexer", "Now Working (bob): idle", "Now Working (eve): idle"]
    fabric.worklog_now("release", line="focus")
    fabric.worklog_now("Friday", line="checkpoint")
    assert "Maintainer Focus: release\nNext Review Checkpoint: Friday\n" in worklog.read_text()
    assert worklog.read_text().partition("## Decision Index")[2] == body
    ada = fabric.as_actor("ada")
    assert refused(ada.worklog_now, "x", agent="bob") == "actor_mismatch"
    without = Fabric(store, clock, Policy(maintainers=("pm",)), "pm")
    for line in ("now", "focus"):
        assert refused(without.as_actor("ada").worklog_now, "x", agent="pm", line=line) == "actor_mismatch"
    assert without.worklog_now("the lexer", agent="ada").key == "ada"
    assert refused(ada.worklog_now, "x", line="focus") == "not_allowed"
    wider = Fabric(store, clock, Policy(maintainers=("pm",)), "pm", org=_chart([*names, {"id": "zoe"}]))
    wider.create("Write it", review=False)
    run = wider.claim("001", agent="ada").run_id
    wider.worklog_show()
    lines = worklog.read_text().split("\n")
    assert "Now Working (ada): TASK-2026-03-02-001 Write it" in lines
    assert lines[lines.index("Now Working (eve): idle") + 1] == "Now Working (zoe): idle"
    wider.complete("001", run=run)
    wider.worklog_show()
    assert "Now Working (ada): idle" in worklog.read_text().split("\n")


def _chart(agents: list[dict[str, str]]) -> Any:
    from aof.store.memory import FixedChart  # noqa: PLC0415 - only here

    return FixedChart(chart_of(schemaVersion=1, agents=agents))


def _four_entries(fabric: Fabric, worklog: Path, clock: FakeClock) -> tuple[str, tuple[Entry, ...]]:
    """The WORKLOG with four entries of ada, a minute apart."""
    for number in range(4):
        fabric.worklog_add("escalation.requested", agent="ada", subject=f"Number {number}", body="All is well.")
        clock.sleep(60)
    whole = worklog.read_text()
    return whole, parse_worklog(whole).entries


@requirement("comms.delivery.append-only")
def test_an_edited_and_a_deleted_entry_are_found_and_named_with_their_author(
    fabric: Fabric, worklog: Path, clock: FakeClock
) -> None:
    whole, entries = _four_entries(fabric, worklog, clock)
    changed = whole.replace(entries[0].text, entries[0].text.replace("well", "lost")).replace(entries[1].text, "")
    worklog.write_text(changed)
    report = fabric.worklog_check()
    assert not report.ok
    edited, deleted = sorted((one for one in report.problems), key=lambda one: one["code"], reverse=True)
    assert (edited["code"], edited["path"], edited["line"] > 0) == ("entry_edited", "WORKLOG_EDITS.md", True)
    assert all(word in edited["detail"] for word in ("ada", "Number 0", "All is well", "All is lost", "session 1"))
    assert deleted["code"] == "entry_deleted"
    assert all(word in deleted["detail"] for word in ("ada", "Number 1"))
    assert worklog.read_text() == changed, "a check only reads"
    worklog.write_text(whole.replace("Maintainer Focus: none", "Maintainer Focus: all"))
    assert fabric.worklog_check().ok


@requirement("comms.delivery.idempotent-readers", "comms.envelope.projection")
def test_reading_changes_nothing_and_gives_the_eight_keys(fabric: Fabric, worklog: Path) -> None:
    fabric.worklog_add("handoff.posted", agent="ada", **FULL)
    before = hashlib.sha256(worklog.read_bytes()).digest()
    shown = [fabric.worklog_show(archived=True).entries for _ in range(2)]
    fabric.worklog_check()
    assert shown[0] == shown[1]
    assert hashlib.sha256(worklog.read_bytes()).digest() == before
    keys = ["event_id", "event_type", "session_id", "actor", "timestamp", "subject", "payload", "links"]
    assert [list(one) for one in shown[0]] == [keys]


@requirement("comms.envelope.session-id")
def test_the_session_is_the_charters_and_unknown_without_one(fabric: Fabric, room: Room) -> None:
    posted = fabric.worklog_add("handoff.posted", agent="ada", **FULL)
    assert (posted.session_id, fabric.worklog_show().entries[0]["payload"]["session"]) == ("unknown", 1)
    charter = room.root / "SESSION_CHARTER.md"
    charter.write_text("# Charter\n\n| Field | Value |\n| --- | --- |\n| Session ID | 2026-02-07-alpha |\n")
    assert [one["session_id"] for one in fabric.worklog_show().entries] == ["2026-02-07-alpha"]
    charter.unlink()
    assert fabric.worklog_show().entries[0]["session_id"] == "unknown"


@requirement("comms.delivery.human-visible")
@pytest.mark.parametrize("body", ["a\x00b", "QUJD" * 500, "x" * 5_000_000])
def test_what_no_person_can_read_is_refused_and_nothing_is_written(fabric: Fabric, worklog: Path, body: str) -> None:
    code = refused(fabric.worklog_add, "escalation.requested", agent="ada", subject="x", body=body)
    assert code in ("invalid", "payload_too_large")
    assert not worklog.exists()
    assert list(fabric.store.events()) == []


@requirement("comms.worklog.compact-trigger")
def test_compaction_is_proposed_past_500_lines_and_is_the_maintainers(
    fabric: Fabric, worklog: Path, clock: FakeClock
) -> None:
    fabric.worklog_decide("first", owner="ada")
    clock.sleep(DAY)
    fabric.worklog_decide("second", owner="ada")
    lines = worklog.read_text().count("\n")
    worklog.write_text(worklog.read_text() + "\n" * (500 - lines))
    assert codes(fabric) == []
    worklog.write_text(worklog.read_text() + "\n")
    report = fabric.worklog_check()
    assert report.ok
    assert [(one["code"], "aof worklog compact" in one["fix"]) for one in report.problems] == [("long", True)]
    fabric.worklog_decide("third", owner="ada")
    assert "Archived Sessions" not in worklog.read_text()
    assert refused(fabric.as_actor("ada").worklog_compact) == "not_allowed"
    assert fabric.worklog_compact().moved == [1]


@requirement("comms.worklog.compact-move", "comms.envelope.event-id")
def test_compaction_moves_sessions_word_for_word_and_every_entry_keeps_its_id(
    fabric: Fabric, room: Room, worklog: Path, clock: FakeClock
) -> None:
    for number in range(3):
        fabric.worklog_decide(f"decision {number}", owner="ada")
        fabric.worklog_add("handoff.posted", agent="ada", **FULL)
        clock.sleep(DAY)
    before, envelopes = worklog.read_text(), fabric.worklog_show(archived=True).entries
    sessions = before[before.index("## Session 1") :]
    assert fabric.worklog_compact().moved == [1, 2]
    assert fabric.worklog_compact().moved == []
    archive = (room.root / "WORKLOG_ARCHIVE.md").read_text()
    after = worklog.read_text()
    both = archive[archive.index("## Session 1") :] + "\n" + after[after.index("## Session 3") :]
    assert both == sessions
    assert [(row.session, row.date) for row in parse_worklog(after).archived] == [
        ("1", "2026-03-02"),
        ("2", "2026-03-03"),
    ]
    assert len(parse_worklog(after).decisions) == 3
    (room.root / "index.sqlite").unlink(missing_ok=True)
    assert fabric.worklog_show(archived=True).entries == envelopes
    fabric.worklog_decide("later", owner="ada")
    assert fabric.worklog_show(archived=True).entries[: len(envelopes)] == envelopes
    assert codes(fabric) == []


@requirement("comms.channel.files-only")
def test_another_process_reads_the_same_from_the_files_alone(room: Room, fabric: Fabric, worklog: Path) -> None:
    posted = fabric.worklog_add("handoff.posted", agent="ada", **FULL)
    fabric.close()
    (room.root / "index.sqlite").unlink(missing_ok=True)
    other = Room(room.root, room.clock)
    assert [one["event_id"] for one in other.fabric.worklog_show().entries] == [posted.event_id]
    assert "### ada: Parser" in worklog.read_text()
    other.fabric.close()


def test_a_deleted_file_comes_back_from_the_log(fabric: Fabric, worklog: Path) -> None:
    fabric.worklog_decide("first", owner="ada")
    before = worklog.read_bytes()
    worklog.unlink()
    fabric.worklog_show()
    assert worklog.read_bytes() == before


def test_what_an_editor_with_an_old_copy_dropped_comes_back_and_its_text_stays(fabric: Fabric, worklog: Path) -> None:
    fabric.worklog_add("escalation.requested", agent="ada", subject="First")
    old = worklog.read_text()
    fabric.worklog_decide("later", owner="ada")
    worklog.write_text(old.replace("Maintainer Focus: none", "Maintainer Focus: release") + "\n### bob: By hand\n")
    shown = fabric.worklog_show()
    assert [one["subject"] for one in shown.entries] == ["First", "By hand", "later"]
    assert [one["decision"] for one in shown.decisions] == ["later"]
    assert {"key": "Maintainer Focus", "text": "release"} in shown.status


def test_a_file_with_windows_line_endings_keeps_them(fabric: Fabric, worklog: Path) -> None:
    fabric.worklog_add("escalation.requested", agent="ada", subject="First")
    worklog.write_bytes(worklog.read_bytes().replace(b"\n", b"\r\n"))
    fabric.worklog_decide("second", owner="ada")
    fabric.worklog_add("escalation.requested", agent="ada", subject="Third")
    data = worklog.read_bytes()
    assert data.count(b"\n") == data.count(b"\r\n")
    assert codes(fabric) == []


def test_doctor_names_an_edited_entry_and_leaves_everything_as_it_is(room: Room, fabric: Fabric, worklog: Path) -> None:
    fabric.worklog_add("escalation.requested", agent="ada", subject="First", body="All is well.")
    fabric.worklog_add("escalation.requested", agent="ada", subject="Second")
    assert fabric.doctor().advice == ()
    worklog.write_text(worklog.read_text().replace("All is well.", "All is lost."))
    before = worklog.read_bytes()
    found = fabric.doctor()
    assert found.ok
    assert [(one.code, one.path.startswith("WORKLOG_EDITS.md:")) for one in found.advice] == [("entry_edited", True)]
    assert worklog.read_bytes() == before


def test_doctor_on_its_own_only_thinks_of_what_the_file_lacks(room: Room, worklog: Path) -> None:
    room.fabric.create("Write it", review=False)
    room.fabric.claim("001", agent="ada")
    room.fabric.close()
    assert diagnose(room.root, clock=room.clock).ok
    assert not worklog.exists()


def test_an_export_takes_the_documents_along(room: Room, fabric: Fabric, worklog: Path, tmp_path: Path) -> None:
    fabric.worklog_decide("take it along", owner="ada")
    before = fabric.worklog_show().entries
    fabric.close()
    export_data_dir(room.root, str(tmp_path / "all.tar.gz"))
    import_data_dir(tmp_path / "copy" / ".aof", str(tmp_path / "all.tar.gz"))
    other = Room(tmp_path / "copy" / ".aof", room.clock)
    assert other.fabric.worklog_show().entries == before
    assert (other.root / "WORKLOG.md").read_bytes() == worklog.read_bytes()
    other.fabric.close()


@requirement("comms.event.handoff-posted")
def test_a_handoff_of_the_fabric_writes_its_line_by_itself(fabric: Fabric) -> None:
    fabric.create("Write it")
    fabric.claim("001", agent="ada")
    given = {"from_agent": "ada", "to": ["bob"], "reason": "bob knows the parser", "segment_complete": True}
    fabric.handoff_new(type="sequential", task_id="001", **given)  # type: ignore[arg-type]
    *_, last = fabric.worklog_show().entries
    assert (last["event_type"], last["actor"], last["payload"]["next_owner"]) == ("handoff.posted", "ada", "bob")
    assert last["links"] == ["TASK-2026-03-02-001"]


@requirement("comms.anti-pattern.foreign-edit")
def test_doctor_puts_changed_and_deleted_entries_back_on_request(
    fabric: Fabric, worklog: Path, clock: FakeClock
) -> None:
    whole, entries = _four_entries(fabric, worklog, clock)
    edited = entries[0].text.replace("well", "lost")
    worklog.write_text(whole.replace(entries[0].text, edited).replace(f"{entries[1].text}\n\n", ""))
    problems = {one["code"]: one for one in fabric.worklog_check().problems}
    assert problems.keys() == {"entry_edited", "entry_deleted"}
    assert all(word in problems["entry_edited"]["detail"] for word in ("ada", "Number 0", "is well", "is lost"))
    assert "counter-recommendation" in problems["entry_edited"]["fix"]
    assert edited in worklog.read_text(), "a check changes nothing"
    fabric.doctor(fix=True)
    assert worklog.read_text() == whole
    assert codes(fabric) == []


def test_what_an_agent_says_it_works_on_counts_until_its_work_changes(fabric: Fabric, worklog: Path) -> None:
    task = fabric.create("Parser", review=False).task_id
    fabric.claim(task, agent="ada")
    fabric.worklog_now("the grammar first", agent="ada")
    assert "Now Working (ada): the grammar first\n" in worklog.read_text()
    fabric.complete(task, agent="ada")
    fabric.worklog_show()
    assert "Now Working (ada): idle\n" in worklog.read_text()


def test_an_entry_names_its_session_at_once_as_it_does_later(fabric: Fabric, worklog: Path, clock: FakeClock) -> None:
    for day in (1, 2):
        for posted in (
            fabric.worklog_decide("Use SQLite", owner="ada"),
            fabric.worklog_add("handoff.posted", agent="ada", subject="parser", quick=True, next_owner="bob"),
        ):
            assert posted.payload["session"] == day
            shown = {one["event_id"]: one["payload"]["session"] for one in fabric.worklog_show().entries}
            assert shown[posted.event_id] == day
        worklog.write_text(worklog.read_text() + "\n## Notes\n\nA section that is no session.\n")
        clock.sleep(86_400)


def test_an_entry_that_a_person_rewrote_is_put_back_and_the_rewritten_one_decides_nothing(
    fabric: Fabric, room: Room, worklog: Path, clock: FakeClock
) -> None:
    fabric.worklog_decide("Use JSONL", owner="ada")
    clock.sleep(60)
    fabric.worklog_decide("Test first", owner="bob")
    whole = worklog.read_text()
    worklog.write_text(whole.replace("Use JSONL", "Use XML"))
    shown = fabric.worklog_show()
    assert [one["decision"] for one in shown.decisions] == ["Use JSONL", "Test first"]
    assert [one["subject"] for one in shown.entries] == ["Use JSONL", "Test first"]
    assert worklog.read_text() == whole
    edits = room.root / "WORKLOG_EDITS.md"
    assert "Use XML" in edits.read_text()
    for _ in range(2):
        (problem,) = fabric.worklog_check().problems
        assert (problem["code"], problem["severity"]) == ("entry_edited", "error")
        assert all(word in problem["detail"] for word in ("ada", "a person", "Use JSONL", "Use XML"))
    once = edits.read_bytes()
    worklog.write_text(whole.replace("Use JSONL", "Use XML"))
    fabric.worklog_decide("Later", owner="bob")
    assert edits.read_bytes() == once, "the same edit is kept once"
    head, _, _ = edits.read_text().partition("\n## ")
    edits.write_text(head)
    assert codes(fabric) == []


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("### ada: Use JSONL", "### eve: Use JSONL"),  # another author
        ("2026-03-02 09:00 UTC", "2026-03-02 09:05 UTC"),  # another time
        ("**Decision:** Use JSONL", "**Decision:** Use JSONL\n\nNo, by no means."),
    ],
)
def test_whatever_of_an_entry_was_changed_it_is_the_same_entry(
    fabric: Fabric, worklog: Path, clock: FakeClock, old: str, new: str
) -> None:
    fabric.worklog_decide("Use JSONL", owner="ada", reasons=["one event per line", "append only"])
    clock.sleep(600)
    fabric.worklog_add("escalation.requested", agent="ada", subject="Stuck")
    whole = worklog.read_text()
    assert old in whole
    worklog.write_text(whole.replace(old, new, 1))
    assert len(fabric.worklog_show().entries) == 2
    assert worklog.read_text() == whole
    assert codes(fabric) == ["entry_edited"]


def test_what_people_write_beside_entries_is_nobodys_edit(fabric: Fabric, room: Room, worklog: Path) -> None:
    fabric.worklog_decide("Use JSONL", owner="ada")
    fabric.worklog_decide("Use SQLite", owner="ada")
    old = worklog.read_text()
    fabric.worklog_decide("Use XML", owner="ada")
    by_hand = "\n### ada: Use YAML\n\n2026-03-02 09:00 UTC\n\nBy hand.\n\n### bob: A note\n\nOf mine.\n"
    worklog.write_text(old + by_hand)  # with an editor that had an old copy
    shown = [one["subject"] for one in fabric.worklog_show().entries]
    assert sorted(shown) == sorted(["Use JSONL", "Use SQLite", "Use YAML", "A note", "Use XML"])
    assert not (room.root / "WORKLOG_EDITS.md").exists()


def test_lines_of_a_day_that_the_clock_went_back_to_are_there(
    fabric: Fabric, room: Room, worklog: Path, clock: FakeClock
) -> None:
    clock.sleep(DAY)
    fabric.worklog_add("escalation.requested", agent="ada", subject="tomorrow")
    clock.sleep(-DAY)
    task = fabric.create("Write it", review=False).task_id
    fabric.claim(task, agent="ada")
    fabric.complete(task, agent="ada")
    fabric.worklog_show()
    whole = worklog.read_text()
    assert codes(fabric) == []
    assert fabric.doctor().advice == ()
    fabric.doctor(fix=True)
    worklog.write_text(whole + "\n### bob: By hand\n")
    fabric.worklog_show()
    assert worklog.read_text() == whole + "\n### bob: By hand\n"
    clock.sleep(2 * DAY)
    fabric.worklog_add("escalation.requested", agent="ada", subject="later")
    assert codes(fabric) == ["unstructured"], "bob's note has none of the forms"


def test_an_entry_is_added_without_reading_the_whole_file(
    fabric: Fabric, worklog: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fabric.worklog_add("handoff.posted", subject="part 1", quick=True, next_owner="bob", agent="ada")
    assert worklog.exists()
    looked_at: list[str] = []
    read = disk.read

    def noted(path: str, *, limit: int = 0) -> bytes | None:
        looked_at.append(path)
        return read(path, limit=limit)

    monkeypatch.setattr(documents, "read", noted)
    posted = fabric.worklog_add("handoff.posted", subject="part 2", quick=True, next_owner="bob", agent="ada")
    assert posted.payload["session"] == 1
    assert str(worklog) not in looked_at


# --- `aof worklog` on the command line: what it answers, and how it ends


def test_the_verbs_answer_with_entries_and_lines(aof: Aof, room: Room) -> None:
    pinned = aof("worklog", "now", "--agent", "ada", "the parser")
    assert (pinned.code, pinned.data) == (0, {"key": "ada", "text": "the parser"})
    decided = aof("worklog", "decide", "--owner", "ada", "use it", "--reason", "it works")
    assert decided.data["event_type"] == "decision.recorded"
    quick = ("--quick", "--subject", "parser ready", "--next-owner", "bob")
    added = aof("worklog", "add", "--agent", "ada", "--type", "handoff.posted", *quick)
    assert added.data["actor"] == "ada"
    shown = aof("worklog", "show", "--limit", "1").data
    assert [one["event_id"] for one in shown["entries"]] == [added.data["event_id"]]
    assert shown["total"] == 2


@pytest.mark.parametrize("words", [("now",), ("decide",), ("add",), ("dance",)])
def test_a_call_that_makes_no_sense_is_a_usage_error(aof: Aof, words: tuple[str, ...]) -> None:
    assert aof("worklog", *words).code == 2


@pytest.mark.parametrize("data", [b"", b"\x00\xff\xfe", b"# Worklog\n\n## Session 2\n## Session 1\n", b"|\n" * 5_000])
def test_any_file_can_be_checked_and_stays_as_it_is(aof: Aof, tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "any.md"
    path.write_bytes(data)
    said = aof("worklog", "check", str(path))
    assert said.code in (0, 1)
    assert said.data["ok"] == (said.code == 0)
    assert all({"line", "code", "detail"} <= problem.keys() for problem in said.data["problems"])
    assert path.read_bytes() == data
    assert aof("worklog", "check", str(tmp_path / "missing.md")).code == 2


def test_a_warning_leaves_the_exit_code_alone(aof: Aof, room: Room) -> None:
    aof("worklog", "now", "--agent", "ada", "x")
    path = room.root / "WORKLOG.md"
    path.write_text(path.read_text() + "\n## Session 1 — 2026-03-02\n\nJust talking.\n")
    said = aof("worklog", "check")
    assert (said.code, said.data["ok"]) == (0, True)
    assert [problem["code"] for problem in said.data["problems"]] == ["unstructured"]


def test_a_second_pinned_block_is_named(aof: Aof, room: Room) -> None:
    aof("worklog", "decide", "--owner", "ada", "use it")
    path = room.root / "WORKLOG.md"
    path.write_text(
        path.read_text() + "\n### bob: Status\n\nNow Working (ada): one thing\nNow Working (ada): another\n"
    )
    found = aof("worklog", "check").data["problems"]
    assert [problem["code"] for problem in found].count("status_line_misplaced") == 2
