"""The verbs that show everything in a form that other programs can read, as data."""

from __future__ import annotations

from aof.adapters.cli.spec.grammar import Option, Verb

VERBS: tuple[Verb, ...] = (
    Verb(
        "snapshot",
        "all tasks, their graph and what is blocked, in a portable form",
        "portable:snapshot",
        options=(
            Option("--at", "as it was after the event with this number", metavar="SEQ", type="int"),
            Option("--archived", "also what was put away"),
        ),
        example="aof snapshot --json",
    ),
)
