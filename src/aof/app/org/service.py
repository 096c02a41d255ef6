"""Operations about the org chart. Must not know where the chart comes from."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from aof.app.org import view
from aof.core.model import org_chart, task, workflow
from aof.core.org import routing
from aof.core.validation import required_capabilities
from aof.ports import org as ports
from aof.ports.lists import Query

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from aof.app.commands.context import Environment
    from aof.app.queries.service import QueryService
    from aof.core.org.routing import Route
    from aof.ports.org import OrgReport


class OrgService:
    """Shows the chart, checks it, and says who would get a task."""

    def __init__(self, environment: Environment, queries: QueryService) -> None:
        self._environment = environment
        self._queries = queries

    def org_report(self) -> OrgReport:
        """Which chart is in force, and everything that is wrong with the one that is written down."""
        source = self._environment.org
        if source is None:
            return ports.OrgReport(path="", state="absent", chart=org_chart.EMPTY)
        return source.report()

    def org_show(self) -> dict[str, Any]:
        """The chart in force, with what each agent holds and may do."""
        report = self.org_report()
        maintainers, health = self._environment.policy.maintainers, self._environment.store.health()
        return {"state": report.state, **view.portrait(report.chart, self.org_load(), maintainers, health)}

    def org_load(self) -> dict[str, int]:
        """How many tasks each agent holds or has taken on by a handoff; those that have none are left out."""
        found = self._environment.store.find(Query(open_handoffs=True)).tasks
        held = {one.id: one for one in (*self._queries.running(), *found)}.values()
        return dict(Counter(agent for one in held for agent in workflow.occupied_by(one)))

    def org_route(
        self,
        task_id: str | None = None,
        *,
        agent: str | None = None,
        role: str | None = None,
        team: str | None = None,
        tags: Sequence[str] = (),
        capabilities: Sequence[str] = (),
        risk: str | None = None,
        autonomy_level: int | None = None,
    ) -> Route:
        """Which agent a task, or one with these requirements, would go to; and why not to the others."""
        if task_id is not None:
            known = self._queries.get(task_id)
            asked = routing.work_of(known.routing, known.profile)
        else:
            if problem := required_capabilities.bad_capabilities("capabilities", capabilities):
                raise problem
            profile = {required_capabilities.KEY: list(capabilities), "risk": risk, "autonomyLevel": autonomy_level}
            wanted = task.Routing(agent=agent, role=role, team=team, tags=tuple(tags))
            asked = routing.work_of(wanted, profile)
        return routing.route(self._environment.chart.whole(), asked, self.org_load())
