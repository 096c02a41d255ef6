"""Documents: commits that end in a line of the WORKLOG or a card of the MAILBOX, and what the size of a file costs.

Must not know how it is shown.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from typing import NamedTuple

from aof.app.fabric import Fabric
from aof.bench import fabric as lifecycle
from aof.bench.rounds import Figure, Operation, Subject
from aof.entrypoints.bootstrap import open_fabric
from aof.ports.progress import Say

LINES = 20_000
_LINE = "14:32 — bench: one of many lines that a team has written (done; Tests run: none).\n\n"


def post(fabric: Fabric, number: int = 0) -> None:
    """One entry: a commit, and a line at the end of the file."""
    fabric.worklog_add("handoff.posted", agent="bench", subject="parser ready", quick=True, next_owner=f"next-{number}")


@contextmanager
def _opened(folder: Path, number: int) -> Iterator[Operation]:
    with open_fabric(folder / "data", actor=f"bench-{number}") as fabric:
        yield lambda: post(fabric, number)


@contextmanager
def _mailing(folder: Path, number: int) -> Iterator[Operation]:
    me = f"bench-{number}"
    with open_fabric(folder / "data", actor=me) as fabric:

        def mailed() -> None:
            sent = fabric.mail_send(me, "parser ready", body="See the log.").message_id
            fabric.mail_ack(sent, reason="read")
            fabric.mail_close(sent, disposition="resolved", reason="done")

        yield mailed


ENTRIES = Subject("WORKLOG", 1, lifecycle.prepare, _opened)
MAIL = Subject("MAILBOX", 3, lifecycle.prepare, _mailing)  # sent, acknowledged, closed


class Measured(NamedTuple):
    """Seconds for an entry in a new file and in a long one, and their ratio, round by round."""

    small: Figure
    large: Figure
    ratio: Figure


def measure(folder: Path, *, entries: int, say: Say) -> Measured:
    """Post to both files in turns."""
    say(f"posting to a WORKLOG of {LINES:,} lines")
    places = [_prepared(folder / name, lines) for name, lines in (("short", 0), ("long", LINES))]
    times: list[list[float]] = [[], []]
    with open_fabric(places[0], actor="bench") as small, open_fabric(places[1], actor="bench") as large:
        for number in range(entries):
            for place, fabric in enumerate((small, large)):
                began = time.perf_counter()
                post(fabric, number)
                times[place].append(time.perf_counter() - began)
    halves = [[median(part[start::5]) for start in range(min(5, entries))] for part in times]
    return Measured(Figure.of(halves[0]), Figure.of(halves[1]), Figure.ratio(halves[1], halves[0]))


def _prepared(folder: Path, lines: int) -> str:
    folder.mkdir(parents=True)
    root = lifecycle.prepare(folder)
    with open_fabric(root, actor="bench") as fabric:
        post(fabric)
        with Path(root, "WORKLOG.md").open("a", encoding="utf-8") as file:
            file.write(f"\n{_LINE * (lines // 2)}")
        post(fabric)  # from here on the file is as AOF left it
    return root
