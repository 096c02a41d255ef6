"""What questions about many tasks answer, in the names that every surface uses.

Objects in JSON for any encoder, and no more to load than that; the answers of commands are in `results`.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from aof.ports.lists import Row


class Listed(dict[str, "Any"]):
    """A page of tasks, and how many match in all."""

    __slots__ = ()

    def __init__(self, *, total: int, tasks: tuple[Row, ...]) -> None:
        super().__init__(total=total, tasks=tasks)

    @property
    def total(self) -> int:
        """How many match."""
        count: int = self["total"]
        return count

    @property
    def tasks(self) -> tuple[Row, ...]:
        """The page."""
        rows: tuple[Row, ...] = self["tasks"]
        return rows


class Summary(Listed):
    """The tasks that match, counted by status."""

    __slots__ = ()

    def __init__(self, *, total: int, by_status: dict[str, int], tasks: tuple[Row, ...]) -> None:
        dict.__init__(self, total=total, byStatus=by_status, tasks=tasks)

    @property
    def by_status(self) -> dict[str, int]:
        """How many are in each status that there is."""
        counts: dict[str, int] = self["byStatus"]
        return counts
