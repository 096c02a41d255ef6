"""Where an org chart, workflows and a session charter may lie: nothing about them is loaded before there is one.

Must not know what they contain.
"""

from __future__ import annotations

import os

from aof.stores.filesystem.io import read
from aof.stores.filesystem.records import workflows

TYPE_CHECKING = False
if TYPE_CHECKING:
    from aof.core.model.gate import Gate
    from aof.core.model.org_chart import OrgChart
    from aof.ports.org import OrgReport
    from aof.ports.workflows import WorkflowReport
    from aof.stores.filesystem.io.disk import Disk
    from aof.stores.filesystem.records.org_chart import OrgFile

_MOST = 4_000_000  # bytes
ORG_CHART = "org/org-chart.yaml"


class CharterGates:
    """Keeps the contract of `ports.gates.GatesSource`. A file that cannot be read keeps the gates as they were."""

    def __init__(self, root: str) -> None:
        self._path = f"{root}/SESSION_CHARTER.md"
        self._seen: read.Seen | None = None
        self._gates: tuple[Gate, ...] = ()

    def gates(self) -> tuple[Gate, ...]:
        """The gates that hold anything up."""
        try:
            seen = read.seen(self._path)
            if seen != self._seen:
                data = read.read(self._path, limit=_MOST) if seen is not None else None
                self._gates = _parsed(data) if data else ()
                self._seen = seen
        except OSError:
            pass
        return self._gates


def _parsed(data: bytes) -> tuple[Gate, ...]:
    from aof.documents.charter.parse import parse

    found = parse(data.decode("utf-8", "replace")).gates
    return tuple(gate for gate in found if gate.band != "auto" and gate.scope)


class OrgPath:
    """The chart of a data directory that may have none."""

    def __init__(self, root: str, disk: Disk | None = None) -> None:
        self._root = root
        self._disk = disk
        self._opened: OrgFile | None = None

    def chart(self) -> OrgChart | None:
        """The chart in force; None when there is none."""
        path = f"{self._root}/{ORG_CHART}"
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


class WorkflowPath:
    """The workflows of a data directory that may have none."""

    def __init__(self, root: str) -> None:
        self._root = root

    def names(self) -> tuple[str, ...]:
        """Every workflow that is written down."""
        return self._files().names()

    def report(self, name: str) -> WorkflowReport | None:
        """A close look at one of them."""
        return self._files().report(name)

    def _files(self) -> workflows.WorkflowFiles:
        return workflows.WorkflowFiles(self._root)
