"""Backlog.md's command line beside ours: the same two calls in directories with as many tasks.

It keeps tasks as Markdown files too, and comes from npm. Where npm is missing or cannot reach its registry, there is
nothing to compare. Its directory is made without git, which is how it is fastest. The first task is made by its own
command, the others are copies of that file with other IDs.
"""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

from aof.bench import processes as bench_processes
from aof.bench.commits import BRIEF, TITLE
from aof.bench.report import Need, Part, TableRow, seconds_text
from aof.bench.rounds import Figure
from aof.bench.sizes import written

SIZES = (10, 1_000)
_NO_SLOWER = Need(1.0, at_most=True)
_PATIENCE = 180
_OURS = {"list": ("list",), "create": ("create", TITLE, "--brief", BRIEF)}
_THEIRS = {"list": ("task", "list", "--plain"), "create": ("task", "create", TITLE, "-d", BRIEF)}


def measure(folder: Path, *, rounds: int, few: bool, say: Callable[[str], object]) -> list[Part]:
    """A part with every call; none where Backlog.md cannot be had."""
    say("installing Backlog.md")
    tool = _installed(folder / "npm")
    if tool is None:
        return []
    rows: list[TableRow] = []
    for tasks in SIZES[:1] if few else SIZES:
        theirs = _directory(tool, folder / f"theirs-{tasks}", tasks)
        ours = written(folder / f"ours-{tasks}", tasks)
        here = [*bench_processes.command(), "--data-dir", ours]
        times: dict[tuple[str, bool], list[float]] = {}
        for number in range(rounds):
            say(f"Backlog.md, {tasks:,} tasks, round {number + 1}/{rounds}")
            for call in ("list", "create"):
                times.setdefault((call, True), []).append(bench_processes.seconds([*here, *_OURS[call]]))
                times.setdefault((call, False), []).append(bench_processes.seconds([tool, *_THEIRS[call]], str(theirs)))
        for call in ("list", "create"):
            mine, other = times[call, True], times[call, False]
            rows.append(_row(f"backlog {' '.join(_THEIRS[call][:2])}, {tasks:,} tasks", other))
            rows.append(_row(f"aof {call}, {tasks:,} tasks", mine, Figure.ratio(mine, other)))
    return [Part("Others: Backlog.md's command line, tasks as Markdown files without a log", tuple(rows))]


def _row(name: str, times: list[float], ratio: Figure | None = None) -> TableRow:
    figure, unit = seconds_text(Figure.of(times))
    return TableRow(name, figure, unit, ratio, "Backlog.md" if ratio else "", _NO_SLOWER if ratio else None)


def _installed(folder: Path) -> str | None:
    """The command, put below the folder; None where that is not possible."""
    npm = shutil.which("npm")
    if npm is None:
        return None
    folder.mkdir(parents=True)
    try:
        subprocess.run(
            [npm, "install", "--prefix", str(folder), "--no-audit", "--no-fund", "backlog.md"],
            check=True,
            capture_output=True,
            timeout=_PATIENCE,
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return str(folder / "node_modules" / ".bin" / "backlog")


def _directory(tool: str, folder: Path, tasks: int) -> Path:
    folder.mkdir(parents=True)
    first = [["init", "bench", "--defaults", "--no-git", "--agent-instructions", "none"], list(_THEIRS["create"])]
    for words in first:
        subprocess.run([tool, *words], cwd=folder, check=True, capture_output=True, timeout=_PATIENCE)
    made = next((folder / "backlog" / "tasks").iterdir())
    text = made.read_text(encoding="utf-8")
    for number in range(2, tasks + 1):
        copy = re.sub(r"^id: (\S+?)-1$", rf"id: \1-{number}", text, count=1, flags=re.MULTILINE)
        made.with_name(made.name.replace("-1 ", f"-{number} ", 1)).write_text(copy, encoding="utf-8")
    return folder
