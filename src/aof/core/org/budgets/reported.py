"""A result that its run has left behind, held against the budget of its agent before it is applied.

A worker may write `run_result.json` itself and vanish. Nobody waits for an answer then: work of more files or lines
than the agent may do by itself is blocked, so that a person decides. Must not know how such a result is applied.
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from aof.core.model.events import Draft
from aof.core.model.org_chart import Agent
from aof.core.model.records import Decision, Records, Verdict
from aof.core.model.run import RunResult
from aof.core.model.task import Lease, Task
from aof.core.model.workflow import held_leases
from aof.core.org import rights
from aof.core.org.budgets.enforcement import AskedAction, measured, told, too_large
from aof.core.validation.project_paths import normalised


class Limited(msgspec.Struct, frozen=True):
    """The records as they count, and what is to be recorded of each run whose result does not."""

    records: Records
    rulings: dict[str, Draft] = {}

    def recorded(self, verdict: Verdict) -> Verdict:
        """The decision, with the ruling before the end of each run that it was about."""
        if not self.rulings or not isinstance(verdict, Decision):
            return verdict
        drafts: list[Draft] = []
        for draft in verdict.drafts:
            if draft.type == "task.attempt.completed" and draft.run_id in self.rulings:
                drafts.append(self.rulings[draft.run_id])
            drafts.append(draft)
        return msgspec.structs.replace(verdict, drafts=tuple(drafts))


def limited(records: Records, task_id: str) -> Limited:
    """The results of a task's runs, those blocked that are more than their agents may do."""
    task = records.look(task_id)
    rulings: dict[str, Draft] = {}
    results = dict(records.results)
    for place, agent, lease, result in _reported(records, task):
        assert task is not None
        ruled = too_large(records, task, agent, lease, result.deliverables or ())
        if ruled is None or result.outcome == "blocked":
            continue
        blockers = (f"over budget: {ruled.reason} ({ruled.point})",)
        results[place] = msgspec.structs.replace(result, outcome="blocked", blockers=blockers)
        payload = told(ruled, agent.id, AskedAction(point="files"))
        rulings[lease.run_id] = Draft(type="autonomy.checked", task_id=task.id, run_id=lease.run_id, payload=payload)
    return Limited(msgspec.structs.replace(records, results=results) if rulings else records, rulings)


def sizes(known: Records, task_id: str) -> frozenset[tuple[str, str]]:
    """What must be measured of what was reported, as far as is known."""
    if known.policy.org is None:
        return frozenset()
    found = _reported(known, known.tasks.get(task_id))
    refs = (ref for _, agent, _, result in found if measured(agent) for ref in result.deliverables or ())
    return frozenset((task_id, ref) for ref in refs if isinstance(normalised("deliverables", ref), str))


def _reported(records: Records, task: Task | None) -> Iterator[tuple[str, Agent, Lease, RunResult]]:
    """The runs that the task is held with and that have reported, of agents of the chart."""
    chart = records.policy.org
    if chart is None or task is None:
        return
    for place, lease in held_leases(task):
        result = records.results.get(place)
        agent = rights.entry_of(chart, lease.agent, records.policy.maintainers)
        if agent is not None and isinstance(result, RunResult) and result.run_id == lease.run_id:
            yield place, agent, lease, result
