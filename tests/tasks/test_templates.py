"""Templates for new tasks: what a call says comes first, and a file that does not parse creates nothing."""

from __future__ import annotations

import pytest

from aof.api.fabric import Fabric
from aof.errors import InvalidInput
from aof.testing import memory_fabric
from tests.support.command_line import Aof
from tests.support.room import Room

BUG = """---
about: A defect that somebody reported
priority: high
tags: [bug, triage]
team: eng
due: "+3d"
acceptance:
  - a test fails without the fix
metadata: {severity: 2}
review: false
---

## How to reproduce

1. …
"""


@pytest.fixture
def bug(room: Room) -> Room:
    """A room with one template."""
    folder = room.root / "templates"
    folder.mkdir()
    (folder / "bug.md").write_text(BUG)
    return room


def test_a_task_begins_with_its_template(bug: Room, fabric: Fabric) -> None:
    task = fabric.get(fabric.create("Login fails", template="bug").task_id)
    assert (task.title, task.priority, task.routing.tags, task.routing.team) == (
        "Login fails",
        "high",
        ("bug", "triage"),
        "eng",
    )
    assert task.body == "## How to reproduce\n\n1. …\n"
    assert (task.due, task.acceptance) == ("2026-03-05T09:00:00.000Z", ("a test fails without the fix",))
    assert task.metadata == {"severity": 2, "reviewRequired": False}
    assert "about" not in bug.front(task.id)


def test_what_the_call_says_comes_first(bug: Room, fabric: Fabric) -> None:
    made = fabric.create(
        "Login fails",
        template="bug",
        brief="Since Monday.",
        tags=["auth", "bug"],
        due="2026-03-03",
        priority="low",
        metadata={"severity": 1},
        agent="ada",
    )
    task = fabric.get(made.task_id)
    assert task.body == "Since Monday.\n\n## How to reproduce\n\n1. …\n"
    assert (task.routing.tags, task.routing.agent) == (("auth", "bug", "triage"), "ada")
    assert (task.due, task.priority, task.metadata["severity"]) == ("2026-03-03", "low", 1)


def test_what_the_call_says_comes_first_also_where_it_says_what_is_usual(bug: Room, aof: Aof, fabric: Fabric) -> None:
    (bug.root / "templates/later.md").write_text("---\npriority: low\nvisibility: internal\nbacklog: true\n---\n")
    usual = fabric.create(
        "Usual", template="later", priority="normal", visibility="foreground", backlog=False, review=True
    )
    task = fabric.get(usual.task_id)
    assert (task.priority, task.visibility, task.status) == ("normal", "foreground", "ready")
    typed = aof("--json", "create", "Typed", "--template", "bug", "--priority", "normal").data["taskId"]
    assert fabric.get(str(typed)).priority == "normal"
    reviewed = fabric.create("Reviewed", template="bug", review=True)
    assert "reviewRequired" not in fabric.get(reviewed.task_id).metadata


def test_the_same_key_and_template_give_the_same_task(bug: Room, fabric: Fabric) -> None:
    first = fabric.create("Once", template="bug", key="k", due="2026-03-03")
    assert fabric.create("Once", template="bug", key="k", due="2026-03-03").task_id == first.task_id


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("---\npriority: urgent\n---\n", "priority"),
        ("---\ncolour: red\n---\n", "colour"),
        ("---\ntags: bug\n---\n", "tags"),
        ("---\npriority: [\n---\n", "cannot be used"),
        ("---\npriority: high\n", "no end"),
        ("---\na: &x 1\nb: *x\n---\n", "cannot be used"),
        (b"---\nabout: \xff\n---\n", "UTF-8"),
        ("x" * 300_000, "cannot be read"),
    ],
    ids=lambda one: str(one)[:20],
)
def test_a_template_that_does_not_parse_is_refused_and_named(
    bug: Room, fabric: Fabric, text: str | bytes, why: str
) -> None:
    (bug.root / "templates/bad.md").write_bytes(text.encode() if isinstance(text, str) else text)
    with pytest.raises(InvalidInput, match=r"templates/bad\.md cannot be used") as refusal:
        fabric.create("New", template="bad")
    assert why in refusal.value.message
    assert fabric.list().total == 0
    good = {one.name: one.problem for one in fabric.templates().templates}
    assert good["bug"] is None
    assert good["bad"] is not None


def test_templates_are_listed_with_what_they_are_for(bug: Room, aof: Aof) -> None:
    (bug.root / "templates/plain.md").write_text("# Write a page\n\nText\n")
    (bug.root / "templates/.hidden.md").write_text("x")
    assert aof("templates").data["templates"] == [
        {"name": "bug", "path": "templates/bug.md", "about": "A defect that somebody reported"},
        {"name": "plain", "path": "templates/plain.md", "about": "Write a page"},
    ]
    assert aof("create", "From the command line", "--template", "plain").code == 0


@pytest.mark.parametrize("name", ["absent", "../bug", "", "bug.md", "a/b", "x" * 500])
def test_a_template_that_is_not_there_is_refused_with_those_that_are(bug: Room, fabric: Fabric, name: str) -> None:
    with pytest.raises(InvalidInput, match="no template") as refusal:
        fabric.create("New", template=name)
    assert "bug" in refusal.value.hint
    assert fabric.list().total == 0


def test_a_link_is_no_template(bug: Room, fabric: Fabric) -> None:
    outside = bug.root.parent / "secret.md"
    outside.write_text("secret")
    (bug.root / "templates/linked.md").symlink_to(outside)
    with pytest.raises(InvalidInput):
        fabric.create("New", template="linked")


def test_without_files_there_are_no_templates() -> None:
    fabric = memory_fabric("pm")
    assert fabric.templates().templates == ()
    with pytest.raises(InvalidInput, match="no template"):
        fabric.create("New", template="bug")
