"""What waits for somebody's review. Must not know any surface."""

from __future__ import annotations

from collections.abc import Sequence

from aof.core.org import rights

TYPE_CHECKING = False
if TYPE_CHECKING:
    from aof.app.fabric import Fabric
    from aof.core.model.task import Task


def waiting_for(fabric: Fabric, agent: str) -> Sequence[Task]:
    """The tasks in review that this agent may judge: never its own work, and what the org chart allows."""
    environment = fabric.services.environment
    chart, policy = environment.chart.readable(), environment.policy
    return [task for task in fabric.tasks(status="review") if rights.may_judge(policy, chart, agent, task)]
