"""What questions about many tasks answer, in the names that every surface uses.

Objects in JSON for any encoder, and no more to load than that; the answers of commands are in `results`.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from aof.ports.lists import Row


class Listed(dict[str, "Any"]):
    """A page of tasks, how many match in all, and the cursor of the next page where there is one."""

    __slots__ = ()

    def __init__(self, *, total: int, tasks: tuple[Row, ...], next_cursor: str | None = None) -> None:
        super().__init__(total=total, tasks=tasks)
        if next_cursor is not None:
            self["nextCursor"] = next_cursor

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

    @property
    def next_cursor(self) -> str | None:
        """What the next page is asked for with."""
        return self.get("nextCursor")


class Summary(Listed):
    """The tasks that match, counted by status."""

    __slots__ = ()

    def __init__(
        self, *, total: int, by_status: dict[str, int], tasks: tuple[Row, ...], next_cursor: str | None = None
    ) -> None:
        super().__init__(total=total, tasks=tasks, next_cursor=next_cursor)
        self["byStatus"] = by_status

    @property
    def by_status(self) -> dict[str, int]:
        """How many are in each status that there is."""
        counts: dict[str, int] = self["byStatus"]
        return counts
