"""Operations about the org chart, and how it gets into decisions and lists. Must not know where it comes from."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence

import msgspec

from aof.app.operations import results
from aof.app.org import view
from aof.app.queries.lists import Listed
from aof.app.queries.queries import Questions
from aof.core.errors import org as org_errors
from aof.core.model import commands as c
from aof.core.model import org_chart, workflow_state
from aof.core.org import routing, standing, work_profile
from aof.core.validation import required_capabilities
from aof.ports.lists import Row

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from aof.app.operations.results import Warned
    from aof.core.model.org_chart import OrgChart
    from aof.core.model.policy import Policy
    from aof.core.model.task import Task
    from aof.core.org.routing import Route
    from aof.ports.org import OrgReport, OrgSource

_CANDIDATES = 16
_NOT_TAKEN_YET = ("backlog", "ready")


class Organising(Questions):
    """The part of a fabric that knows the org chart. Without one, nothing here costs or checks anything."""

    _org: OrgSource | None = None
    _with_chart: tuple[OrgChart, Policy] | None = None

    @property
    def org(self) -> OrgChart:
        """The chart in force, an empty one where there is none. Raises UnusableOrgChart."""
        return self._chart() or org_chart.EMPTY

    def org_report(self) -> OrgReport:
        """Which chart is in force, and everything that is wrong with the one that is written down."""
        from aof.ports.org import OrgReport

        return (
            self._org.report() if self._org is not None else OrgReport(path="", state="absent", chart=org_chart.EMPTY)
        )

    def org_show(self) -> dict[str, Any]:
        """The chart in force, with what each agent holds and may do."""
        report = self.org_report()
        return {"state": report.state, **view.portrait(report.chart, self.org_load(), self._policy.maintainers)}

    def org_load(self) -> dict[str, int]:
        """How many running tasks each agent holds; those that hold none are left out."""
        return dict(Counter(lease.agent for task in self.running() for lease in workflow_state.leases(task)))

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
        """Who would get a task, or one that asked for this, and why; and why the others would not."""
        from aof.core.model.task import Routing

        if task_id is not None:
            task = self.get(task_id)
            asked = work_profile.work_of(task.routing, task.profile)
        else:
            if problem := required_capabilities.bad_capabilities("capabilities", capabilities):
                raise problem
            profile = {required_capabilities.KEY: list(capabilities), "risk": risk, "autonomyLevel": autonomy_level}
            asked = work_profile.work_of(Routing(agent=agent, role=role, team=team, tags=tuple(tags)), profile)
        return routing.route(self.org, asked, self.org_load())

    def ready(self, **filters: Any) -> Listed:
        """What could be claimed right now, most urgent first; with `agent`, by that one."""
        agent, chart = filters.get("agent"), self._chart_to_read()
        if chart is None or agent is None or standing.is_person(chart, agent, self._policy.maintainers):
            return super().ready(**filters)
        query, may_take = self._reading.query(**filters), self._may_take(filters["agent"])
        found = self.store.find(self._reading.runnable(query.but(limit=None))).tasks
        kept = [task for task in found if may_take(task)]
        return Listed(total=len(kept), tasks=self._reading.rows(kept[: query.limit]))

    def held_back(self, **filters: Any) -> tuple[Row, ...]:
        """Every unfinished task that cannot be claimed now, or not by that agent, and why."""
        held = super().held_back(**filters)
        agent = filters.get("agent")
        chart = self._chart_to_read()
        if chart is None or agent is None or standing.is_person(chart, agent, self._policy.maintainers):
            return held
        found = self.store.find(self._reading.runnable(self._reading.query(**filters))).tasks
        why = (
            (task, routing.refusal(chart, work_profile.work_of(task.routing, task.profile), agent)) for task in found
        )
        return (*held, *(Row.of(task, f"{agent} may not take it: {reason}") for task, reason in why if reason))

    def show(self, task_id: str, *, at: int | None = None) -> dict[str, Any]:
        """The whole of one task, with attempts and relationships; `at` an event: as it was then."""
        shown = super().show(task_id, at=at)
        if at is None and shown["status"] in _NOT_TAKEN_YET and self._noting() is not None:
            warning = self._no_route(self.get(shown["id"]))
            if warning is not None:
                shown["warning"] = msgspec.to_builtins(warning)
        return shown

    def _chart(self) -> OrgChart | None:
        """The chart in force; None where nothing is declared."""
        chart = self._org.chart() if self._org is not None else None
        return chart if chart is not None and chart.declared else None

    def _chart_to_read(self) -> OrgChart | None:
        """The same for whoever only looks: a chart that cannot be used keeps nobody from looking."""
        try:
            return self._chart()
        except org_errors.UnusableOrgChart:
            return None

    def _policy_for(self, command: c.OnTask) -> Policy:
        """What a command is decided by: work that is under way goes on while a broken chart is being mended."""
        try:
            chart = self._chart()
        except org_errors.UnusableOrgChart:
            if isinstance(
                command,
                c.RecordHeartbeat
                | c.ReportProgress
                | c.Release
                | c.Fail
                | c.Settle
                | c.Expire
                | c.TimeOut
                | c.ImportEdit,
            ):
                return self._policy
            raise
        if chart is None:
            return self._policy
        if self._with_chart is None or self._with_chart[0] is not chart:
            self._with_chart = (chart, self._policy.but(org=chart))
        return self._with_chart[1]

    def _may_take(self, agent: str) -> Callable[[Task], bool]:
        """Whether the chart lets the agent take a task; it binds no maintainer outside of it."""
        chart = self._chart()
        if chart is None or standing.is_person(chart, agent, self._policy.maintainers):
            return lambda _task: True
        has = chart.roles_of.get(agent, frozenset())

        def may_take(task: Task) -> bool:
            if task.gated:
                return any(hop.get("status") == "ready" and hop["role"] in has for hop in task.workflow["hops"])
            return routing.refusal(chart, work_profile.work_of(task.routing, task.profile), agent) is None

        return may_take

    def _offers(self, agent: str) -> Iterator[str]:
        """What the agent could claim, most urgent first, looked up anew as long as something new turns up."""
        offered: set[str] = set()
        may_take = self._may_take(agent)
        while True:
            query = self._reading.query(agent=agent, limit=_CANDIDATES + 2 * len(offered))
            found = self.store.find(self._reading.runnable(query).but(counted=False)).tasks
            fresh = [task for task in found if task.id not in offered]
            if not fresh:
                return
            offered.update(task.id for task in fresh)
            yield from (task.id for task in fresh if may_take(task))

    def _no_route(self, task: Task) -> Warned | None:
        """The warning that nobody could take the task."""
        note = self._noting()
        reason = note(task) if note is not None else None
        return _warned(task.id, reason) if reason is not None else None

    def _noting(self) -> Callable[[Task], str | None] | None:
        """What says of a task that waits to be taken why nobody could; None where there is no chart to say so."""
        chart = self._chart_to_read()
        if chart is None:
            return None
        known: dict[work_profile.WorkProfile, str | None] = {}

        def note(task: Task) -> str | None:
            if task.status not in _NOT_TAKEN_YET:
                return None
            if task.gated:
                return _no_hop_taker(chart, task)
            asked = work_profile.work_of(task.routing, task.profile)
            if asked not in known:
                reason = routing.stranded(chart, asked)
                known[asked] = f"no_route: {reason}" if reason is not None else None
            return known[asked]

        return note


def _no_hop_taker(chart: OrgChart, task: Task) -> str | None:
    """Of a gated task, a role that a hop waits for and nobody active has."""
    for hop in task.workflow["hops"]:
        taken = any(chart.by_id[agent].active for agent in chart.holders.get(hop["role"], ()))
        if hop.get("status") == "ready" and not taken:
            return f"no_route: hop '{hop['id']}' needs the role '{hop['role']}', which no active agent has"
    return None


def _warned(task_id: str, reason: str) -> results.Warned:

    return results.Warned(
        code="no_route",
        message=f"nobody in the org chart can take this task: {reason.removeprefix('no_route: ')}",
        hint=f"change the task's routing, or the org chart; see 'aof org route {task_id}'",
    )
