"""What can be done from the board: each action is an operation with the fields of its form; and what a task allows."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, Literal

import msgspec

from aof.surfaces.board.view import Operations
from aof.tasks.body import parts
from aof.tasks.fields import CLEARABLE, FIELDS, TaskField
from aof.tasks.parameters import LINK_KINDS

_ENTRIES: Final = 5  # lines of a work log that a dialog shows
_UNLINK: Final = "unlink"  # is offered where links are, and there is one
_RELEASE: Final = "release"  # who may act for the holder is decided with the call
TaskData = Mapping[str, Any]  # a task as `show` gives it
Values = dict[str, str]
Kind = Literal["line", "text", "lines", "choice", "flag"]
_FORM: Final = tuple(row for row in FIELDS if row.form)


class Field(msgspec.Struct, frozen=True, kw_only=True):
    """One field. `value` is what it begins with; `lines` become a list; `suggested` can be taken with one click."""

    name: str
    label: str
    kind: Kind = "line"
    required: bool = False
    choices: Callable[[TaskData], tuple[str, ...]] | None = None
    value: Callable[[TaskData], str] = lambda _task: ""
    note: str = ""
    suggested: Callable[[TaskData], tuple[str, ...]] = lambda _task: ()


class PageAction(msgspec.Struct, frozen=True, kw_only=True):
    """One action on a task: the operation of its name, or an update to a status.

    `danger` is what cannot be undone; with `checks`, it counts only for the revision seen. `done` says afterwards what
    was done. `shapes` makes parameters of the fields that somebody has changed.
    """

    name: str
    label: str
    done: str
    about: str
    status: str | None = None
    fields: tuple[Field, ...] = ()
    shapes: Callable[[Values], dict[str, Any]] | None = None
    danger: bool = False
    checks: bool = True

    @property
    def operation(self) -> str:
        """The operation that carries it out."""
        return self.name if self.status is None else "update"

    @property
    def is_direct(self) -> bool:
        """Whether it can be done without filling in anything."""
        return not self.danger and not any(field.required for field in self.fields)

    def arguments(self, values: Values) -> dict[str, Any]:
        """The parameters of the operation; a field that is empty is left out."""
        if self.shapes is not None:
            return self.shapes(values)
        given: dict[str, Any] = {}
        for field in self.fields:
            value = values.get(field.name, "").strip()
            if field.kind == "lines":
                given[field.name] = [line.strip() for line in value.splitlines() if line.strip()]
            elif field.kind == "flag":
                given[field.name] = True if value else None
            else:
                given[field.name] = value or None
        return given


def _hops_in_review(task: TaskData) -> tuple[str, ...]:
    return tuple(hop["id"] for hop in task.get("workflow", {}).get("hops", ()) if hop["status"] == "review")


def _open_questions(task: TaskData) -> tuple[str, ...]:
    return tuple(one["id"] for one in task.get("questions", ()) if not one.get("answer"))


def _suggested_answers(task: TaskData) -> tuple[str, ...]:
    """The answers that the agents offer to choose from."""
    questions = (one for one in task.get("questions", ()) if not one.get("answer"))
    return tuple(dict.fromkeys(choice for one in questions for choice in one.get("choices", ())))


def _first(choices: Callable[[TaskData], tuple[str, ...]]) -> Callable[[TaskData], str]:
    """What a field begins with: the first of its choices."""
    return lambda task: next(iter(choices(task)), "")


def description(task: TaskData) -> str:
    """The description of a task: its text without comments and work log."""
    return parts(task["body"])[0].strip()


def last_entries(task: TaskData) -> str:
    """The last entries of the work log."""
    return "\n".join(parts(task["body"])[2].strip().splitlines()[-_ENTRIES:])


def _edit_arguments(values: Values) -> dict[str, Any]:
    given = {row.key: _typed(row, values[row.key]) for row in _FORM if row.key in values}
    routing = {row.key: given.pop(row.key) for row in _FORM if row.inside == "routing" and row.key in given}
    given |= {name: values[name] for name in ("title", "description") if name in values}
    emptied = [name for name, row in CLEARABLE.items() if row.inside != "routing" and _blank(given.get(row.key))]
    kept = {name: value for name, value in given.items() if name not in {CLEARABLE[one].key for one in emptied}}
    return kept | {"routing": routing or None, "clear": emptied or None}


def _blank(value: Any) -> bool:
    return isinstance(value, str) and not value.strip()


def _create_arguments(values: Values) -> dict[str, Any]:
    single = ("title", "brief", "parent_id", "workflow")
    given: dict[str, Any] = {name: values.get(name, "").strip() or None for name in single}
    given |= {row.name: _typed(row, values.get(row.key, "")) or None for row in _FORM}
    given |= {"depends_on": _words(values.get("depends_on", ""))}
    return given | {"backlog": True if values.get("backlog") else None}


def _typed(row: TaskField, text: str) -> Any:
    """What was typed into the field of a form, as a value of the task's field."""
    if row.kind == "texts":
        return _words(text)
    said = text.strip()
    return int(said) if row.kind == "whole" and said.isascii() and said.isdecimal() else said


def _words(text: str) -> list[str]:
    return [word for word in text.replace(",", " ").split() if word]


def _of_task(row: TaskField) -> Field:
    """A field of a task as one of a form."""

    def value(task: TaskData) -> str:
        found = (task.get("routing", {}) if row.inside == "routing" else task).get(row.key, row.default)
        return " ".join(found) if isinstance(found, list | tuple) else "" if found is None else str(found)

    if row.kind == "choice":
        return Field(name=row.key, label=row.form, kind="choice", choices=lambda _task: row.choices, value=value)
    return Field(name=row.key, label=row.form, note=row.hint or row.unit, value=value)


_REASON = Field(name="reason", label="Why", kind="text")
_NEEDED = Field(name="reason", label="Why", kind="text", required=True)
_HOP = Field(name="hop", label="Hop", kind="choice", choices=_hops_in_review, value=_first(_hops_in_review))
_FIELDS: Final = tuple(map(_of_task, _FORM))

ACTIONS: Final = (
    PageAction(
        name="approve",
        label="Approve",
        done="approved",
        about="Accept the work as it is. What waits for this task can go on.",
        fields=(_HOP, _REASON),
    ),
    PageAction(
        name="reject",
        label="Request changes",
        done="sent back",
        about="Send the work back. The next run is told what is in the way.",
        fields=(
            Field(name="blockers", label="What is in the way", kind="lines", required=True, note="one per line"),
            _HOP,
        ),
    ),
    PageAction(
        name="answer",
        label="Answer",
        done="answered",
        about="Answer the question. The agent can go on.",
        fields=(
            Field(
                name="question",
                label="Question",
                kind="choice",
                choices=_open_questions,
                value=_first(_open_questions),
            ),
            Field(name="text", label="Answer", kind="text", required=True, suggested=_suggested_answers),
        ),
        checks=False,
    ),
    PageAction(
        name="promote",
        label="Make ready",
        done="made ready",
        about="Put the task into the ready queue.",
        status="ready",
    ),
    PageAction(
        name="unblock",
        label="Unblock",
        done="unblocked",
        about="What was in the way is out of the way.",
    ),
    PageAction(
        name="resume",
        label="Resume",
        done="resumed",
        about="Let the task go on.",
    ),
    PageAction(
        name="retry",
        label="Retry",
        done="queued again",
        about="Run the task again. Earlier runs are kept.",
        fields=(_NEEDED,),
    ),
    PageAction(
        name="edit",
        label="Edit",
        done="saved",
        about="Change what the task says of itself.",
        fields=(
            Field(name="title", label="Title", required=True, value=lambda task: str(task["title"])),
            Field(name="description", label="Description", kind="text", note="Markdown", value=description),
            *_FIELDS,
        ),
        shapes=_edit_arguments,
    ),
    PageAction(
        name="link",
        label="Link",
        done="linked",
        about="Connect the task with another one, or with a file.",
        fields=(
            Field(
                name="kind",
                label="How they are connected",
                kind="choice",
                required=True,
                choices=lambda _task: LINK_KINDS,
                value=lambda _task: "blocked_by",
            ),
            Field(name="target", label="With", required=True, note="a task's ID, or a path"),
        ),
    ),
    PageAction(
        name="unlink",
        label="Unlink",
        done="unlinked",
        about="Take a connection away.",
        fields=(
            Field(
                name="kind",
                label="How they are connected",
                kind="choice",
                required=True,
                choices=lambda task: tuple(dict.fromkeys(one["kind"] for one in task["relationships"])),
            ),
            Field(
                name="target",
                label="With",
                kind="choice",
                required=True,
                choices=lambda task: tuple(dict.fromkeys(one["targetId"] for one in task["relationships"])),
            ),
        ),
    ),
    PageAction(
        name="pause",
        label="Pause",
        done="paused",
        about="Hold the task. A run is asked to stop.",
        fields=(_REASON,),
    ),
    PageAction(
        name="block",
        label="Block",
        done="blocked",
        about="Hold the task until something outside of it is settled.",
        fields=(_NEEDED,),
    ),
    PageAction(
        name="shelve",
        label="To the backlog",
        done="put into the backlog",
        about="Take the task out of the ready queue. It stays there until somebody makes it ready.",
        status="backlog",
    ),
    PageAction(
        name="release",
        label="Release",
        done="given back",
        about="Take the task from its agent and put it into the ready queue. The run ends.",
        fields=(_REASON,),
        danger=True,
    ),
    PageAction(
        name="archive",
        label="Archive",
        done="archived",
        about="Put the task and its runs into the archive.",
    ),
    PageAction(
        name="cancel",
        label="Cancel",
        done="cancelled",
        about="Stop the task and everything unfinished below it. Runs are stopped; what they did not report is lost.",
        fields=(_REASON,),
        danger=True,
    ),
    PageAction(
        name="comment",
        label="Comment",
        done="said",
        about="Say something of the task.",
        fields=(Field(name="text", label="Comment", kind="text", required=True, note="Markdown"),),
        checks=False,
    ),
)
CREATE: Final = PageAction(
    name="create",
    label="Create",
    done="created",
    about="A new task.",
    fields=(
        Field(name="title", label="Title", required=True),
        Field(name="brief", label="Description", kind="text", note="Markdown"),
        *_FIELDS,
        Field(name="depends_on", label="After", note="IDs of tasks that must be done first"),
        Field(name="parent_id", label="Below", note="the ID of its parent"),
        Field(name="workflow", label="Workflow"),
        Field(name="backlog", label="Put it into the backlog", kind="flag"),
    ),
    shapes=_create_arguments,
    checks=False,
)
BY_NAME: Final = {action.name: action for action in ACTIONS}


class PageOffer(msgspec.Struct, frozen=True):
    """An action that would be accepted now, and what the operation is to be called with beside the form's fields."""

    action: PageAction
    arguments: dict[str, Any] = {}


def offered(task: TaskData, ask: Operations) -> dict[str, PageOffer]:
    """What may be done with a task now, by name: the operation `moves` says it, and the token allows it."""
    found = _offers(ask("moves", task_id=task["id"])["actions"], ask)
    if "link" in found and task.get("relationships") and ask.may(_UNLINK):
        found[_UNLINK] = PageOffer(BY_NAME[_UNLINK])
    if _RELEASE not in found and (lease := task.get("lease")) and ask.may(_RELEASE):
        found[_RELEASE] = PageOffer(BY_NAME[_RELEASE], {"agent": lease["agent"], "run": lease["runId"]})
    return {action.name: found[action.name] for action in ACTIONS if action.name in found}


def moves(answer: Mapping[str, Any], ask: Operations) -> dict[str, PageAction]:
    """Where a task may be moved, and by which action, as the operation `moves` answers. No move approves anything."""
    return {call["to"]: offer.action for call in answer["moves"] for offer in _offers([call], ask).values()}


def _offers(calls: list[dict[str, Any]], ask: Operations) -> dict[str, PageOffer]:
    """Those of these calls that the page has a form for, by the action's name; of several hops the first one counts."""
    found: dict[str, PageOffer] = {}
    for call in calls:
        given = call["arguments"]
        for action in ACTIONS:
            same = action.operation == call["operation"] and action.status in (None, given.get("status"))
            if same and action.name not in found and ask.may(action.operation):
                in_form = {field.name for field in action.fields} | {"taskId", *call["asks"]}
                more = {name: value for name, value in given.items() if name not in in_form}
                found[action.name] = PageOffer(action, more)
    return found
