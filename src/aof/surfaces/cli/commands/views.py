"""Verbs that draw: the graph, the board, the live view, the past."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from typing import Any

from aof.api.fabric import Fabric
from aof.kernel.model import millis
from aof.queries import ready_queue
from aof.support.printable import clean
from aof.surfaces.cli import live, task_view
from aof.surfaces.cli.commands import service
from aof.surfaces.cli.output import Answer, Context
from aof.surfaces.cli.parser import UsageError
from aof.surfaces.cli.screen import Screen, ago, cut, pad, width
from aof.tasks.model import Task
from aof.workflows.model import held_leases

_COLUMNS = ("backlog", "ready", "in-progress", "review", "blocked", "done", "deadletter", "cancelled")
_ALWAYS = ("ready", "in-progress", "done")
_MATTERS = ("in-progress", "ready", "review", "blocked", "done", "backlog", "deadletter", "cancelled")
_EACH_COLUMN, _NARROW, _IN_A_PIPE = 24, 14, 120
_LATEST, _FRAME_REST = 12, 4
_EACH_LINE = 4  # events at most, mostly
_AGENT = 14
_SHORT, _ROOMY = len("TASK-2026-"), 80


def graph(context: Context, values: dict[str, Any]) -> Answer:
    """`aof graph`."""
    form = values.get("format", "tree")
    drawn = context.fabric.graph(values.get("task_id"), form=form)
    data = {"format": form, "graph": drawn.text, "edges": drawn.edges}

    def text(screen: Screen) -> None:
        if form != "tree":
            screen.block(drawn.text.rstrip())
            return
        waits: dict[str, list[str]] = {}
        for source, target, kind in drawn.edges:
            if kind == "blocks":
                waits.setdefault(target, []).append(source)
        begin = _SHORT if 0 < screen.width < _ROOMY else 0  # what is left of the IDs still names the tasks
        for stem, row in drawn.tree:
            after = f"  ← {', '.join(one[begin:] for one in waits[row.id])}" if row.id in waits else ""
            title = clean(row.title)
            room = screen.width - width(f"{stem}{row.id[begin:]}  {row.status}  {after}")
            shown = cut(title, max(room, _NARROW)) if screen.width else title
            screen.say(stem, row.id[begin:], "  ", (row.status, row.status), f"  {shown}", (after, "dim"))
        if not drawn.tree:
            screen.line("no tasks yet")

    return Answer(data, text)


def replay(context: Context, values: dict[str, Any]) -> Answer:
    """`aof admin replay --at SEQ`."""
    if "at" not in values:
        raise UsageError("'aof admin replay' needs --at SEQ", "for example: aof admin replay --at 12")
    with context.progress("replay") as progress:
        past = context.fabric.replay(values["at"], say=progress)

    def text(screen: Screen) -> None:
        rows = [(task["id"], task["status"], task["priority"], task["title"]) for task in past["tasks"]]
        if not rows:
            screen.line("there were no tasks yet")
            return
        screen.table(("ID", "STATUS", "PRIORITY", "TITLE"), rows, colour_by=(1, 2), hide=(2,))

    return Answer(past, text)


def board(context: Context, values: dict[str, Any]) -> Answer:
    """`aof board`."""
    if values.get("web"):
        return service.open_page(context, values)
    if given := [name for name in ("port", "scope", "no_open") if name in values]:
        raise UsageError(f"--{given[0].replace('_', '-')} is about the page", "open it: aof board --web")
    return _live(context, values, _board)


def watch(context: Context, values: dict[str, Any]) -> Answer:
    """`aof watch`."""
    return _live(context, values, _watch)


def _live(context: Context, values: dict[str, Any], draw: Callable[[Context, Screen], None]) -> Answer:
    """Draw once into a pipe; on a terminal draw again with every change until Ctrl-C or `q`."""
    if context.options.get("json"):
        return Answer(context.fabric.status(), lambda _screen: None)
    if values.get("once") or not sys.stdout.isatty():
        return Answer(None, lambda screen: draw(context, screen))

    store = context.fabric.store
    seen = [0]

    def frame(screen: Screen) -> None:
        seen[0] = store.head()
        draw(context, screen)

    live.follow(frame, lambda seconds: store.wait(seen[0], seconds))
    return Answer(None, lambda _screen: None, printed=True)


def _board(context: Context, screen: Screen) -> None:
    fabric = context.fabric
    now = fabric.now()
    by_status: dict[str, list[Task]] = {name: [] for name in _COLUMNS}
    for task in reversed(fabric.tasks()):
        by_status[task.status].append(task)
    waits = _waits(fabric) if by_status["ready"] else {}
    by_status["ready"].sort(key=lambda task: task.id in waits)  # what can be claimed comes first
    shown = [name for name in _COLUMNS if by_status[name] or name in _ALWAYS]
    room = screen.width or _IN_A_PIPE
    first = sorted(shown, key=_MATTERS.index)[: max(room // (_NARROW + 2), 1)]
    beside = [f"{name} ({len(by_status[name])})" for name in shown if name not in first and by_status[name]]
    shown = [name for name in shown if name in first]
    column = (room + 2) // len(shown) - 2
    ends = fabric.lease_ends([task.id for task in by_status["in-progress"]])
    free = len(by_status["ready"]) - len(waits)
    ready = f"ready ({free})" + (f", {len(waits)} waiting" if waits else "")
    titles = {name: f"{name} ({len(by_status[name])})" for name in shown} | {"ready": ready}
    heads = [pad(cut(titles[name], column), column) for name in shown]
    screen.line("  ".join(screen.paint(head, name) for head, name in zip(heads, shown, strict=True)).rstrip())
    lines = (screen.height - _FRAME_REST) if screen.height else _EACH_COLUMN
    longest = max(len(by_status[name]) for name in shown)
    for place in range(min(longest, lines)):
        cells = [by_status[name][place] if place < len(by_status[name]) else None for name in shown]
        texts = [_card(task, ends, waits, now, column) if task else (" " * column, "") for task in cells]
        screen.line("  ".join(screen.paint(text, colour) for text, colour in texts).rstrip())
    more = [(len(by_status[name]) - lines, name) for name in shown if len(by_status[name]) > lines]
    if more:
        told = ", ".join(f"{count} more {name}" for count, name in more)
        screen.say((f"… {told}: aof list --status {max(more)[1]}", "dim"))
    if beside:
        screen.say((f"… beside these: {', '.join(beside)}", "dim"))
    _latest(context, screen, now, 1)


_TASK = re.compile(r"\bTASK-[0-9-]+[0-9]")


def _waits(fabric: Fabric) -> dict[str, str]:
    """What each queued task waits for that cannot be claimed now."""
    return {row.id: row.waits for row in fabric.list(status="ready").tasks if row.waits}


def _card(task: Task, ends: dict[str, int], waits: dict[str, str], now: int, column: int) -> tuple[str, str]:
    """One task in its column: the end of its ID, who holds it or its hops for how long, its title, and its wait."""
    name = _name(task.id)
    held = [
        f"{lease.agent} {_hop(place) or ago(millis(lease.acquired_at), now).removesuffix(' ago')}"
        for place, lease in held_leases(task)
    ]
    late = any(ends.get(place, now + 1) <= now for place, _ in held_leases(task))
    said = f"{name} {', '.join(held)}{': ' if held else ''}{task.title}"
    if task.id in waits:
        blocker = next((_name(one) for one in task.depends_on if one in waits[task.id]), None)
        below = ", ".join(map(_name, _TASK.findall(waits[task.id]))) if task.waits_for_children else ""
        said = f"{name} {f'after {blocker}' if blocker else f'for {below}' if below else 'waiting'}: {task.title}"
    return pad(cut(clean(said), column), column), "error" if late else "waiting" if task.id in waits else ""


def _name(task_id: str) -> str:
    """The end of an ID, which names the task among those of some weeks."""
    return task_id[-6:].lstrip("-")


def _hop(place: str) -> str:
    """The hop that a run is about, as it follows its holder's name."""
    hop = place.rpartition("/hops/")[2] if "/hops/" in place else ""
    return f"at {hop}" if hop else ""


def _watch(context: Context, screen: Screen) -> None:
    fabric = context.fabric
    now = fabric.now()
    parts = [
        (f"{name} {count}", name) for name, count in ready_queue.counts(fabric, fabric.status(compact=True).by_status)
    ]
    screen.say(
        *(part for pair in zip(parts, ["  "] * len(parts), strict=True) for part in pair) if parts else "no tasks"
    )
    screen.line()
    tasks = fabric.running()
    running = [(task, place, lease) for task in tasks for place, lease in held_leases(task)]
    ends = fabric.lease_ends([task.id for task in tasks])
    agents = min(max((width(lease.agent) for _, _, lease in running), default=0), _AGENT)
    rest = screen.height - _FRAME_REST if screen.height else len(running) + _LATEST
    for task, place, lease in running[: max(rest - 2, 1)]:
        said, colour = task_view.lease_said(ends.get(place, millis(lease.expires_at)), now)
        since = ago(millis(lease.acquired_at), now).removesuffix(" ago")
        percent = task.progress.get("percent")
        done = f"{percent:.0f} %" if percent is not None else ""
        named = task.id if not 0 < screen.width < _ROOMY else task.id[_SHORT:]
        held = f"{named}  {pad(cut(lease.agent, agents), agents)}  {since:>8}  "
        screen.say(held, (f"{said:<19}", colour), f" {done:>5}  ", f"{task.title} {_hop(place)}")
    if not running:
        screen.say(("nobody works on anything" if parts else "no tasks yet", "dim"))
    screen.line()
    _latest(context, screen, now, min(_LATEST, max(rest - len(running), 2)))


def _latest(context: Context, screen: Screen, now: int, count: int) -> None:
    """What changed last, newest last."""
    from aof.surfaces.cli.commands.data import story_lines

    fabric = context.fabric
    head = fabric.store.head()
    story_lines(screen, list(fabric.events(after=max(head - _EACH_LINE * count, 0))), now, count)
