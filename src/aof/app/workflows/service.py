"""Operations about workflows, and how their templates get into tasks. Must not know where templates come from."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from aof.app.operations import results
from aof.app.queries.lists import Listed
from aof.app.scheduler.service import Scheduling
from aof.app.workflows import view
from aof.core.errors import tasks as task_errors
from aof.core.errors import workflows as workflow_errors
from aof.core.errors.base import AofError, Call, InvalidInput
from aof.core.model import commands as c
from aof.core.model import workflow_state
from aof.core.model.ids import OURSELVES, is_part, is_task_id
from aof.core.validation import findings

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from aof.app.commands.unit_of_work import Done
    from aof.app.operations.results import Moved
    from aof.app.workflows.view import Portrait
    from aof.core.model.task import Task
    from aof.ports.lists import Query
    from aof.ports.workflows import WorkflowReport, WorkflowSource


class Gating(Scheduling):
    """The part of a fabric that knows workflows. Where there are none, nothing here costs or checks anything."""

    _workflows: WorkflowSource | None = None

    def workflows(self) -> tuple[str, ...]:
        """The names of the workflows that tasks can be created with."""
        return self._workflows.names() if self._workflows is not None else ()

    def workflow_check(self, name: str | None = None) -> tuple[WorkflowReport, ...]:
        """A close look at one template or at all of them: everything that is wrong, with its line and what helps."""
        names = self.workflows() if name is None else (name,)
        return tuple(self._with_roles(self._report(one)) for one in names)

    def workflow_show(self, name: str) -> Portrait:
        """A template by its name, or the workflow of a task by its ID with the state of each hop."""
        if self._is_task(name):
            return view.of_task(self.get(name))
        return view.of_template(self._template(name))

    def workflow_attach(self, task_id: str, *, actor: str | None = None) -> Moved:
        """Let a task that names a workflow begin it; such a task is one that a person wrote by hand."""
        task = self.get(task_id)
        if task.routing.workflow is None:
            raise InvalidInput(
                f"{task.id} names no workflow",
                "create a task that names one",
                Call("create", {"title": task.title, "brief": "…", "workflow": "…"}),
            )
        self._ask(self._attaching(task.id, task.routing.workflow, actor or self._actor))
        return results.Moved(task_id=task.id, status=self.get(task.id).status)

    def ready(self, **filters: Any) -> Listed:
        """What could be claimed right now, most urgent first; a gated task that runs, where a hop of it is free."""
        listed = super().ready(**filters)
        open_hops = self._open_hops(**filters)
        if not self.store.rows(open_hops).rows:
            return listed
        beside, limit = self._beside(filters.get("agent"), open_hops), filters.get("limit")
        rows = (*self._reading.rows(beside), *listed.tasks)
        return Listed(total=listed.total + len(beside), tasks=rows if limit is None else rows[:limit])

    def _offers(self, agent: str) -> Iterator[str]:
        """What is under way comes first: a hop beside those that run."""
        yield from (task.id for task in self._beside(agent, self._open_hops()))
        yield from super()._offers(agent)

    def _open_hops(self, **filters: Any) -> Query:
        query = self._reading.query(**{**filters, "agent": None, "limit": None})
        return query.but(open_hops=True, order="schedule", counted=False)

    def _beside(self, agent: str | None, open_hops: Query) -> list[Task]:
        found = self.store.find(open_hops).tasks
        may_take = self._may_take(agent) if found and agent is not None else lambda _task: True
        return [task for task in found if may_take(task)]

    def _gated(self, command: c.OnTask, name: str | None) -> c.OnTask:
        """A creation with the template of its workflow in it."""
        if name is None or not isinstance(command, c.Create):
            return command
        fields = {field: getattr(command, field) for field in command.__struct_fields__}
        return c.CreateGated(**fields, template=self._template(name))

    def _running_under(self, key: str) -> Task | None:
        """The running task that was claimed with this key, or a hop of it."""
        return next(
            (task for task in self.running() if any(lease.key == key for lease in workflow_state.leases(task))), None
        )

    def _execute(self, command: c.OnTask) -> Done:
        """A task that somebody wrote by hand begins its workflow when it is first taken."""
        try:
            return super()._execute(command)
        except workflow_errors.NotAttached as refused:
            super()._execute(self._attaching(refused.details["task_id"], refused.details["workflow"], OURSELVES))
            return super()._execute(command)

    def _attaching(self, task_id: str, name: str, actor: str) -> c.Attach:
        return c.Attach(actor=actor, task_id=task_id, template=self._template(name))

    def _template(self, name: str) -> dict[str, Any]:
        """A template that can be used, as a document."""
        report = self._report(name)
        if report.document is not None and report.ok:
            return report.document
        first = next(finding for finding in report.findings if finding.severity == "error")
        line = f"line {first.line}: " if first.line is not None else ""
        raise workflow_errors.InvalidWorkflow(
            f"the workflow '{name}' cannot be used: {line}{first.detail}",
            f"{first.fix}; see all that is wrong",
            Call("workflow_check", {"name": name}),
            workflow=name,
            path=report.path,
        )

    def _report(self, name: str) -> WorkflowReport:
        found = self._workflows.report(name) if self._workflows is not None else None
        if found is not None:
            return found

        known = self.workflows()
        otherwise = f"use one of: {', '.join(known)}" if known else "write it to workflows/NAME.yaml first"
        raise workflow_errors.WorkflowNotFound(
            f"there is no workflow '{name[:80]}'",
            findings.suggestion(name[:80], known, otherwise),
            Call("workflow_check", {}),
            workflow=name[:80],
        )

    def _with_roles(self, report: WorkflowReport) -> WorkflowReport:
        """With a warning for each role that the org chart gives to nobody."""
        try:
            chart = self._chart()
        except AofError:
            return report
        if chart is None or not report.ok or report.document is None:
            return report

        return msgspec.structs.replace(report, findings=(*report.findings, *view.nobody_for(report.document, chart)))

    def _is_task(self, name: str) -> bool:
        if self._workflows is not None and name in self._workflows.names():
            return False
        if is_task_id(name):
            return True
        try:
            return is_part(name) and bool(self.resolve(name))
        except task_errors.TaskNotFound:
            return False
