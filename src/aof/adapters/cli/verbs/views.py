"""Verbs that draw: the graph, the board, the live view, the past."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from aof.adapters.cli.answer import Answer, Context
from aof.adapters.cli.parsing import UsageError
from aof.adapters.cli.screen import Screen, ago
from aof.core.times import millis

if TYPE_CHECKING:
    from collections.abc import Callable

    from aof.ports.lists import Row

_COLUMNS = ("backlog", "ready", "in-progress", "review", "blocked", "done")
_ENTER, _LEAVE, _HOME = "\x1b[?1049h\x1b[?25l", "\x1b[?25h\x1b[?1049l", "\x1b[H\x1b[2J"
_EACH_COLUMN, _NARROW = 24, 18


def graph(context: Context, values: dict[str, Any]) -> Answer:
    """`aof graph`."""
    form = values.get("format", "tree")
    drawn = context.fabric.graph(values.get("task_id"), form=form)
    data = {"format": form, "graph": drawn.text, "edges": drawn.edges}

    def text(screen: Screen) -> None:
        if form != "tree":
            screen.line(drawn.text.rstrip())
            return
        for stem, row in drawn.tree:
            waits = [source for source, target, kind in drawn.edges if target == row.id and kind == "blocks"]
            after = f"  ← {', '.join(waits)}" if waits else ""
            screen.line(
                f"{stem}{row.id}  {screen.paint(row.status, row.status)}  {row.title}{screen.paint(after, 'dim')}"
            )

    return Answer(data, text)


def replay(context: Context, values: dict[str, Any]) -> Answer:
    """`aof replay --at SEQ`."""
    if "at" not in values:
        raise UsageError("'aof replay' needs --at SEQ", "for example: aof replay --at 12")
    with context.progress("replay") as progress:
        past = context.fabric.replay(values["at"], say=progress)

    def text(screen: Screen) -> None:
        rows = [(task["id"], task["status"], task["priority"], task["title"]) for task in past["tasks"]]
        screen.table(("ID", "STATUS", "PRIORITY", "TITLE"), rows, colour_by=(1, 2))

    return Answer(past, text)


def board(context: Context, values: dict[str, Any]) -> Answer:
    """`aof board`."""
    return _live(context, values, _board)


def watch(context: Context, values: dict[str, Any]) -> Answer:
    """`aof watch`."""
    return _live(context, values, _watch)


def _live(context: Context, values: dict[str, Any], draw: Callable[[Context, Screen], None]) -> Answer:
    """Draw once into a pipe; on a terminal draw again with every change until Ctrl-C."""
    if context.options.get("json"):
        return Answer(context.fabric.status(), lambda _screen: None)
    if values.get("once") or not sys.stdout.isatty():
        return Answer(None, lambda screen: draw(context, screen))
    fabric = context.fabric
    sys.stdout.write(_ENTER)
    try:
        while True:
            seen = fabric.store.head()
            sys.stdout.write(_HOME)
            draw(context, Screen())
            sys.stdout.flush()
            fabric.store.wait(seen, 2.0)
    except KeyboardInterrupt:
        return Answer(None, lambda _screen: None)
    finally:
        sys.stdout.write(_LEAVE)
        sys.stdout.flush()


def _board(context: Context, screen: Screen) -> None:
    rows = context.fabric.list().tasks
    by_status: dict[str, list[Row]] = {name: [] for name in _COLUMNS}
    for row in rows:
        by_status.setdefault(row.status, []).append(row)
    shown = [name for name in by_status if by_status[name] or name in ("ready", "in-progress", "done")]
    width = max((screen.width or 120) // max(len(shown), 1) - 2, _NARROW)
    screen.line(
        "  ".join(screen.paint(f"{name} ({len(by_status[name])})".ljust(width), name) for name in shown).rstrip()
    )
    for place in range(min(max((len(by_status[name]) for name in shown), default=0), _EACH_COLUMN)):
        cells = [by_status[name][-1 - place] if place < len(by_status[name]) else None for name in shown]
        screen.line(
            "  ".join(
                _cut(f"{cell.id[-6:].lstrip('-')} {cell.title}" if cell else "", width) for cell in cells
            ).rstrip()
        )


def _watch(context: Context, screen: Screen) -> None:
    fabric = context.fabric
    now = fabric.now()
    summary = fabric.status(compact=True)
    screen.line("  ".join(f"{screen.paint(name, name)} {count}" for name, count in summary.by_status.items()))
    screen.line()
    for task in fabric.running():
        lease = task.lease
        if lease is not None:
            ends = ago(millis(lease.expires_at), now)
            since = ago(millis(lease.acquired_at), now)
            percent = task.progress.get("percent")
            done = f"{percent:g} %" if percent is not None else ""
            screen.line(f"{task.id}  {lease.agent:<16} since {since:<9} lease ends {ends:<9} {done:>5}  {task.title}")
    screen.line()
    from aof.adapters.cli.verbs.data import event_line

    head = fabric.store.head()
    for event in fabric.events(after=max(head - 12, 0)):
        event_line(screen, event, now)


def _cut(text: str, width: int) -> str:
    return (text if len(text) <= width else text[: width - 1] + "…").ljust(width)
