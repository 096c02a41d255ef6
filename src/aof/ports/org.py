"""The org chart as the application needs it. Above: app. Below: a file in the data directory, or a fixed chart.

A source keeps serving the last chart that was usable when a newer version is not. It never decides who may do what.
"""

from __future__ import annotations

from typing import Literal, Protocol

import msgspec

from aof.core.model.org_chart import OrgChart
from aof.core.validation.findings import Finding

State = Literal["absent", "current", "last_good", "unusable", "unreadable"]


class OrgReport(msgspec.Struct, frozen=True, kw_only=True):
    """Which chart is in force, and what is wrong with the one that is written down."""

    path: str
    state: State
    chart: OrgChart
    findings: tuple[Finding, ...] = ()


class OrgSource(Protocol):
    """Where the chart comes from."""

    def chart(self) -> OrgChart | None:
        """The chart in force, looked at again; None when there is none. Raises UnusableOrgChart."""
        ...

    def report(self) -> OrgReport:
        """A close look at what is written down; never raises for what it says."""
        ...
