"""WORKLOG, MAILBOX and charter with the marks of git: rebuilt from the log, with what people wrote on both sides."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

import aof
from aof.api.fabric import Fabric
from aof.documents.hand_edits import is_marked, sides
from aof.maintenance.operations import rebuild_documents
from tests.support.terminal import aof as command


def test_each_side_of_a_marked_text_is_whole_and_a_base_belongs_to_none() -> None:
    text = "a\n<<<<<<< HEAD\nb\n||||||| base\nx\n=======\nc\nd\n>>>>>>> other\ne\n"
    assert sides(text) == ("a\nb\ne\n", "a\nc\nd\ne\n")
    assert is_marked(text)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "a\nb\n",
        "Heading\n=======\n",
        "<<<<<<< HEAD\nnever closed\n",
        ">>>>>>> closes nothing\n<<<<<<< a\n",
        "<<<<<<< a\nb\n>>>>>>> without a middle\n",
    ],
)
def test_marks_that_do_not_belong_together_are_text(text: str) -> None:
    assert sides(text) == (text,)
    assert not is_marked(text)


@pytest.fixture
def fabric(tmp_path: Path) -> Fabric:
    """A data directory with one of each."""
    root = tmp_path / ".aof"
    aof.init(root)
    fabric = aof.open(root, actor="ada")
    made = fabric.create("Paint the shed", review=False)
    fabric.claim(made.task_id, agent="ada")
    fabric.worklog_now("painting", agent="ada")
    fabric.mail_send(from_agent="ada", to="bob", subject="Which colour?", body="Red or green")
    return fabric


def _marked(root: Path, name: str, ours: str, theirs: str) -> str:
    """Let git merge two versions of a file; it leaves its marks. The common version comes back."""
    base = (root / name).read_text()
    parts = []
    for label, addition in (("ours", ours), ("base", ""), ("theirs", theirs)):
        path = root.parent / label
        path.write_text(base + addition)
        parts.append(str(path))
    done = subprocess.run(["git", "merge-file", "-p", *parts], capture_output=True, text=True, timeout=60, check=False)
    assert is_marked(done.stdout), done.stderr
    (root / name).write_text(done.stdout)
    return base


def test_a_worklog_with_marks_keeps_every_line_of_both_sides_once(fabric: Fabric, tmp_path: Path) -> None:
    root = tmp_path / ".aof"
    before = _marked(
        root,
        "WORKLOG.md",
        "\n09:00 — pm: looked at it (fine). Next: ada paint.\n",
        "\n09:30 — bob: bought brushes (two). Next: none.\n",
    )
    fabric.worklog_now("painting still", agent="ada")
    text = (root / "WORKLOG.md").read_text()
    assert not is_marked(text)
    for line in ("09:00 — pm: looked at it", "09:30 — bob: bought brushes", "Now Working (ada): painting still"):
        assert text.count(line) == 1, text
    for line in filter(str.strip, before.splitlines()):
        assert line in text or line.startswith("Now Working"), f"{line!r} is lost"
    assert text.index("09:00 — pm") < text.index("09:30 — bob")
    assert command("worklog", "check", cwd=tmp_path).code == 0


def test_a_mailbox_with_marks_has_every_message_once_and_hand_written_cards_too(fabric: Fabric, tmp_path: Path) -> None:
    root = tmp_path / ".aof"
    text = (root / "MAILBOX.md").read_text()
    card = text[text.index("### MSG-") : text.index("## Closed Summary")].rstrip()
    theirs = card.replace("-001", "-901").replace("Which colour?", "From a person")
    both = f"<<<<<<< HEAD\n{card}\n=======\n{theirs}\n>>>>>>> other\n"
    (root / "MAILBOX.md").write_text(text.replace(card, both))
    fabric.mail_send(from_agent="bob", to="ada", subject="Green", body="Please")
    text = (root / "MAILBOX.md").read_text()
    assert not is_marked(text)
    for subject in ("Which colour?", "From a person", "Green"):
        assert text.count(f"**Subject:** {subject}") == 1, text
    assert command("mail", "check", cwd=tmp_path).code == 0


@pytest.mark.parametrize("name", ["WORKLOG.md", "MAILBOX.md"])
def test_a_rebuilt_document_keeps_its_title_whatever_folder_the_clone_lies_in(
    fabric: Fabric, tmp_path: Path, name: str
) -> None:
    path = tmp_path / ".aof" / name
    title, _, rest = path.read_text().partition("\n")
    for marks in (("one", "two"), ("two", "one")):
        heads = [f"{title} of {one}\n" for one in marks]
        path.write_text(f"<<<<<<< HEAD\n{heads[0]}=======\n{heads[1]}>>>>>>> theirs\n{rest}")
        rebuild_documents(fabric.store, fabric.services.environment.policy, anew=False)
        assert path.read_text() == f"{title} of one\n{rest}", "the same, whichever side is ours"


def test_rebuilding_again_changes_nothing_and_the_direction_of_the_merge_does_not_matter(
    fabric: Fabric, tmp_path: Path
) -> None:
    root = tmp_path / ".aof"
    base = (root / "WORKLOG.md").read_text()
    one, two = "\nA note of a person.\n", "\nAnother note.\n"
    found = []
    for ours, theirs in ((one, two), (two, one)):
        (root / "WORKLOG.md").write_text(base)
        _marked(root, "WORKLOG.md", ours, theirs)
        rebuild_documents(fabric.store, fabric.services.environment.policy)
        found.append((root / "WORKLOG.md").read_text())
        rebuild_documents(fabric.store, fabric.services.environment.policy)
        assert (root / "WORKLOG.md").read_text() == found[-1]
    assert found[0] == found[1]
    assert "A note of a person." in found[0]
    assert "Another note." in found[0]
