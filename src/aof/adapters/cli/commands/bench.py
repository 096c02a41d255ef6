"""The verb that measures: what the disk, this AOF and its command line do on this machine."""

from __future__ import annotations

from typing import Any

from aof.adapters.cli.output import Answer, Context
from aof.adapters.cli.spec.parser import UsageError
from aof.adapters.cli.terminal.screen import Screen


def bench(context: Context, values: dict[str, Any]) -> Answer:
    """`aof admin bench`."""
    sizes = _sizes(values["sizes"]) if "sizes" in values else None
    with context.progress("bench") as progress:
        found, table = context.bootstrap("benchmark")(
            values.get("dir"), quick=values.get("quick", False), sizes=sizes, say=progress
        )

    def text(screen: Screen) -> None:
        screen.block(table)

    return Answer(found, text)


def _sizes(text: str) -> tuple[int, ...]:
    try:
        sizes = tuple(int(part) for part in text.split(","))
    except ValueError:
        sizes = (-1,)
    if any(size < 0 for size in sizes):
        raise UsageError(f"--sizes needs numbers of tasks, not {text!r}", "for example: --sizes 1000,10000")
    return tuple(sorted({size for size in sizes if size}))
