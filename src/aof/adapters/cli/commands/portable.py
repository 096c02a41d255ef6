"""Verbs that show everything in a portable form."""

from __future__ import annotations

import json
from functools import partial
from typing import Any

from aof._support.printable import escaped
from aof.adapters.cli.output import Answer, Context
from aof.adapters.cli.spec.parser import UsageError
from aof.adapters.cli.terminal.interrupt import end_on_interrupt
from aof.adapters.cli.terminal.screen import Screen


def snapshot(context: Context, values: dict[str, Any]) -> Answer:
    """`aof admin snapshot`."""
    with context.progress("snapshot") as progress:
        view = context.fabric.snapshot(**values, say=progress)

    def text(screen: Screen) -> None:
        summary = view["taskSummary"]
        when = f"  {view['updatedAt']}" if "updatedAt" in view else ""
        screen.line(f"after event {view['sequence']}{when}")
        for status, count in summary["byStatus"].items():
            screen.line(f"{count:>6}  {status}")
        screen.line(f"{summary['totalCount']:>6}  in all, {summary['activeCount']} of them unfinished")
        rows = [(one["taskId"], one["status"], one["reason"]) for one in view["blockedTasks"]]
        if rows:
            screen.line()
            screen.table(("ID", "STATUS", "WHY"), rows, colour_by=(1,), whole=True)

    return Answer(view, text)


def log(context: Context, values: dict[str, Any]) -> Answer:
    """`aof log --format agentruntime`: a JSON object a line, also for people."""
    given = dict(values)
    form = given.pop("format")
    if form != "agentruntime":
        raise UsageError(f"there is no format {form[:40]!r}", "use native or agentruntime")
    if "cursor" in given:
        raise UsageError("--cursor reads the native log backwards", "read this one forwards: --after SEQ")
    if given.pop("follow", False):
        _follow(context, given)
    told = context.fabric.portable_log(**given)

    def text(screen: Screen) -> None:
        for line in told["events"]:
            _line(screen, line)

    return Answer(told, text)


def _follow(context: Context, given: dict[str, Any]) -> None:
    """Print what there is, and then what comes, until somebody interrupts."""
    end_on_interrupt()
    for line in context.fabric.portable_follow(**given, timeout=float("inf")):
        context.deliver_line(line, partial(_line, line=line))


def _line(screen: Screen, line: dict[str, Any]) -> None:
    screen.line(escaped(json.dumps(line, ensure_ascii=False, separators=(",", ":"))))
