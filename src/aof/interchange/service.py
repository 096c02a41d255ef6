"""Tasks from other tools, and tasks for them. Each task is known by its ID in its source, and comes in only once.

Must not know any format, nor any surface.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, Literal, Unpack

import msgspec
import ryaml

from aof.errors import AofError, InvalidInput
from aof.interchange import model, readers
from aof.interchange.model import ForeignTask, NotMapped, SourceFile, line
from aof.kernel import commands
from aof.kernel import limits as kernel_limits
from aof.kernel.declarations import IN_PYTHON, param
from aof.kernel.operation import Extra, Spelling, operation
from aof.kernel.results import Result
from aof.queries import history as queries_history
from aof.queries.operations import Filters
from aof.store.port import Scope
from aof.support.hashing import hexdigest
from aof.support.typed import prepare_type
from aof.tasks import body
from aof.tasks.fields import PLAIN
from aof.tasks.operations import with_new_id

TYPE_CHECKING = False
if TYPE_CHECKING:
    from aof.kernel.context import CallContext
    from aof.tasks.model import Task

_FORMATS = ("json", "csv")
_KEPT_BACK = ("layout", "key", "requests")  # of no use elsewhere
_MOST_LOST = 1_000  # lines of a report


class ImportedTask(Result, frozen=True, kw_only=True, omit_defaults=True):
    """What became of one task of the source; its ID and status here."""

    source: str
    title: str
    outcome: str
    task_id: str | None = None
    status: str | None = None
    error: str | None = None


class Imported(Result, frozen=True, kw_only=True):
    """What was imported, and what did not map. Of a dry run: what would be."""

    source: str
    dry_run: bool
    created: int
    existing: int
    refused: int
    items: tuple[ImportedTask, ...]
    not_mapped: tuple[NotMapped, ...]


class Exported(Result, frozen=True, kw_only=True):
    """Tasks as the text of a file, and the fields that have no place in it, with how many tasks have them."""

    format: str
    total: int
    text: str
    not_mapped: dict[str, int]


@operation(
    effect="append",
    tool="aof_import",
    verb="import",
    section="data",
    order=70,
    summary="import tasks of another tool, or an exported data directory",
    notes="With --from, the tasks of a file or folder come into this data directory; again, only those that are new. "
    "Without it, a data directory is created from an exported file.",
    example="aof import .beads/issues.jsonl --from beads --dry-run",
    needs="lead",
    shows_defaults=("files",),
)
def import_tasks(
    context: CallContext,
    source: Annotated[
        Literal["backlog", "beads", "taskmaster", "github", "csv"],
        param("the tool that the tasks come from", Spelling(option="--from", metavar="TOOL")),
    ]
    | Annotated[str, IN_PYTHON] = "",
    *,
    files: Annotated[
        Sequence[dict[str, str]],
        param(
            "the files, each as an object with name and text",
            Spelling(
                place="FILE",
                target="file",
                help="the file or folder to read; without --from: an archive that 'aof export' wrote",
            ),
        ),
    ] = (),
    dry_run: Annotated[bool, param("report what would be imported, and change nothing")] = False,
    actor: str | None = None,
) -> Imported:
    """Import tasks from Backlog.md, beads, Task Master, GitHub issues or CSV, each once.

    Nothing changes if the source is not sound.
    """
    try:
        given = [msgspec.convert(file, prepare_type(SourceFile)) for file in files]
    except msgspec.ValidationError as error:
        raise InvalidInput(f"'files' is wrong: {error}", "give each file as an object with name and text") from None
    reading = readers.read_source(source, given, _yaml)
    if isinstance(reading, AofError):
        raise reading
    here: dict[str, str] = {}
    items: list[ImportedTask] = []
    refused: set[str] = set()
    for task in reading.tasks:
        missing = next((one for one in task.depends_on if one in refused), None)
        if missing is not None:  # without it, the task would be taken too early
            item = _refused(task, f"not_ready: it depends on {missing}, which was refused")
        else:
            item = _arrived(context, source, task, here, actor, dry_run=dry_run)
        if item.task_id is not None:
            here[task.key] = item.task_id
        elif item.outcome == "refused":
            refused.add(task.key)
        items.append(item)
    if not dry_run:
        for task in reading.tasks:
            _put_below(context, source, task, here, actor)
    lost = [*reading.lost, *(one for task in reading.tasks for one in task.lost)]
    if len(lost) > _MOST_LOST:
        lost = [*lost[:_MOST_LOST], NotMapped("", "", f"and {len(lost) - _MOST_LOST:,} more")]
    counts = {name: sum(item.outcome == name for item in items) for name in ("created", "exists", "refused")}
    return Imported(
        source=source,
        dry_run=dry_run,
        created=counts["created"],
        existing=counts["exists"],
        refused=counts["refused"],
        items=tuple(items),
        not_mapped=tuple(lost),
    )


@operation(
    effect="read",
    tool="aof_export",
    verb="export",
    section="data",
    order=60,
    summary="write the whole data directory, or a list of tasks, into a file",
    notes="Without --format, the file is an archive of everything, for 'aof import'. With it, the tasks that match the "
    "filters; '-' writes them to standard output.",
    example="aof export tasks.csv --format csv",
    extra=(Extra(option="[FILE]", help="the file to write"),),
    shows_defaults=("format",),
)
def export_tasks(
    context: CallContext,
    format: Annotated[  # noqa: A002 - its name everywhere
        Literal["json", "csv"],
        param("the form of the text", Spelling(help="tasks as json or csv (else as FILE ends, or everything)")),
    ] = "json",
    **filters: Unpack[Filters],
) -> Exported:
    """The tasks that match, as JSON or CSV."""
    if problem := kernel_limits.choice("format", format, _FORMATS):
        raise problem
    found = context.environment.store.find(context.environment.read_models.query(**filters)).tasks
    tasks = [context.environment.lookup.get(task.id) for task in found]
    portraits = [_portrait(task) for task in tasks]
    if format == "json":
        text = msgspec.json.format(msgspec.json.encode({"schemaVersion": 1, "tasks": portraits}), indent=1).decode()
        return Exported(format=format, total=len(tasks), text=f"{text}\n", not_mapped={})
    lost: dict[str, int] = {}
    for one in portraits:
        _, comments, log = body.parts(one["body"])
        entries = {"comments": comments, "workLog": log}
        for name in (*(one.keys() - _TABLED), *(name for name, text in entries.items() if text.strip())):
            lost[name] = lost.get(name, 0) + 1
    return Exported(
        format=format, total=len(tasks), text=readers.write_table(tasks), not_mapped=dict(sorted(lost.items()))
    )


def _arrived(
    context: CallContext, source: str, task: ForeignTask, here: dict[str, str], actor: str | None, *, dry_run: bool
) -> ImportedTask:
    key = _key(source, task.key)
    known = _owner(context, key)
    if known is not None:
        status = context.environment.lookup.get(known).status
        return ImportedTask(source=task.key, title=task.title, outcome="exists", task_id=known, status=status)
    waits = {one: here.get(one) or _owner(context, _key(source, one)) for one in task.depends_on}
    for one in (one for one, there in waits.items() if there is None and not dry_run):
        task.lose("dependencies", f"{one[:80]} was not imported")
    given = _creation(source, task, key) | {"depends_on": [there for there in waits.values() if there]}
    command: dict[str, Any] = {
        "actor": actor,
        "create": given,
        "arrives": task.status,
        "reason": f"imported from {source}",
    }
    try:
        if dry_run:
            _rehearse(context, command)
            return ImportedTask(source=task.key, title=task.title, outcome="created", status=task.status)
        done = with_new_id(
            context.environment,
            lambda task_id: context.dispatcher.dispatch(
                context.dispatcher.command(model.ImportTask, command | {"task_id": task_id})
            ),
        )
    except AofError as error:
        if error.kind in ("unavailable", "internal"):
            raise
        return _refused(task, f"{error.code}: {error.message}")
    assert done.task is not None
    return ImportedTask(
        source=task.key, title=task.title, outcome="created", task_id=done.task.id, status=done.task.status
    )


def _rehearse(context: CallContext, command: dict[str, Any]) -> None:
    """Raise the refusal that the import would meet. The number is put back."""
    store = context.environment.store
    task_id = store.reserve_id(context.environment.clock.now())
    try:
        context.dispatcher.rehearsed(context.dispatcher.command(model.ImportTask, command | {"task_id": task_id}))
    finally:
        store.put_back_id(task_id)


def _put_below(context: CallContext, source: str, task: ForeignTask, here: dict[str, str], actor: str | None) -> None:
    """Put a task below its parent, unless it stands below one already: that is a person's choice."""
    own = here.get(task.key)
    if task.parent is None or own is None or context.environment.lookup.get(own).parent_id is not None:
        return
    parent = here.get(task.parent) or _owner(context, _key(source, task.parent))
    if parent is None:
        task.lose("parent", f"{task.parent[:80]} was not imported")
        return
    try:
        context.dispatcher.move(commands.AddLink, own, actor=actor, kind="parent", target_id=parent)
    except AofError as error:
        task.lose("parent", error.message)


def _owner(context: CallContext, key: str) -> str | None:
    """The task that was created with a key."""
    with context.environment.store.unit(Scope(names=frozenset({f"key:{key}"}))) as unit:
        return unit.key_owner(key)


def _refused(task: ForeignTask, why: str) -> ImportedTask:
    return ImportedTask(source=task.key, title=task.title, outcome="refused", error=why)


def _yaml(text: str) -> object:
    try:
        return ryaml.loads(text)
    except ValueError:
        return None


def _key(source: str, key: str) -> str:
    """The idempotency key of a task of a tool; a long one ends with its digest, so that no two tasks share it."""
    whole = f"import:{source}:{key}"
    return (
        whole if len(whole) <= kernel_limits.ITEM else f"{whole[: kernel_limits.ITEM - 65]}:{hexdigest(whole.encode())}"
    )


def _creation(source: str, task: ForeignTask, key: str) -> dict[str, Any]:
    about = {"tool": source, "id": task.key, **task.about}
    sound = {name for name, value in task.about.items() if kernel_limits.data(name, value, 2_000) is None}
    for name in sorted(task.about, key=lambda one: (one in sound, -len(str(about[one])) if one in sound else 0)):
        if name in sound and kernel_limits.data("source", about, 4_000) is None:
            break
        task.lose(line(name)[:80], "too much for metadata.source, or no plain data: not kept")
        del about[name]
    return {
        "title": task.title,
        "body": task.body,
        "priority": task.priority,
        "tags": list(task.tags),
        "fields": task.fields,
        "metadata": {"source": about},
        "key": key,
    }


_TABLED = frozenset(
    {
        "schemaVersion", "id", "title", "status", "priority", "rev", "createdAt", "updatedAt", "lastTransitionAt",
        "createdBy", "parentId", "dependsOn", "routing", "endedAt", "body", *(row.key for row in PLAIN if row.column),
    }
)  # fmt: skip


def _portrait(task: Task) -> dict[str, Any]:
    """A task as others may see it: without what proves who holds it."""
    shown = {name: value for name, value in queries_history.past_view(task).items() if name not in _KEPT_BACK}
    if task.archived:
        shown["archived"] = True
    if "lease" in shown:
        shown["lease"] = {name: one for name, one in shown["lease"].items() if name not in ("secretDigest", "key")}
    return shown
