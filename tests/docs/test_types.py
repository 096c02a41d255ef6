"""The worker that the docs show is what they say: type checkers find nothing wrong with it, and know its types."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.pages import blocks
from tests.support.repository import ROOT

PAGE = ROOT / "docs" / "howto" / "write-an-agent.md"
CHECKERS = {
    "mypy": ("mypy", "--strict", "--no-incremental"),
    "pyright": ("pyright", "--pythonpath", sys.executable),
}
SATISFIED = {"mypy": "Success: no issues found", "pyright": "0 errors, 0 warnings"}


def worker() -> str:
    """The block below the heading about types. `test_commands` runs it."""
    text = PAGE.read_text("utf-8").partition("\n## With types\n")[2].partition("\n## ")[0]
    (block,) = blocks(text)
    return block.text


def check(checker: str, program: str, place: Path) -> tuple[int, str]:
    """What a type checker says of a program that knows only the installed package."""
    (place / "worker.py").write_text(program, "utf-8")
    (place / "pyrightconfig.json").write_text('{"typeCheckingMode": "strict"}', "utf-8")
    done = subprocess.run(
        [sys.executable, "-m", *CHECKERS[checker], "worker.py"], cwd=place, capture_output=True, text=True, check=False
    )
    return done.returncode, done.stdout


@pytest.mark.parametrize("checker", CHECKERS)
def test_a_strict_type_checker_accepts_the_worker_of_the_docs(checker: str, tmp_path: Path) -> None:
    code, said = check(checker, worker(), tmp_path)
    assert code == 0, said
    assert SATISFIED[checker] in said


@pytest.mark.parametrize("checker", CHECKERS)
def test_a_strict_type_checker_refuses_what_the_page_says_it_refuses(checker: str, tmp_path: Path) -> None:
    code, said = check(checker, worker().replace('priority="critical"', 'priority="urgent"'), tmp_path)
    assert code == 1
    assert "urgent" in said
