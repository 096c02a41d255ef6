"""The context that the agents of a workflow share: variables, decisions, artifacts; writes to it, and its events."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, Final, Literal

import msgspec

from aof.errors import AofError, Call, ContextConflict, InvalidInput, OutOfScope, PayloadTooLarge
from aof.kernel import limits
from aof.kernel.commands import Records
from aof.kernel.events import Draft, Event
from aof.kernel.kinds import LockMode, Priority
from aof.kernel.model import is_agent_name
from aof.support.answer import StructAnswer
from aof.support.hashing import hexdigest
from aof.support.typed import prepare_type
from aof.tasks.model import FileLock, Task

TYPE_CHECKING = False
if TYPE_CHECKING:
    from aof.handoffs.model import HandoffType

BYTES: Final = 24_576  # of a whole context, which stands in the topmost task's frontmatter
_RECORD_BYTES: Final = 49_152  # of that task's whole frontmatter, so that there is room for what AOF itself writes
_NAME: Final = 128  # characters
_COMPUTED: Final = ("task_id", "task_status", "task_priority", "decisions_made", "files_in_progress", "custom")
_replace = msgspec.structs.replace
SHARED: Final = "shared"  # the scope that every agent of the workflow may write
ROLE: Final = "role:"
TEAM: Final = "team:"

TaskStatus = Literal["pending", "in_progress", "blocked", "complete", "failed"]
ConflictRule = Literal["first", "last"]
ArtifactType = Literal["file", "code", "document", "test_result", "review_comment"]
ArtifactStatus = Literal["draft", "final", "superseded"]

CONFLICT_RULES: Final[tuple[ConflictRule, ...]] = ("first", "last")
ARTIFACT_TYPES: Final[tuple[ArtifactType, ...]] = ("file", "code", "document", "test_result", "review_comment")
ARTIFACT_STATUSES: Final[tuple[ArtifactStatus, ...]] = ("draft", "final", "superseded")
TASK_STATUS: Final[dict[str, TaskStatus]] = {
    "backlog": "pending",
    "ready": "pending",
    "in-progress": "in_progress",
    "review": "in_progress",
    "blocked": "blocked",
    "done": "complete",
    "deadletter": "failed",
    "cancelled": "failed",
}


class _Carried(StructAnswer, frozen=True, kw_only=True):
    """Common form of what a handoff carries: snake-case keys, every one written."""


class DecisionMade(_Carried, frozen=True, kw_only=True):
    """A decision that an agent of the workflow has made."""

    decision_id: str
    description: str
    made_by: str
    timestamp: str


class FileInProgress(_Carried, frozen=True, kw_only=True):
    """A file or folder that somebody has locked."""

    path: str
    owner: str
    lock_type: LockMode


class Artifact(_Carried, frozen=True, kw_only=True):
    """A reference to something that was made in the workflow: never its content."""

    id: str
    type: ArtifactType
    path: str
    created_by: str
    created_at: str
    description: str = ""
    status: ArtifactStatus = "draft"


class ContextVariables(_Carried, frozen=True, kw_only=True):
    """`context_variables` of a handoff: where the task stands, and what the agents have written so far."""

    task_id: str
    task_status: TaskStatus
    task_priority: Priority
    decisions_made: tuple[DecisionMade, ...] = ()
    files_in_progress: tuple[FileInProgress, ...] = ()
    custom: dict[str, Any] = msgspec.field(default_factory=dict)


class TransferredContext(_Carried, frozen=True, kw_only=True):
    """What a handoff takes along. `context_variables_hash` is the SHA-256 of the variables as canonical JSON."""

    context_variables: ContextVariables
    context_variables_hash: str
    artifacts: tuple[Artifact, ...] = ()
    escalation_rationale: str | None = None


class Variable(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """One variable as the record keeps it: `version` counts its writes, `task_id` is where the last one came from."""

    value: Any
    scope: str
    writer: str
    version: int
    written_at: str
    task_id: str


class RecordedDecision(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """A decision as the record keeps it."""

    decision_id: str
    description: str
    made_by: str
    timestamp: str
    task_id: str


class RecordedArtifact(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """An artifact as the record keeps it; `run_id` is the run that made it, where one did."""

    id: str
    type: ArtifactType
    path: str
    created_by: str
    created_at: str
    description: str = ""
    status: ArtifactStatus = "draft"
    task_id: str
    run_id: str | None = None


class SharedContext(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """`context` in the record of a topmost task. `rule` says which of two conflicting writes holds."""

    variables: dict[str, Variable] = {}
    decisions: tuple[RecordedDecision, ...] = ()
    artifacts: tuple[RecordedArtifact, ...] = ()
    rule: ConflictRule = "first"


def context_of(task: Task) -> SharedContext:
    """The context that the record holds."""
    return msgspec.convert(task.context, prepare_type(SharedContext)) if task.context else SharedContext()


def builtins(context: SharedContext) -> dict[str, Any]:
    """The value as a record holds it: as it comes back from JSON."""
    whole: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(context))
    return whole


def context_changes(task: Task, event: Event) -> dict[str, Any]:
    """What an event about the context changes in the record of its task."""
    context, payload = context_of(task), event.payload
    match event.type:
        case "context.set":
            fields = {name: value for name, value in payload.items() if name != "name"}
            variable = msgspec.convert(fields | {"writtenAt": event.timestamp}, prepare_type(Variable))
            context = _replace(context, variables=context.variables | {payload["name"]: variable})
        case "context.decided":
            made = msgspec.convert(payload | {"timestamp": event.timestamp}, prepare_type(RecordedDecision))
            context = _replace(context, decisions=(*context.decisions, made))
        case "context.artifact":
            # A new artifact, or a known one in another state: what identifies it stays.
            fields, before = payload["artifact"], context.artifacts
            known = next((one for one in before if one.id == fields["id"]), None)
            created = known.created_at if known is not None else event.timestamp
            artifact = msgspec.convert(fields | {"createdAt": created}, prepare_type(RecordedArtifact))
            kept = (artifact if one is known else one for one in before)
            context = _replace(context, artifacts=(*kept, *(() if known is not None else (artifact,))))
        case "context.rule":
            context = _replace(context, rule=payload["rule"])
        case _:
            return {}
    return {"context": builtins(context)}


class Writer(msgspec.Struct, frozen=True, kw_only=True):
    """Who writes: an agent with its roles and teams. `steers` says that it is the orchestrator's right to decide."""

    agent: str
    roles: frozenset[str] = frozenset()
    teams: frozenset[str] = frozenset()
    steers: bool = False

    def writes(self, scope: str) -> bool:
        """Whether a variable of that scope is this agent's to write."""
        own = {SHARED, self.agent, *(f"{ROLE}{role}" for role in self.roles), *(f"{TEAM}{team}" for team in self.teams)}
        return self.steers or scope in own


class Write(msgspec.Struct, frozen=True, kw_only=True):
    """A value for a variable. `base` is the version that the writer has read; 0: that there was none yet."""

    name: str
    value: Any
    scope: str | None = None
    base: int | None = None


class Written(msgspec.Struct, frozen=True, kw_only=True):
    """What writes come to: what is recorded, the context after it, and what was refused in doing so."""

    drafts: tuple[Draft, ...] = ()
    context: SharedContext = SharedContext()
    refusals: tuple[AofError, ...] = ()


def top_of(records: Records, task: Task) -> Task:
    """The topmost task of the tree, whose record keeps the context; its ancestors must be loaded."""
    above = records.above.get(task.id, ())
    return records.task(above[-1]) if above and records.tasks.get(above[-1]) is not None else task


def digest(variables: Any) -> str:
    """SHA-256 of context variables as canonical JSON (keys in order, no spaces, UTF-8), in whatever order they come."""
    return hexdigest(msgspec.json.encode(variables, order="sorted"))


def variables_of(task: Task, context: SharedContext, files: Collection[FileLock] = ()) -> ContextVariables:
    """The shared context as one of the tasks of the workflow sees it."""
    return ContextVariables(
        task_id=task.id,
        task_status=TASK_STATUS[task.status],
        task_priority=task.priority,
        decisions_made=tuple(
            DecisionMade(
                decision_id=one.decision_id, description=one.description, made_by=one.made_by, timestamp=one.timestamp
            )
            for one in context.decisions
        ),
        files_in_progress=tuple(
            FileInProgress(path=one.path, owner=one.agent, lock_type=one.mode)
            for one in sorted(files, key=lambda one: (one.path, one.agent))
        ),
        custom={name: variable.value for name, variable in sorted(context.variables.items())},
    )


def snapshot(
    task: Task,
    kind: HandoffType,
    *,
    top: Task | None = None,
    files: Collection[FileLock] = (),
    receiver: Writer | None = None,
    names: Collection[str] = (),
    rationale: str | None = None,
) -> TransferredContext:
    """What a handoff of that type takes along: all of it, or for a delegation what concerns the subtask.

    That is what the receiver may write, what was written for the subtask, and what the sender names. `top` is the
    topmost task of the tree (else the task itself), `files` are the locks of the tree's tasks.
    """
    context = context_of(top or task)
    if kind == "delegation":
        context = _of_subtask(task, context, receiver, names)
    variables = variables_of(task, context, files)
    return TransferredContext(
        context_variables=variables,
        context_variables_hash=digest(variables),
        artifacts=tuple(map(reference, context.artifacts)),
        escalation_rationale=rationale if kind == "escalation" else None,
    )


def _of_subtask(task: Task, context: SharedContext, receiver: Writer | None, names: Collection[str]) -> SharedContext:
    concerned = {task.id, task.parent_id}
    kept = {
        name: one
        for name, one in context.variables.items()
        if name in names or one.task_id == task.id or (receiver is not None and receiver.writes(one.scope))
    }
    return _replace(
        context,
        variables=kept,
        decisions=tuple(one for one in context.decisions if one.task_id in concerned),
        artifacts=tuple(one for one in context.artifacts if one.task_id in concerned),
    )


def reference(artifact: RecordedArtifact) -> Artifact:
    """An artifact as handoffs carry it."""
    fields = msgspec.structs.asdict(artifact)
    del fields["task_id"], fields["run_id"]
    return Artifact(**fields)


def write(top: Task, writes: tuple[Write, ...], *, writer: Writer, task_id: str) -> Written:
    """What writes to the context come to, one after the other."""
    context, drafts, refusals = context_of(top), list[Draft](), list[AofError]()
    for one in writes:
        before = context.variables.get(one.name)
        attempt: dict[str, Any] = {"name": str(one.name)[:_NAME], "writer": writer.agent, "taskId": task_id}
        attempt |= {"base": one.base} if one.base is not None else {}
        attempt |= {} if limits.data("value", one.value, BYTES) else {"value": one.value}
        refusal = _malformed(one) or _out_of_scope(one, before, writer)
        if refusal is not None:
            refusals.append(refusal)
            drafts.append(_refused(top, attempt, refusal))
            continue
        version = before.version if before is not None else 0
        if one.base not in (None, version) and not writer.steers:
            drafts.append(_conflict(top, attempt, before, context.rule))
            if context.rule == "first":
                refusals.append(_stale(one, before, task_id))
                continue
        elif before is not None and _same(before, one):
            continue
        variable = Variable(
            value=one.value,
            scope=one.scope or (before.scope if before is not None else writer.agent),
            writer=writer.agent,
            version=version + 1,
            written_at="",
            task_id=task_id,
        )
        after = _replace(context, variables=context.variables | {one.name: variable})
        if (too_large := oversize(top, after)) is not None:
            refusals.append(too_large)
            drafts.append(_refused(top, attempt, too_large))
            continue
        context = after
        payload: dict[str, Any] = {"name": one.name, **msgspec.to_builtins(variable)}
        del payload["writtenAt"]  # the event says when
        drafts.append(Draft(type="context.set", task_id=top.id, payload=payload))
    return Written(drafts=tuple(drafts), context=context, refusals=tuple(refusals))


def oversize(top: Task, context: SharedContext) -> PayloadTooLarge | None:
    """Refuse a context that no longer fits into the record of its task."""
    size = len(msgspec.json.encode(context))
    rest = len(msgspec.json.encode(_replace(top, body="", layout=None, context={})))
    if size <= BYTES and size + rest <= _RECORD_BYTES:
        return None
    return PayloadTooLarge(
        f"the context would take {size:,} bytes, the limit is {BYTES:,}",
        "keep large data in a file and record that as an artifact",
    )


def _same(before: Variable, one: Write) -> bool:
    known = msgspec.json.encode(before.value, order="sorted") == msgspec.json.encode(one.value, order="sorted")
    return known and one.scope in (None, before.scope)


def _malformed(one: Write) -> AofError | None:
    if problem := limits.line("name", one.name, _NAME, required=True):
        return problem
    if one.name in _COMPUTED:
        return InvalidInput(f"'{one.name}' follows from the task and cannot be written", "choose another name")
    if one.scope is not None and (problem := bad_scope(one.scope)):
        return problem
    return limits.data(one.name, one.value, BYTES)


def bad_scope(scope: str) -> InvalidInput | None:
    """Refuse what names nobody who could write."""
    name = scope.removeprefix(ROLE) if scope.startswith(ROLE) else scope.removeprefix(TEAM)
    if is_agent_name(name):
        return None
    return InvalidInput(
        f"'scope' cannot be {scope[:80]!r}", "use 'shared', an agent's name, 'role:NAME' or 'team:NAME'"
    )


def _out_of_scope(one: Write, before: Variable | None, writer: Writer) -> OutOfScope | None:
    for scope in (before.scope if before is not None else None, one.scope):
        if scope is not None and not writer.writes(scope):
            return OutOfScope(
                f"'{one.name[:80]}' is in the scope '{scope}', which {writer.agent} may not write",
                f"write a variable of your own, or let {scope} or the orchestrator change this one",
                scope=scope,
                variable=one.name[:80],
            )
    return None


def _stale(one: Write, before: Variable | None, task_id: str) -> ContextConflict:
    version, who = (before.version, before.writer) if before is not None else (0, "nobody")
    return ContextConflict(
        f"'{one.name[:80]}' has changed since version {one.base}: it is at version {version}, by {who}",
        "read it again and write from there, or ask the orchestrator to decide",
        Call("context_show", {"task_id": task_id}),
        variable=one.name[:80],
        version=version,
        writer=who,
    )


def _refused(top: Task, attempt: dict[str, Any], refusal: AofError) -> Draft:
    return Draft(type="context.refused", task_id=top.id, payload=attempt | {"reason": refusal.code})


def _conflict(top: Task, attempt: dict[str, Any], before: Variable | None, rule: str) -> Draft:
    held = {"version": before.version, "writer": before.writer, "value": before.value} if before is not None else {}
    resolution = "kept" if rule == "first" else "replaced"
    payload = attempt | {"held": held, "rule": rule, "resolution": resolution}
    return Draft(type="context.conflict", task_id=top.id, payload=payload)
