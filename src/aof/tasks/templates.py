"""Templates of tasks and of workflows, as commands and operations need them. Must not know where they are kept."""

from __future__ import annotations

from typing import Annotated, Any

import msgspec

from aof.errors import AofError, Call, InvalidInput, InvalidWorkflow, WorkflowNotFound
from aof.kernel import commands, findings
from aof.kernel.model import Priority, Visibility
from aof.kernel.results import TaskTemplate
from aof.store.port import Store
from aof.support.typed import prepare_type

TYPE_CHECKING = False
if TYPE_CHECKING:
    from aof.store.directory import WorkflowReport, WorkflowSource


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


def list_templates(store: Store) -> tuple[TaskTemplate, ...]:
    """Every template, and what is wrong with those that cannot be used."""
    files = store.working_copy
    return tuple(_described(store, name) for name in (files.templates() if files is not None else ()))


def merge_template(store: Store, name: str, given: dict[str, Any]) -> dict[str, Any]:
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
        wrong = findings.complaint(str(error), keys, TemplateFields)
        raise _unusable(name, wrong.sentence, wrong.choices or f"the keys are: {', '.join(_KEYS)}") from None


def _unusable(name: str, why: str, hint: str) -> InvalidInput:
    return InvalidInput(f"templates/{name}.md cannot be used: {why}", hint, parameter="template")


_KEYS = tuple(field.encode_name for field in msgspec.structs.fields(TemplateFields))


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
        fields = {field: getattr(command, field) for field in command.__struct_fields__}
        return commands.CreateGated(**fields, template=self.usable(name))
