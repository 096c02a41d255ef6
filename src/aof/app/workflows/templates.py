"""Workflow templates, as commands and operations need them. Must not know where they come from."""

from __future__ import annotations

from aof.core.model import commands as c
from aof.core.model.errors import Call, InvalidWorkflow, WorkflowNotFound
from aof.core.validation import findings

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from aof.ports.workflows import WorkflowReport, WorkflowSource


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

    def attaching(self, task_id: str, name: str, actor: str) -> c.Attach:
        """The command that lets a task begin its workflow."""
        return c.Attach(actor=actor, task_id=task_id, template=self.usable(name))

    def gated(self, command: c.OnTask, name: str | None) -> c.OnTask:
        """A creation with the template of its workflow in it."""
        if name is None or not isinstance(command, c.Create):
            return command
        fields = {field: getattr(command, field) for field in command.__struct_fields__}
        return c.CreateGated(**fields, template=self.usable(name))
