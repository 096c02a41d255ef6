"""The org chart in force, as decisions and lists see it. Must not know where it comes from.

Without a chart, nothing here costs or checks anything.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from aof.errors import UnusableOrgChart
from aof.handoffs import rules as handoffs_rules
from aof.kernel import commands
from aof.kernel import results as kernel_results
from aof.org import model, rights, routing

TYPE_CHECKING = False
if TYPE_CHECKING:
    from aof.kernel.model import Policy
    from aof.kernel.results import Warned
    from aof.org.model import OrgChart
    from aof.org.routing import AgentHealth
    from aof.store.directory import OrgSource
    from aof.tasks.model import Task

    Note = Callable[[Task], str | None]
    Reached = Callable[[], Mapping[str, AgentHealth]]

_NOT_TAKEN_YET = ("backlog", "ready")


class ChartInForce:
    """The chart of one data directory, read again when its file has changed."""

    def __init__(self, source: OrgSource | None, policy: Policy, reached: Reached | None = None) -> None:
        self._source = source
        self._policy = policy
        self._reached = reached
        self._with_chart: tuple[OrgChart, Policy] | None = None
        self._reachable: tuple[OrgChart, frozenset[str], OrgChart] | None = None

    def declared(self) -> OrgChart | None:
        """The chart; None where nothing is declared. Raises UnusableOrgChart."""
        chart = self._source.chart() if self._source is not None else None
        return chart if chart is not None and chart.agents else None

    def whole(self) -> OrgChart:
        """The chart, an empty one where there is none. Raises UnusableOrgChart."""
        return self.declared() or model.EMPTY

    def reachable(self, health: Mapping[str, AgentHealth] | None = None) -> OrgChart:
        """The chart for assigning work: agents that cannot be reached are not active in it.

        Which these are is asked, unless the caller knows the `health` of all.
        """
        chart = self.whole()
        if self._reached is None or not chart.declared:
            return chart
        known_health = self._reached() if health is None else health
        gone = frozenset(name for name, one in known_health.items() if not one.available)
        known = self._reachable
        if known is None or known[0] is not chart or known[1] != gone:
            known = self._reachable = (chart, gone, routing.without_unavailable(chart, gone))
        return known[2]

    def readable(self) -> OrgChart | None:
        """The chart for callers that only read; None where it cannot be used, which keeps nobody from reading."""
        try:
            return self.declared()
        except UnusableOrgChart:
            return None

    def readable_policy(self) -> Policy:
        """The policy for callers that only look, with the chart where there is a usable one."""
        chart = self.readable()
        return self._policy if chart is None else self._policy.but(org=chart)

    def policy_for(self, command: commands.OnTask) -> Policy:
        """The policy that decides a command: running work continues while a broken chart is repaired."""
        try:
            chart = self.declared()
        except UnusableOrgChart:
            if isinstance(
                command,
                commands.RecordHeartbeat
                | commands.ReportProgress
                | commands.Ask
                | commands.Release
                | commands.Fail
                | commands.Settle
                | commands.Expire
                | commands.TimeOut
                | commands.ImportEdit,
            ):
                return self._policy
            raise
        if chart is None:
            return self._policy
        if isinstance(command, handoffs_rules.HandoffCommand):
            chart = self.reachable()
        if self._with_chart is None or self._with_chart[0] is not chart:
            self._with_chart = (chart, self._policy.but(org=chart))
        return self._with_chart[1]

    def bound(self, agent: str | None) -> OrgChart | None:
        """The chart that limits what an agent sees and takes; None for maintainers, and where there is no chart."""
        chart = self.readable()
        if chart is None or agent is None or rights.is_person(chart, agent, self._policy.maintainers):
            return None
        return chart

    def may_take(self, agent: str) -> Callable[[Task], bool]:
        """Whether the chart lets the agent take a task; it binds no maintainer outside of it."""
        chart = self.declared()
        if chart is None or rights.is_person(chart, agent, self._policy.maintainers):
            return lambda _task: True
        has = chart.roles_of.get(agent, frozenset())

        def may_take(task: Task) -> bool:
            if task.gated:
                return any(hop.get("status") == "ready" and hop["role"] in has for hop in task.workflow["hops"])
            return routing.routing_refusal(chart, routing.work_of(task.routing, task.profile), agent) is None

        return may_take

    def no_route(self, task: Task) -> Warned | None:
        """The warning that nobody could take the task."""
        note = self.noting()
        reason = note(task) if note is not None else None
        return _warned(task.id, reason) if reason is not None else None

    def noting(self) -> Note | None:
        """Says of a task that waits to be taken why nobody could; None where there is no chart to say so."""
        chart = self.readable()
        if chart is None:
            return None
        known: dict[routing.WorkProfile, str | None] = {}

        def note(task: Task) -> str | None:
            if task.status not in _NOT_TAKEN_YET:
                return None
            if task.gated:
                return _no_hop_taker(chart, task)
            asked = routing.work_of(task.routing, task.profile)
            if asked not in known:
                reason = routing.stranded(chart, asked)
                known[asked] = f"no_route: {reason}" if reason is not None else None
            return known[asked]

        return note


def _no_hop_taker(chart: OrgChart, task: Task) -> str | None:
    """A role that a hop of the gated task waits for, and that no active agent has."""
    for hop in task.workflow["hops"]:
        taken = any(chart.by_id[agent].active for agent in chart.holders.get(hop["role"], ()))
        if hop.get("status") == "ready" and not taken:
            return f"no_route: hop '{hop['id']}' needs the role '{hop['role']}', which no active agent has"
    return None


def _warned(task_id: str, reason: str) -> kernel_results.Warned:
    return kernel_results.Warned(
        code="no_route",
        message=f"nobody in the org chart can take this task: {reason.removeprefix('no_route: ')}",
        hint=f"change the task's routing, or the org chart; see 'aof org route {task_id}'",
    )
