"""`python -m bench`: one run in fresh folders on one disk, one table. See README.md."""

from __future__ import annotations

import argparse
import json
import os
import shutil
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from bench import fabric, machine, report, rounds, service, sizes, table


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, print the table, write the JSON."""
    options = _options(arguments)
    with _folder(options.dir) as folder:
        header = machine.describe(folder)
        if not machine.is_disk(machine.filesystem(folder)[0]):
            header["WARNING"] = "this is no disk, a flush does nothing here: name a folder on one with --dir"
        parts = _measure(options, folder)
        _say("")
        print(table.render(header, parts), flush=True)
        if options.json:
            rows = [{"part": part.title} | row.as_json() for part in parts for row in part.rows]
            text = json.dumps({"machine": header, "rows": rows}, indent=2)
            Path(options.json).write_text(f"{text}\n", encoding="utf-8")
        _say("removing what was written")  # which may take as long as the writing
    _say("")
    return 0


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m bench", description="Measure AOF beside the disk, others and size."
    )
    parser.add_argument("--dir", help="measure below this folder, on its disk; else below $TMPDIR or ./.bench")
    parser.add_argument("--json", metavar="FILE", help="write every figure there as well")
    parser.add_argument("--quick", action="store_true", help="a few seconds, to see that it works; no figures to quote")
    parser.add_argument("--rounds", type=int, help="how often each subject has its turn")
    parser.add_argument("--seconds", type=float, help="how long each turn lasts")
    parser.add_argument("--sizes", type=_sizes, help="such as 1000,10000; 0 for none")
    options = parser.parse_args(arguments)
    quick = options.quick
    options.rounds = options.rounds or (2 if quick else 9)
    options.seconds = options.seconds or (0.15 if quick else 1.0)
    if options.sizes is None:
        options.sizes = (200,) if quick else sizes.SIZES
    return options


def _sizes(text: str) -> tuple[int, ...]:
    return tuple(int(part) for part in text.split(",") if int(part))


@contextmanager
def _folder(given: str | None) -> Iterator[Path]:
    """A fresh folder that is removed afterwards."""
    above = Path(given or os.environ.get("TMPDIR") or ".bench").absolute()
    above.mkdir(parents=True, exist_ok=True)
    if above.name == ".bench":
        (above / ".gitignore").write_text("*\n", encoding="utf-8")
    folder = Path(tempfile.mkdtemp(prefix="aof-bench-", dir=above))
    machine.spread_out(folder)
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _measure(options: argparse.Namespace, folder: Path) -> list[table.Part]:
    place = folder / "log"
    place.mkdir()
    log_bytes = fabric.bytes_per_commit(place)
    found = rounds.in_turns(report.entries(), folder, rounds=options.rounds, seconds=options.seconds, say=_say)
    parts = [report.limits(found), report.lifecycles(found, log_bytes), report.compared(found)]
    commits = 5 if options.quick else 100
    parts += [report.size(sizes.measure(folder, tasks, commits=commits, say=_say)) for tasks in options.sizes]
    parts.append(report.served(service.measure(folder, quick=options.quick, say=_say)))
    return [part for part in parts if part.rows]


def _say(what: str) -> None:
    """What goes on, in one line, for whoever watches."""
    if sys.stderr.isatty():
        print(f"\r\x1b[K{what}", end="", file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
