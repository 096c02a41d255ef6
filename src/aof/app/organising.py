"""Operations about the org chart, and how it gets into decisions. Must not know where the chart comes from."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from aof.app.questions import Questions
from aof.core.errors import UnusableOrgChart
from aof.core.records import Policy
from aof.lazily import Lazily

if TYPE_CHECKING:
    from aof.core.org.chart import OrgChart
    from aof.core.tasks import commands as c
    from aof.ports.org import OrgReport, OrgSource
else:  # questions need none of these
    c = Lazily("aof.core.tasks.commands")


class Organising(Questions):
    """The part of a fabric that knows the org chart. Without one, nothing here costs or checks anything."""

    _org: OrgSource | None = None
    _with_chart: tuple[OrgChart, Policy] | None = None

    @property
    def org(self) -> OrgChart:
        """The chart in force, an empty one where there is none. Raises UnusableOrgChart."""
        from aof.core.org.chart import EMPTY

        return (self._org.chart() if self._org is not None else None) or EMPTY

    def org_report(self) -> OrgReport:
        """Which chart is in force, and everything that is wrong with the one that is written down."""
        from aof.core.org.chart import EMPTY
        from aof.ports.org import OrgReport

        return self._org.report() if self._org is not None else OrgReport(path="", state="absent", chart=EMPTY)

    def _policy_now(self) -> Policy:
        """The settings with the chart in force; as they are where there is none."""
        chart = self._org.chart() if self._org is not None else None
        if chart is None or not chart.declared:
            return self._policy
        if self._with_chart is None or self._with_chart[0] is not chart:
            self._with_chart = (chart, msgspec.structs.replace(self._policy, org=chart))
        return self._with_chart[1]

    def _policy_for(self, command: c.OnTask) -> Policy:
        """What a command is decided by: work that is under way goes on while the chart is being mended."""
        try:
            return self._policy_now()
        except UnusableOrgChart:
            if isinstance(command, c.Beat | c.Report | c.Release | c.Fail | c.Settle | c.Expire | c.TakeIn):
                return self._policy
            raise
