"""Pages lead to each other, and name only files that are there."""

from __future__ import annotations

import re
import subprocess
from functools import cache
from pathlib import Path

import pytest

from tests.support.pages import blocks
from tests.support.repository import ROOT

PAGES = sorted(path for path in (*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("bench/*.md")))
_LINK = re.compile(r"\]\(([^)\s:]+)\)")
_FILE = re.compile(r"`([a-z_]+(?:/[a-z_]+)*\.py)\b")
_FENCED = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)
_HERE = re.compile(rb"(?<![\w.>}])/(?:home|root|Users)/[a-z]")


def _names(page: Path) -> set[str]:
    """What the headings of a page go by in links."""
    text = _FENCED.sub("", page.read_text("utf-8"))
    titles = re.findall(r"^#+ (.+)$", text, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title).strip().lower().replace(" ", "-") for title in titles}


@cache
def _modules() -> list[str]:
    """The path of every module of ours."""
    folders = ("src", "tests", "bench", "examples")
    return [f"/{path.relative_to(ROOT).as_posix()}" for folder in folders for path in (ROOT / folder).rglob("*.py")]


def _titled(page: Path) -> str:
    return str(page.relative_to(ROOT))


@pytest.mark.parametrize("page", PAGES, ids=_titled)
def test_links_lead_to_a_page_and_to_a_heading_of_it(page: Path) -> None:
    for link in _LINK.findall(page.read_text("utf-8")):
        where, _, heading = link.partition("#")
        target = page.parent / where if where else page
        assert target.exists(), link
        assert not heading or heading in _names(target), link


@pytest.mark.parametrize("page", PAGES, ids=_titled)
def test_a_module_that_a_page_names_is_there(page: Path) -> None:
    text = page.read_text("utf-8")
    every = [*_modules(), *(f"/{block.path}" for block in blocks(text) if block.kind == "file")]
    named = _FILE.findall(_FENCED.sub("", text))
    assert [name for name in named if not any(path.endswith(f"/{name}") for path in every)] == []


def test_every_page_can_be_reached_from_the_readme() -> None:
    seen, waiting = set[Path](), [ROOT / "README.md"]
    while waiting:
        page = waiting.pop()
        if page in seen or page.suffix != ".md":
            continue
        seen.add(page)
        links = _LINK.findall(page.read_text("utf-8"))
        waiting += [(page.parent / link.partition("#")[0]).resolve() for link in links if not link.startswith("#")]
    assert [_titled(page) for page in PAGES if page not in seen] == []


def test_no_file_names_a_place_of_the_machine_that_it_was_written_on() -> None:
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=False, timeout=60)
    if listed.returncode:
        pytest.skip("this is not a checkout")
    files = [ROOT / name for name in listed.stdout.decode().split("\0") if name]
    assert [_titled(path) for path in files if path.is_file() and _HERE.search(path.read_bytes())] == []
