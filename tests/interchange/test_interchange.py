"""Tasks from other tools come in once, with what they mean here; what does not map is told, and nothing half."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from aof.api.fabric import Fabric
from aof.errors import AofError, DependencyCycle, InvalidInput, PayloadTooLarge
from aof.interchange.readers import EXPORT
from aof.interchange.service import Imported
from aof.kernel import limits as kernel_limits
from aof.tasks.body import TaskComment, comments_of
from aof.testing import memory_fabric
from tests.support.command_line import Aof
from tests.support.repository import ROOT
from tests.support.room import Room
from tests.support.team import chart_of

BACKLOG = {
    "tasks/task-1 - Parser.md": """---
id: task-1
title: Write the parser
status: In Progress
assignee: ['@ada', '@bob']
created_date: '2026-02-02 23:21'
labels: [core, api]
dependencies: []
priority: high
ordinal: 1000
---

## Description

<!-- SECTION:DESCRIPTION:BEGIN -->
Reads everything.
<!-- SECTION:DESCRIPTION:END -->

## Acceptance Criteria
<!-- AC:BEGIN -->
- [ ] #1 Reads lists
- [x] #2 Reads tables
<!-- AC:END -->

## Implementation Notes

Slow.
""",
    "tasks/task-1.1 - Lists.md": "---\nid: task-1.1\ntitle: Lists\nstatus: To Do\ndependencies: [task-2]\n---\nBody.\n",
    "completed/task-2 - Setup.md": "---\nid: task-2\ntitle: Setup\nstatus: Done\nmilestone: m-1\nonhold: yes\n---\n",
    "drafts/draft-3 - Later.md": "---\nid: draft-3\ntitle: Later\nstatus: Draft\n---\n",
    "archive/tasks/task-4 - Never.md": "---\nid: task-4\ntitle: Never\nstatus: To Do\n---\n",
    "docs/readme.md": "# No task\n",
}
BEADS = "\n".join(
    json.dumps(one)
    for one in (
        {"id": "bd-1", "title": "Epic", "issue_type": "epic", "priority": 0, "status": "open"},
        {
            "id": "bd-2",
            "title": "Login",
            "description": "Text.",
            "design": "With JWT.",
            "acceptance_criteria": "- works\n- is fast",
            "status": "in_progress",
            "priority": 1,
            "assignee": "ada",
            "labels": ["auth"],
            "estimated_minutes": 30,
            "dependencies": [
                {"issue_id": "bd-2", "depends_on_id": "bd-3", "type": "blocks"},
                {"issue_id": "bd-2", "depends_on_id": "bd-1", "type": "parent-child"},
                {"issue_id": "bd-2", "depends_on_id": "bd-1", "type": "related"},
            ],
            "comments": [{"author": "bob", "text": "Soon?", "created_at": "2026-01-01T00:00:00Z"}],
        },
        {"id": "bd-3", "title": "Schema", "status": "closed", "close_reason": "done", "priority": 2},
        {"id": "bd-4", "title": "Gone", "status": "tombstone", "priority": 4},
    )
)
TASKMASTER = json.dumps(
    {
        "master": {
            "tasks": [
                {
                    "id": 1,
                    "title": "Repo",
                    "description": "Create it.",
                    "status": "done",
                    "priority": "high",
                    "dependencies": [],
                },
                {
                    "id": 2,
                    "title": "Core",
                    "details": "All.",
                    "testStrategy": "Unit tests.",
                    "status": "pending",
                    "priority": "medium",
                    "dependencies": [1],
                    "subtasks": [
                        {"id": 1, "title": "Auth", "status": "done", "dependencies": []},
                        {"id": 2, "title": "Data", "status": "deferred", "dependencies": [1]},
                    ],
                },
            ]
        },
        "feature": {"tasks": [{"id": 1, "title": "Else", "status": "cancelled"}]},
    }
)
GITHUB = json.dumps(
    [
        {
            "number": 7,
            "title": "Crash",
            "body": "It crashes.\r\n\r\nBlocked by #8, #9",
            "state": "OPEN",
            "labels": [{"name": "bug"}, {"name": "priority: high"}],
            "assignees": [{"login": "ada"}],
            "url": "https://github.com/acme/app/issues/7",
            "comments": [{"author": {"login": "bob"}, "body": "Me too.", "createdAt": "2026-01-01"}],
        },
        {
            "number": 8,
            "title": "Log",
            "state": "closed",
            "state_reason": "completed",
            "html_url": "https://github.com/acme/app/issues/8",
        },
        {
            "number": 9,
            "title": "No",
            "state": "closed",
            "state_reason": "not_planned",
            "html_url": "https://github.com/acme/app/issues/9",
        },
        {"number": 10, "title": "A change", "state": "open", "pull_request": {"url": "x"}},
    ]
)
TABLE = (
    'ID,Summary,State,Priority,Labels,Depends on,Colour\n1,One,closed,urgent,"a,b",,red\n2,"Two, too",todo,low,,1,\n'
)
SOURCES: dict[str, list[dict[str, str]]] = {
    "backlog": [{"name": name, "text": text} for name, text in BACKLOG.items()],
    "beads": [{"name": "issues.jsonl", "text": BEADS}],
    "taskmaster": [{"name": "tasks.json", "text": TASKMASTER}],
    "github": [{"name": "issues.json", "text": GITHUB}],
    "csv": [{"name": "tasks.csv", "text": TABLE}],
}


def _ids(report: Imported) -> dict[str, str]:
    return {one.source: str(one.task_id) for one in report.items}


def _statuses(fabric: Fabric, report: Imported) -> dict[str, str]:
    return {source: fabric.get(task_id).status for source, task_id in _ids(report).items()}


def _lost(report: Imported) -> set[tuple[str, str]]:
    return {(one.source, one.field) for one in report.not_mapped}


def test_backlog_md(fabric: Fabric) -> None:
    report = fabric.import_tasks("backlog", files=SOURCES["backlog"])
    ids = _ids(report)
    assert _statuses(fabric, report) == {
        "task-1": "ready", "task-1.1": "ready", "task-2": "done", "draft-3": "backlog", "task-4": "cancelled",
    }  # fmt: skip
    task = fabric.get(ids["task-1"])
    assert (task.title, task.priority, task.owner, task.routing.tags) == (
        "Write the parser",
        "high",
        "ada",
        ("core", "api"),
    )
    assert task.acceptance == ("Reads lists", "Reads tables")
    assert task.body == "Reads everything.\n\n## Implementation Notes\n\nSlow.\n"
    assert task.metadata["source"]["created_date"] == "2026-02-02 23:21"
    assert task.routing.agent is None, "an assignment there binds nobody here"
    child = fabric.get(ids["task-1.1"])
    assert (child.parent_id, child.depends_on) == (ids["task-1"], (ids["task-2"],))
    assert {("task-1", "status"), ("task-1", "assignee"), ("task-2", "onhold"), ("docs/readme.md", "file")} <= _lost(
        report
    )


def test_beads(fabric: Fabric) -> None:
    report = fabric.import_tasks("beads", files=SOURCES["beads"])
    ids = _ids(report)
    assert _statuses(fabric, report) == {"bd-1": "ready", "bd-2": "ready", "bd-3": "done", "bd-4": "cancelled"}
    task = fabric.get(ids["bd-2"])
    assert (task.parent_id, task.depends_on) == (ids["bd-1"], (ids["bd-3"],))
    assert (task.acceptance, task.priority, task.routing.tags) == (("works", "is fast"), "high", ("auth",))
    assert task.body.startswith("Text.\n\n## Design\n\nWith JWT.\n")
    assert comments_of(task.body) == (TaskComment(text="Soon?", at="2026-01-01T00:00:00.000Z", by="bob"),)
    assert (fabric.get(ids["bd-1"]).priority, fabric.get(ids["bd-1"]).routing.tags) == ("critical", ("epic",))
    assert {("bd-2", "status"), ("bd-2", "dependencies"), ("bd-2", "estimated_minutes")} <= _lost(report)


def test_task_master(fabric: Fabric) -> None:
    report = fabric.import_tasks("taskmaster", files=SOURCES["taskmaster"])
    ids = _ids(report)
    assert _statuses(fabric, report) == {
        "1": "done", "2": "ready", "2.1": "done", "2.2": "backlog", "feature/1": "cancelled",
    }  # fmt: skip
    assert fabric.get(ids["2"]).depends_on == (ids["1"],)
    assert fabric.get(ids["2.2"]).depends_on == (ids["2.1"],)
    assert fabric.get(ids["2.2"]).parent_id == ids["2"]
    assert fabric.get(ids["feature/1"]).routing.tags == ("feature",)
    assert "## Test strategy\n\nUnit tests." in fabric.get(ids["2"]).body


def test_github_issues(fabric: Fabric) -> None:
    report = fabric.import_tasks("github", files=SOURCES["github"])
    ids = _ids(report)
    assert _statuses(fabric, report) == {"acme/app#7": "blocked", "acme/app#8": "done", "acme/app#9": "cancelled"}
    task = fabric.get(ids["acme/app#7"])
    assert task.depends_on == (ids["acme/app#8"], ids["acme/app#9"])
    assert task.blocked is not None
    assert task.blocked.dependency == ids["acme/app#9"], "it would wait for ever for what was cancelled"
    assert (task.priority, task.owner, task.routing.tags) == ("high", "ada", ("bug", "priority: high"))
    assert task.body.startswith("It crashes.\n\nBlocked by #8, #9\n"), "lines end as they do here"
    assert comments_of(task.body) == (TaskComment(text="Me too.", at="2026-01-01T00:00:00.000Z", by="bob"),)
    assert ("#10", "pull_request") in _lost(report)


def test_comments_of_other_tools_cannot_pass_for_other_sections_and_stay_within_the_body(fabric: Fabric) -> None:
    said = [
        {"author": "eve", "text": "Hm.\n\n## Work Log\n- done", "created_at": "2026-01-01T01:00:00+01:00"},
        {"author": "", "text": "When?", "created_at": "last week"},
        {"author": "bob", "text": "  "},
        {"author": "bob", "text": "x" * kernel_limits.BODY, "created_at": "2026-01-02"},
        {"author": "bob", "text": "too late", "created_at": "2026-01-03"},
    ]
    rows = json.dumps({"id": "bd-1", "title": "One", "comments": said})
    report = fabric.import_tasks("beads", files=[{"name": "issues.jsonl", "text": rows}])
    assert comments_of(fabric.get(_ids(report)["bd-1"]).body) == (
        TaskComment(text="Hm.\n\n## Work Log\n- done", at="2026-01-01T00:00:00.000Z", by="eve"),
        TaskComment(text="unknown: When?"),
    )
    assert ("bd-1", "comments", "only the first 3 of 5") in {
        (one.source, one.field, one.detail) for one in report.not_mapped
    }
    assert fabric.export_tasks("csv").not_mapped["comments"] == 1


def test_a_table(fabric: Fabric) -> None:
    report = fabric.import_tasks("csv", files=SOURCES["csv"])
    ids = _ids(report)
    assert _statuses(fabric, report) == {"1": "done", "2": "ready"}
    assert fabric.get(ids["1"]).routing.tags == ("a", "b")
    assert (fabric.get(ids["2"]).title, fabric.get(ids["2"]).depends_on) == ("Two, too", (ids["1"],))
    assert ("tasks.csv", "Colour") in _lost(report)


@pytest.mark.parametrize("source", SOURCES)
def test_a_second_import_creates_nothing_and_leaves_changes_alone(room: Room, fabric: Fabric, source: str) -> None:
    first = fabric.import_tasks(source, files=SOURCES[source])
    some = next(one.task_id for one in first.items if one.status == "ready" or source == "github")
    fabric.edit(str(some), title="Renamed here")
    events = len(room.events())
    again = fabric.import_tasks(source, files=SOURCES[source])
    assert (again.created, again.existing, again.refused) == (0, len(first.items), 0)
    assert _ids(again) == _ids(first)
    assert len(room.events()) == events
    assert fabric.get(str(some)).title == "Renamed here"


@pytest.mark.parametrize("source", SOURCES)
def test_a_dry_run_tells_the_same_and_changes_nothing(room: Room, fabric: Fabric, source: str) -> None:
    shown = fabric.import_tasks(source, files=SOURCES[source], dry_run=True)
    assert room.events() == []
    done = fabric.import_tasks(source, files=SOURCES[source])
    assert [(one.source, one.outcome, one.title) for one in shown.items] == [
        (one.source, one.outcome, one.title) for one in done.items
    ]
    assert _lost(shown) <= _lost(done)


def test_an_import_that_was_interrupted_goes_on_where_it_was(fabric: Fabric) -> None:
    parent = "id,title,parent\n1,One,\n"
    fabric.import_tasks("csv", files=[{"name": "t.csv", "text": parent}])
    report = fabric.import_tasks("csv", files=[{"name": "t.csv", "text": f"{parent}2,Two,1\n"}])
    assert (report.created, report.existing) == (1, 1)
    assert fabric.get(_ids(report)["2"]).parent_id == _ids(report)["1"]


WRONG: dict[str, tuple[str, str, type[AofError]]] = {
    "no source": ("", "x", InvalidInput),
    "unknown source": ("jira", "x", InvalidInput),
    "beads: no JSON": ("beads", "{", InvalidInput),
    "beads: no id": ("beads", '{"title": "x"}', InvalidInput),
    "beads: twice": ("beads", '{"id":"a"}\n{"id":"a"}', InvalidInput),
    "beads: circle": (
        "beads",
        '{"id":"a","dependencies":[{"depends_on_id":"b"}]}\n{"id":"b","dependencies":[{"depends_on_id":"a"}]}',
        DependencyCycle,
    ),
    "taskmaster: something else": ("taskmaster", '{"a": 1}', InvalidInput),
    "taskmaster: no id": ("taskmaster", '{"tasks": [{"title": "x"}]}', InvalidInput),
    "github: something else": ("github", '[{"title": "x"}]', InvalidInput),
    "backlog: no task": ("backlog", "# Hello\n", InvalidInput),
    "csv: no title": ("csv", "id,state\n1,open\n", InvalidInput),
    "csv: column twice": ("csv", "title,summary\na,b\n", InvalidInput),
    "csv: torn": ("csv", 'id,title\n1,"open\n', InvalidInput),
    "csv: parents in a circle": ("csv", "id,title,parent\n1,A,2\n2,B,1\n", DependencyCycle),
    "csv: too many": ("csv", "title\n" + "".join(f"t{n}\n" for n in range(5001)), PayloadTooLarge),
    "too large": ("csv", "title\n" + "x" * 10_000_001, PayloadTooLarge),
}


@pytest.mark.parametrize("name", WRONG)
def test_what_is_not_sound_is_refused_before_anything_changes(room: Room, fabric: Fabric, name: str) -> None:
    source, text, kind = WRONG[name]
    with pytest.raises(kind) as refused:
        fabric.import_tasks(source, files=[{"name": "file.md", "text": text}])
    assert refused.value.hint
    assert room.events() == []


def test_hostile_text_is_made_harmless_and_long_text_is_cut(fabric: Fabric) -> None:
    rows = [{"id": "a\x1b[31m\n", "title": "x\x00\x1b]0;evil\x07" + "y" * 600, "description": "\x00" + "z" * 1_000_500}]
    report = fabric.import_tasks("beads", files=[{"name": "i", "text": "\n".join(map(json.dumps, rows))}])
    task = fabric.get(str(report.items[0].task_id))
    assert task.title.isprintable()
    assert len(task.title) <= 500
    assert {"title", "description"} <= {one.field for one in report.not_mapped}
    assert len(task.body) <= 1_000_000


def test_long_ids_that_differ_at_their_end_are_two_tasks(fabric: Fabric) -> None:
    rows = [f"{'x' * 250}{end},Task {end}" for end in "ab"]
    report = fabric.import_tasks("csv", files=[{"name": "t.csv", "text": "\n".join(["id,title", *rows])}])
    assert [one.outcome for one in report.items] == ["created", "created"]
    assert len({one.task_id for one in report.items}) == 2


@pytest.mark.parametrize("ending", ["\n", "\r\n", "\r"])
def test_only_line_breaks_end_the_row_of_a_table(fabric: Fabric, ending: str) -> None:
    rows = ["id,title,description", "1,A,one\u2028two\x0bthree", "2,B,"]
    report = fabric.import_tasks("csv", files=[{"name": "t.csv", "text": ending.join(rows)}])
    assert [one.title for one in report.items] == ["A", "B"]
    assert fabric.get(str(report.items[0].task_id)).body == "one\u2028two\x0bthree\n"


def test_only_line_breaks_end_an_issue_of_beads(fabric: Fabric) -> None:
    row = json.dumps({"id": "bd-1", "title": "A", "description": "one\u0085two"}, ensure_ascii=False)
    report = fabric.import_tasks("beads", files=[{"name": "i.jsonl", "text": f"{row}\r\n"}])
    assert fabric.get(str(report.items[0].task_id)).body == "one\u0085two\n"


def test_acceptance_criteria_lose_their_bullets_and_not_their_letters(fabric: Fabric) -> None:
    criteria = "- xylophone works\n- [x] x-ray works\n* [ ] -v is quiet\nplain\n\n" + "y" * 300
    many = "\n".join(f"- {number}" for number in range(60))
    rows = [
        {"id": "a", "title": "A", "acceptance_criteria": criteria},
        {"id": "b", "title": "B", "acceptance_criteria": many},
    ]
    report = fabric.import_tasks("beads", files=[{"name": "i", "text": "\n".join(map(json.dumps, rows))}])
    first, second = (fabric.get(str(one.task_id)).acceptance for one in report.items)
    assert first == ("xylophone works", "x-ray works", "-v is quiet", "plain", "y" * 256)
    assert len(second) == 50
    told = [(one.source, one.detail) for one in report.not_mapped]
    assert told == [
        ("a", "ticked there: 1"),
        ("a", "criteria cut to 256 characters"),
        ("b", "only the first 50 of 60"),
    ]


def test_a_long_empty_issue_is_read_at_once(fabric: Fabric) -> None:
    issue = {"number": 1, "title": "A", "body": "x" + "\n" * 500_000 + "> Depends on #2, #3"}
    report = fabric.import_tasks("github", files=[{"name": "i.json", "text": json.dumps([issue])}])
    assert [one.detail for one in report.not_mapped] == ["#2 was not imported", "#3 was not imported"]


def test_only_a_maintainer_imports_finished_work_where_names_are_bound() -> None:
    fabric = memory_fabric("stray", org=chart_of(agents=[{"id": "ada"}]))
    shown = fabric.import_tasks("csv", files=SOURCES["csv"], dry_run=True)
    report = fabric.import_tasks("csv", files=SOURCES["csv"])
    assert [(one.source, one.outcome) for one in report.items] == [("1", "refused"), ("2", "refused")]
    assert shown.items == report.items, "a dry run says so before"
    assert "not_allowed" in str(report.items[0].error)
    assert "depends on 1" in str(report.items[1].error), "without its dependency it would be taken too early"


def test_an_exported_table_can_be_imported_elsewhere(fabric: Fabric) -> None:
    first = fabric.create(
        "=HYPERLINK(1)", brief='-5 of, "these"\nlines', tags=["a", "b"], priority="high", due="2026-05-01"
    ).task_id
    second = fabric.create("Second", depends_on=[first], parent_id=first, metadata={"x": 1}).task_id
    exported = fabric.export_tasks("csv")
    assert (exported.total, exported.not_mapped) == (2, {"metadata": 1})
    assert "'=HYPERLINK(1)" in exported.text, "no formula in somebody's spreadsheet"
    other = memory_fabric("pm")
    report = other.import_tasks("csv", files=[{"name": "t.csv", "text": exported.text}])
    ids = _ids(report)
    task = other.get(ids[first])
    assert (task.title, task.priority, task.routing.tags) == ("=HYPERLINK(1)", "high", ("a", "b"))
    assert task.due == fabric.get(first).due is not None
    assert task.body == '-5 of, "these"\nlines\n'
    assert (other.get(ids[second]).depends_on, other.get(ids[second]).parent_id) == ((ids[first],), ids[first])


def test_exported_json_has_whole_tasks_without_what_proves_a_holder(fabric: Fabric) -> None:
    task = fabric.create("Secret keeper", brief="Text.", tags=["a"]).task_id
    fabric.create("Another")
    fabric.claim(task, agent="ada")
    exported = fabric.export_tasks("json", tag="a")
    (one,) = json.loads(exported.text)["tasks"]
    assert (one["id"], one["body"], one["lease"]["agent"]) == (task, "Text.\n", "ada")
    assert "secretDigest" not in exported.text
    with pytest.raises(InvalidInput):
        fabric.export_tasks("xml")


def test_the_command_reads_folders_and_writes_files(aof: Aof, room: Room, tmp_path: Path) -> None:
    folder = tmp_path / "backlog"
    for name, text in BACKLOG.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    (folder / "tasks" / "link.md").symlink_to("/etc/hostname")
    os.mkfifo(folder / "tasks" / "pipe.md")
    assert aof("import", str(folder), "--from", "backlog", "--dry-run").data["created"] == 5
    assert aof("import", str(folder), "--from", "backlog").data["created"] == 5
    out = tmp_path / "tasks.csv"
    said = aof("export", str(out), "--format", "csv", "--status", "done")
    assert (said.code, said.data["total"]) == (0, 1)
    assert out.read_text().splitlines()[0].startswith("id,title,status")
    assert list(tmp_path.glob("*.part")) == []
    assert aof("export", "--format", "json").data["total"] == 5
    assert aof("import", str(tmp_path / "none.csv"), "--from", "csv").code == 3
    for unclear in ((str(out), "--dry-run"), (str(out),), (str(folder),), ("--from", "csv"), ()):
        assert aof("import", *unclear).code == 2
    assert aof("export", str(out)).data["total"] == 5, "the name of the file says what it is to be"
    assert aof("export").code == 2
    assert aof("export", str(tmp_path / "whole.tar.gz")).code == 0, "an archive as ever"


_VALUES: Any = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 5) | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from(["id", "login", "name", "x"]), inner, max_size=2)
    ),
    max_leaves=4,
)
_NAMES = [
    "id",
    "number",
    "title",
    "status",
    "priority",
    "labels",
    "assignee",
    "dependencies",
    "subtasks",
    "comments",
    "state",
]


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.dictionaries(st.sampled_from(_NAMES), _VALUES, max_size=6), max_size=3),
    st.sampled_from(["beads", "taskmaster", "github"]),
)
def test_any_json_is_imported_or_refused_and_never_a_crash(rows: list[dict[str, Any]], source: str) -> None:
    text = "\n".join(map(json.dumps, rows)) if source == "beads" else json.dumps(rows)
    fabric = memory_fabric("pm")
    try:
        report = fabric.import_tasks(source, files=[{"name": "f", "text": text}])
    except AofError:
        assert fabric.status(compact=True).total == 0
    else:
        assert report.created + report.existing + report.refused == len(report.items)


GH = {
    "number": 7,
    "title": "Crash",
    "body": "It crashes.",
    "state": "CLOSED",
    "stateReason": "DUPLICATE",
    "labels": [{"id": "LA_1", "name": "bug", "description": "label's words", "color": "d73a4a"}],
    "assignees": [{"id": "MDQ", "login": "ada", "name": "Ada L."}, {"id": "MDQ", "login": "second"}],
    "milestone": {"number": 1, "title": "Release 1.2", "description": "stone's words", "dueOn": "2026-03-01T00:00:00Z"},
    "author": {"id": "MDQ", "is_bot": False, "login": "reporter", "name": "Rhea"},
    "url": "https://github.com/acme/app/issues/7",
    "createdAt": "2026-01-01T00:00:00Z",
    "updatedAt": "2026-01-03T00:00:00Z",
    "closedAt": "2026-01-02T00:00:00Z",
    "closed": True,
    "isPinned": True,
    "projectItems": [{"title": "Roadmap", "status": {"name": "Todo"}}],
    "comments": [
        {"author": {"login": "bob"}, "body": "Me too.", "createdAt": "2026-01-01", "authorAssociation": "MEMBER"}
    ],
}
REST = {
    "number": 8,
    "title": "Log",
    "body": "Words.",
    "state": "closed",
    "state_reason": "completed",
    "html_url": "https://github.com/acme/app/issues/8",
    "url": "https://api.github.com/repos/acme/app/issues/8",
    "user": {"login": "reporter", "type": "User", "avatar_url": "https://x"},
    "closed_by": {"login": "closer"},
    "author_association": "CONTRIBUTOR",
    "active_lock_reason": "spam",
    "locked": True,
    "milestone": {"title": "Release 1.2", "due_on": "2026-03-01T00:00:00Z", "open_issues": 4},
    "comments": 3,
    "type": {"name": "Incident"},
    "reactions": {"url": "https://x", "total_count": 0, "+1": 0},
    "created_at": "2026-01-01T00:00:00Z",
    "updated_at": "2026-01-03T00:00:00Z",
    "closed_at": "2026-01-02T00:00:00Z",
}
BEAD = {
    "id": "bd-1",
    "title": "Login",
    "status": "pinned",
    "priority": 4,
    "issue_type": "epic",
    "estimated_minutes": 30,
    "assignee": "Not A Name!",
    "close_reason": "long " * 200,
    "acceptance_criteria": "- [x] works\n- [ ] is fast",
    "dependencies": [{"issue_id": "bd-1", "depends_on_id": "bd-9", "type": "blocks", "created_by": "eve"}],
    "comments": [
        "only words",
        {"author": "bob", "text": "Soon?", "created_at": "2026-01-01T00:00:00Z", "mood": "calm"},
    ],
}
MASTER = {
    "master": {
        "metadata": {"description": "the list's words"},
        "tasks": [
            {
                "id": 1,
                "title": "Core",
                "status": "in-progress",
                "priority": "medium",
                "complexity": 7,
                "metadata": ["odd"],
                "subtasks": ["no task", {"id": 2, "title": "Part", "subtasks": [{"id": 3, "title": "Part of a part"}]}],
            }
        ],
    }
}
BACKLOG_TASK = """---
id: task-1
title: One
status: In Progress
ordinal: 4000
subtasks: [task-1.1]
milestone: m-1
colour: red
assignee: ["@ada", "@second"]
---
## Acceptance Criteria
- [x] #1 works
- [ ] #2 is fast
"""


KEPT_OR_REPORTED = {
    "gh.json": (
        json.dumps([GH]),
        (
            "Release 1.2, 2026-03-01T00, reporter, 2026-01-01T00, 2026-01-03T00, 2026-01-02T00, DUPLICATE, second,"
            " Me too., Roadmap"
        ),
        (
            "labels: description, assignees: name, milestone: description, author: name, comments: authorAssociation,"
            " isPinned, projectItems"
        ),
    ),
    "rest.json": (
        json.dumps([REST]),
        "Release 1.2, 2026-03-01T00, reporter, closer, completed, CONTRIBUTOR, spam, Incident, 2026-01-03T00",
        "comments: 3 are not in the file, milestone: open_issues, locked, type",
    ),
    "issues.jsonl": (
        json.dumps(BEAD),
        "pinned, 4, epic, 30, Not A Name!, only words, Soon?",
        (
            "close_reason: cut, checkboxes: ticked there: 1, dependencies: created_by, dependencies: bd-9,"
            " comments: mood, estimated_minutes"
        ),
    ),
    "tasks.json": (
        json.dumps(MASTER),
        "in-progress, medium, 7, odd",
        "file: metadata, subtasks: no task, complexity",
    ),
    "tasks/task-1.md": (
        BACKLOG_TASK,
        "in-progress, 4000, task-1.1, m-1, red, second",
        "checkboxes: ticked there: 1 of 2, colour, assignee",
    ),
    "tasks.csv": (
        "id,title,Colour,state,priority,createdAt\n1,One,red,doing,urgent,2026-01-01,beyond\n",
        "red, doing, urgent, 2026-01-01",
        "Colour, columns: 7",
    ),
}


@pytest.mark.parametrize(
    ("source", "name"),
    list(zip(("github", "github", "beads", "taskmaster", "backlog", "csv"), KEPT_OR_REPORTED, strict=True)),
)
def test_what_has_no_place_here_is_kept_or_reported(fabric: Fabric, source: str, name: str) -> None:
    text, kept, reported = KEPT_OR_REPORTED[name]
    report = fabric.import_tasks(source, files=[{"name": name, "text": text}])
    assert not report.refused
    tasks = [fabric.get(str(one.task_id)) for one in report.items]
    there = "\n".join(f"{task.body}\n{json.dumps(task.metadata)}" for task in tasks)
    assert [one for one in kept.split(", ") if one not in there] == []
    told = [f"{one.field}: {one.detail}" for one in report.not_mapped]
    for one in reported.split(", "):
        field, _, detail = one.partition(": ")
        assert any(line.startswith(f"{field}: ") and detail in line for line in told), (one, told)


def test_the_largest_of_what_is_too_much_to_keep_is_left_out_and_named(fabric: Fabric) -> None:
    rest = {f"field{number}": "x" * 900 for number in range(6)}
    issue = {"id": "bd-1", "title": "One", "created_at": "2026-01-01T00:00:00Z", **rest}
    report = fabric.import_tasks("beads", files=[{"name": "issues.jsonl", "text": json.dumps(issue)}])
    (task_id,) = _ids(report).values()
    source = fabric.get(task_id).metadata["source"]
    assert source["created_at"] == "2026-01-01T00:00:00Z"
    left = {one.field for one in report.not_mapped if one.detail.endswith("not kept")}
    assert left == rest.keys() - source.keys()
    assert 0 < len(left) < len(rest)


def test_the_export_that_the_refusal_and_the_page_name_has_dates_people_and_milestone() -> None:
    page = (ROOT / "docs/howto/move-from-other-tools.md").read_text("utf-8")
    assert EXPORT in page
    for name in ("createdAt", "updatedAt", "closedAt", "milestone", "author", "comments"):
        assert name in EXPORT.split(" ")[-1].split(",")
