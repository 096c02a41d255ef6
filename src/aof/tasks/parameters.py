"""The fields of tasks as parameters, made from their rows: what creating, editing and bulk changes take over the wire.

Only the catalogue of operations needs this. Must not know any single field, but for those that an edit takes otherwise.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec
from msgspec import UNSET, UnsetType

from aof.kernel import kinds
from aof.kernel.declarations import FILLED, TASK_TEXT, Object, one_of, param
from aof.kernel.operation import Extra, Spelling
from aof.tasks.fields import BY_KEY, CLEARABLE, FIELDS, ROUTING, TaskField
from aof.tasks.rules import KINDS

_STATED: dict[str, Any] = {  # the types of values, by the kinds of fields; any other one is a text
    "whole": int,
    "texts": list[str],
    "tasks": list[str],
    "list": list[str | Object],
    "object": Object,
}
_SHORT_WAYS = {  # options that set one key of an object
    "profile": (
        Extra(
            option="--capability",
            help="required capability, as NAME or NAME:0.8 for a minimum proficiency",
            metavar="C",
            many=True,
            key="requiredCapabilities",
        ),
    )
}
# What schemas say that a new task has where nothing is given, as clients of the tools know it.
_STATED_DEFAULTS: dict[str, Any] = {"priority": "normal", "dependsOn": [], "tags": [], "metadata": {}}


def field_type(row: TaskField) -> Any:
    """The type of a field's values."""
    return getattr(kinds, row.choice) if row.kind == "choice" else _STATED.get(row.kind, str)


def _parameter(row: TaskField, *, creates: bool = False, bulk: bool = False) -> Any:
    """A field as the type of a parameter, with what is said of it."""
    says: dict[str, Any] = {"minimum": row.least, "maximum": row.most} if row.kind == "whole" else {}
    if creates and row.key in _STATED_DEFAULTS:
        says = {"default": _STATED_DEFAULTS[row.key]}
    if bulk:
        spelling = Spelling(option=f"--set-{row.option.lstrip('-') or row.name}")
        return Annotated[field_type(row), param(row.bulk, spelling, says=says or None)]
    spelling = Spelling(
        option=row.option, metavar=row.metavar, note=row.note, help=row.usage, extra=_SHORT_WAYS.get(row.key, ())
    )
    return Annotated[field_type(row), param(row.help, spelling, says=says or None)]


def _struct(name: str, about: str, parameters: dict[str, Any]) -> type[msgspec.Struct]:
    """An object of parameters that may each be left out."""
    made = msgspec.defstruct(
        name,
        [(key, kind | UnsetType, UNSET) for key, kind in parameters.items()],
        module=__name__,
        frozen=True,
        kw_only=True,
        forbid_unknown_fields=True,
    )
    made.__doc__ = about
    return made


RoutingChange = _struct(
    "RoutingChange",
    "Who should do a task; only what is given changes, and an empty text takes it away.",
    {row.name: _parameter(row) for row in ROUTING if row.edits},
)
BulkChanges = _struct(
    "BulkChanges",
    "What an edit of many tasks changes; an empty text takes a value away.",
    {row.name: _parameter(row, bulk=True) for row in FIELDS if row.bulk},
)
Parent: Any = _parameter(BY_KEY["parentId"])
_CLEARABLE: Any = Literal.__getitem__(tuple(CLEARABLE))
Cleared = Annotated[list[_CLEARABLE], param("field to take away")]
LINK_KINDS = ("parent", "child", "blocked_by", "blocks", *KINDS)
LinkKind = Annotated[
    str, param(f"how they are connected: {', '.join(LINK_KINDS)}", Spelling(place="KIND"), says=one_of(LINK_KINDS))
]
LinkTarget = Annotated[str, param("the other end: a task, a run, a path", Spelling(place="TARGET"))]
_EDITED: dict[str, Any] = {  # what an edit takes in another way than a creation
    "title": Annotated[str, param("new title", says=FILLED)],
    "description": Annotated[str, param("description, as Markdown; the work log stays", TASK_TEXT)],
    "routing": RoutingChange,
}


class NewTask:
    """What a new task may have beside its title and its description."""

    __annotations__ = {
        row.name: _parameter(row, creates=True)
        for row in FIELDS
        if row.creates and row.key not in ("title", "description")
    }


class EditedTask:
    """What an edit changes, but for the parent."""

    __annotations__ = {
        row.name: _EDITED.get(row.key) or _parameter(row)
        for row in FIELDS
        if row.edits and row.inside != "routing" and row.name != "parent_id"
    }
