"""Templates of tasks and of workflows, as commands and operations need them. Must not know where they are kept."""

from __future__ import annotations

from functools import cache
from typing import Annotated, Any

import msgspec

from aof.errors import AofError, Call, InvalidInput, InvalidWorkflow, WorkflowNotFound
from aof.kernel import commands, findings, kinds
from aof.kernel.results import TaskTemplate
from aof.store.port import Store
from aof.support.typed import prepare_type
from aof.tasks import fields

TYPE_CHECKING = False
if TYPE_CHECKING:
    from aof.store.directory import WorkflowReport, WorkflowSource


_DESCRIPTION = 200
_ROWS = tuple(row for row in fields.FIELDS if row.template)
_BESIDE = {"max_attempts": int | None, "backlog": bool | None, "review": bool | None}  # what is no field of a task


@cache
def template_type() -> type[msgspec.Struct]:
    """The keys that a template may have, and what they hold; `about` says in a line what it is for."""
    texts = list[Annotated[str, msgspec.Meta(min_length=1)]]
    types: dict[str, Any] = {"texts": texts, "list": list[Any], "object": dict[str, Any], "whole": int}
    keys: list[tuple[str, Any, Any]] = [("about", str, "")]
    for row in _ROWS:
        kind = getattr(kinds, row.choice) if row.kind == "choice" else types.get(row.kind, str)
        keys.append((row.name, kind | None, None))
    keys += [(name, kind, None) for name, kind in _BESIDE.items()]
    return msgspec.defstruct(
        "TemplateFields", keys, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True
    )


def list_templates(store: Store) -> tuple[TaskTemplate, ...]:
    """Every template, and what is wrong with those that cannot be used."""
    files = store.working_copy
    return tuple(_described(store, name) for name in (files.templates() if files is not None else ()))


def merge_template(store: Store, name: str, given: dict[str, Any]) -> dict[str, Any]:
    """What a task is created with: the values of the call, and those of the template where the call has none.

    Of a list, what both have; of an object, the keys of both.
    """
    found, body = _template(store, name)
    brief, more = given["brief"].rstrip(), body.strip()
    values = given | {"brief": "\n\n".join(text for text in (brief, more) if text)}
    kinds = {row.name: row.kind for row in _ROWS}
    for key in (*kinds, *_BESIDE):
        said, usual = given.get(key), getattr(found, key)
        if kinds.get(key) in ("texts", "list"):
            values[key] = [*(said or ()), *(one for one in usual or () if one not in (said or ()))]
        elif kinds.get(key) == "object":
            values[key] = (usual or {}) | (said or {})
        elif said is None:
            values[key] = usual
    return values


def _described(store: Store, name: str) -> TaskTemplate:
    try:
        found, body = _template(store, name)
    except AofError as error:
        return TaskTemplate(name=name, path=f"templates/{name}.md", problem=error.message)
    about = found.about or next((line.strip("# ").strip() for line in body.splitlines() if line.strip()), "")
    return TaskTemplate(name=name, path=f"templates/{name}.md", about=about[:_DESCRIPTION])


def _template(store: Store, name: str) -> tuple[Any, str]:
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
    kind = template_type()
    try:
        return msgspec.convert(keys, prepare_type(kind)), body
    except msgspec.ValidationError as error:
        wrong = findings.complaint(str(error), keys, kind)
        there = ", ".join(field.encode_name for field in msgspec.structs.fields(kind))
        raise _unusable(name, wrong.sentence, wrong.choices or f"the keys are: {there}") from None


def _unusable(name: str, why: str, hint: str) -> InvalidInput:
    return InvalidInput(f"templates/{name}.md cannot be used: {why}", hint, parameter="template")


class Templates:
    """The templates of one data directory; where there are none, nothing here costs or checks anything."""

    def __init__(self, source: WorkflowSource | None) -> None:
        self._source = source

    def names(self) -> tuple[str, ...]:
        """The workflows that tasks can be created with."""
        return self._source.names() if self._source is not None else ()

    def report(self, name: str) -> WorkflowReport:
        """A template with everything that is wrong with it; raises WorkflowNotFound."""
        found = self._source.report(name) if self._source is not None else None
        if found is not None:
            return found
        known = self.names()
        otherwise = f"use one of: {', '.join(known)}" if known else "write it to workflows/NAME.yaml first"
        raise WorkflowNotFound(
            f"there is no workflow '{name[:80]}'",
            findings.suggestion(name[:80], known, otherwise),
            Call("workflow_check", {}),
            workflow=name[:80],
        )

    def usable(self, name: str) -> dict[str, Any]:
        """A template without errors, as a document; raises InvalidWorkflow."""
        report = self.report(name)
        if report.document is not None and report.ok:
            return report.document
        first = next(finding for finding in report.findings if finding.severity == "error")
        line = f"line {first.line}: " if first.line is not None else ""
        raise InvalidWorkflow(
            f"the workflow '{name}' cannot be used: {line}{first.detail}",
            f"{first.fix}; see all that is wrong",
            Call("workflow_check", {"name": name}),
            workflow=name,
            path=report.path,
        )

    def attaching(self, task_id: str, name: str, actor: str) -> commands.Attach:
        """The command that lets a task begin its workflow."""
        return commands.Attach(actor=actor, task_id=task_id, template=self.usable(name))

    def gated(self, command: commands.OnTask, name: str | None) -> commands.OnTask:
        """A creation with the template of its workflow in it."""
        if name is None or not isinstance(command, commands.Create):
            return command
        given = {field: getattr(command, field) for field in command.__struct_fields__}
        return commands.CreateGated(**given, template=self.usable(name))
