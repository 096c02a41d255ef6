"""The walks through the source are counted. Nothing here looks at how long they are."""

from __future__ import annotations

from pathlib import Path

import pytest

from bench.walks import WALKS, main


@pytest.mark.parametrize(
    ("name", "passed"),
    [
        ("claim", "runs/leases.py"),
        pytest.param("complete", "workflows/outcomes.py", marks=pytest.mark.full),
        pytest.param("recover", "service/runners/attempts.py", marks=pytest.mark.full),
    ],
)
def test_a_walk_enters_the_rule_that_decides_it(tmp_path: Path, name: str, passed: str) -> None:
    found = WALKS[name](tmp_path)
    assert found["calls"][passed]
    assert any(passed in pair[:2] for pair in found["switches"])


def test_the_figures_of_a_walk_are_printed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["claim"]) == 0
    name, files, _, switches, _ = capsys.readouterr().out.splitlines()[0].split()
    assert name == "claim"
    assert 0 < int(files) < int(switches)
