"""What people write down for all tasks: the org chart, workflows, and the charter's gates.

Nothing that reads or judges them is loaded before there is one.
"""

from __future__ import annotations

import os
import stat
from contextlib import suppress

from aof.store.files import disk as files_disk
from aof.store.files import templates

TYPE_CHECKING = False
if TYPE_CHECKING:
    from aof.org.model import Gate, OrgChart
    from aof.store.directory import OrgReport, WorkflowReport
    from aof.store.files.org_chart import OrgFile

ORG_FOLDER = "org"
ORG_CHART = f"{ORG_FOLDER}/org-chart.yaml"
_CHARTER_BYTES = 4_000_000


class OrgPath:
    """The chart of a data directory that may have none."""

    def __init__(self, root: str, disk: files_disk.Disk | None = None) -> None:
        self._root = root
        self._disk = disk
        self._opened: OrgFile | None = None

    def chart(self) -> OrgChart | None:
        """The chart in force; None when there is none."""
        if self._opened is None:
            try:
                folder = os.lstat(f"{self._root}/{ORG_FOLDER}").st_mode
            except OSError:
                return None
            if not stat.S_ISLNK(folder) and not os.path.lexists(f"{self._root}/{ORG_CHART}"):
                return None
        return self._file().chart()

    def report(self) -> OrgReport:
        """A close look at what is written down."""
        return self._file().report()

    def _file(self) -> OrgFile:
        if self._opened is None:
            from aof.store.files.org_chart import OrgFile

            self._opened = OrgFile(self._root, self._disk)
        return self._opened


class WorkflowFiles:
    """The workflow templates of a data directory: `workflows/<name>.yaml`."""

    def __init__(self, root: str) -> None:
        self._root = root

    def names(self) -> tuple[str, ...]:
        """The names of the files."""
        with suppress(FileNotFoundError, NotADirectoryError):
            found = sorted(os.listdir(f"{self._root}/workflows"))
            return tuple(name.removesuffix(".yaml") for name in found if name.endswith(".yaml"))
        return ()

    def report(self, name: str) -> WorkflowReport | None:
        """Read and check one; None where there is none of that name."""
        return templates.check_workflow(self._root, name)


class CharterGates:
    """The gates of the charter. A file that cannot be read keeps the gates as they were."""

    def __init__(self, root: str) -> None:
        self._path = f"{root}/SESSION_CHARTER.md"
        self._seen: files_disk.Seen | None = None
        self._gates: tuple[Gate, ...] = ()

    def gates(self) -> tuple[Gate, ...]:
        """The gates that hold anything up."""
        with suppress(OSError):
            seen = files_disk.seen(self._path)
            if seen != self._seen:
                data = files_disk.read(self._path, limit=_CHARTER_BYTES) if seen is not None else None
                self._gates = _gates_in(data) if data else ()
                self._seen = seen
        return self._gates


def _gates_in(charter: bytes) -> tuple[Gate, ...]:
    from aof.documents.charter import parse_charter

    found = parse_charter(charter.decode("utf-8", "replace")).gates
    return tuple(gate for gate in found if gate.band != "auto" and gate.scope)
