"""The benchmark runs and says what it should. Nothing here looks at how fast anything is."""

from __future__ import annotations

import json
from contextlib import AbstractContextManager
from pathlib import Path

import pytest

from aof.bench import rounds
from aof.bench.report import Need, Part, TableRow, render_table
from aof.bench.rounds import Figure, RoundEntry, Subject
from bench.__main__ import main


@pytest.fixture
def quick(tmp_path: Path) -> tuple[str, dict[str, object], Path]:
    for library in ("huey", "persistqueue"):
        pytest.importorskip(library, reason="pip install 'aof-fabric[bench]'")
    out = tmp_path / "figures.json"
    with pytest.MonkeyPatch.context() as patch:
        shown: list[str] = []
        patch.setattr("bench.backlog._installed", lambda _folder: None)  # tests reach no registry
        patch.setattr("builtins.print", lambda *words, **_: shown.extend(map(str, words)))
        disk = tmp_path / "disk"
        arguments = ["--quick", "--rounds", "1", "--seconds", "0.05", "--dir", str(disk), "--json", str(out)]
        assert main(arguments) == 0
    return "\n".join(shown), json.loads(out.read_text()), disk


def test_a_run_says_where_and_has_every_part_and_requirement_in_its_table_and_leaves_nothing_on_the_disk(
    quick: tuple[str, dict[str, object], Path],
) -> None:
    """One test, as a run takes long: several workers would each make one."""
    text, figures, disk = quick
    assert "file system:" in text
    machine = figures["machine"]
    assert isinstance(machine, dict)
    assert {"date", "file system", "machine", "python", "compared with"} <= machine.keys()
    rows = figures["rows"]
    assert isinstance(rows, list)
    parts = list(dict.fromkeys(row["part"].split(":")[0] for row in rows))
    assert [part for part in parts if part != "Backlog.md"] == [
        "The disk", "AOF", "Documents", "Others", "Size", "The command line", "Audit", "Merge", "Service", "MCP",
        "Portable", "Board", "Siege",
    ]  # fmt: skip
    needs = {row["name"] for row in rows if row["need"]}
    assert needs == {
        "CPU a commit, 8 processes",
        "8 processes beside 1",
        "8 threads beside 1",
        "AOF, 8 processes",
        "entries, 1 process",
        "entries, 8 processes",
        "steps of mail, 1 process",
        "steps of mail, 8 processes",
        "an entry in a WORKLOG of 20,000 lines",
        "lifecycle, durable",
        "audit by handoff, 1,000 records",
        "audit by task, 1,000 records",
        "audit by from, 1,000 records",
        "audit by to, 1,000 records",
        "merge, 2 lanes x 300 commits, CPU",
        "that ratio",
        "tick, dry, all explained",
        "from ready to the agent's first step",
        "idle, CPU of one core",
        "tool calls, in sessions",
        "tool calls, newest revision",
        "in sessions, beside Python",
        "newest revision, beside Python",
        "in sessions, CPU of the server",
        "newest revision, CPU of the server",
        "durable creates, in sessions",
        "a snapshot of 40 tasks, asked again",
        "'aof admin snapshot' of 40 tasks",
        "one follower, native events",
        "one follower, agentruntime events",
        "/board/tasks at 40 tasks, server's CPU",
        "/board/ at 40 tasks, server's CPU",
        "a call under attack, p95",
    }
    assert all(row["verdict"] for row in rows if row["need"])
    assert all(row["figure"]["value"] >= 0 for row in rows if row["figure"])
    assert list(disk.iterdir()) == []


def test_a_subject_that_fails_says_why(tmp_path: Path) -> None:
    def fails(_folder: Path, _number: int) -> AbstractContextManager[rounds.Operation]:
        raise ValueError("out of paper")

    with pytest.raises(RuntimeError, match="out of paper"):
        rounds.run(RoundEntry(Subject("a printer", 1, lambda _: None, fails), 2), tmp_path, 0.01)


def test_a_ratio_is_taken_within_each_round() -> None:
    assert Figure.ratio([10, 20, 90], [20, 40, 100]) == Figure(0.5, 0.5, 0.9)


@pytest.mark.parametrize(
    ("need", "ratio", "verdict"),
    [
        (Need(0.35, aim=0.5), 0.6, "met"),
        (Need(0.35, aim=0.5), 0.4, "met, below the aim"),
        (Need(0.35, aim=0.5), 0.3, "MISSED"),
        (Need(1.3, at_most=True), 1.2, "met"),
        (Need(1.3, at_most=True), 1.4, "MISSED"),
    ],
)
def test_a_requirement_is_met_or_missed(need: Need, ratio: float, verdict: str) -> None:
    assert need.verdict(ratio) == verdict


def test_the_last_line_counts_what_is_met() -> None:
    rows = [
        TableRow(name, ratio=Figure(value, value, value), need=Need(1)) for name, value in (("slow", 0.5), ("fast", 2))
    ]
    assert render_table({}, [Part("Some", tuple(rows))]).endswith("1 of 2 requirements met; missed: slow")
