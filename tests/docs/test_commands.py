"""Every command of the README, the tutorials and the how-tos does what its page says, typed from an empty folder."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

from aof.kernel.model import iso
from aof.service.clock import SystemClock
from tests.support.pages import KINDS, TYPED, Reader, blocks, commands
from tests.support.repository import ROOT

WRITE = os.environ.get("AOF_PAGES")  # AOF_PAGES=write puts what comes now into the pages: read the difference

PAGES = {
    # page: how many commands are run, and how many no test can run
    "README.md": (5, 3),
    "docs/tutorial/a-day-with-three-agents.md": (46, 0),
    "docs/tutorial/quick-start.md": (16, 2),
    "docs/howto/answer-agents.md": (14, 0),
    "docs/howto/connect-an-agent.md": (10, 0),
    "docs/howto/find-and-discuss-tasks.md": (27, 0),
    "docs/howto/gate-work-with-reviews.md": (16, 0),
    "docs/howto/get-notified.md": (8, 5),
    "docs/howto/hand-work-over.md": (29, 0),
    "docs/howto/keep-a-worklog.md": (21, 0),
    "docs/howto/leave-mail-for-an-agent.md": (15, 0),
    "docs/howto/limit-what-agents-do.md": (17, 0),
    "docs/howto/live-in-a-git-repository.md": (19, 3),
    "docs/howto/move-from-other-tools.md": (8, 0),
    "docs/howto/recover-from-damage.md": (16, 0),
    "docs/howto/route-tasks.md": (13, 0),
    "docs/howto/run-agents.md": (6, 0),
    "docs/howto/schedule-work.md": (12, 0),
    "docs/howto/script-aof.md": (9, 0),
    "docs/howto/watch-the-board.md": (5, 0),
    "docs/howto/work-with-a-charter.md": (16, 0),
    "docs/howto/work-with-peers.md": (11, 3),
    "docs/howto/write-an-agent.md": (12, 0),
}


def test_the_table_has_every_page() -> None:
    there = [ROOT / "README.md", *ROOT.glob("docs/tutorial/*.md"), *ROOT.glob("docs/howto/*.md")]
    assert sorted(PAGES) == sorted(str(path.relative_to(ROOT)) for path in there)


@pytest.mark.parametrize("page", PAGES)
def test_a_page_does_what_it_shows(page: str, tmp_path: Path) -> None:
    for place in (tmp_path / "first", tmp_path / "second"):
        place.mkdir()
        today = _today()
        try:
            assert _followed(ROOT / page, place) == PAGES[page]
        except AssertionError:
            if today == _today():  # at midnight the IDs of new tasks begin anew
                raise
        else:
            return


def _today() -> str:
    return iso(SystemClock().now())[:10]


def _followed(page: Path, place: Path) -> tuple[int, int]:
    """Do all that a page says; how many commands were run, and how many not."""
    text = page.read_text(encoding="utf-8")
    run = left = 0
    with Reader(place, accepts=bool(WRITE)) as reader:
        for block in blocks(text):
            if block.kind == "not run":
                assert len(block.path) > 10, "a reason is missing"
                left += len(commands(block)) if block.language in TYPED else 0
            elif block.language in {"", "text", "mermaid"} and not block.mark:
                assert not re.search(r"^(\$ |aof )", block.text, re.MULTILINE), f"line {block.line} hides a command"
            else:
                known = block.kind in KINDS or (block.language in {*TYPED, "python"} and not block.mark)
                assert known, f"line {block.line}: say what a reader does with this block"
                named = block.kind not in {"file", "append"} or f"`{block.path}`" in block.before
                assert named, f"line {block.line}: name the file {block.path}"
                count, shown = reader.follow(block)
                run += count
                if WRITE:
                    text = text.replace(block.text, shown)
                    page.write_text(text, encoding="utf-8")
        reader.finish()
    return run, left
