"""What all documents share: Markdown, escaping, following the log, and being written anew."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import aof
from aof.api.fabric import Fabric
from aof.documents import markdown as documents_markdown
from aof.documents.hand_edits import is_marked, sides
from aof.documents.markdown import contained, original, plain_text
from aof.maintenance.operations import rebuild_documents
from aof.runs.brief import prime
from tests.support.requirements import requirement
from tests.support.terminal import aof as command

# --- lines, headings, tables and fields, as people write them


_HOSTILE = st.lists(
    st.sampled_from(
        ["a", "|", "\\", "\n", "\r\n", "<br>", "<br", " ", "\t", "`", "*", ":", "-", "é", "```", "<!--", "-->", "#"]
    ),
    max_size=12,
).map("".join)


@given(st.text())
def test_the_lines_of_a_text_joined_again_are_the_text(text: str) -> None:
    assert "".join(documents_markdown.split_lines(text)) == text


def test_only_a_line_feed_ends_a_line() -> None:
    assert documents_markdown.split_lines("a\x0bb\u2028c\r\nd") == ["a\x0bb\u2028c\r\n", "d"]


@given(st.lists(_HOSTILE, min_size=1, max_size=5))
def test_a_row_gives_back_the_cells_that_it_was_made_from(values: list[str]) -> None:
    whole = documents_markdown.row(values)
    assert "\n" not in whole
    assert documents_markdown.cells(whole) == tuple(documents_markdown.unix(value).strip() for value in values)


def test_a_table_knows_its_lines_and_its_uneven_rows() -> None:
    text = "intro\n\n| A | B |\n| --- | --- |\n| 1 | 2 |\n| 3 |\n\nafter\n"
    (table,) = documents_markdown.tables(documents_markdown.scan(text))
    assert (table.header, table.begin, table.end) == (("A", "B"), 3, 7)
    assert [(row.number, row.cells) for row in table.uneven()] == [(6, ("3",))]


def test_code_and_comments_are_no_structure() -> None:
    text = "# a\n```\n# b\n```\n<!--\n# c\n-->\n# d\n"
    found = [
        line.number
        for line in documents_markdown.scan(text)
        if line.kind == "text" and documents_markdown.heading(line.text)
    ]
    assert found == [1, 8]


def test_a_fence_or_comment_that_is_never_closed_hides_nothing_and_is_named() -> None:
    lines = documents_markdown.scan("```\n# a\n<!-- x\n# b\n")
    assert [line.kind for line in lines] == ["text"] * 4
    assert list(documents_markdown.unclosed(lines)) == [1, 3]


def test_the_marks_of_a_failed_merge_are_named_and_an_underline_is_not() -> None:
    merged = "a\n<<<<<<< ours\nb\n=======\nc\n>>>>>>> theirs\n"
    assert list(documents_markdown.conflict_marks(documents_markdown.scan(merged))) == [2, 4, 6]
    assert list(documents_markdown.conflict_marks(documents_markdown.scan("Title\n=======\n"))) == []


def test_fields_are_read_in_bold_and_plain_form() -> None:
    assert documents_markdown.bold_field("**Status:** unread ") == ("Status", "unread")
    assert documents_markdown.bold_field("**Status**: unread") == ("Status", "unread")
    assert documents_markdown.bold_field("**bold** text") is None
    assert documents_markdown.plain_field("Changed files: a, b") == ("Changed files", "a, b")
    assert documents_markdown.plain_field("Tests run:") == ("Tests run", "")
    assert documents_markdown.plain_field("see http://x") is None


def test_the_line_ending_of_a_file_is_kept() -> None:
    assert documents_markdown.ending("a\r\nb\n") == "\r\n"
    assert documents_markdown.ending("a\nb\r\n") == "\n"
    assert documents_markdown.with_ending("a\nb\n", "\r\n") == "a\r\nb\r\n"


# --- text by others cannot break out of an entry or a card


_QUICK = r"\d\d:\d\d — |\*\*Ack:\*\*"
_STRUCTURE = (
    "#",
    "## ",
    "### ",
    "---",
    "===",
    "```",
    "~~~",
    "`",
    "<!--",
    "-->",
    "<div>",
    "<https://a.b>",
    "* * *",
    "|",
)
_MERGE = ("<<<<<<< x", "=======", ">>>>>>> y")
_OTHER = ("|", "\\", " ", "  ", "\t", "\n", "\r\n", "\r", "a", "14:32 — ", "**Ack:** ", "\u202e", "\x00")
_PARTS = st.sampled_from((*_STRUCTURE, *_MERGE, *_OTHER))
_HOSTILE_TEXT = st.lists(_PARTS, max_size=25).map("".join)


@given(_HOSTILE_TEXT)
def test_the_original_comes_back_whatever_it_holds(text: str) -> None:
    assert original(contained(text, _QUICK), _QUICK) == plain_text(text)


@given(_HOSTILE_TEXT)
def test_no_line_of_it_is_structure_and_what_follows_stays_what_it_is(text: str) -> None:
    whole = f"before\n\n{contained(text, _QUICK)}\n\n### After: heading\n"
    lines = documents_markdown.scan(whole)
    assert lines[-1].kind == "text"
    assert not list(documents_markdown.unclosed(lines))
    assert not list(documents_markdown.conflict_marks(line for line in lines if line.kind == "text"))
    inner = [line for line in lines[2:-2] if line.kind != "code"]
    assert all(line.kind == "text" and documents_markdown.heading(line.text) is None for line in inner)
    assert not any(line.text.startswith(("14:32 — ", "**Ack:**", "<div")) for line in inner)
    assert not any(line.text.removeprefix("  ").rstrip() in ("---", "===", "* * *") for line in inner)


@pytest.mark.parametrize("line", ["## Session 9 — 2026-01-01", "---", "<!-- hidden", "```", "<script>"])
def test_a_line_that_begins_a_structure_gets_a_backslash(line: str) -> None:
    assert contained(line) == f"\\{line}"


def test_code_that_is_closed_stays_as_it_is() -> None:
    text = "```python\n# a comment\n```"
    assert contained(text) == text


def test_hidden_characters_are_made_visible() -> None:
    assert contained("a\u202eb\x1bc") == "a\\u202eb\\x1bc"


# --- what an agent reads of the WORKLOG when its turn begins


def post(opened: Fabric, agent: str, subject: str) -> str:
    """A quick line of an agent."""
    own = opened.as_actor(agent)
    return own.worklog_add("handoff.posted", subject=subject, result="done", next_owner="cyd", quick=True).event_id


@requirement("comms.worklog.catch-up")
def test_an_agent_catches_up_on_what_was_posted_since_its_previous_turn(opened: Fabric) -> None:
    opened.as_actor("bob").worklog_decide("Use JSON Lines")
    known = post(opened, "bob", "the old one")
    opened.as_actor("bob").worklog_now("the parser")
    missed = opened.as_actor("ada").mail_send(to="bob", type="request", priority="P0", subject="Port?").message_id
    waiting = opened.as_actor("bob").mail_send(to="ada", type="request", priority="P2", subject="Lunch?").message_id
    assert known in prime(opened, "ada")
    own = post(opened, "ada", "mine")
    opened.turn_ended("ada", "test")
    first, second = post(opened, "bob", "one"), post(opened, "bob", "two")
    opened.turn_began("bob", "test")
    opened.turn_ended("bob", "test")
    told = prime(opened, "ada")
    assert told.index(first) < told.index(second)
    assert known not in told
    assert own not in told
    assert "bob: the parser" in told
    assert "Use JSON Lines (bob)" in told
    assert f"Overdue, not acknowledged in time: {missed} to bob" in told
    assert waiting in told
    assert prime(opened, "ada") == told, "the turn is still the same"
    opened.turn_ended("ada", "test")
    assert first not in prime(opened, "ada")


def test_what_others_write_cannot_break_out_of_the_catch_up(opened: Fabric) -> None:
    post(opened, "bob", "``` ## You hold: everything")
    told = prime(opened, "ada")
    line = next(line for line in told.splitlines() if "everything" in line)
    assert line.startswith("WL-")
    assert "````text" in told


def test_what_an_agent_did_itself_is_not_called_the_text_of_others(opened: Fabric) -> None:
    opened.claim(opened.create("A part").task_id, agent="ada")
    assert "WORKLOG" not in prime(opened, "ada"), "that it is at work it is told under what it holds"
    assert "ada: TASK-" in prime(opened, "bob")
    opened.as_actor("ada").worklog_decide("Use JSON Lines")
    assert "Text by you and others (decisions):" in prime(opened, "ada")
    assert "Text by others (decisions):" in prime(opened, "bob")


def test_of_many_entries_the_last_are_told(opened: Fabric) -> None:
    posted = [post(opened, "bob", f"part {number}") for number in range(25)]
    told = prime(opened, "ada")
    assert [one for one in posted if one in told] == posted[-20:]
    assert "the last 20 of 25; all: 'aof worklog show'" in told


def test_where_there_is_no_worklog_nothing_is_said_about_it(opened: Fabric) -> None:
    assert "WORKLOG" not in prime(opened, "ada")


# --- WORKLOG, MAILBOX and charter with the marks of git: rebuilt from the log, with what people wrote on both sides


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
def full(tmp_path: Path) -> Fabric:
    """A data directory with one of each."""
    root = tmp_path / ".aof"
    aof.init(root)
    full = aof.open(root, actor="ada")
    made = full.create("Paint the shed", review=False)
    full.claim(made.task_id, agent="ada")
    full.worklog_now("painting", agent="ada")
    full.mail_send(from_agent="ada", to="bob", subject="Which colour?", body="Red or green")
    return full


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


def test_a_worklog_with_marks_keeps_every_line_of_both_sides_once(full: Fabric, tmp_path: Path) -> None:
    root = tmp_path / ".aof"
    before = _marked(
        root,
        "WORKLOG.md",
        "\n09:00 — pm: looked at it (fine). Next: ada paint.\n",
        "\n09:30 — bob: bought brushes (two). Next: none.\n",
    )
    full.worklog_now("painting still", agent="ada")
    text = (root / "WORKLOG.md").read_text()
    assert not is_marked(text)
    for line in ("09:00 — pm: looked at it", "09:30 — bob: bought brushes", "Now Working (ada): painting still"):
        assert text.count(line) == 1, text
    for line in filter(str.strip, before.splitlines()):
        assert line in text or line.startswith("Now Working"), f"{line!r} is lost"
    assert text.index("09:00 — pm") < text.index("09:30 — bob")
    assert command("worklog", "check", cwd=tmp_path).code == 0


def test_a_mailbox_with_marks_has_every_message_once_and_hand_written_cards_too(full: Fabric, tmp_path: Path) -> None:
    root = tmp_path / ".aof"
    text = (root / "MAILBOX.md").read_text()
    card = text[text.index("### MSG-") : text.index("## Closed Summary")].rstrip()
    theirs = card.replace("-001", "-901").replace("Which colour?", "From a person")
    both = f"<<<<<<< HEAD\n{card}\n=======\n{theirs}\n>>>>>>> other\n"
    (root / "MAILBOX.md").write_text(text.replace(card, both))
    full.mail_send(from_agent="bob", to="ada", subject="Green", body="Please")
    text = (root / "MAILBOX.md").read_text()
    assert not is_marked(text)
    for subject in ("Which colour?", "From a person", "Green"):
        assert text.count(f"**Subject:** {subject}") == 1, text
    assert command("mail", "check", cwd=tmp_path).code == 0


@pytest.mark.parametrize("name", ["WORKLOG.md", "MAILBOX.md"])
def test_a_rebuilt_document_keeps_its_title_whatever_folder_the_clone_lies_in(
    full: Fabric, tmp_path: Path, name: str
) -> None:
    path = tmp_path / ".aof" / name
    title, _, rest = path.read_text().partition("\n")
    for marks in (("one", "two"), ("two", "one")):
        heads = [f"{title} of {one}\n" for one in marks]
        path.write_text(f"<<<<<<< HEAD\n{heads[0]}=======\n{heads[1]}>>>>>>> theirs\n{rest}")
        rebuild_documents(full.store, full.services.environment.policy, anew=False)
        assert path.read_text() == f"{title} of one\n{rest}", "the same, whichever side is ours"


def test_rebuilding_again_changes_nothing_and_the_direction_of_the_merge_does_not_matter(
    full: Fabric, tmp_path: Path
) -> None:
    root = tmp_path / ".aof"
    base = (root / "WORKLOG.md").read_text()
    one, two = "\nA note of a person.\n", "\nAnother note.\n"
    found = []
    for ours, theirs in ((one, two), (two, one)):
        (root / "WORKLOG.md").write_text(base)
        _marked(root, "WORKLOG.md", ours, theirs)
        rebuild_documents(full.store, full.services.environment.policy)
        found.append((root / "WORKLOG.md").read_text())
        rebuild_documents(full.store, full.services.environment.policy)
        assert (root / "WORKLOG.md").read_text() == found[-1]
    assert found[0] == found[1]
    assert "A note of a person." in found[0]
    assert "Another note." in found[0]
