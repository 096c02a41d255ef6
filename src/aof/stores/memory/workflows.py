"""Workflow templates that were handed in, for users' tests. Must not know any rule about templates."""

from __future__ import annotations

from typing import Any

from aof.core.workflows import template_validation
from aof.ports.workflows import WorkflowReport


class FixedWorkflows:
    """Keeps the contract of `ports.workflows.WorkflowSource`; change `documents` to change the templates."""

    def __init__(self, *documents: dict[str, Any]) -> None:
        self.documents = {str(document.get("name")): document for document in documents}

    def names(self) -> tuple[str, ...]:
        """The names that were handed in."""
        return tuple(sorted(self.documents))

    def report(self, name: str) -> WorkflowReport | None:
        """Check one."""
        document = self.documents.get(name)
        if document is None:
            return None
        checked = template_validation.check(document, name)
        return WorkflowReport(
            name=name, path="", ok=checked.template is not None, findings=checked.findings, document=document
        )
