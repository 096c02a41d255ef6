"""Where a gated task goes on, and who may go on with it. Must not know any surface."""

from __future__ import annotations

from aof.app.operations.results import NextHop
from aof.core.model.org_chart import OrgChart
from aof.core.model.task import Task
from aof.core.model.workflow import workflow_of
from aof.core.workflows.claim import judges_own

_OPEN = ("ready", "review")


def next_hops(task: Task, chart: OrgChart | None) -> tuple[NextHop, ...]:
    """The hops that can be taken now, or that wait for approval, each with the agents that may do it.

    Without a chart nobody is named: whoever says to have the role may.
    """
    workflow = workflow_of(task)
    return tuple(
        NextHop(
            hop=hop.id,
            status=hop.status,
            role=hop.role,
            agents=tuple(
                name
                for name in (chart.holders.get(hop.role, ()) if chart is not None else ())
                if chart is not None and chart.by_id[name].active and not judges_own(workflow, hop.id, name)
            ),
        )
        for hop in workflow.hops
        if hop.status in _OPEN
    )
