"""Views of tasks: the graph as text, a short form, search, why a task waits, children, and what runs printed."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import suppress
from html import escape
from itertools import chain
from typing import Any, Final

import msgspec

from aof.errors import Call, InvalidInput, NoSuchAttempt
from aof.kernel import limits as kernel_limits
from aof.kernel.commands import Records
from aof.kernel.kinds import Stream
from aof.kernel.model import FINISHED, STATUSES, Policy, run_place
from aof.kernel.results import Printed
from aof.runs.model import OUTPUT_FILES, Run, RunResult
from aof.store import port
from aof.store.lists import PARTS, Query, Row
from aof.store.port import Scope, ScopeTooNarrow, Store, Unit
from aof.support.answer import StructAnswer
from aof.support.words import hold, wanted, words
from aof.tasks.body import parts
from aof.tasks.graph import held_by_dependency, readiness
from aof.tasks.model import Task

FILLS = {
    "backlog": "#eeeeee", "ready": "#d0ebff", "in-progress": "#fff3bf", "review": "#eebefa", "blocked": "#ffc9c9",
    "done": "#d3f9d8", "cancelled": "#dee2e6", "deadletter": "#ffa8a8",
}  # fmt: skip
_BOX_WIDTH, _BOX_HEIGHT, _GAP_X, _GAP_Y, _MARGIN, _LABEL = 240, 44, 60, 16, 20, 30

Edge = tuple[str, str, str]


class Drawing(StructAnswer, frozen=True):
    """A drawn graph: the text of the form that was asked for, and what it shows."""

    text: str
    edges: tuple[Edge, ...]
    tree: tuple[tuple[str, Row], ...]


def draw(tasks: list[Task], root: str | None, form: str) -> Drawing:
    """Draw all tasks, or those that are connected with one."""
    makers = {"tree": _plain, "mermaid": mermaid, "dot": dot, "svg": svg}
    if form not in makers:
        raise InvalidInput(f"there is no form {form[:40]!r}", kernel_limits.choices("format", tuple(makers)))
    shown = tasks if root is None else _graph_around(tasks, root)
    rows = tuple(
        (stem, Row(id=task.id, title=task.title, status=task.status, priority=task.priority))
        for stem, task in tree(shown)
    )
    return Drawing(makers[form](shown), tuple(edges(shown)), rows)


def _plain(tasks: list[Task]) -> str:
    return "\n".join(f"{stem}{task.id} {task.status} {task.title}" for stem, task in tree(tasks)) + "\n"


def _graph_around(tasks: list[Task], root: str) -> list[Task]:
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
    """The tree of some IDs: each in the order given, with the branch that leads to it. However deep it is."""
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


_BOOKKEEPING: Final = ("schemaVersion", "lastTransitionAt", "startedAt", "retry", "requests", "links")
_OF_A_HOP: Final = ("id", "role", "status", "agent", "reason", "runId")
_OF_A_RUN: Final = ("attempt", "agentId", "status", "hop")
_OF_A_LEASE: Final = ("agent", "runId", "expiresAt")
_OUTLINE_LONGEST: Final = 4_000  # characters of the body
_RUNS: Final = 3
_UNKNOWN: Final = {"state": "unknown"}


def outline(shown: dict[str, Any]) -> dict[str, Any]:
    """The short form of a whole view; `cut` names what is longer than it shows."""
    short = {name: value for name, value in shown.items() if name not in _BOOKKEEPING}
    cut: list[str] = []
    if lease := short.get("lease"):
        short["lease"] = _only(lease, _OF_A_LEASE)
    if workflow := short.get("workflow"):
        short["workflow"] = _workflow(workflow)
    if len(attempts := short.get("attempts", [])) > _RUNS:
        cut.append("attempts")
    short["attempts"] = [_only(run, _OF_A_RUN) for run in attempts[-_RUNS:]]
    if len(body := short.get("body", "")) > _OUTLINE_LONGEST:
        short["body"] = f"{body[:_OUTLINE_LONGEST]}…"
        cut.append("body")
    if short.get("progress") == _UNKNOWN:
        del short["progress"]
    if cut:
        short["cut"] = cut
    return {name: value for name, value in short.items() if value not in ({}, [], (), "", None)}


def _workflow(workflow: dict[str, Any]) -> dict[str, Any]:
    """Its hops, and the last rejection until the hop that rejected has accepted."""
    hops = [_only(hop, _OF_A_HOP) for hop in workflow["hops"]]
    short = _only(workflow, ("name", "state", "feedback")) | {"hops": hops}
    settled = {hop["id"] for hop in hops if hop.get("status") == "done"}
    if short.get("state", "open") != "open" or short.get("feedback", {}).get("hop") in settled:
        short.pop("feedback", None)
    return short


def _only(part: dict[str, Any], names: tuple[str, ...]) -> dict[str, Any]:
    return {name: part[name] for name in names if name in part}


_SHOWN = 160


def checked_search(text: str) -> str:
    """What is searched for, if it is something."""
    if not text.strip():
        raise InvalidInput("there is nothing to search for", "give a word of the title or the text", parameter="text")
    return text


def explain_matches(store: Store, rows: Iterable[Row], text: str) -> None:
    """Say of each row where it matched, and show that place."""
    sought = wanted(text)
    for row in rows:
        task = _task(store, row.id)
        if task is not None:
            where, excerpt = _match(task, sought)
            row["where"], row["excerpt"] = where, excerpt


def _task(store: Store, task_id: str) -> Task | None:
    try:
        with store.unit(port.Scope(read=frozenset({task_id}))) as unit:
            return unit.task(task_id)
    except port.ScopeTooNarrow:  # somebody is editing its file
        return None


def _match(task: Task, sought: Sequence[str]) -> tuple[str, str]:
    """The part that holds all words, else the one that holds any, and its first line with one of them."""
    texts = dict(zip(PARTS, (task.title, *parts(task.body)), strict=True))
    whole = (name for name, text in texts.items() if sought and hold((text,), sought))
    some = (name for name, text in texts.items() if any(_begins(text, sought)))
    where = next(chain(whole, some), PARTS[0])
    line = next((line for line in texts[where].splitlines() if any(_begins(line, sought))), task.title)
    return where, _cut(" ".join(line.split()), sought)


def _begins(text: str, sought: Sequence[str]) -> Iterator[bool]:
    return (word.startswith(tuple(sought)) for word in words(text)) if sought else iter(())


def _cut(line: str, sought: Sequence[str]) -> str:
    """The part of a long line around the first word that was sought."""
    if len(line) <= _SHOWN:
        return line
    lower = line.casefold()
    first = min((at for one in sought if (at := lower.find(one)) >= 0), default=0)
    start = max(0, min(first - _SHOWN // 4, len(line) - _SHOWN))
    before, after = "…" if start else "", "…" if start + _SHOWN < len(line) else ""
    return f"{before}{line[start : start + _SHOWN]}{after}"


UNFINISHED = tuple(status for status in STATUSES if status not in FINISHED)


def held_back(store: Store, policy: Policy, query: Query, now: int) -> tuple[Row, ...]:
    """Each unfinished task that matches and cannot be claimed now, with what it waits for."""
    around = _explain_around(store, policy)
    wanted = store.find(query.but(status=UNFINISHED)).tasks
    return tuple(
        Row.of(task, refusal.message) for task in wanted if (refusal := readiness(around, task, now)) is not None
    )


def waits(store: Store, policy: Policy, task_ids: Collection[str], now: int) -> dict[str, str]:
    """What each of some tasks waits for, in words; those that can be claimed now are left out."""
    wanted = store.records(task_ids)
    around = _beside(store, policy, wanted)
    refusals = ((task.id, readiness(around, task, now)) for task in wanted)
    return {name: refusal.message.removeprefix(f"{name} ") for name, refusal in refusals if refusal is not None}


def wait_of(store: Store, policy: Policy, task: Task) -> str | None:
    """What a new task waits for, told without the index; None where it can be claimed, or that cannot be told."""
    scope = Scope(read=frozenset(task.depends_on))
    with suppress(ScopeTooNarrow), store.unit(scope) as unit:
        records = Records(policy=policy, tasks={one: unit.task(one) for one in task.depends_on})
        refusal = held_by_dependency(records, task)
        return None if refusal is None else refusal.message.removeprefix(f"{task.id} ")
    return None


def _beside(store: Store, policy: Policy, wanted: Iterable[Task]) -> Records:
    """What the ready rule may look at where it is asked about these tasks only."""
    records = Records(policy=policy, tasks={task.id: task for task in wanted})
    for task in wanted:
        below = store.find(Query(parent_id=task.id)).tasks if task.waits_for_children else ()
        records.tasks |= {child.id: child for child in below}
        records.children[task.id] = tuple(child.id for child in below)
    edges = {edge for task in wanted for edge in task.depends_on} - records.tasks.keys()
    records.tasks |= dict.fromkeys(edges) | {task.id: task for task in store.records(edges)}
    if resources := {task.resource for task in wanted if task.resource is not None}:
        running = store.find(Query(status=("in-progress",))).tasks
        holders = {name: tuple(one.id for one in running if one.resource == name) for name in resources}
        records.resource_holders |= holders
    return records


def _explain_around(store: Store, policy: Policy) -> Records:
    """All that the ready rule may look at."""
    everything = store.find(Query(archived=True)).tasks
    records = Records(policy=policy, tasks={task.id: task for task in everything})
    children: dict[str, list[str]] = {task.id: [] for task in everything}
    holders: dict[str, list[str]] = {}
    for task in everything:
        if task.parent_id is not None:
            children.setdefault(task.parent_id, []).append(task.id)
        if task.resource is not None:
            holders.setdefault(task.resource, []).extend([task.id] if task.status == "in-progress" else [])
    records.children |= {parent: tuple(below) for parent, below in children.items()}
    records.resource_holders |= {resource: tuple(held) for resource, held in holders.items()}
    return records


_MOST = 30  # children that are named
_CHILDREN_LONGEST = 1_000  # characters of what one of them came to


class Child(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """One task below another: how it stands, and what came of it in the words of its last worker."""

    task_id: str
    title: str
    status: str
    agent: str | None = None
    summary: str | None = None

    def __str__(self) -> str:
        whose = f"; {self.agent}" if self.agent else ""  # who is to do it did neither cancel nor block it
        told = f": {self.summary}" if self.summary else ""
        return f"{self.task_id} ({self.title}{whose}) is {self.status}{told}"


def children_of(store: Store, task_id: str) -> tuple[Child, ...]:
    """The first of the tasks directly below; a task that nothing stands below is not looked for in the index."""
    with store.unit(Scope(read=frozenset({task_id}))) as unit:
        below = unit.children(task_id)
    return children_standing(store, store.records(below[:_MOST])) if below else ()


def children_standing(store: Store, tasks: Sequence[Task]) -> tuple[Child, ...]:
    """How these tasks stand."""
    shown = tasks[:_MOST]
    with store.unit(Scope(read=frozenset(task.id for task in shown))) as unit:
        results = {task.id: _last_result(unit, task) for task in shown}
    found: list[Child] = []
    for task in shown:
        result, lease = results[task.id], task.lease
        agent = result.agent_id if result is not None else lease.agent if lease is not None else task.routing.agent
        summary = _summary(task, result)
        found.append(Child(task_id=task.id, title=task.title, status=task.status, agent=agent, summary=summary))
    return tuple(found)


def _last_result(unit: Unit, task: Task) -> RunResult | None:
    """What its run has reported, or the last hop that has."""
    places = [run_place(task.id, hop["id"]) for hop in reversed(task.workflow["hops"])] if task.gated else [task.id]
    return next((result for place in places if isinstance(result := unit.result(place), RunResult)), None)


def _summary(task: Task, result: RunResult | None) -> str | None:
    if task.status == "deadletter" and task.last_error is not None:
        said: str | None = f"{task.last_error.code}: {task.last_error.message}"
    elif task.status == "blocked" and task.blocked is not None:
        said = task.blocked.reason
    elif task.status == "cancelled" and task.cancel is not None:
        said = task.cancel.reason
    else:
        said = result.notes if result is not None else None
    return said if said is None or len(said) <= _CHILDREN_LONGEST else f"{said[:_CHILDREN_LONGEST]}…"


_CONTINUES, _CONTINUATION = 0b1100_0000, 0b1000_0000
_LAST_WORDS, _LAST_LINES = 2_000, 5
LARGEST_PIECE = 65_536  # bytes
_LONGEST_CHARACTER = 4


def output_piece(
    store: Store, task_id: str, *, attempt: int | None, stream: Stream, offset: int, limit: int
) -> Printed:
    """The next piece of a run's output, whole characters only; the last run's where no attempt is named."""
    if stream not in OUTPUT_FILES:
        raise InvalidInput(f"there is no stream '{stream[:80]}'", kernel_limits.choices("stream", tuple(OUTPUT_FILES)))
    if offset < 0 or not _LONGEST_CHARACTER <= limit <= LARGEST_PIECE:
        raise InvalidInput(
            f"offset {offset} and limit {limit} are not possible",
            f"begin at 0 and read from {_LONGEST_CHARACTER} to {LARGEST_PIECE:,} bytes at a time",
        )
    run = _run(store, task_id, attempt)
    data, size = store.output(run, stream, offset, limit)
    ended = _over(store, run)
    data = data if ended and offset + len(data) >= size else _whole(data)
    after = offset + len(data)
    return Printed(
        task_id=task_id,
        run_id=run.run_id,
        attempt=run.attempt,
        stream=stream,
        offset=offset,
        next_offset=after,
        size=size,
        ended=ended and after >= size,
        text=data.decode("utf-8", "replace"),
    )


def end_of(store: Store, run: Run) -> dict[str, Any]:
    """How the process of a run that came to nothing ended, its last words, and where all that it printed lies."""
    if run.worker == "pull" or run.status in ("running", "completed"):
        return {}
    history = store.events(task_id=run.task_id)
    payload = next((one.payload for one in history if one.type == "run.exited" and one.run_id == run.run_id), None)
    if payload is None:
        return {}
    _, size = store.output(run, "stderr", 0, 0)
    data, _ = store.output(run, "stderr", max(size - _LAST_WORDS, 0), _LAST_WORDS)
    lines = data.decode("utf-8", "replace").splitlines()[-_LAST_LINES:]
    found: dict[str, Any] = {name: payload[name] for name in ("exitCode", "signal", "stopped") if name in payload}
    kept = {name: told["path"] for name, told in payload["output"].items() if told.get("path")}
    return found | {"lastErrors": lines, "paths": kept}


def _run(store: Store, task_id: str, attempt: int | None) -> Run:
    runs = store.attempts(task_id)
    found = runs[-1:] if attempt is None else [one for one in runs if one.attempt == attempt]
    if not found:
        which = f"no attempt {attempt}" if attempt is not None else "not been run yet"
        raise NoSuchAttempt(f"{task_id} has {which}", "see its attempts", Call("show", {"task_id": task_id}))
    return found[0]


def _over(store: Store, run: Run) -> bool:
    """Whether nothing more can come: a worker process may print after it has reported, until it has exited."""
    if run.status == "running" or run.worker == "pull":
        return run.status != "running"
    history = store.events(task_id=run.task_id)
    return any(event.type == "run.exited" and event.run_id == run.run_id for event in history)


def _whole(data: bytes) -> bytes:
    """Without a character whose last bytes have not come yet."""
    for back in range(1, min(_LONGEST_CHARACTER, len(data)) + 1):
        first = data[-back]
        if first & _CONTINUES == _CONTINUATION:
            continue
        needed = 1 if first < 0x80 else 2 if first < 0xE0 else 3 if first < 0xF0 else 4  # noqa: PLR2004 - UTF-8
        return data[:-back] if needed > back else data
    return data
