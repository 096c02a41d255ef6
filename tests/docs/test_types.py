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


def worker() -> str:
    """The block below the heading about types. `test_commands` runs it."""
    text = PAGE.read_text("utf-8").partition("\n## With types\n")[2].partition("\n## ")[0]
    (block,) = blocks(text)
    return block.text


@pytest.mark.parametrize("checker", CHECKERS)
def test_a_strict_type_checker_accepts_the_worker_of_the_docs_and_refuses_what_the_page_says(
    checker: str, tmp_path: Path
) -> None:
    """One run for both, as a start takes long; the programs know only the installed package."""
    (tmp_path / "worker.py").write_text(worker(), "utf-8")
    (tmp_path / "mistaken.py").write_text(worker().replace('priority="critical"', 'priority="urgent"'), "utf-8")
    (tmp_path / "pyrightconfig.json").write_text('{"typeCheckingMode": "strict"}', "utf-8")
    command = [sys.executable, "-m", *CHECKERS[checker], "worker.py", "mistaken.py"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 1, done.stdout
    (refused,) = [line for line in done.stdout.splitlines() if ": error: " in line or " - error: " in line]
    assert "mistaken.py" in refused
    assert "urgent" in refused
