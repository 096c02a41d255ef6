"""The fields of a task, each declared once; and what a field may hold, whoever sets it.

A row of `FIELDS` says all that is special about a field, and every surface is made of these rows: the parameters of
`create`, `edit` and `bulk` with their words on the command line, MCP, HTTP and the board, templates, hand edits, lists,
tables, snapshots and undo. A new field is a row here and a line in `Task`; then the generators are run.
`tests/tasks/test_fields.py` compares the rows with each surface.

What a field holds is checked here for every source: a command, an edit or a person's file.
"""

from __future__ import annotations

from functools import cached_property

from aof.errors import AofError, InvalidInput
from aof.kernel import kinds
from aof.kernel import limits as kernel_limits
from aof.kernel import model as kernel_model

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, Final, Literal

    Kind = Literal["line", "text", "name", "choice", "moment", "whole", "texts", "list", "object", "task", "tasks"]

_MERGES: Final = {"text": "by line", "texts": "by item", "list": "by item", "tasks": "by item", "object": "by key"}


class TaskField:
    """One field of a task. A plain class, because every list on the command line loads these rows.

    `key` names it in a task's file, in events and over the wire; `inside` says of a part of the routing, or of the text
    below the frontmatter, what it belongs to. `help` describes it on every surface.

    A value is of a `kind`: a `choice` is the name of its type in `kernel.kinds`; a whole number goes from `least` to
    `most`. Without a value the field has its `default`; a hand edit that takes away what is not
    `nullable` writes the default down.

    A creation sets it where it `creates`, an edit where it `edits`, a template where there is a `template` for it, a
    bulk edit where `bulk` describes it. `clear` is its name among what an edit takes away. On the command line it is an
    `option` with `metavar` and `note`; `usage` stands there in place of the help.

    Who may change it: what is `gated` is read by the gates of any task, what is `asked` by the conditions of workflows.

    Where it is shown: `label` in `aof show` and on the page of the task, with its `unit`; `form` is its label in the
    forms of the board, with a `hint`; `listed` in the rows of lists, beside title, priority and agent; `filters` are
    the parameters of lists that look at it; `column` is its name in tables, `portable` its name in snapshots.
    """

    key: str
    kind: Kind
    help: str
    inside: Literal["", "body", "routing"] = ""
    choice: str = ""
    least: int = 0
    most: int = 0
    default: Any = None
    nullable: bool = True
    creates: bool = True
    edits: bool = True
    template: bool = True
    bulk: str = ""
    clear: str = ""
    option: str = ""
    metavar: str = ""
    note: str = ""
    usage: str = ""
    gated: bool = False
    asked: bool = False
    label: str = ""
    unit: str = ""
    form: str = ""
    hint: str = ""
    listed: bool = False
    filters: tuple[str, ...] = ()
    column: str = ""
    portable: str = ""

    def __init__(self, *, key: str, kind: Kind, help: str, **more: Any) -> None:  # noqa: A002 - what it is
        if unknown := more.keys() - TaskField.__annotations__.keys():
            message = f"a row has no column {', '.join(sorted(unknown))}"
            raise TypeError(message)
        vars(self).update(more, key=key, kind=kind, help=help)
        # Its name in Python: of the attribute of a task, and of the parameter.
        self.name = "".join(f"_{one.lower()}" if one.isupper() else one for one in key)

    @cached_property
    def choices(self) -> tuple[str, ...]:
        """The values that a choice has."""
        found: tuple[str, ...] = getattr(kinds, self.choice).__args__ if self.choice else ()
        return found

    @property
    def merge(self) -> str:
        """How the changes of two clones come together; of what is one value, the later one stands and both are told."""
        return _MERGES.get(self.kind, "one stands")

    def in_words(self, value: Any) -> str:
        """A value as people read it."""
        return f"{value} {self.unit}".rstrip()


FIELDS: Final = (
    TaskField(
        key="description",
        inside="body",
        kind="text",
        help="description, as Markdown",
        template=False,
        clear="description",
        column="description",
        portable="objective",
    ),
    TaskField(
        key="title",
        kind="line",
        help="short title",
        default="",
        nullable=False,
        template=False,
        asked=True,
        column="title",
        portable="title",
    ),
    TaskField(
        key="priority",
        kind="choice",
        choice="Priority",
        help="urgency",
        usage="critical, high, normal or low",
        default="normal",
        nullable=False,
        bulk="new priority",
        asked=True,
        form="Priority",
        filters=("priority",),
        column="priority",
        portable="priority",
    ),
    TaskField(
        key="routing",
        kind="object",
        help="who should do it",
        default={},
        creates=False,
        template=False,
        gated=True,
        asked=True,
        portable="assignee",
    ),
    TaskField(
        key="agent",
        inside="routing",
        kind="name",
        help="agent that it is reserved for",
        bulk="new target agent",
        clear="agent",
        form="Agent",
        filters=("agent",),
        column="agent",
    ),
    TaskField(
        key="team",
        inside="routing",
        kind="name",
        help="target team",
        bulk="new target team",
        clear="team",
        form="Team",
        column="team",
    ),
    TaskField(
        key="role",
        inside="routing",
        kind="name",
        help="target role",
        bulk="new target role",
        clear="role",
        form="Role",
        column="role",
    ),
    TaskField(
        key="dependsOn",
        kind="tasks",
        help="task that must be done first",
        default=[],
        nullable=False,
        edits=False,
        template=False,
        option="--dep",
        metavar="ID",
        column="dependsOn",
    ),
    TaskField(
        key="parentId",
        kind="task",
        help="parent task",
        template=False,
        clear="parent",
        option="--parent",
        metavar="ID",
        filters=("parent_id",),
        column="parent",
        portable="parentTaskId",
    ),
    TaskField(
        key="tags",
        inside="routing",
        kind="texts",
        help="tag",
        bulk="new tag, in place of all",
        clear="tags",
        option="--tag",
        form="Tags",
        hint="separated by spaces",
        filters=("tag",),
        column="tags",
    ),
    TaskField(
        key="metadata",
        kind="object",
        help="metadata value",
        default={},
        asked=True,
        option="--meta",
        metavar="K=JSON",
    ),
    TaskField(
        key="workflow",
        inside="routing",
        kind="name",
        help="workflow to pass through",
        edits=False,
    ),
    TaskField(
        key="acceptance",
        kind="list",
        help="acceptance criterion",
        default=[],
        clear="acceptance",
        note="(text or a JSON object)",
        gated=True,
        portable="acceptance",
    ),
    TaskField(
        key="constraints",
        kind="object",
        help="limit on the work",
        default={},
        clear="constraints",
        option="--constraint",
        metavar="K=JSON",
        gated=True,
        asked=True,
        portable="constraints",
    ),
    TaskField(
        key="profile",
        kind="object",
        help="what the work requires of an agent",
        default={},
        clear="profile",
        metavar="K=JSON",
        gated=True,
        asked=True,
        portable="taskProfile",
    ),
    TaskField(
        key="resource",
        kind="name",
        help="resource that a limited number of tasks may use at once",
        bulk="new resource",
        clear="resource",
        gated=True,
        asked=True,
    ),
    TaskField(
        key="visibility",
        kind="choice",
        choice="Visibility",
        help="where the task is shown",
        default="foreground",
        nullable=False,
        bulk="new visibility",
        asked=True,
        portable="visibility",
    ),
    TaskField(
        key="due",
        kind="moment",
        help="when it should be done",
        clear="due",
        metavar="WHEN",
        note="(a day, a moment, tomorrow, or +3d)",
        label="due",
        form="Due",
        hint="a day, a moment, or +3d",
        listed=True,
        filters=("due_before", "overdue"),
        column="due",
        portable="due",
    ),
    TaskField(
        key="owner",
        kind="name",
        help="person or agent responsible for the task",
        bulk="new owner",
        clear="owner",
        gated=True,
        asked=True,
        label="owner",
        form="Owner",
        column="owner",
        portable="owner",
    ),
    TaskField(
        key="estimate",
        kind="whole",
        help="minutes that it should take",
        least=1,
        most=525_600,  # a year
        clear="estimate",
        bulk="new estimate in minutes",
        label="estimate",
        unit="minutes",
        form="Estimate",
        hint="in minutes",
        listed=True,
        column="estimate",
        portable="estimate",
    ),
)
_READ_BY_NAME: Final = ("title", "priority", "depends_on", "parent_id", "metadata")
BY_KEY: Final = {one.key: one for one in FIELDS}
WHOLE: Final = tuple(one for one in FIELDS if not one.inside)  # the keys of a task's file that are people's to set
ROUTING: Final = tuple(one for one in FIELDS if one.inside == "routing")
EDITABLE: Final = tuple(one.key for one in FIELDS if one.edits and one.inside != "routing")
CLEARABLE: Final = {one.clear: one for one in FIELDS if one.clear}
LISTED: Final = tuple(one for one in FIELDS if one.listed)
# What no rule about creations reads by name: a creation carries these by their keys.
PLAIN: Final = tuple(one for one in WHOLE if one.creates and one.name not in _READ_BY_NAME)


def malformed(given: dict[str, Any]) -> AofError | None:
    """The first thing that is wrong with the values; names that are not in the table are not judged."""
    for field, value in given.items():
        check = _CHECKS.get(field)
        if check is not None and (problem := check(field, value)):
            return problem
    return None


_ROUTES: Final = ("agent", "role", "team", "workflow")
_MOST_CRITERIA: Final = 100
_LONGEST_TTL_MS: Final = 7 * 24 * 3_600_000


def bad_ttl(field: str, value: object) -> InvalidInput | None:
    """Refuse a lease that is too short to keep, or that would hold a task for ever."""
    if isinstance(value, int) and not isinstance(value, bool) and 0 < value <= _LONGEST_TTL_MS:
        return None
    return InvalidInput(f"'{field}' cannot be {str(value)[:80]!r}", "use between 1 ms and 7 days, in milliseconds")


def _text(field: str, value: object) -> AofError | None:
    return kernel_limits.text(field, value, kernel_limits.BODY)


def _routing(field: str, value: object) -> AofError | None:
    given = {} if value is None else value
    if not isinstance(given, dict) or not set(given) <= {*_ROUTES, "tags"}:
        return InvalidInput(f"'{field}' must be an object without other keys", f"use {', '.join(_ROUTES)} or tags")
    tags = given.get("tags")
    return kernel_limits.names(**{f"{field}.{name}": given.get(name) for name in _ROUTES}) or (
        None if tags is None else kernel_limits.items(f"{field}.tags", tags, kernel_limits.ITEMS, single_line=True)
    )


def _metadata(field: str, value: object) -> AofError | None:
    if problem := _object(field, value):
        return problem
    ttl = value.get("leaseTtlMs") if isinstance(value, dict) else None
    return None if ttl is None else bad_ttl(f"{field}.leaseTtlMs", ttl)


def _object(field: str, value: object) -> AofError | None:
    return (
        kernel_limits.data(field, value)
        if _is_object(value)
        else InvalidInput(f"'{field}' must be an object", "use {}")
    )


def _constraints(field: str, value: object) -> AofError | None:
    problem = _object(field, value)
    if problem is not None or not isinstance(value, dict) or value.get("output") is None:
        return problem
    return bad_output(f"{field}.output", value["output"])


def _acceptance(field: str, value: object) -> AofError | None:
    problem = _list(field, value)
    if problem is None and isinstance(value, list | tuple) and len(value) > _MOST_CRITERIA:
        return InvalidInput(f"'{field}' has more than {_MOST_CRITERIA}", "group some of them")
    return problem


def _profile(field: str, value: object) -> AofError | None:
    problem = _object(field, value)
    if problem is not None or not isinstance(value, dict) or "requiredCapabilities" not in value:
        return problem

    return bad_capabilities(f"{field}.requiredCapabilities", value["requiredCapabilities"])


def _list(field: str, value: object) -> AofError | None:
    is_list = value is None or isinstance(value, list | tuple)
    return kernel_limits.data(field, value) if is_list else InvalidInput(f"'{field}' must be a list", "use []")


def _task_ids(field: str, value: object) -> AofError | None:
    if value is None:
        return None
    if not isinstance(value, list | tuple) or not all(
        isinstance(edge, str) and kernel_model.is_task_id(edge) for edge in value
    ):
        return InvalidInput(f"'{field}' must be a list of task IDs", "use full IDs such as TASK-2026-02-21-001")
    if len(value) > kernel_limits.DEPENDENCIES:
        return InvalidInput(
            f"'{field}' has more than {kernel_limits.DEPENDENCIES}", "group some of them under one task"
        )
    return None


def _task_id(field: str, value: object) -> AofError | None:
    if value is None or (isinstance(value, str) and kernel_model.is_task_id(value)):
        return None
    return InvalidInput(f"'{field}' is not a task ID: {str(value)[:80]!r}", "use a full ID such as TASK-2026-02-21-001")


def _moment(field: str, value: object) -> AofError | None:
    try:
        if value is not None:
            kernel_model.end_of(value if isinstance(value, str) and len(value) <= kernel_limits.ITEM else "")
    except (ValueError, OverflowError):
        return InvalidInput(f"'{field}' is not a day or a moment: {str(value)[:80]!r}", "use one such as 2026-03-01")
    return None


def _is_object(value: object) -> bool:
    return value is None or isinstance(value, dict)


def _check_of(row: TaskField) -> Callable[[str, Any], AofError | None]:
    """What refuses a value that the field cannot hold."""
    if row.kind == "choice":
        return lambda field, value: kernel_limits.choice(field, value, row.choices)
    if row.kind == "whole":
        return lambda field, value: None if value is None else kernel_limits.whole(field, value, row.least, row.most)
    return _BY_KEY.get(row.key) or _BY_KIND[row.kind]


_BY_KEY: Final[dict[str, Callable[[str, Any], AofError | None]]] = {
    "routing": _routing,
    "acceptance": _acceptance,
    "constraints": _constraints,
    "profile": _profile,
    "metadata": _metadata,
}
_BY_KIND: Final[dict[str, Callable[[str, Any], AofError | None]]] = {
    "line": lambda field, value: kernel_limits.line(field, value, kernel_limits.TITLE, required=True),
    "text": _text,
    "name": lambda field, value: kernel_limits.name(field, value),  # noqa: PLW0108 - loads the limits when asked
    "moment": _moment,
    "list": _list,
    "object": _object,
    "task": _task_id,
    "tasks": _task_ids,
}
_CHECKS: Final = {row.key: _check_of(row) for row in FIELDS if row.inside != "routing"} | {
    "body": _text,
    "extra": _object,
}


DEMANDS: Final = ("artifacts", "evidence", "delivery")


def bad_output(field: str, value: object) -> AofError | None:
    """What is wrong with the demands on the output."""
    if not isinstance(value, dict) or not _demands(value):
        return None
    if not isinstance(value.get("delivery", False), bool):
        return InvalidInput(f"'{field}.delivery' must be true or false", "say whether delivery is required")
    artifacts, evidence = value.get("artifacts", []), value.get("evidence", [])
    return (
        kernel_limits.items(f"{field}.artifacts", artifacts, kernel_limits.ITEMS, single_line=True)
        or kernel_limits.items(f"{field}.evidence", evidence, kernel_limits.ITEMS, single_line=True)
        or escaping_reference(*((f"{field}.artifacts", ref) for ref in artifacts))
    )


def output_demands(constraints: dict[str, Any]) -> dict[str, Any]:
    """The demands on the output; none where a file was edited so that they make no sense."""
    given = constraints.get("output")
    if not isinstance(given, dict) or not _demands(given) or bad_output("constraints.output", given) is not None:
        return {}
    return given


def _demands(value: dict[str, Any]) -> bool:
    """Whether it names a demand: anything else that is said of the output is for the worker to read."""
    return not set(DEMANDS).isdisjoint(value)


def escaping_reference(*refs: tuple[str, str | None]) -> AofError | None:
    """The refusal for the first reference that leaves its folder."""
    for field, ref in refs:
        if ref is not None and (ref.startswith(("/", "\\")) or ".." in ref.replace("\\", "/").split("/")):
            return InvalidInput(
                f"'{field}' leaves the task's folder: {ref[:80]!r}", "use a path such as outputs/summary.md"
            )
    return None


KEY: Final = "requiredCapabilities"
_NAMES: Final = ("id", "capabilityId", "capability_id")
_LEAST: Final = ("minProficiency", "min_proficiency")
_SHAPE: Final = "use names, 'name:0.8', or objects with id and minProficiency from 0.0 to 1.0"


def required_capabilities(profile: dict[str, Any]) -> dict[str, float]:
    """The capabilities that a profile requires, each with the least proficiency in it."""
    given = profile.get(KEY)
    asked = map(_asked, given) if isinstance(given, list | tuple) else ()
    return {one[0]: one[1] for one in asked if one is not None}


def bad_capabilities(field: str, given: object) -> InvalidInput | None:
    """Refuse a list of required capabilities that asks for something impossible."""
    if given is None:
        return None
    wrong = [one for one in given if _asked(one) is None] if isinstance(given, list | tuple) else [given]
    return InvalidInput(f"'{field}' cannot hold {str(wrong[0])[:80]!r}", _SHAPE) if wrong else None


def _asked(given: object) -> tuple[str, float] | None:
    """One required capability, however it is written; None for what is none."""
    if isinstance(given, dict):
        name = next((given[key] for key in _NAMES if key in given), None)
        least = next((given[key] for key in _LEAST if key in given), 0.0)
    else:
        name, least = _split(given) if isinstance(given, str) else (None, 0.0)
    sound = isinstance(name, str) and bool(name.strip()) and len(name) <= kernel_limits.ITEM
    number = isinstance(least, int | float) and not isinstance(least, bool) and 0.0 <= least <= 1.0
    return (str(name), float(least)) if sound and number else None


def _split(text: str) -> tuple[str, float]:
    """`python:0.8` as name and figure; a colon that no figure follows belongs to the name."""
    name, colon, least = text.rpartition(":")
    try:
        return (name, float(least)) if colon else (text, 0.0)
    except ValueError:
        return text, 0.0
