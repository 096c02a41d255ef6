"""Stands where workflows may lie: nothing about templates is loaded before one is asked for."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from aof.ports.workflows import WorkflowReport
    from aof.stores.filesystem.records.workflows import WorkflowFiles


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

    def _files(self) -> WorkflowFiles:
        from aof.stores.filesystem.records.workflows import WorkflowFiles

        return WorkflowFiles(self._root)
