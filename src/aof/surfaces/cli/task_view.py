"""One task as a person reads it: what matters first, relatives with their names, times as people say them.

Must not change anything.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import msgspec

from aof.api.fabric import Fabric
from aof.kernel.model import end_of, is_task_id, millis
from aof.surfaces.cli.commands.operation import choices_of
from aof.surfaces.cli.screen import Screen, ago
from aof.tasks.fields import FIELDS
from aof.tasks.model import Task

_NAME = 12
_SUMMARY = 100  # characters of what came of a child
_FINISHED = ("done", "cancelled")
Fact = tuple[str, tuple[str | tuple[str, str], ...]]


_FILES: Final = {"stale": "edited", "unknown": "unreadable"}


def _seen_as(status: str, seen: str, attempts: int) -> str:
    """What the status means, where its name does not say so."""
    if status == "deadletter":
        return f": gave up after {attempts} {'attempt' if attempts == 1 else 'attempts'} ({seen.replace('_', ' ')})"
    seen = _FILES.get(seen, seen)
    return "" if seen in (status, "queued") or status in (*_FINISHED, "review") else f" ({seen.replace('_', ' ')})"


def draw_task(screen: Screen, task: dict[str, Any], fabric: Fabric) -> None:
    """Draw the whole task. What belongs to it is told in full; the names of other tasks end where the line does."""
    now = fabric.now()
    screen.say((task["id"], "bold"), "  ", task["title"], cut_off=False)
    around = list(_around(task, fabric.relatives(_names(task))))
    for name, said in (*_state(task, fabric, now), *around, *_past(task, fabric, now)):
        if screen.compact:
            screen.say(f"{name}: " if name else "", *said, cut_off=False)
        else:
            screen.say((f"  {name:<{_NAME}}", "dim"), *said, cut_off=(name, said) in around)
    if task["body"].strip():
        screen.line()
        screen.block(task["body"].rstrip())


def _state(task: dict[str, Any], fabric: Fabric, now: int) -> Iterator[Fact]:
    """Where it stands, and who has it."""
    status, seen = task["status"], task.get("normalizedStatus", task["status"])
    if problem := task.get("problem"):
        yield "problem", ((problem["message"], "error"),)
        yield "", (f"→ {problem['hint']}",)
    if waits := task.get("waits"):
        yield "status", (("waiting", "waiting"), f": {waits}")
    else:
        yield "status", ((status, status), _seen_as(status, seen, len(task.get("attempts", ()))))
    yield "priority", ((task["priority"], task["priority"]),)
    yield from _asked(task, now)
    if lease := task.get("lease"):
        end = fabric.lease_ends((task["id"],)).get(task["id"], millis(lease["expiresAt"]))
        claimed = f"claimed {ago(millis(lease['acquiredAt']), now)}"
        yield "held by", (f"{lease['agent']}, {claimed}, ", lease_said(end, now), f", as {lease['runId']}")
    yield from _hops(task.get("workflow", {}))
    progress = task.get("progress", {})
    percent = [f"{progress['percent']:g} %"] if "percent" in progress and status not in _FINISHED else []
    if words := percent + [progress[name] for name in ("phase", "text") if progress.get(name)]:
        yield "progress", (", ".join(words),)
    if held := task.get("blocked"):
        yield "blocked", ((held["reason"], "blocked"),)
    for asked in task.get("questions", ()):
        yield f"{asked['id']}", (f"{asked['text']}{choices_of(asked.get('choices', ()))} ({asked['by']})",)
        given = asked.get("answer")
        yield "", ((f"→ {given['text']} ({given['by']})", "done") if given else ("not answered yet", "review"),)
    yield from _late(task, now)
    if warning := task.get("warning"):
        yield warning["code"].replace("_", " "), (warning["message"],)
    if error := task.get("lastError"):
        yield "last error", (f"{error['code']}: {error['message']}",)
    if wait := task.get("retry", {}).get("notBefore"):
        yield "next try", (ago(millis(wait), now),)


def _late(task: dict[str, Any], now: int) -> Iterator[Fact]:
    """What was reported too late to count, and by whom."""
    for one in task.get("lateResults", ()):
        run = f", run {one['runId']}" if "runId" in one else ""
        yield (
            "late result",
            ((f"{one['agent']}{run}, {ago(millis(one['at']), now)}: {one.get('outcome', 'done')}", "review"),),
        )
        if said := one.get("summary"):
            yield "", (said,)
        if files := one.get("deliverables"):
            yield "", (", ".join(files),)


def _asked(task: dict[str, Any], now: int) -> Iterator[Fact]:
    """By when it is wanted, from whom, and what it must meet."""
    for row in FIELDS:
        if row.label and (value := task.get(row.key)) is not None:
            late = row.key == "due" and task["status"] not in _FINISHED and millis(end_of(value)) < now
            yield row.label, ((f"{value}, overdue", "error") if late else row.in_words(value),)
    if meant := _routing(task.get("routing", {})):
        yield "meant for", (meant,)
    for place, one in enumerate(task.get("acceptance", ())):
        said = one if isinstance(one, str) else msgspec.json.encode(one).decode()
        yield "" if place else "acceptance", (said,)


def _hops(workflow: dict[str, Any]) -> Iterator[Fact]:
    """One line for each hop of a gated task."""
    if "template" not in workflow:
        return
    yield "workflow", (f"{workflow['name']} ({workflow.get('state', 'open')})",)
    for hop in workflow["hops"]:
        who = f" by {hop['lease']['agent']} as {hop['lease']['runId']}" if "lease" in hop else ""
        silent = hop.get("status") in ("done", "ready")
        why = f": {hop['reason']}" if hop.get("reason") and not silent else ""
        yield "hop", (f"{hop['id']} [{hop['role']}] {hop.get('status', 'waiting')}{who}{why}",)


def lease_said(end: int, now: int) -> tuple[str, str]:
    """How long a lease lasts, in the colour that it deserves."""
    return (f"lease ended {ago(end, now)}", "error") if end <= now else (f"lease ends {ago(end, now)}", "")


def _routing(routing: dict[str, Any]) -> str:
    named = [f"{kind} {routing[kind]}" for kind in ("agent", "role", "team", "workflow") if routing.get(kind)]
    return ", ".join([*named, *(f"#{tag}" for tag in routing.get("tags", ()))])


def _around(task: dict[str, Any], relatives: dict[str, Task]) -> Iterator[Fact]:
    """Parent, blockers and links one by one; children as branches below a count."""
    edges = task.get("relationships", ())
    for one in task.get("handoffs", ()):
        by = f" ({one['by']})" if "by" in one else ""
        why = f", {one['reason']}{by}" if "reason" in one else ""
        told = f"{one['id'][:8]} {one['type']} {one['state']}: {one['fromAgent']} → {one['toAgent']}{why}"
        yield "handoff", (told,)
    for edge in edges:
        if edge["kind"] not in ("child", "handoff"):
            yield edge["kind"].replace("_", " "), _relative(edge["targetId"], relatives)
    children = [edge["targetId"] for edge in edges if edge["kind"] == "child"]
    if children:
        ended = sum(one in relatives and relatives[one].status in _FINISHED for one in children)
        yield "children", (f"{ended} of {len(children)} finished",)
    below = task.get("children", {}).get("tasks", ())
    came_to = {one["taskId"]: one["summary"].strip().splitlines()[0] for one in below if one.get("summary", "").strip()}
    for place, child in enumerate(children, 1):
        said = f": {came_to[child][:_SUMMARY]}" if child in came_to else ""
        yield "", ("└─ " if place == len(children) else "├─ ", *_relative(child, relatives), said)


def _relative(task_id: str, relatives: dict[str, Task]) -> tuple[str | tuple[str, str], ...]:
    other = relatives.get(task_id)
    return (task_id,) if other is None else (task_id, "  ", (other.status, other.status), "  ", other.title)


def _past(task: dict[str, Any], fabric: Fabric, now: int) -> Iterator[Fact]:
    """What was, and where it lies."""
    sent_back = {
        step.get("runId")
        for hop in task.get("workflow", {}).get("hops", ())
        for step in hop.get("history", ())
        if step["status"] == "rejected"
    }
    for run in task.get("attempts", ()):
        ended = f", ended {ago(millis(run['endedAt']), now)}" if "endedAt" in run else ""
        end = run.get("end", {})
        how = run.get("error", {}).get("cause", "")
        status = how if run["status"] == "cancelled" and how in ("paused", "blocked") else run["status"]
        did = "sent it back" if run["runId"] in sent_back else status
        yield f"run {run['attempt']}", (f"{run['agentId']} {did}{ended}{_how(end)}",)
        for line in end.get("lastErrors", ()):
            yield "", (f"| {line}",)
        if paths := end.get("paths"):
            yield "output", (", ".join(paths.values()),)
    yield "created", (f"{ago(millis(task['createdAt']), now)} by {task['createdBy']}",)
    if task["updatedAt"] != task["createdAt"]:
        yield "changed", (ago(millis(task["updatedAt"]), now),)
    if "filePath" in task:
        yield "file", (", ".join(found) if (found := _places(task, fabric)) else task["filePath"],)


def _places(task: dict[str, Any], fabric: Fabric) -> tuple[str, ...]:
    """Where its files lie that cannot be imported: a person may have moved one."""
    files = fabric.store.working_copy
    return files.places(task["id"]) if files is not None and "problem" in task else ()


def _how(end: dict[str, Any]) -> str:
    """How the process of a run ended."""
    if "stopped" in end:
        return f", stopped: {end['stopped']}"
    return f", killed by signal {end['signal']}" if "signal" in end else f", exit code {end['exitCode']}" if end else ""


def _names(task: dict[str, Any]) -> list[str]:
    """The tasks that it is connected with."""
    return [edge["targetId"] for edge in task.get("relationships", ()) if is_task_id(edge["targetId"])]
