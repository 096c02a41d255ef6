"""The task graph as text: Mermaid, DOT, SVG, and a tree for the terminal. Pure: tasks in, text out."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape

import msgspec

from aof.core.errors.base import InvalidInput
from aof.core.model.task import Task
from aof.core.validation import limits
from aof.ports.lists import Row

FILLS = {
    "backlog": "#eeeeee", "ready": "#d0ebff", "in-progress": "#fff3bf", "review": "#eebefa", "blocked": "#ffc9c9",
    "done": "#d3f9d8", "cancelled": "#dee2e6", "deadletter": "#ffa8a8",
}  # fmt: skip
_BOX_WIDTH, _BOX_HEIGHT, _GAP_X, _GAP_Y, _MARGIN, _LABEL = 240, 44, 60, 16, 20, 30

Edge = tuple[str, str, str]


class Drawing(msgspec.Struct, frozen=True):
    """A drawn graph: the text of the form that was asked for, and what it shows."""

    text: str
    edges: tuple[Edge, ...]
    tree: tuple[tuple[str, Row], ...]


def draw(tasks: list[Task], root: str | None, form: str) -> Drawing:
    """Draw all tasks, or those that are connected with one."""
    makers = {"tree": _plain, "mermaid": mermaid, "dot": dot, "svg": svg}
    if form not in makers:
        raise InvalidInput(f"there is no form {form[:40]!r}", limits.choices("format", tuple(makers)))
    shown = tasks if root is None else _around(tasks, root)
    rows = tuple(
        (stem, Row(id=task.id, title=task.title, status=task.status, priority=task.priority))
        for stem, task in tree(shown)
    )
    return Drawing(makers[form](shown), tuple(edges(shown)), rows)


def _plain(tasks: list[Task]) -> str:
    return "\n".join(f"{stem}{task.id} {task.status} {task.title}" for stem, task in tree(tasks)) + "\n"


def _around(tasks: list[Task], root: str) -> list[Task]:
    """Everything that is connected with one task, in whatever direction."""
    near: dict[str, set[str]] = {}
    for source, target, _ in edges(tasks):
        near.setdefault(source, set()).add(target)
        near.setdefault(target, set()).add(source)
    seen, waiting = {root}, [root]
    for one in waiting:
        fresh = near.get(one, set()) - seen
        seen |= fresh
        waiting += fresh
    return [task for task in tasks if task.id in seen]


def edges(tasks: Iterable[Task]) -> list[Edge]:
    """(from, to, kind): a blocker points to what waits for it, a parent to its children."""
    known = {task.id: task for task in tasks}
    found: list[Edge] = []
    for task in known.values():
        found += [(blocker, task.id, "blocks") for blocker in task.depends_on if blocker in known]
        if task.parent_id in known:
            found.append((str(task.parent_id), task.id, "child"))
    return sorted(found)


def mermaid(tasks: list[Task]) -> str:
    """A Mermaid flowchart."""
    lines = ["flowchart LR"]
    lines += [f'  {_name(task.id)}["{_mermaid_text(task)}"]:::{task.status}' for task in tasks]
    arrows = {"blocks": "-->", "child": "-.->"}
    lines += [f"  {_name(source)} {arrows[kind]} {_name(target)}" for source, target, kind in edges(tasks)]
    lines += [f"  classDef {status} fill:{fill},stroke:#555,color:#111" for status, fill in FILLS.items()]
    return "\n".join(lines) + "\n"


def dot(tasks: list[Task]) -> str:
    """A Graphviz digraph."""
    lines = ["digraph tasks {", "  rankdir=LR; node [shape=box, style=filled, fontname=sans];"]
    for task in tasks:
        label = f"{task.id}\\n{_dot_text(task.title)}"
        lines.append(f'  "{task.id}" [label="{label}", fillcolor="{FILLS[task.status]}"];')
    styles = {"blocks": "", "child": " [style=dashed]"}
    lines += [f'  "{source}" -> "{target}"{styles[kind]};' for source, target, kind in edges(tasks)]
    return "\n".join([*lines, "}"]) + "\n"


def svg(tasks: list[Task]) -> str:
    """A drawing in layers: what waits stands to the right of what it waits for."""
    layers = _layers(tasks)
    places = {
        task.id: (_MARGIN + column * (_BOX_WIDTH + _GAP_X), _MARGIN + row * (_BOX_HEIGHT + _GAP_Y))
        for column, layer in enumerate(layers)
        for row, task in enumerate(layer)
    }
    width = 2 * _MARGIN + len(layers) * (_BOX_WIDTH + _GAP_X) - _GAP_X
    height = 2 * _MARGIN + max((len(layer) for layer in layers), default=1) * (_BOX_HEIGHT + _GAP_Y) - _GAP_Y
    size = f'width="{max(width, 1)}" height="{height}"'
    parts = [f'<svg xmlns="http://www.w3.org/2000/svg" {size} font-family="sans-serif" font-size="12">']
    for source, target, kind in edges(tasks):
        (x1, y1), (x2, y2) = places[source], places[target]
        dash = ' stroke-dasharray="4 3"' if kind == "child" else ""
        start, end = (x1 + _BOX_WIDTH, y1 + _BOX_HEIGHT // 2), (x2, y2 + _BOX_HEIGHT // 2)
        bend = f"C {start[0] + _GAP_X // 2} {start[1]}, {end[0] - _GAP_X // 2} {end[1]},"
        parts.append(f'<path d="M {start[0]} {start[1]} {bend} {end[0]} {end[1]}" fill="none" stroke="#666"{dash}/>')
    for task in tasks:
        x, y = places[task.id]
        box = f'x="{x}" y="{y}" width="{_BOX_WIDTH}" height="{_BOX_HEIGHT}" rx="6"'
        parts += [
            f'<g><title>{escape(task.title)}</title><rect {box} fill="{FILLS[task.status]}" stroke="#555"/>',
            f'<text x="{x + 8}" y="{y + 18}">{task.id} · {task.status}</text>',
            f'<text x="{x + 8}" y="{y + 35}" font-weight="bold">{escape(_short(task.title))}</text></g>',
        ]
    return "\n".join([*parts, "</svg>"]) + "\n"


def tree(tasks: list[Task]) -> list[tuple[str, Task]]:
    """Parents with their children below them: each task with the branch that leads to it."""
    known = {task.id: task for task in tasks}
    return [(stem, known[one]) for stem, one in branches({task.id: task.parent_id for task in tasks})]


def branches(parents: dict[str, str | None]) -> list[tuple[str, str]]:
    """The same for IDs: each in the order given, with the branch that leads to it. However deep it is."""
    below: dict[str | None, list[str]] = {}
    for one, parent in parents.items():
        below.setdefault(parent if parent in parents else None, []).append(one)
    lines: list[tuple[str, str]] = []
    waiting = [("", "", one) for one in reversed(below.get(None, []))]
    while waiting:
        branch, stem, one = waiting.pop()
        lines.append((branch, one))
        children = below.get(one, [])
        for place, child in enumerate(reversed(children)):
            waiting.append((stem + ("├─ " if place else "└─ "), stem + ("│  " if place else "   "), child))
    return lines


def _layers(tasks: list[Task]) -> list[list[Task]]:
    """Each task behind all that it comes after; where all that is left waits in a circle, the first one goes on."""
    before: dict[str, set[str]] = {task.id: set() for task in tasks}
    after: dict[str, list[str]] = {}
    for source, target, _ in edges(tasks):
        if source not in before[target]:
            before[target].add(source)
            after.setdefault(source, []).append(target)
    missing = {one: len(sources) for one, sources in before.items()}
    depth: dict[str, int] = {}
    free = [one for one, count in missing.items() if not count]
    for first in (*free, *missing):  # those in no circle, then whatever is left, in order
        placed = [first] if first not in depth else []
        for one in placed:
            if one in depth:
                continue
            depth[one] = max((depth.get(source, -1) for source in before[one]), default=-1) + 1
            for target in after.get(one, ()):
                missing[target] -= 1
                if not missing[target]:
                    placed.append(target)
    layers: list[list[Task]] = [[] for _ in range(max(depth.values(), default=-1) + 1)]
    for task in tasks:
        layers[depth[task.id]].append(task)
    return layers


def _name(task_id: str) -> str:
    return task_id.replace("-", "_")


def _short(title: str) -> str:
    return title if len(title) <= _LABEL else title[: _LABEL - 1] + "…"


def _mermaid_text(task: Task) -> str:
    return f"{task.id}<br/>{escape(_short(task.title))}".replace('"', "#quot;")


def _dot_text(title: str) -> str:
    return _short(title).replace("\\", "\\\\").replace('"', '\\"')
