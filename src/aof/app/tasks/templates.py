"""Templates of tasks: what a new task begins with beside what its creator says. Must not know where they are kept.

What is given with the call comes first: its text stands before that of the template, its tags and criteria are added,
and a single value takes the place of the template's.
"""

from __future__ import annotations

from typing import Annotated, Any

import msgspec

from aof._support.typed import prepare_type
from aof.app.operations.results import TaskTemplate
from aof.core.errors.base import AofError, Call, InvalidInput
from aof.core.model.kinds import Priority, Visibility
from aof.core.validation import messages
from aof.ports.store import Store

_DESCRIPTION = 200
_SINGLE = (
    "agent", "role", "team", "workflow", "owner", "resource", "due", "max_attempts", "priority", "visibility",
    "backlog", "review",
)  # fmt: skip
Strings = list[Annotated[str, msgspec.Meta(min_length=1)]]


class TemplateFields(msgspec.Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """The keys that a template may have; `about` says in a line what it is for."""

    about: str = ""
    agent: str | None = None
    role: str | None = None
    team: str | None = None
    priority: Priority | None = None
    tags: Strings = []
    workflow: str | None = None
    owner: str | None = None
    resource: str | None = None
    visibility: Visibility | None = None
    due: str | None = None
    acceptance: list[Any] = []
    constraints: dict[str, Any] = {}
    profile: dict[str, Any] = {}
    metadata: dict[str, Any] = {}
    max_attempts: int | None = None
    backlog: bool | None = None
    review: bool | None = None


def listed(store: Store) -> tuple[TaskTemplate, ...]:
    """Every template, and what is wrong with those that cannot be used."""
    files = store.working_copy
    return tuple(_described(store, name) for name in (files.templates() if files is not None else ()))


def merged(store: Store, name: str, given: dict[str, Any]) -> dict[str, Any]:
    """What a task is created with: the values of the call, and those of the template where the call has none."""
    fields, body = _template(store, name)
    brief, more = given["brief"].rstrip(), body.strip()
    values = given | {"brief": "\n\n".join(text for text in (brief, more) if text)}
    for key in ("tags", "acceptance"):
        values[key] = [*given[key], *(one for one in getattr(fields, key) if one not in given[key])]
    for key in ("constraints", "profile", "metadata"):
        values[key] = getattr(fields, key) | (given[key] or {})
    for key in _SINGLE:
        if given[key] is None:
            values[key] = getattr(fields, key)
    return values


def _described(store: Store, name: str) -> TaskTemplate:
    try:
        fields, body = _template(store, name)
    except AofError as error:
        return TaskTemplate(name=name, path=f"templates/{name}.md", problem=error.message)
    about = fields.about or next((line.strip("# ").strip() for line in body.splitlines() if line.strip()), "")
    return TaskTemplate(name=name, path=f"templates/{name}.md", about=about[:_DESCRIPTION])


def _template(store: Store, name: str) -> tuple[TemplateFields, str]:
    files = store.working_copy
    try:
        found = files.template(name) if files is not None else None
    except AofError as error:
        raise _unusable(name, error.message, error.hint) from None
    if found is None:
        there = ", ".join(files.templates()) if files is not None else ""
        hint = f"use one of: {there}" if there else "write one to templates/NAME.md in the data directory"
        said = f"there is no template {name[:80]!r}"
        raise InvalidInput(said, hint, Call("templates", {}), parameter="template")
    keys, body = found
    try:
        return msgspec.convert(keys, prepare_type(TemplateFields)), body
    except msgspec.ValidationError as error:
        wrong = messages.complaint(str(error), keys, TemplateFields)
        raise _unusable(name, wrong.sentence, wrong.choices or f"the keys are: {', '.join(_KEYS)}") from None


def _unusable(name: str, why: str, hint: str) -> InvalidInput:
    return InvalidInput(f"templates/{name}.md cannot be used: {why}", hint, parameter="template")


_KEYS = tuple(field.encode_name for field in msgspec.structs.fields(TemplateFields))
