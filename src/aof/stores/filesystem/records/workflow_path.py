"""Stands where workflows may lie: nothing about templates is loaded before one is asked for."""

from __future__ import annotations

from aof.stores.filesystem.records import workflows

TYPE_CHECKING = False
if TYPE_CHECKING:
    from aof.ports.workflows import WorkflowReport


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
