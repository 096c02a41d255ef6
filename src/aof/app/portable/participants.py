"""Who asked, who answers, who works, and the lines of work of all agents. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from aof._support.frozen import FrozenDict
from aof.app.portable.relations import active
from aof.app.portable.task_histories import Life
from aof.app.portable.view_source import Scene
from aof.app.portable.vocabulary import NOT_APPLICABLE, UNKNOWN, missing
from aof.core.model.ids import OURSELVES

Turns = dict[str, list[dict[str, Any]]]
_KINDS = {"human": "person", "a2a": "peer"}


def who(scene: Scene, name: str | None) -> dict[str, Any]:
    """A person, an agent, a team, a peer or AOF itself, as far as the org chart tells."""
    if name is None:
        return missing()
    known = scene.names.get(name)
    if known is None:
        known = scene.names[name] = FrozenDict(id=name, kind=_kind(scene, name))
    return known


def _kind(scene: Scene, name: str) -> str:
    if name == OURSELVES:
        return "runtime"
    chart = scene.chart
    if chart is not None and name in chart.by_id:
        return _KINDS.get(chart.by_id[name].runner.kind, "agent")
    if chart is not None and name in chart.teams_by_id:
        return "team"
    return "person" if name in scene.policy.maintainers else UNKNOWN


def assignee(scene: Scene, life: Life) -> dict[str, Any]:
    """Who holds the present lease; of several hops the one that was taken last."""
    held = active(life)
    return who(scene, held[-1].run.agent_id) if held else missing(NOT_APPLICABLE)


def turns(scene: Scene, life: Life) -> Turns:
    """The agents that have run the task, each with those of its runs that go on now."""
    found: Turns = {}
    running = {one.run.run_id for one in active(life)}
    for attempt in life.attempts:
        run = attempt.run
        line = found.setdefault(run.agent_id, [])
        if run.run_id in running:
            state = "stale" if scene.run_status(life, attempt) == "unavailable" else "running"
            turn = {"turnId": run.run_id, "status": state, "startedAt": run.started_at}
            line.append(turn | {"taskId": life.task.id, "runId": run.run_id, "attemptId": run.run_id})
    return found


def threads(by_task: Iterable[Turns]) -> list[dict[str, Any]]:
    """The line of work of each agent that has run one of these tasks, with the runs that go on now as its turns."""
    turns: Turns = {}
    for found in by_task:
        for agent, line in found.items():
            turns.setdefault(agent, []).extend(line)
    return [_thread(agent, turns[agent]) for agent in sorted(turns)]


def _thread(agent: str, turns: list[dict[str, Any]]) -> dict[str, Any]:
    states = {turn["status"] for turn in turns}
    status = "running" if "running" in states else "stale" if states else "idle"
    current = {"activeTurnId": max(turns, key=_begun)["turnId"]} if turns else {}
    return {"threadId": agent, "status": status, **current, "turns": turns}


def _begun(turn: dict[str, Any]) -> tuple[str, str]:
    return turn["startedAt"], turn["turnId"]
