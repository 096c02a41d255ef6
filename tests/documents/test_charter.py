"""The charter of a session: what it says, its gates and lanes, and its file."""

from __future__ import annotations

import json
import string
import subprocess
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aof.api.fabric import Fabric
from aof.documents import charter_rules
from aof.documents.charter import apply_changes, parse_charter, render_charter
from aof.documents.charter_rules import common_path, pattern_takes
from aof.documents.markdown import split_lines
from aof.errors import ActorMismatch, ApprovalRequired, CharterExists, InvalidInput, NoCharter, NotAllowed
from aof.runs.brief import prime
from aof.service.bootstrap import init_data_dir, open_fabric
from aof.testing import FakeClock
from tests.support.charters import TEAM, without_lines
from tests.support.requirements import requirement
from tests.support.served import aof

# --- the session charter: what it holds, who may change it, and what a check finds


GIVEN = {
    "session_id": "2026-02-07-alpha",
    "milestone": "First release",
    "participants": ["ada:Developer:api:some-model", "bob:Writer:docs"],
    "lanes": ["api:ada:src/api/**", "docs:bob:docs/**,README.md"],
    "acceptance": ["All tests pass"],
}


@pytest.fixture
def fabric(opened: Fabric) -> Fabric:
    """A fabric of `pm` with a charter."""
    opened.charter_init(**GIVEN)  # type: ignore[arg-type]
    return opened


def found(fabric: Fabric, *but: str, **given: Any) -> dict[str, list[str]]:
    """What the check finds by code, apart from the kickoff checklist."""
    by_code: dict[str, list[str]] = {}
    for one in fabric.charter_check(**given).problems:
        if not one.code.startswith("kickoff") and one.code not in but:
            by_code.setdefault(one.code, []).append(one.detail)
    return by_code


def edit(root: Path, *changes: tuple[str, str]) -> None:
    """Change the file as a person would."""
    path = root / "SESSION_CHARTER.md"
    text = path.read_text(encoding="utf-8")
    for old, new in changes:
        assert old in text
        text = text.replace(old, new, 1)
    path.write_text(text, encoding="utf-8")


@requirement("comms.charter.sections")
def test_a_charter_has_ten_numbered_sections_and_a_missing_or_empty_one_is_reported(root: Path, fabric: Fabric) -> None:
    text = (root / "SESSION_CHARTER.md").read_text(encoding="utf-8")
    assert [line for line in text.splitlines() if line.startswith("## ")] == [
        f"## {number}) {title}" for number, title in charter_rules.TITLES.items()
    ]
    assert found(fabric) == {}
    begin, end = text.index("## 8)"), text.index("## 9)")
    edit(root, (text[begin:end], ""), (text[text.index("## 4)") : text.index("## 5)")], "## 4) Shared contract\n\n"))
    assert found(fabric) == {
        "section_empty": ["section 4 (Shared contract) is empty"],
        "section_missing": ["section 8 (Acceptance criteria) is missing"],
    }


@requirement("comms.charter.metadata")
def test_the_metadata_of_a_session_are_shown_and_an_unknown_tier_or_an_earlier_id_is_reported(
    root: Path, fabric: Fabric
) -> None:
    shown = json.loads(aof(root, "charter", "show", "--json").stdout)["data"]
    about = {name: shown[name] for name in ("sessionId", "date", "project", "milestone", "riskTier")}
    assert about == {
        "sessionId": "2026-02-07-alpha",
        "date": "2026-03-02",
        "project": root.parent.name,
        "milestone": "First release",
        "riskTier": "Medium",
    }
    with pytest.raises(InvalidInput, match="Low, Medium, High"):
        fabric.charter_amend(risk_tier="Extreme", reason="no")
    edit(root, ("| Risk tier | Medium |", "| Risk tier | Extreme |"))
    assert found(fabric) == {"risk_tier": ["Risk tier is 'Extreme', not one of: Low, Medium, High"]}
    (root / "SESSION_CHARTER.md").unlink()
    fabric.charter_init(**GIVEN)  # type: ignore[arg-type]
    assert found(fabric) == {"session_id": ["an earlier session had the ID 2026-02-07-alpha"]}


@requirement("comms.charter.roster")
@pytest.mark.parametrize(
    ("old", "new", "code"),
    [
        ("| Developer | ada |", "| Maintainer | ada |", "roster_maintainer"),
        ("| Maintainer | pm |", "| Observer | pm |", "roster_maintainer"),
        ("| some-model | api |", "| some-model | none |", "roster_lane"),
        ("| Writer | bob |", "| Writer | eve |", "roster_org_chart"),
    ],
)
def test_the_roster_has_one_maintainer_and_everybody_once_with_a_lane(
    root: Path, fabric: Fabric, old: str, new: str, code: str
) -> None:
    (root / "org").mkdir(exist_ok=True)
    (root / "org/org-chart.yaml").write_text("schemaVersion: 1\nagents: [{id: ada}, {id: bob}]\n", encoding="utf-8")
    assert found(fabric) == {}
    edit(root, (old, new))
    assert code in found(fabric)


def test_an_agent_that_only_the_org_chart_knows_is_reported(root: Path, fabric: Fabric) -> None:
    (root / "org").mkdir(exist_ok=True)
    (root / "org/org-chart.yaml").write_text("schemaVersion: 1\nagents: [{id: ada}, {id: eve}]\n", encoding="utf-8")
    assert found(fabric) == {
        "roster_org_chart": [
            "eve is in the org chart and not in the roster",
            "the org chart does not know 'bob'",
        ]
    }


@requirement("comms.charter.lanes")
def test_a_file_has_one_owner_and_the_owner_changes_by_decision_only(root: Path, fabric: Fabric) -> None:
    edit(root, ("`docs/**`, `README.md`", "`src/api/*`"))
    assert found(fabric) == {"lane_overlap": ["src/api/x belongs to the lanes 'api' (ada) and 'docs' (bob)"]}
    edit(root, ("`src/api/*`", "`docs/**`, `README.md`"), ("| api | ada |", "| api | bob |"))
    for _ in range(2):
        ((code, (detail,)),) = found(fabric).items()
        assert (code, "a person changed the owner of the lane 'api' from ada to bob" in detail) == (
            "changed_by_hand",
            True,
        )
        assert "| api | ada |" in (root / "SESSION_CHARTER.md").read_text(encoding="utf-8")
    assert "| api | bob |" in (root / "SESSION_CHARTER_EDITS.md").read_text(encoding="utf-8")
    (root / "SESSION_CHARTER_EDITS.md").unlink()
    fabric.worklog_decide("bob owns the lane api from now on")
    edit(root, ("| api | ada |", "| api | bob |"))
    assert found(fabric) == {}
    assert "| api | bob |" in (root / "SESSION_CHARTER.md").read_text(encoding="utf-8")
    edit(root, ("| Shared log | All agents | `WORKLOG.md` |", "| Shared log | All agents | `WORKLOG.md`, `docs/**` |"))
    assert found(fabric) == {}


def test_files_changed_outside_of_the_own_lane_are_reported(fabric: Fabric) -> None:
    changed = ["src/api/a.py", "docs/x.md", "setup.py"]
    assert found(fabric, agent="ada", changed=changed) == {
        "changed_outside_lane": ["ada has changed docs/x.md, which belongs to bob (lane docs)"],
        "file_without_lane": ["setup.py has changed and belongs to no lane"],
    }
    assert list(found(fabric, changed=changed)) == ["file_without_lane"]


def test_changed_files_come_from_git_which_runs_nothing_of_the_repository(root: Path, fabric: Fabric) -> None:
    project, mark = root.parent, root.parent / "ran"
    git = ["git", "-C", str(project), "-c", "user.name=a", "-c", "user.email=a@b"]
    subprocess.run([*git, "init", "-q"], check=True)
    subprocess.run([*git, "config", "core.fsmonitor", f"touch {mark}; false"], check=True)
    (project / "README.md").write_text("one\n")
    subprocess.run([*git, "-c", "core.fsmonitor=false", "add", "README.md"], check=True)
    subprocess.run([*git, "-c", "core.fsmonitor=false", "commit", "-qm", "one"], check=True)
    (project / "README.md").write_text("two\n")
    (project / "src/api").mkdir(parents=True)
    (project / "src/api/new.py").write_text("")
    mark.unlink(missing_ok=True)
    told = json.loads(aof(root, "charter", "check", "--agent", "ada", "--git", "HEAD", "--json").stdout)["data"]
    outside = [one["detail"] for one in told["problems"] if one["code"] == "changed_outside_lane"]
    assert outside == ["ada has changed README.md, which belongs to bob (lane docs)"]
    assert not mark.exists()
    assert aof(root, "charter", "check", "--git", "--output=/tmp/x").returncode == 2


@requirement("comms.charter.governance")
def test_governance_and_gates_are_shown_with_defaults_and_unknown_ones_reported(root: Path, fabric: Fabric) -> None:
    edit(root, ("| Cross-review mode | aspirational |\n", ""))
    shown = json.loads(aof(root, "charter", "show", "--json").stdout)["data"]
    assert shown["governance"] == {
        "decisionMode": "consent",
        "objectionWindow": "1 cycle",
        "crossReviewMode": "aspirational",
        "mergePolicy": "after review",
        "testPolicy": "all tests pass",
    }
    assert [gate["band"] for gate in shown["gates"]] == ["auto", "delay", "approval"]
    edit(root, ("| Decision mode | consent |", "| Decision mode | dice |"), ("| Auto |", "| Whenever |"))
    assert found(fabric) == {
        "decision_mode": ["Decision mode is 'dice', not one of: consent, quorum, maintainer-adjudicated"],
        "gate_band": ["section 6 has no band 'Auto'"],
    }


@requirement("comms.charter.handshake")
def test_an_agent_signs_for_itself_and_its_signature_ends_with_its_role_or_lane(root: Path, fabric: Fabric) -> None:
    before = (root / "SESSION_CHARTER.md").read_text(encoding="utf-8").splitlines()
    shown = fabric.as_actor("ada").charter_sign(notes="all clear")
    after = (root / "SESSION_CHARTER.md").read_text(encoding="utf-8").splitlines()
    assert [new for old, new in zip(before, after, strict=True) if old != new] == [
        "- **Signed:** ada",
        "- **Handshake status:** Accepted",
        "- **Notes:** all clear",
        "- **Timestamp:** 2026-03-02T09:00:00.000Z",
    ]
    assert shown.unsigned == ("bob",)
    with pytest.raises(ActorMismatch):
        fabric.as_actor("ada").charter_sign(agent="bob")
    with pytest.raises(NotAllowed, match="no seat"):
        fabric.as_actor("eve").charter_sign()
    assert fabric.as_actor("bob").charter_sign(status="Accepted with reservations").unsigned == ()
    amended = fabric.charter_amend(participants=["ada:Developer:docs"], reason="docs need help")
    assert amended.unsigned == ("ada",)


def test_signing_again_what_holds_changes_nothing(root: Path, fabric: Fabric) -> None:
    fabric.as_actor("ada").charter_sign()
    head = fabric.store.head()
    fabric.as_actor("ada").charter_sign()
    assert fabric.store.head() == head


@requirement("comms.charter.kickoff")
def test_a_kickoff_item_that_the_files_disprove_is_reported_before_work_starts(root: Path, fabric: Fabric) -> None:
    fabric.as_actor("ada").charter_sign()
    fabric.worklog_now("the release", line="focus")
    fabric.as_actor("ada").worklog_now("the parser")
    fabric.charter_amend(done=[1, 2, 3, 4, 5, 6, 7], reason="kickoff")
    checked = json.loads(aof(root, "charter", "check", "--json").stdout)["data"]
    assert [(one["code"], one["detail"]) for one in checked["problems"]] == [
        (
            "kickoff_untrue",
            "item 6 is ticked, and not so: Every agent has signed the handshake; unsigned: bob",
        )
    ]
    fabric.as_actor("bob").charter_sign()
    ready = aof(root, "charter", "check")
    assert (ready.returncode, ready.stdout) == (0, "SESSION_CHARTER.md is ready: work can start\n")
    fabric.charter_amend(undone=[7], reason="no retro yet")
    assert aof(root, "charter", "check").returncode == 1


@requirement("comms.channel.charter-config")
def test_a_charter_is_created_once_and_amended_by_a_maintainer_with_a_row_in_the_index(
    root: Path, fabric: Fabric
) -> None:
    text = (root / "SESSION_CHARTER.md").read_bytes()
    with pytest.raises(CharterExists, match="2026-02-07-alpha"):
        fabric.charter_init()
    with pytest.raises(NotAllowed):
        fabric.as_actor("ada").charter_amend(risk_tier="Low", reason="me too")
    assert (root / "SESSION_CHARTER.md").read_bytes() == text
    fabric.charter_amend(risk_tier="High", reason="a customer waits")
    (row,) = fabric.worklog_show().decisions
    assert (row["decision"], row["owner"]) == ("Charter amended: Risk tier is High", "pm")


@requirement("comms.channel.shared-contract")
def test_the_contract_must_exist_and_be_locked_before_two_lanes_work_on_it(root: Path, fabric: Fabric) -> None:
    fabric.charter_amend(contract="docs/api.yaml", contract_status="Draft", contract_tests="tests/api", reason="agreed")
    assert found(fabric) == {
        "contract_path": [
            "Contract location of the contract: there is no docs/api.yaml",
            "Validation tests of the contract: there is no tests/api",
        ]
    }
    for name in ("docs/api.yaml", "tests/api"):
        (root.parent / name).parent.mkdir(exist_ok=True)
        (root.parent / name).touch()
    for agent in ("ada", "bob"):
        fabric.as_actor(agent).claim(fabric.create(f"For {agent}").task_id, agent=agent)
    assert found(fabric) == {"contract_unlocked": ["the contract docs/api.yaml is Draft, and the lanes api, docs work"]}
    told = json.loads(aof(root, "charter", "show", "--json").stdout)["data"]["contract"]
    assert told == {"location": "docs/api.yaml", "owner": "", "tests": "tests/api", "status": "Draft"}
    fabric.charter_amend(contract_status="Locked", reason="frozen")
    assert found(fabric) == {}


def test_a_path_that_leads_out_of_the_project_is_not_there(root: Path, fabric: Fabric) -> None:
    (root.parent / "out").symlink_to("/etc")
    for path in ("/etc/hosts", "../x/hosts.txt", "out/hosts"):
        fabric.charter_amend(contract=path, reason="look")
        assert "contract_path" in found(fabric)


def test_an_agent_is_told_of_its_lane_and_its_missing_handshake_when_its_turn_begins(fabric: Fabric) -> None:
    fabric.charter_amend(approval=["tag:release"], reason="care")
    told = prime(fabric.as_actor("ada"), "ada")
    assert "- you are Developer in lane api: change only src/api/**" in told
    assert "- needs a person's approval: tag:release" in told
    assert "aof charter sign --agent ada" in told
    fabric.as_actor("ada").charter_sign()
    assert "handshake is missing" not in prime(fabric.as_actor("ada"), "ada")
    assert "you are not in its roster" in prime(fabric.as_actor("eve"), "eve")


def test_without_a_charter_everything_works_and_the_check_says_so(tmp_path: Path, clock: FakeClock) -> None:
    with open_fabric(init_data_dir(tmp_path / ".aof", actor="pm")[0], actor="pm", clock=clock) as fabric:
        assert "charter" not in prime(fabric, "ada")
        with pytest.raises(NoCharter, match="there is no session charter"):
            fabric.charter_check()


def test_what_a_killed_writer_left_undone_is_written_by_the_next_reader(root: Path, fabric: Fabric) -> None:
    path = root / "SESSION_CHARTER.md"
    before = path.read_bytes()
    fabric.charter_amend(risk_tier="High", reason="a customer waits")
    after = path.read_bytes()
    path.write_bytes(before)
    for lock in (root / "locks").glob("document*CHARTER*"):
        lock.unlink()
    assert fabric.charter_show().risk_tier == "High"
    assert path.read_bytes() == after


def test_an_edit_by_hand_stays_and_other_changes_go_around_it(root: Path, fabric: Fabric) -> None:
    edit(root, ("First release", "Second release"), ("# Session Charter", "<!-- mine -->\n# Session Charter"))
    fabric.charter_amend(risk_tier="High", reason="a customer waits")
    text = (root / "SESSION_CHARTER.md").read_text(encoding="utf-8")
    assert "<!-- mine -->" in text
    assert fabric.charter_show().milestone == "Second release"


def test_a_lock_on_a_file_of_another_lane_is_reported(fabric: Fabric) -> None:
    task_id = fabric.create("Write the guide").task_id
    ada = fabric.as_actor("ada")
    ada.claim(task_id, agent="ada")
    ada.lock("src/api/a.py", task_id=task_id)
    assert found(fabric) == {}
    ada.lock("docs/guide.md", task_id=task_id)
    assert found(fabric) == {
        "lock_outside_lane": [f"ada has locked docs/guide.md for {task_id}, which belongs to bob (lane docs)"]
    }
    ada.release(task_id)
    assert found(fabric) == {}


# --- the gated obeys the gates of the session charter


GATES = {"delayed": ["tag:refactor"], "delay_time": "30m", "approval": ["tag:release", "risk:high", "cancel"]}


@pytest.fixture
def gated(opened: Fabric) -> Fabric:
    """A fabric of `pm` with a charter that has gates."""
    opened.charter_init(**GATES)  # type: ignore[arg-type]
    return opened


def completed(gated: Fabric, *tags: str, **given: object) -> str:
    """A task that an agent has completed, and that nobody wanted reviewed."""
    task_id = gated.create("Work", tags=list(tags), metadata={"reviewRequired": False}, **given).task_id  # type: ignore[arg-type]
    worker = gated.as_actor("ada")
    worker.claim(task_id, agent="ada")
    worker.complete(task_id, summary="done")
    return task_id


def test_completed_work_behind_an_approval_gate_waits_for_a_person(gated: Fabric) -> None:
    plain, released, risky = (
        completed(gated),
        completed(gated, "release"),
        completed(gated, profile={"risk": "high"}),
    )
    assert [gated.get(one).status for one in (plain, released, risky)] == ["done", "review", "review"]
    with pytest.raises(ApprovalRequired, match="only a person accept") as refused:
        gated.as_actor("bob").approve(released)
    assert refused.value.call is not None
    with pytest.raises(ApprovalRequired):
        gated.as_actor("bob").update(released, status="done")
    assert gated.get(released).status == "review"
    assert gated.approve(released).status == "done"


def test_work_behind_notify_and_delay_is_accepted_once_nobody_objected(gated: Fabric, clock: FakeClock) -> None:
    quiet, objected = completed(gated, "refactor"), completed(gated, "refactor")
    assert gated.get(quiet).status == gated.get(objected).status == "review"
    clock.sleep(29 * 60)
    assert gated.tick().actions == ()
    gated.as_actor("bob").reject(objected, blockers=["breaks the API"])
    clock.sleep(61)
    (action,) = [one for one in gated.tick().actions if one.action == "gate_elapsed"]
    assert action.task_id == quiet
    assert gated.get(quiet).status == "done"
    assert gated.get(objected).status == "ready"


def test_a_review_that_somebody_asked_for_is_never_over_by_time(gated: Fabric, clock: FakeClock) -> None:
    task_id = gated.create("Work", tags=["refactor"]).task_id
    worker = gated.as_actor("ada")
    worker.claim(task_id, agent="ada")
    worker.complete(task_id)
    clock.sleep(86_400)
    gated.tick()
    assert gated.get(task_id).status == "review"


def test_an_action_that_needs_approval_is_left_to_a_person(gated: Fabric) -> None:
    task_id = gated.create("Work").task_id
    with pytest.raises(ApprovalRequired, match="only a person cancel"):
        gated.as_actor("ada").cancel(task_id, reason="not wanted")
    with pytest.raises(ApprovalRequired):
        gated.as_actor("ada").update(task_id, status="cancelled", reason="not wanted")
    assert gated.cancel(task_id, reason="not wanted").status == "cancelled"


def test_an_amended_gate_holds_at_once_also_in_another_process(root: Path, gated: Fabric, clock: FakeClock) -> None:
    with open_fabric(root, actor="pm", clock=clock) as other:
        assert other.get(completed(other, "docs")).status == "done"
        gated.charter_amend(approval=["tag:docs"], reason="docs are law")
        assert other.get(completed(other, "docs")).status == "review"
        assert other.get(completed(other, "release")).status == "done"
    (root / "SESSION_CHARTER.md").unlink()
    assert gated.get(completed(gated, "docs")).status == "done"


def test_gates_changed_by_hand_and_those_for_people_only_are_reported(root: Path, gated: Fabric) -> None:
    gated.charter_amend(approval=["schema changes", "tag:release"], reason="people decide")
    codes = [one.code for one in gated.charter_check().problems]
    assert "gate_unenforced" in codes
    assert "gates_changed" not in codes
    path = root / "SESSION_CHARTER.md"
    whole = path.read_text()
    path.write_text(whole.replace("schema changes, tag:release", "none"))
    report = gated.charter_check()
    assert ("changed_by_hand", False) in [(one.code, report.ok) for one in report.problems]
    assert path.read_text() == whole
    assert "| Approval Required | none |" in (root / "SESSION_CHARTER_EDITS.md").read_text()


# --- in which paths patterns of files meet


_SEGMENT = st.text("ab*?", min_size=1, max_size=4) | st.just("**")
PATTERNS = st.lists(_SEGMENT, min_size=1, max_size=4).map("/".join)
PATHS = st.lists(st.text("ab", min_size=1, max_size=3), min_size=1, max_size=4).map("/".join)


@pytest.mark.parametrize(
    ("one", "other", "met"),
    [
        ("src/**", "src/api/*", "src/api/x"),
        ("src/*", "src/api/*", None),
        ("src", "src/api/*", "src/api/x"),
        ("docs/", "docs/guide.md", "docs/guide.md"),
        ("*.md", "docs/*.md", None),
        ("**/*.md", "docs/a*", "docs/a.md"),
        ("src/a*c", "src/*bc", "src/abc"),
        ("src/a", "src/b", None),
        ("", "src", None),
    ],
)
def test_two_patterns_meet_in_a_path(one: str, other: str, met: str | None) -> None:
    assert common_path(one, other) == met


@given(PATTERNS, PATTERNS)
def test_the_path_in_which_two_patterns_meet_is_taken_by_both(one: str, other: str) -> None:
    met = common_path(one, other)
    if met is not None:
        assert pattern_takes(one, met)
        assert pattern_takes(other, met)
    assert (met is None) == (common_path(other, one) is None)


@given(PATTERNS, PATTERNS, PATHS)
def test_no_path_of_both_is_overlooked(one: str, other: str, path: str) -> None:
    if pattern_takes(one, path) and pattern_takes(other, path):
        assert common_path(one, other) is not None


def test_a_pattern_made_to_be_slow_is_not() -> None:
    assert common_path("a*" * 99 + "b", "*a" * 99 + "c") is None
    assert common_path("/".join(["**", "a"] * 40), "/".join(["**", "b"] * 40)) is not None


# --- A charter as text: written and read again, changed line by line, and read from whatever people type


WORDS = st.text(string.ascii_letters + string.digits + "|\\`<>#*_.-é", min_size=1, max_size=12).filter(
    lambda text: text.strip("`-") != "" and text.strip("`") == text and text.casefold() != "none"
)
LINES = st.lists(WORDS, min_size=1, max_size=4).map(" ".join)
NAMES = st.text(string.ascii_lowercase, min_size=1, max_size=8).filter(lambda name: name != "none")
PATTERN = st.text(string.ascii_lowercase + "/*", min_size=1, max_size=12).filter(
    lambda text: text.strip("/") != "" and text.casefold() != "none"
)
LANES = st.builds(
    charter_rules.CharterLane, name=NAMES, owner=NAMES, patterns=st.lists(PATTERN, min_size=1, max_size=3).map(tuple)
)
PEOPLE = st.builds(charter_rules.Participant, role=NAMES, agent=NAMES, model=NAMES, lane=st.just("") | NAMES).filter(
    lambda one: not one.is_maintainer
)


@given(st.lists(LANES, max_size=4), st.lists(PEOPLE, max_size=4), st.lists(LINES, max_size=4), LINES)
def test_what_is_written_reads_as_the_same_charter(
    lanes: list[charter_rules.CharterLane], people: list[charter_rules.Participant], criteria: list[str], milestone: str
) -> None:
    written = charter_rules.Charter(
        session_id="s-1",
        date="2026-03-02",
        project="demo",
        milestone=milestone,
        risk_tier="Low",
        roster=tuple(people),
        lanes=tuple(lanes),
        gates=TEAM.gates,
        acceptance=tuple(criteria),
        handshakes=(charter_rules.Signature(agent="ada", signed="ada", role="dev", lane="api", status="Accepted"),),
        checklist=tuple(charter_rules.Item(text=text, done=False) for text in charter_rules.KICKOFF),
        escalation=charter_rules.Escalation(rebuttal_cycles=2, tie_break="lower risk"),
    )
    assert without_lines(parse_charter(render_charter(written))) == written


@given(
    st.text(max_size=400)
    | st.lists(st.sampled_from([*split_lines(render_charter(TEAM)), "| a |\n", "```\n", "## 3)\n"])).map("".join)
)
def test_reading_never_fails_and_changing_keeps_every_other_line(text: str) -> None:
    parse_charter(text)
    lane = charter_rules.CharterLane(name="api", owner="ada", patterns=("src/api/**",))
    changed = apply_changes(text, [charter_rules.SetLane(lane=lane)])
    assert lane in without_lines(parse_charter(changed)).lanes
    assert apply_changes(changed, [charter_rules.SetLane(lane=lane)]) == changed
    kept = [line.rstrip("\r\n") for line in split_lines(changed)]
    lost = [line for line in (raw.rstrip("\r\n") for raw in split_lines(text)) if line not in kept]
    assert len(lost) <= 1, lost


CHANGES = st.one_of(
    st.builds(charter_rules.SetField, section=st.just(1), key=st.sampled_from([*charter_rules.METADATA]), value=LINES),
    st.builds(
        charter_rules.SetField, section=st.just(5), key=st.sampled_from([*charter_rules.GOVERNANCE]), value=LINES
    ),
    st.builds(charter_rules.SetLane, lane=LANES),
    st.builds(charter_rules.DropLane, name=NAMES),
    st.builds(charter_rules.SetParticipant, participant=PEOPLE),
    st.builds(charter_rules.SetWindow, cycles=st.integers(1, 9)),
    st.builds(charter_rules.SetAcceptance, criteria=st.lists(LINES, min_size=1, max_size=3).map(tuple)),
    st.builds(charter_rules.TickItem, number=st.integers(1, 7), done=st.booleans()),
    st.builds(
        charter_rules.Sign,
        signature=st.builds(
            charter_rules.Signature, agent=NAMES, signed=NAMES, role=NAMES, lane=NAMES, status=st.just("Accepted")
        ),
    ),
)


@given(st.lists(CHANGES, max_size=5), st.sampled_from(["\n", "\r\n"]))
def test_changes_of_a_file_with_other_line_endings_keep_them_and_can_be_repeated(
    changes: list[charter_rules.Change], end: str
) -> None:
    text = render_charter(TEAM).replace("\n", end)
    changed = apply_changes(text, changes)
    assert changed.count("\n") == changed.count(end)
    for change in changes[-1:]:
        assert apply_changes(changed, [change]) == changed
    assert parse_charter(changed.replace("\r\n", "\n")) == parse_charter(changed)


def test_only_the_lines_that_must_change_do() -> None:
    text = render_charter(TEAM).replace("## 4)", "A note of mine.\n\n## 4)")
    lane = charter_rules.CharterLane(name="api", owner="bob", patterns=("src/api/**",))
    before, after = split_lines(text), split_lines(apply_changes(text, [charter_rules.SetLane(lane=lane)]))
    differing = [(old, new) for old, new in zip(before, after, strict=True) if old != new]
    assert differing == [("| api | ada | `src/api/**` |\n", "| api | bob | `src/api/**` |\n")]
    signed = charter_rules.Signature(
        agent="ada", signed="ada", role="Developer", lane="api", status="Accepted", timestamp="t"
    )
    after = split_lines(apply_changes(text, [charter_rules.Sign(signature=signed)]))
    assert len(after) == len(before)
    assert [new for old, new in zip(before, after, strict=True) if old != new] == [
        "- **Signed:** ada\n",
        "- **Handshake status:** Accepted\n",
        "- **Timestamp:** t\n",
    ]


def test_a_hand_written_charter_is_read_in_other_forms_too() -> None:
    text = (
        "# Our charter\r\n\r\n## 1. Session metadata\r\nSession ID: 2026-02-07-alpha\r\n- **Risk tier**: High\r\n"
        "<!--\r\n## 2) Agent roster\r\n-->\r\n## Agent roster\r\n|Role|Agent|Model/Provider|Lane|\r\n|-|-|-|-|\r\n"
        "|Maintainer|pm|human|—|\r\n|Dev|ada|x|`api`|\r\n## 7) Conflict escalation\r\n1. Counter-recommendation\r\n"
        "2. Time-boxed rebuttal (two cycles)\r\n3. Risk-minimizing default\r\n4. Maintainer adjudication\r\n"
        "## 6) Approval gates\r\n- Auto: docs\r\n- Notify + Delay: merge (2h)\r\n"
        "- Approval Required: release; tag:db\r\n"
        "## My own section\r\nkept\r\n"
    )
    charter = parse_charter(text)
    assert (charter.session_id, charter.risk_tier) == ("2026-02-07-alpha", "High")
    assert [(one.agent, one.lane) for one in charter.roster] == [("pm", ""), ("ada", "api")]
    assert charter.escalation.rebuttal_cycles == 2
    assert [(gate.band, gate.scope, gate.delay_seconds) for gate in charter.gates] == [
        ("auto", ("docs",), 0),
        ("delay", ("merge",), 7200),
        ("approval", ("release", "tag:db"), 0),
    ]
