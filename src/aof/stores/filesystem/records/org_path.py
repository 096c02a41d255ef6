"""Stands where an org chart may lie: nothing about charts is loaded before there is one. Must not read it itself."""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from aof.core.model.org_chart import OrgChart
    from aof.ports.org import OrgReport
    from aof.stores.filesystem.io.disk import Disk
    from aof.stores.filesystem.records.org_chart import OrgFile

NAME = "org/org-chart.yaml"


class OrgPath:
    """The chart of a data directory that may have none."""

    def __init__(self, root: str, disk: Disk | None = None) -> None:
        self._root = root
        self._disk = disk
        self._opened: OrgFile | None = None

    def chart(self) -> OrgChart | None:
        """The chart in force; None when there is none."""
        path = f"{self._root}/{NAME}"
        if self._opened is None and not os.path.lexists(path) and not os.path.islink(os.path.dirname(path)):
            return None
        return self._file().chart()

    def report(self) -> OrgReport:
        """A close look at what is written down."""
        return self._file().report()

    def _file(self) -> OrgFile:
        if self._opened is None:
            from aof.stores.filesystem.records.org_chart import OrgFile

            self._opened = OrgFile(self._root, self._disk)
        return self._opened
