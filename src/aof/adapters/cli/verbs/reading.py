"""Verbs that only look."""

from __future__ import annotations

from aof.adapters.cli.answer import Answer, Context

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from aof.adapters.cli.screen import Screen
    from aof.app.lists import Listed

_READY_LIMIT = 50  # nobody chooses among more, and the answer costs the same however many there are


def list_tasks(context: Context, values: dict[str, Any]) -> Answer:
    """`aof list`."""
    return _listed(context.fabric.list(**values), 'no tasks yet; make one: aof create "My first task"')


def ready(context: Context, values: dict[str, Any]) -> Answer:
    """`aof ready`."""
    given = dict(values)
    explain = given.pop("explain", False)
    given.setdefault("limit", _READY_LIMIT)
    listed = context.fabric.ready(**given)
    answer = _listed(listed, "nothing is ready")
    if not explain:
        return answer
    given.pop("limit", None)
    held = context.fabric.held_back(**given)

    def text(screen: Screen) -> None:
        answer.text(screen)
        if held:
            screen.line()
            screen.table(
                ("ID", "STATUS", "WHY NOT"), [(row.id, row.status, row.reason or "") for row in held], colour_by=(1,)
            )

    return Answer({**listed, "notReady": held}, text)


def blocked(context: Context, values: dict[str, Any]) -> Answer:
    """`aof blocked`."""
    return _listed(context.fabric.blocked(**values), "nothing is blocked", reasons=True)


def _listed(listed: Listed, empty: str, *, reasons: bool = False) -> Answer:
    def text(screen: Screen) -> None:
        if not listed.tasks:
            screen.line(empty)
            return
        head = ("ID", "STATUS", "PRIORITY", "AGENT", "TITLE")
        body = [
            (
                row.id,
                row.state or row.status,
                row.priority,
                row.agent or "-",
                f"{row.title}: {row.reason}" if row.reason and (reasons or row.status != "blocked") else row.title,
            )
            for row in listed.tasks
        ]
        screen.table(head, body, colour_by=(1, 2))
        if listed.total > len(listed.tasks):
            screen.line(screen.paint(f"{len(listed.tasks)} of {listed.total}", "dim"))

    return Answer(listed, text)


def status(context: Context, values: dict[str, Any]) -> Answer:
    """`aof status`."""
    compact = context.options.get("compact", False)
    summary = context.fabric.status(compact=compact, **values)

    def text(screen: Screen) -> None:
        if compact:
            screen.line(" ".join(f"{name}:{count}" for name, count in summary.by_status.items()) or "no tasks")
            return
        for name, count in summary.by_status.items():
            screen.line(f"{count:>6}  {screen.paint(name, name)}")
        screen.line(f"{summary.total:>6}  in all")

    return Answer(summary, text)


def show(context: Context, values: dict[str, Any]) -> Answer:
    """`aof show`."""
    task = context.fabric.show(values["task_id"], at=values.get("at"))
    now = context.fabric.now()

    def text(screen: Screen) -> None:
        from aof.adapters.cli.screen import ago
        from aof.core.times import millis

        screen.line(f"{screen.paint(task['id'], 'bold')}  {task['title']}")
        state = task.get("normalizedStatus", task["status"])
        shown = task["status"] if state == task["status"] else f"{task['status']} ({state})"
        facts = [("status", screen.paint(shown, task["status"])), ("priority", task["priority"])]
        facts.append(("created", f"{ago(millis(task['createdAt']), now)} by {task['createdBy']}"))
        if lease := task.get("lease"):
            facts.append(("held by", f"{lease['agent']}, lease ends {ago(millis(lease['expiresAt']), now)}"))
        facts += _hops(task.get("workflow", {}))
        if held := task.get("blocked"):
            facts.append(("blocked", held["reason"]))
        if warning := task.get("warning"):
            facts.append((warning["code"].replace("_", " "), warning["message"]))
        if error := task.get("lastError"):
            facts.append(("last error", f"{error['code']}: {error['message']}"))
        facts += [(edge["kind"].replace("_", " "), edge["targetId"]) for edge in task.get("relationships", ())]
        for run in task.get("attempts", ()):
            ended = f", ended {ago(millis(run['endedAt']), now)}" if "endedAt" in run else ""
            facts.append((f"run {run['attempt']}", f"{run['agentId']} {run['status']}{ended}"))
        if "filePath" in task:
            facts.append(("file", task["filePath"]))
        for name, value in facts:
            screen.line(f"  {screen.paint(f'{name:<11}', 'dim')}{value}")
        if task["body"]:
            screen.line()
            screen.line(task["body"].rstrip())

    return Answer(task, text)


def _hops(workflow: dict[str, Any]) -> list[tuple[str, str]]:
    """One line for each hop of a gated task."""
    if "template" not in workflow:
        return []
    lines = [("workflow", f"{workflow['name']} ({workflow.get('state', 'open')})")]
    for hop in workflow["hops"]:
        who = f" by {hop['lease']['agent']}" if "lease" in hop else ""
        silent = hop.get("status") in ("done", "ready")
        why = f": {hop['reason']}" if hop.get("reason") and not silent else ""
        lines.append(("hop", f"{hop['id']} [{hop['role']}] {hop.get('status', 'waiting')}{who}{why}"))
    return lines
