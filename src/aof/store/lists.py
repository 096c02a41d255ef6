"""What lists are made of: a query, and rows as every surface shows them.

Plain classes, because every list on the command line pays for what is loaded here. A row and a page of rows are objects
in JSON for any encoder. Must not know how a store finds them.
"""

from __future__ import annotations

from aof.tasks.fields import LISTED

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any, Final

    from aof.kernel.kinds import Priority, Status
    from aof.tasks.model import Task

    Span = tuple[str | None, str | None]  # from this moment on, and before that one
    Place = tuple[str | int, str]  # what a list is ordered by, and the task's ID

OPEN: Final = (None, None)
PARTS: Final = ("title", "description", "comments", "work log")  # what is searched, the most telling first
NEVER: Final = "~"  # follows every moment


class Query:
    """Which tasks to list. `runnable_at` keeps those in `waiting_in` whose recorded waits are all over at that moment.

    `waiting` keeps the others in `waiting_in` instead. `dependent` keeps of these the ones that depend on others.
    `open_hops` keeps gated tasks that run and have another hop to take, `open_handoffs` tasks with handoffs that
    something is still to come of, also when they are finished.
    `at_hops` keeps gated tasks that wait in `ready` with a hop to take. `without` leaves out tasks of these IDs.
    `created`, `updated` and `due` keep what lies from the first moment on and before the second one; None is no limit.
    `search` keeps tasks with that text in title or ID, or with words in title, description, comments or work log that
    begin like each of its own. In the order `relevance`, those that have them in one of these parts are weighed by it.
    `among` keeps tasks of these IDs.
    `behind` is a place in the order: only what comes after it is on the page, and it is counted all the same.
    Without `counted` only the page itself is looked for, which costs less, and its counts are of that page.
    """

    def __init__(
        self,
        *,
        status: tuple[str, ...] = (),
        agent: str | None = None,
        unrouted_too: bool = False,
        tag: str | None = None,
        search: str | None = None,
        parent_id: str | None = None,
        among: tuple[str, ...] | None = None,
        priority: str | None = None,
        created: Span = OPEN,
        updated: Span = OPEN,
        due: Span = OPEN,
        unfinished: bool = False,
        runnable_at: str | None = None,
        waiting_in: str = "ready",
        waiting: bool = False,
        busy_resources: tuple[str, ...] = (),
        dependent: bool = False,
        open_hops: bool = False,
        at_hops: bool = False,
        without: tuple[str, ...] = (),
        open_handoffs: bool = False,
        archived: bool = False,
        hidden: bool = True,
        order: str = "id",
        reverse: bool = False,
        behind: Place | None = None,
        limit: int | None = None,
        offset: int = 0,
        counted: bool = True,
    ) -> None:
        self.status = status
        self.agent = agent
        self.unrouted_too = unrouted_too
        self.tag = tag
        self.search = search
        self.parent_id = parent_id
        self.among = among
        self.priority = priority
        self.created = created
        self.updated = updated
        self.due = due
        self.unfinished = unfinished
        self.runnable_at = runnable_at
        self.waiting_in = waiting_in
        self.waiting = waiting
        self.busy_resources = busy_resources
        self.dependent = dependent
        self.open_hops = open_hops
        self.at_hops = at_hops
        self.without = without
        self.open_handoffs = open_handoffs
        self.archived = archived
        self.hidden = hidden
        self.order = order
        self.reverse = reverse
        self.behind = behind
        self.limit = limit
        self.offset = offset
        self.counted = counted

    def but(self, **changes: Any) -> Query:
        """The same query with something changed."""
        return Query(**(vars(self) | changes))


class DictAnswer(dict[str, "Any"]):
    """An answer that is an object in JSON for any encoder; what it certainly has are properties, too."""

    __slots__ = ()

    def to_dict(self) -> dict[str, Any]:
        """The answer as plain data, as the other answers give it."""
        from msgspec import to_builtins  # which no list needs

        plain: dict[str, Any] = to_builtins(self)
        return plain


class Row(DictAnswer):
    """One line of a list: who holds the task or is meant to do it, why it is held, and what is odd about its file.

    `fields` are the others that lists show, where the task has them. A task in `ready` that cannot be claimed now says
    in `waits` what it waits for.
    """

    __slots__ = ()

    def __init__(
        self,
        *,
        id: str,  # noqa: A002 - what it is called everywhere
        title: str,
        status: str,
        priority: str,
        agent: str | None = None,
        reason: str | None = None,
        fields: dict[str, Any] | None = None,
        state: str | None = None,
    ) -> None:
        super().__init__(id=id, title=title, status=status, priority=priority)
        if agent is not None:
            self["agent"] = agent
        if reason is not None:
            self["reason"] = reason
        self.update(fields or {})
        if state is not None:
            self["state"] = state

    @staticmethod
    def of(task: Task, reason: str | None, state: str | None = None) -> Row:
        """A task as a line."""
        return Row(
            id=task.id,
            title=task.title,
            status=task.status,
            priority=task.priority,
            agent=task.lease.agent if task.lease else _at_hops(task) if task.gated else task.routing.agent,
            reason=reason,
            fields={row.key: value for row in LISTED if (value := getattr(task, row.name)) is not None},
            state=state,
        )

    @property
    def id(self) -> str:
        """The task's ID."""
        return str(self["id"])

    @property
    def title(self) -> str:
        """The task's title."""
        return str(self["title"])

    @property
    def status(self) -> Status:
        """The task's status."""
        status: Status = self["status"]
        return status

    @property
    def priority(self) -> Priority:
        """The task's priority."""
        priority: Priority = self["priority"]
        return priority

    @property
    def agent(self) -> str | None:
        """Who holds the task, else who is meant to do it."""
        return self.get("agent")

    @property
    def reason(self) -> str | None:
        """Why it cannot go on."""
        return self.get("reason")

    @property
    def waits(self) -> str | None:
        """What a task in `ready` waits for, in words; None where it can be claimed."""
        return self.get("waits")

    @property
    def due(self) -> str | None:
        """The day or moment by which it should be done."""
        return self.get("due")

    @property
    def overdue(self) -> bool:
        """Whether that has passed, and the task is not finished."""
        return bool(self.get("overdue"))

    def offer(self, hop: str, role: str, authors: Sequence[str]) -> None:
        """Say which hop of a gated task is offered, and whose work it judges."""
        self |= {"hop": hop, "role": role}
        if authors:
            self["reviews"] = tuple(authors)

    @property
    def step(self) -> str | None:
        """The hop that is offered, in words: "code-review (reviewer) of ada's work"; None where there are no hops."""
        if "hop" not in self:
            return None
        of = f" of {' and '.join(self['reviews'])}'s work" if "reviews" in self else ""
        return f"{self['hop']} ({self['role']}){of}"

    @property
    def state(self) -> str | None:
        """`stale` when the task's file was changed and not yet imported, `unknown` when it cannot be read."""
        return self.get("state")


def _at_hops(task: Task) -> str | None:
    """Who holds a hop of a gated task; the first, where there are several."""
    return next((hop["lease"]["agent"] for hop in task.workflow["hops"] if "lease" in hop), None)


class Rows:
    """A page of rows, how many tasks match in each status, and the place of the last row where others follow it."""

    __slots__ = ("by_status", "end", "rows")

    def __init__(self, by_status: dict[str, int], rows: tuple[Row, ...], end: Place | None = None) -> None:
        self.by_status = by_status
        self.rows = rows
        self.end = end

    @property
    def total(self) -> int:
        """How many match in all."""
        return sum(self.by_status.values())
