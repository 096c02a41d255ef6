"""`org/org-chart.yaml` in a data directory: read strictly, noticed when it changes, last good one kept."""

from __future__ import annotations

from pathlib import Path

import pytest

from aof.errors import UnusableOrgChart
from aof.service.bootstrap import init_data_dir, open_fabric
from aof.service.upkeep import diagnose
from aof.store.directory import OrgReport
from aof.store.files.definitions import LIMIT, OrgFile
from tests.support.present import present
from tests.support.processes import together

GOOD = "agents:\n  - id: ada\n    concurrency: 1\n"
OTHER = "agents:\n  - id: ada\n    concurrency: 2\n"
BAD = "agents:\n  - id: ada\n    concurency: 2\n"


class Place:
    """A data directory whose chart a person writes."""

    def __init__(self, root: Path) -> None:
        init_data_dir(root)
        self.root = root
        self.path = root / "org" / "org-chart.yaml"
        self.path.parent.mkdir()

    def write(self, text: str | bytes) -> None:
        self.path.write_bytes(text if isinstance(text, bytes) else text.encode())

    def opened(self) -> OrgFile:
        """As a new process finds it."""
        return OrgFile(str(self.root))

    def limit(self, org: OrgFile) -> int | None:
        chart = present(org.chart())
        return chart.by_id["ada"].concurrency


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path / ".aof")


def test_without_a_file_there_is_no_chart(place: Place) -> None:
    assert place.opened().chart() is None
    assert place.opened().report().state == "absent"
    with open_fabric(place.root) as fabric:
        assert not fabric.org.declared


def test_a_changed_file_is_noticed_at_the_next_use_even_one_of_the_same_size(place: Place) -> None:
    org = place.opened()
    for text, limit in ((GOOD, 1), (OTHER, 2), (GOOD, 1)) * 3:
        place.write(text)
        assert place.limit(org) == limit
    place.path.unlink()
    assert org.chart() is None


def test_an_unchanged_file_gives_the_very_same_chart(place: Place) -> None:
    place.write(GOOD)
    org = place.opened()
    assert org.chart() is org.chart()


def test_a_version_that_cannot_be_used_leaves_the_last_good_one_in_force_and_is_reported(place: Place) -> None:
    place.write(GOOD)
    org = place.opened()
    assert place.limit(org) == 1
    for broken in (BAD, "agents: [", "agents: 7\n", "agents: [{id: ada}]\nagents: []\n"):
        place.write(broken)
        assert place.limit(org) == 1
        assert place.limit(place.opened()) == 1, "also for a process that has never seen the good one"
        report = org.report()
        assert (report.state, report.findings[0].severity) == ("last_good", "error")
    place.write(OTHER)
    assert (place.limit(org), org.report().state) == (2, "current")


def test_a_first_version_that_cannot_be_used_is_an_error_with_the_way_out(place: Place) -> None:
    place.write(BAD)
    with pytest.raises(UnusableOrgChart, match="concurency") as caught:
        place.opened().chart()
    assert "aof org check" in caught.value.hint
    assert place.opened().report().state == "unusable"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("agents: &all\n  - id: ada\nteams: *all\n", "line 1: an anchor"),
        ("agents:\n  - id: ada\n  - *ada\n", "line 3: an alias"),
        ("agents:\n  - !!str id\n", "line 2: a tag"),
        ("agents:\n  - <<: {id: ada}\n", "line 2: a merge"),
        ("agents: []\nagents: []\n", "duplicate"),
        ("agents:\n  - {id: ada, id: bob}\n", "duplicate"),
        ("agents: " + "[" * 40 + "]" * 40, "nested more than 32"),
        ("agents:\n - id: ada\n   team: [\n", "not closed"),
        ("- id: ada\n", "not a mapping"),
        (b"agents:\n  - id: \xff\n", "not UTF-8"),
        ("# " + "x" * LIMIT, "larger than"),
    ],
)
def test_what_no_strict_reader_takes_is_unreadable_with_its_line(place: Place, text: str | bytes, words: str) -> None:
    place.write(text)
    report = place.opened().report()
    assert report.state == "unreadable"
    assert [finding.code for finding in report.findings] == ["unreadable"]
    assert words in report.findings[0].detail


def test_an_empty_file_and_one_that_begins_with_dashes_are_charts(place: Place) -> None:
    for text in ("", "# nothing yet\n", "---\n" + GOOD, "\ufeff" + GOOD, GOOD.replace("\n", "\r\n")):
        place.write(text)
        assert place.opened().report().state == "current"
        assert place.opened().report().findings == ()


def test_a_problem_is_told_with_line_and_column(place: Place) -> None:
    place.write("---\nagents:\n  - id: ada\n    runner: {kind: process, command: []}\nteams: [{id: t, lead: adda}]\n")
    found = [(finding.code, finding.line, finding.column) for finding in place.opened().report().findings]
    assert found == [("empty_command", 4, 5), ("unknown_agent", 5, 17)]


def test_doctor_tells_of_a_chart_that_cannot_be_used(place: Place) -> None:
    place.write(GOOD)
    assert diagnose(place.root).ok
    place.write(BAD)
    diagnosis = diagnose(place.root)
    assert [(problem.code, problem.path) for problem in diagnosis.problems] == [
        ("org_chart_unusable", "org/org-chart.yaml")
    ]


def test_doctor_mends_what_it_can_beside_a_chart_that_cannot_be_used_and_says_both_everywhere(place: Place) -> None:
    with open_fabric(place.root) as fabric:
        task_id = fabric.create("Vanishing").task_id
        place.write(BAD)
        (place.root / f"tasks/ready/{task_id}.md").unlink()
        assert [problem.code for problem in fabric.doctor().problems] == ["task_file_missing", "org_chart_unusable"]
    diagnosis = diagnose(place.root, fix=True)
    assert [problem.code for problem in diagnosis.healed] == ["task_file_missing"]
    assert [problem.code for problem in diagnosis.problems] == ["org_chart_unusable"]


def test_work_under_way_goes_on_while_a_broken_chart_is_mended(place: Place) -> None:
    with open_fabric(place.root) as fabric:
        task_id = fabric.create("Under way").task_id
        run = fabric.claim(task_id, agent="ada").run_id
        place.write(BAD)
        fabric.heartbeat(task_id, run=run)
        fabric.progress(task_id, run=run, text="half")
        assert (fabric.list().total, fabric.ready(agent="ada").total) == (1, 0)
        assert len(fabric.held_back(agent="ada")) == 1
        assert fabric.show(task_id)["status"] == "in-progress"
        with pytest.raises(UnusableOrgChart):
            fabric.create("Not before it is mended")
        fabric.release(task_id, run=run)


def test_a_folder_in_the_charts_place_is_an_error_and_no_crash(place: Place) -> None:
    place.path.mkdir()
    with pytest.raises(UnusableOrgChart, match="cannot be read"):
        place.opened().chart()
    assert place.opened().report().state == "unreadable"
    assert [problem.code for problem in diagnose(place.root).problems] == ["org_chart_unusable"]
    place.path.rmdir()
    place.write(GOOD)
    org = place.opened()
    assert place.limit(org) == 1
    place.path.unlink()
    place.path.mkdir()
    assert (place.limit(org), org.report().state) == (1, "last_good")


def test_a_file_that_is_just_being_written_takes_no_rule_out_of_force(place: Place) -> None:
    place.write(GOOD)
    org = place.opened()
    assert place.limit(org) == 1
    for text in ("", "\n", "# to be continued\n"):
        place.write(text)
        assert (place.limit(org), place.limit(place.opened())) == (1, 1)
        assert org.report().state == "last_good"
    place.write("agents: []\n")
    assert not present(org.chart()).declared


def test_many_processes_that_see_a_new_version_at_once_all_use_it(place: Place) -> None:
    place.write(OTHER)

    def look(_number: int) -> int | None:
        return place.limit(OrgFile(str(place.root)))

    assert together(8, look) == [2] * 8
    assert list((place.root / "tmp").iterdir()) == []


def test_a_report_is_the_same_for_everybody(place: Place) -> None:
    place.write(BAD)
    reports: list[OrgReport] = [place.opened().report() for _ in range(2)]
    assert reports[0] == reports[1]


@pytest.mark.parametrize("link", ["org/org-chart.yaml", "org"])
def test_a_link_is_neither_followed_nor_a_missing_chart(place: Place, link: str) -> None:
    place.write(GOOD)
    assert place.limit(place.opened()) == 1
    kept = place.root.parent / "elsewhere"
    (place.root / link).rename(kept)
    (place.root / link).symlink_to(kept)
    (kept / "org-chart.yaml" if kept.is_dir() else kept).write_text(OTHER)
    assert place.limit(place.opened()) == 1, "what the link leads to is not looked at"
    kept.rename(kept.with_name("not-mounted"))
    assert place.limit(place.opened()) == 1, "the last good one stays in force"
    assert place.opened().report().state == "last_good"
    with open_fabric(place.root) as fabric:
        assert fabric.binds_callers
