"""An org chart that was handed in, for users' tests and for programs that keep the chart elsewhere.

Must not know any rule about charts.
"""

from __future__ import annotations

from aof.core.model.org_chart import OrgChart
from aof.core.org.chart import references
from aof.ports.org import OrgReport


class FixedChart:
    """Keeps the contract of `ports.org.OrgSource`; assign `current` to change the chart."""

    def __init__(self, chart: OrgChart) -> None:
        self.current = chart

    def chart(self) -> OrgChart:
        """The chart that was handed in."""
        return self.current

    def report(self) -> OrgReport:
        """The same, with what it says of names that are not there."""
        return OrgReport(
            path="", state="current", chart=self.current, findings=tuple(references.dangling(self.current))
        )
