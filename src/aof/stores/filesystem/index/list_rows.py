"""What a list shows of a task, read from its record by SQLite itself, so that no record has to be decoded.

Must not know which tasks are asked for, nor how the index's tables are laid out but that they hold records.
"""

from __future__ import annotations

from aof.ports.lists import Row

_AT_HOPS = """SELECT json_extract(value, '$.lease.agent') FROM json_each(record, '$.workflow.hops')
               WHERE json_type(value, '$.lease') IS NOT NULL LIMIT 1"""
_FIELDS = (
    "json_extract(record, '$.id')",
    "json_extract(record, '$.title')",
    "json_extract(record, '$.status')",
    "json_extract(record, '$.priority')",
    f"""CASE WHEN json_type(record, '$.workflow.template') IS NOT NULL THEN ({_AT_HOPS})
        ELSE coalesce(json_extract(record, '$.lease.agent'), json_extract(record, '$.routing.agent')) END""",
    "json_extract(record, '$.blocked.reason')",
    "json_extract(record, '$.due')",
    "coalesce(json_extract(record, '$.archived'), 0)",
)


class Shown:
    """One task of a list."""

    __slots__ = ("agent", "due", "folder", "id", "key", "priority", "reason", "status", "title")

    def __init__(  # noqa: PLR0917 - in the order of the columns
        self,
        id: str,  # noqa: A002 - what it is called everywhere
        title: str,
        status: str,
        priority: str,
        agent: str | None,
        reason: str | None,
        due: str | None,
        archived: int,
        key: str | int,
    ) -> None:
        self.id = id
        self.title = title
        self.status = status
        self.priority = priority
        self.agent = agent
        self.reason = reason
        self.due = due
        self.key = key
        self.folder = "archive" if archived else status

    def row(self, state: str | None) -> Row:
        """The same as a row of a list, with what is odd about the task's file."""
        return Row(
            id=self.id,
            title=self.title,
            status=self.status,
            priority=self.priority,
            agent=self.agent,
            reason=self.reason,
            due=self.due,
            state=state,
        )


def showing(records: str) -> str:
    """A statement that finds records and keys, made into one that finds what is shown of them, and their keys."""
    return f"SELECT {', '.join(_FIELDS)}, key FROM ({records})"
