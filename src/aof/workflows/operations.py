"""Operations about workflows, and how one is shown. Must not know where templates come from, nor any surface."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any

import msgspec

from aof import errors
from aof.errors import AofError, Call, InvalidInput
from aof.kernel import results as kernel_results
from aof.kernel.declarations import ExpectedRev, TaskId, param
from aof.kernel.findings import Finding
from aof.kernel.model import is_part, is_task_id
from aof.kernel.operation import Extra, Family, Spelling, method, operation
from aof.kernel.results import Moved, Result
from aof.org.model import OrgChart
from aof.support.typed import prepare_type
from aof.tasks.model import Task
from aof.workflows.model import Hop, HopState, Template, begun, workflow_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from aof.api.fabric import Fabric
    from aof.kernel.context import CallContext
    from aof.store.directory import WorkflowReport


_MARKS = {
    "waiting": "○",
    "ready": "●",
    "running": "▶",
    "review": "?",
    "blocked": "‖",
    "rejected": "↩",
    "done": "✓",
    "skipped": "-",
    "failed": "✗",
    "timed_out": "✗",
}


class Portrait(Result, frozen=True, kw_only=True):
    """A template, or a task's workflow with the state of each hop; `mermaid` and `lines` draw it."""

    name: str
    task_id: str | None
    state: str | None
    digest: str
    hops: tuple[dict[str, Any], ...]
    mermaid: str
    lines: tuple[str, ...]


def of_template(document: dict[str, Any]) -> Portrait:
    """A workflow that is written down."""
    workflow = begun(msgspec.convert(document, prepare_type(Template)))
    return _drawn(workflow.template, workflow.digest, {}, None, None)


def of_task(task: Task) -> Portrait:
    """How far a task is in its workflow."""
    if not task.gated:
        raise InvalidInput(f"{task.id} is in no workflow", "see the task itself", Call("show", {"task_id": task.id}))
    workflow = workflow_of(task)
    states = {hop.id: hop for hop in workflow.hops}
    return _drawn(workflow.template, workflow.digest, states, task.id, workflow.state)


def _drawn(
    template: Template, digest: str, states: dict[str, HopState], task_id: str | None, state: str | None
) -> Portrait:
    rows = tuple(_row(hop, states.get(hop.id)) for hop in template.hops)
    return Portrait(
        name=template.name,
        task_id=task_id,
        state=state,
        digest=digest,
        hops=rows,
        mermaid="\n".join(_mermaid(template, states)),
        lines=tuple(_lines(template, states)),
    )


def _row(hop: Hop, state: HopState | None) -> dict[str, Any]:
    rule: dict[str, Any] = msgspec.to_builtins(hop)
    return rule if state is None else rule | msgspec.to_builtins(state) | {"role": state.role}


def _mermaid(template: Template, states: dict[str, HopState]) -> Iterator[str]:
    yield "flowchart TD"
    numbers = {hop.id: f"h{number}" for number, hop in enumerate(template.hops)}
    for hop in template.hops:
        state = states.get(hop.id)
        status = f"<br/>{state.status}" if state is not None else ""
        role = state.role if state is not None else hop.role
        yield f'  {numbers[hop.id]}["{hop.id} ({role}){status}"]'
    for hop in template.hops:
        label = "|any|" if hop.join_type == "any" and len(hop.depends_on) > 1 else ""
        for before in hop.depends_on:
            yield f"  {numbers[before]} -->{label} {numbers[hop.id]}"
        if hop.can_reject:
            back = hop.depends_on if hop.rejection_strategy == "predecessors" else template.origins(hop.id)
            yield from (f"  {numbers[hop.id]} -.->|rejects| {numbers[target]}" for target in back)


def _lines(template: Template, states: dict[str, HopState]) -> Iterator[str]:
    """One line a hop, indented by how many hops come before it at least."""
    depths: dict[str, int] = {}
    rest = list(template.hops)
    while rest:
        hop = next(hop for hop in rest if all(before in depths for before in hop.depends_on))
        rest.remove(hop)
        depths[hop.id] = max((depths[before] + 1 for before in hop.depends_on), default=0)
        yield _line(hop, states.get(hop.id), depths[hop.id])


def _line(hop: Hop, state: HopState | None, depth: int) -> str:
    mark = _MARKS[state.status] if state is not None else "○"
    parts = [f"{'  ' * depth}{mark} {hop.id}", f"[{state.role if state is not None else hop.role}]"]
    if hop.depends_on:
        join = " any of" if hop.join_type == "any" and len(hop.depends_on) > 1 else ""
        parts.append(f"←{join} {', '.join(hop.depends_on)}")
    notes = [("can reject", hop.can_reject), ("conditional", hop.condition is not None)]
    notes += [(f"within {hop.timeout}", hop.timeout is not None), ("waits for approval", not hop.auto_advance)]
    parts += [f"({note})" for note, holds in notes if holds and state is None]
    if state is not None:
        who = f" by {state.agent}" if state.agent and state.status not in ("waiting", "ready") else ""
        why = f": {state.reason}" if state.reason and state.status not in ("done", "ready") else ""
        parts.append(f"{state.status}{who}{why}")
    return " ".join(parts)


def nobody_for(document: dict[str, Any], chart: OrgChart) -> Iterator[Finding]:
    """A warning for each role that no active agent has."""
    for number, hop in enumerate(msgspec.convert(document, prepare_type(Template)).hops):
        for key, role in (("role", hop.role), ("escalateTo", hop.escalate_to)):
            active = [name for name in chart.holders.get(role or "", ()) if chart.by_id[name].active]
            if role is not None and not active:
                detail = f"hop '{hop.id}': no active agent of the org chart has the role '{role}'"
                fix = "give it to an agent in org/org-chart.yaml"
                yield Finding(code="nobody", severity="warning", at=("hops", number, key), detail=detail, fix=fix)


class WorkflowCheck(Result, frozen=True, kw_only=True):
    """Which templates were checked, and their problems."""

    ok: bool
    workflows: list[str]
    problems: list[dict[str, Any]]


def _check(fabric: Fabric, values: dict[str, Any]) -> WorkflowCheck:
    reports = fabric.workflow_check(**values)
    return WorkflowCheck(
        ok=all(report.ok for report in reports),
        workflows=[report.name for report in reports],
        problems=[{"file": report.path} | finding.as_dict() for report in reports for finding in report.findings],
    )


_WORKFLOW = Family(
    verb="workflow",
    help="check or show workflows, or show how far a task is in its workflow",
    place="a workflow or a task; none: all workflows",
    example="aof workflow show 001 --format mermaid",
    section="team",
    order=20,
)
_NAME = Spelling(place="NAME")


@method
def workflows(context: CallContext) -> tuple[str, ...]:
    """The names of the workflows that tasks can be created with."""
    return context.environment.templates.names()


@operation(effect="read", example="aof workflow check", family=_WORKFLOW, over_wire=_check)
def workflow_check(
    context: CallContext, name: Annotated[str, param("none: all of them", _NAME)] | None = None
) -> tuple[WorkflowReport, ...]:
    """Check the workflow templates.

    Everything that is wrong with one of them or with all, with its line and what helps.
    """
    names = workflows(context) if name is None else (name,)
    return tuple(_with_roles(context, context.environment.templates.report(one)) for one in names)


@operation(
    effect="read",
    example="aof workflow show 001",
    extra=(Extra(option="--format", help="text or mermaid", metavar="F"),),
    family=_WORKFLOW,
)
def workflow_show(context: CallContext, name: Annotated[str, param("a workflow, or a task's ID", _NAME)]) -> Portrait:
    """A workflow, or how far a task is in its workflow."""
    if _is_task(context, name):
        return of_task(context.environment.lookup.get(name))
    return of_template(context.environment.templates.usable(name))


@operation(
    effect="write",
    example="aof workflow attach 001",
    spelled=(("task_id", Spelling(place="NAME", target="name")),),
    family=_WORKFLOW,
    needs="lead",
)
def workflow_attach(
    context: CallContext, task_id: TaskId, *, actor: str | None = None, expect_rev: ExpectedRev | None = None
) -> Moved:
    """Start the workflow that a hand-written task names."""
    task = context.environment.lookup.get(task_id)
    if task.routing.workflow is None:
        raise InvalidInput(
            f"{task.id} names no workflow",
            "create a task that names one",
            Call("create", {"title": task.title, "brief": "…", "workflow": "…"}),
        )
    attach = context.environment.templates.attaching(task.id, task.routing.workflow, actor or context.actor)
    context.dispatch(attach, expect_rev=expect_rev)
    return kernel_results.Moved(task_id=task.id, status=context.environment.lookup.get(task.id).status)


def _with_roles(context: CallContext, report: WorkflowReport) -> WorkflowReport:
    """The view with a warning for each role that no agent of the org chart has."""
    try:
        chart = context.environment.chart.declared()
    except AofError:
        return report
    if chart is None or not report.ok or report.document is None:
        return report
    return msgspec.structs.replace(report, findings=(*report.findings, *nobody_for(report.document, chart)))


def _is_task(context: CallContext, name: str) -> bool:
    if name in context.environment.templates.names():
        return False
    if is_task_id(name):
        return True
    try:
        return is_part(name) and bool(context.environment.lookup.resolve(name))
    except errors.TaskNotFound:
        return False
