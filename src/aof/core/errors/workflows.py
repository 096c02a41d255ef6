"""Errors about gated workflows: templates and hops."""

from __future__ import annotations

from aof.core.errors.base import Invalid, NotFound, Refused


class WorkflowNotFound(NotFound):
    """No workflow has that name."""

    code = "workflow_not_found"


class OutcomeRequired(Refused):
    """The task is in a workflow, which only the outcomes of its hops move on."""

    code = "outcome_required"


class HopRoleMismatch(Refused):
    """The hop is for another role."""

    code = "wrong_role"


class NotAttached(Refused):
    """The task names a workflow that it has not begun."""

    code = "workflow_not_attached"


class InvalidWorkflow(Invalid):
    """The workflow's template cannot be used."""

    code = "invalid_workflow"
