"""The last event of each touched task: what people are told, a floor for its epochs, and the version of its file.

Must not know how a file is written: the store fills in its digest.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, Final

from aof.core.engine.merge.model import Closing, SupersededRun
from aof.core.engine.merge.replay import Replay, SpanFacts
from aof.core.engine.merge.views import TaskStanding
from aof.core.model.events import Draft
from aof.core.model.task import Task

MERGED: Final = "task.merged"


def close(replay: Replay, facts: SpanFacts, stamp: str) -> tuple[Closing, ...]:
    """One `task.merged` per task, in the order of their IDs."""
    names, notes = facts.names, facts.notes
    standings: dict[str, list[TaskStanding]] = {}
    for (_, key), standing in facts.views.after.items():
        standings.setdefault(names.of(key), []).append(standing)
    closings: list[Closing] = []
    for task_id, key in sorted((names.of(key), key) for key in facts.census.touching):
        payload: dict[str, Any] = _floors(replay.tasks[task_id], standings.get(task_id, []))
        if words := notes.words(task_id):
            payload["conflicts"] = words
        if aliases := names.aliases(key):
            payload["aliases"] = aliases
        payload |= _contested(replay.tasks[task_id], notes.superseded(task_id))
        replay.add((Draft(type=MERGED, task_id=task_id, payload=payload),), stamp)
        closings.append(Closing(len(replay.commits) - 1, 0, replay.tasks[task_id]))
    return tuple(closings)


def _floors(task: Task, standings: list[TaskStanding]) -> dict[str, Any]:
    """The next run of the task, or of a hop, has a greater number than any that a clone has given out."""
    floors: dict[str, Any] = {}
    attempts = max((standing.attempts for standing in standings), default=0)
    if attempts > task.retry.attempts:
        floors["attempts"] = attempts
    epochs = {
        hop["id"]: most
        for hop in task.workflow.get("hops", ())
        if (most := max((one.hops[hop["id"]].epoch for one in standings if hop["id"] in one.hops), default=0))
        > hop.get("epoch", 0)
    }
    return floors | ({"epochs": epochs} if epochs else {})


def _contested(task: Task, runs: Collection[SupersededRun]) -> dict[str, Any]:
    """A lease that was taken in another clone too: names alone do not tell its holder from the other."""
    hops = sorted({run.hop for run in runs if run.hop is not None})
    held = {hop["id"] for hop in task.workflow.get("hops", ()) if "lease" in hop}
    contested: dict[str, Any] = {"contested": True} if task.lease is not None and len(runs) > len(hops) else {}
    return contested | ({"contestedHops": own} if (own := [hop for hop in hops if hop in held]) else {})
