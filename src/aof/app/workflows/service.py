"""Operations about workflows. Must not know where templates come from."""

from __future__ import annotations

import msgspec

from aof.app.operations import results
from aof.app.workflows import view
from aof.core.errors import tasks as task_errors
from aof.core.errors.base import AofError, Call, InvalidInput
from aof.core.model.ids import is_part, is_task_id

TYPE_CHECKING = False
if TYPE_CHECKING:
    from aof.app.commands.context import Environment, Principal
    from aof.app.commands.dispatcher import Dispatcher
    from aof.app.operations.results import Moved
    from aof.app.workflows.view import Portrait
    from aof.ports.workflows import WorkflowReport


class WorkflowService:
    """Lists, checks and shows workflows, and lets tasks begin theirs."""

    def __init__(self, environment: Environment, principal: Principal, dispatcher: Dispatcher) -> None:
        self._environment = environment
        self._principal = principal
        self._dispatcher = dispatcher
        self._templates = environment.templates
        self._get = environment.lookup.get

    def workflows(self) -> tuple[str, ...]:
        """The names of the workflows that tasks can be created with."""
        return self._templates.names()

    def workflow_check(self, name: str | None = None) -> tuple[WorkflowReport, ...]:
        """A close look at one template or at all of them: everything that is wrong, with its line and what helps."""
        names = self.workflows() if name is None else (name,)
        return tuple(self._with_roles(self._templates.report(one)) for one in names)

    def workflow_show(self, name: str) -> Portrait:
        """A template by its name, or the workflow of a task by its ID with the state of each hop."""
        if self._is_task(name):
            return view.of_task(self._get(name))
        return view.of_template(self._templates.usable(name))

    def workflow_attach(self, task_id: str, *, actor: str | None = None) -> Moved:
        """Let a task that names a workflow begin it; such a task is one that a person wrote by hand."""
        task = self._get(task_id)
        if task.routing.workflow is None:
            raise InvalidInput(
                f"{task.id} names no workflow",
                "create a task that names one",
                Call("create", {"title": task.title, "brief": "…", "workflow": "…"}),
            )
        attach = self._templates.attaching(task.id, task.routing.workflow, actor or self._principal.actor)
        self._dispatcher.dispatch(attach)
        return results.Moved(task_id=task.id, status=self._get(task.id).status)

    def _with_roles(self, report: WorkflowReport) -> WorkflowReport:
        """With a warning for each role that the org chart gives to nobody."""
        try:
            chart = self._environment.chart.declared()
        except AofError:
            return report
        if chart is None or not report.ok or report.document is None:
            return report
        return msgspec.structs.replace(report, findings=(*report.findings, *view.nobody_for(report.document, chart)))

    def _is_task(self, name: str) -> bool:
        if name in self._templates.names():
            return False
        if is_task_id(name):
            return True
        try:
            return is_part(name) and bool(self._environment.lookup.resolve(name))
        except task_errors.TaskNotFound:
            return False
