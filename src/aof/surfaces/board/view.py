"""What one view of the board declares, and what it works with: operations in a person's name, and its address."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import cache
from typing import Any, Final
from urllib.parse import urlencode

import msgspec
from starlette.datastructures import ImmutableMultiDict

from aof.api.call import Caller, parameters, perform
from aof.api.catalogue import BY_NAME, SCOPES
from aof.api.fabric import Fabric
from aof.errors import InvalidInput

_LONGEST: Final = 500  # characters of a parameter in an address
_DIGITS: Final = 9
_MOST_AGENTS: Final = 500
_MOST_TAGS: Final = 100


class Operations:
    """The operations, called in the name of one caller; results are plain data with the names of the wire."""

    def __init__(self, fabric: Fabric, caller: Caller) -> None:
        self._fabric = fabric
        self.caller = caller

    def __call__(self, operation: str, /, **given: Any) -> Any:
        """The result of an operation; what is None is left out. Raises AofError."""
        row = BY_NAME[operation]
        names = _wire_names(operation)
        wire = {names.get(name, name): value for name, value in given.items() if value is not None}
        return msgspec.to_builtins(perform(self._fabric, row, parameters(row, wire), self.caller))

    def task(self, given: str | None) -> str | None:
        """The ID of the task that a filter names. Raises TaskNotFound, so that a wrong ID is not taken for silence."""
        return str(self("show", task_id=given, full=False)["id"]) if given is not None else None

    def may(self, operation: str) -> bool:
        """Whether the caller's token allows it; the rules of the chart are asked when it is done."""
        row = BY_NAME.get(operation)
        return row is not None and SCOPES.index(self.caller.scope) >= SCOPES.index(row.scope)

    def has_workflows(self) -> bool:
        """Whether the project has any workflow."""
        source = self._fabric.services.environment.workflows
        return source is not None and bool(source.names())

    def now(self) -> int:
        """The time, in UTC milliseconds."""
        return self._fabric.now()

    def head(self) -> int:
        """The number of the last event; what is read after this call includes it."""
        return self._fabric.store.head()


@cache
def _wire_names(operation: str) -> dict[str, str]:
    """The names that the parameters of an operation have over the wire."""
    return {field.name: field.encode_name for field in msgspec.structs.fields(BY_NAME[operation].parameters)}


class PageAddress:
    """What the address of a page says: the parts of its path, and its filters."""

    def __init__(self, path: Mapping[str, str], query: ImmutableMultiDict[str, str], location: str) -> None:
        self.path = path
        self._location = location
        self._query = query

    def text(self, name: str) -> str | None:
        """A filter; None where it is not set."""
        value = self._query.get(name, "").strip()
        if len(value) > _LONGEST:
            raise InvalidInput(f"the filter {name!r} has more than {_LONGEST} characters", "give a few words")
        return value or None

    def number(self, name: str, usual: int, *, least: int = 0, most: int = 10**_DIGITS) -> int:
        """A number, within bounds; what is none counts as the usual one."""
        value = self._query.get(name, "")
        given = int(value) if value.isascii() and value.isdigit() and len(value) <= _DIGITS else usual
        return min(max(given, least), most)

    def flag(self, name: str) -> bool:
        """Whether it is switched on."""
        return self._query.get(name) in ("1", "on", "true")

    def words(self, name: str) -> tuple[str, ...]:
        """The values of a list such as `done,cancelled`."""
        return tuple(filter(None, (self.text(name) or "").split(",")))

    def used(self, *names: str) -> int:
        """How many of these filters are set."""
        return sum(self.text(name) is not None for name in names)

    def address(self, **changes: Any) -> str:
        """The same page with some parameters changed; None takes one away."""
        kept = [(name, value) for name, value in self._query.multi_items() if name not in changes and value]
        kept += [(name, str(value)) for name, value in changes.items() if value is not None]
        return f"{self._location}?{urlencode(kept)}" if kept else self._location


Context = Callable[[Operations, PageAddress], dict[str, Any]]


class PageView(msgspec.Struct, frozen=True, kw_only=True):
    """One view. `path` is below `/board`; `context` gets what it shows, by calling operations.

    `key` goes to it after `g`, and puts it into the navigation where it is `wanted`; a view without one is reached by
    links. A context may set `live_task` (only events of this task refresh the page), `live` to False (the past does
    not change), and `title`.
    """

    name: str
    path: str
    template: str
    title: str
    context: Context
    key: str = ""
    wanted: Callable[[Operations], bool] = lambda _ask: True


def agent_names(ask: Operations) -> list[str]:
    """The agents; none for somebody who may not ask for them."""
    return [one["id"] for one in ask("agents", limit=_MOST_AGENTS)["agents"]] if ask.may("agents") else []


def tag_names(tasks: Iterable[Mapping[str, Any]]) -> list[str]:
    """The tags of what is shown."""
    return sorted({tag for task in tasks for tag in task.get("tags", ())})[:_MOST_TAGS]
