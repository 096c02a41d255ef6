"""The tools whose tasks can be read: Backlog.md, beads, GitHub, Task Master, and tables of comma-separated values."""

from __future__ import annotations

import csv
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from graphlib import CycleError, TopologicalSorter
from typing import Any, Final

from aof.errors import AofError, DependencyCycle, InvalidInput, PayloadTooLarge
from aof.interchange import model
from aof.interchange.model import MOST_BYTES, MOST_TASKS, ForeignTask, NotMapped, Reading, SourceFile, Target
from aof.kernel import limits as kernel_limits
from aof.kernel.kinds import Priority
from aof.support.hashing import hexdigest
from aof.tasks import body as tasks_body
from aof.tasks.fields import BY_KEY, PLAIN
from aof.tasks.model import Task

Yaml = Callable[[str], object]
Reader = Callable[[list[SourceFile]], Reading | InvalidInput]
_SHOWN: Final = 5  # IDs in a refusal
# What gets lost of a status, and the priorities, in the words that most tools share.
_INEXACT: Final = {"in-progress": "nobody holds a lease", "review": "there is no run to review"}
_PRIORITIES: Final[Mapping[str, Priority]] = {"critical": "critical", "high": "high", "medium": "normal", "low": "low"}


def read_source(source: str, files: list[SourceFile], yaml: Yaml) -> Reading | AofError:
    """The tasks in the files of a tool, each after those that it depends on; a refusal of what is not sound."""
    known: dict[str, Reader] = {
        "backlog": partial(read_backlog, yaml),
        "beads": read_beads,
        "taskmaster": read_taskmaster,
        "github": read_github,
        "csv": read_table,
    }
    if problem := kernel_limits.choice("source", source, tuple(known)):
        return problem
    if not files:
        return InvalidInput("there is no file to read", "give the file, or the folder of Backlog.md")
    if (size := sum(len(file.text) for file in files)) > MOST_BYTES:
        return PayloadTooLarge(
            f"the files have {size:,} characters, the limit is {MOST_BYTES:,}", "import them in parts"
        )
    reading = known[source](files)
    if isinstance(reading, AofError):
        return reading
    if len(reading.tasks) > MOST_TASKS:
        return PayloadTooLarge(
            f"there are {len(reading.tasks):,} tasks, the limit is {MOST_TASKS:,}", "import them in parts"
        )
    return _unsound(reading.tasks) or Reading(ordered(reading.tasks), reading.lost)


def _unsound(tasks: list[ForeignTask]) -> AofError | None:
    """The refusal of what cannot be imported as a whole: IDs that stand twice, and circles."""
    twice = [key for key, count in Counter(task.key for task in tasks).items() if count > 1]
    if twice:
        more = f" and {len(twice) - _SHOWN} more" if len(twice) > _SHOWN else ""
        return InvalidInput(
            f"these IDs stand twice in the source: {', '.join(twice[:_SHOWN])}{more}", "remove the duplicates first"
        )
    known = {task.key for task in tasks}
    for what, edges in (
        ("depend on each other", {task.key: [one for one in task.depends_on if one in known] for task in tasks}),
        ("are below each other", {task.key: [task.parent] if task.parent in known else [] for task in tasks}),
    ):
        try:
            TopologicalSorter(edges).prepare()
        except CycleError as circle:
            path = " → ".join(map(str, circle.args[1][: 2 * _SHOWN]))
            return DependencyCycle(
                f"tasks of the source {what} in a circle: {path}", "remove one of these edges there first"
            )
    return None


def ordered(tasks: list[ForeignTask]) -> list[ForeignTask]:
    """Each task after those that it depends on, otherwise as in the source."""
    place = {task.key: number for number, task in enumerate(tasks)}
    by_key = {task.key: task for task in tasks}
    sorter = TopologicalSorter({task.key: [one for one in task.depends_on if one in by_key] for task in tasks})
    sorter.prepare()
    found: list[ForeignTask] = []
    while sorter.is_active():
        free = sorted(sorter.get_ready(), key=place.__getitem__)
        found += (by_key[key] for key in free)
        sorter.done(*free)
    return found


_BACKLOG_STATUS: Final[Mapping[str, Target]] = {
    "to-do": "ready",
    "todo": "ready",
    "draft": "backlog",
    "in-progress": "ready",
    "review": "ready",
    "blocked": "blocked",
    "done": "done",
    "completed": "done",
    "cancelled": "cancelled",
}
_FRONTMATTER = re.compile(r"\A\ufeff?---[ \t]*\r?\n(.*?\n)---[ \t]*\r?\n?", re.DOTALL)
_MOST_FRONTMATTER: Final = 65_536
_MARK = re.compile(r"^[ \t]*<!--\s*(?:SECTION|AC|DOD):[\w:]*(?:BEGIN|END)\s*-->[ \t]*\n?", re.MULTILINE)
_CRITERIA = re.compile(r"^##[ \t]+Acceptance Criteria[^\n]*\n(.*?)(?=^##[ \t]|\Z)", re.DOTALL | re.MULTILINE)
_POINT = re.compile(r"^[ \t]*[-*][ \t]+\[[ xX]\][ \t]*(?:#\d+[ \t]+)?(.+)$", re.MULTILINE)
_BACKLOG_TICKED = re.compile(r"^[ \t]*[-*][ \t]+\[[xX]\]", re.MULTILINE)
_BACKLOG_ABOUT: Final = (
    "created_date",
    "updated_date",
    "completed_date",
    "milestone",
    "reporter",
    "references",
    "documentation",
    "ordinal",
    "subtasks",
)
_BACKLOG_USED: Final = (
    *_BACKLOG_ABOUT, "id", "title", "status", "assignee", "labels", "dependencies", "parent_task_id", "priority",
)  # fmt: skip


def read_backlog(yaml: Yaml, files: list[SourceFile]) -> Reading | InvalidInput:
    """Every Markdown file with an ID in its frontmatter is a task; what is in an archive folder was cancelled.

    `yaml` reads frontmatter, and says None of what cannot be read.
    """
    reading = Reading([], [])
    for file in files:
        if not file.name.endswith(".md"):
            continue
        found = _FRONTMATTER.match(file.text)
        given = yaml(found[1]) if found and len(found[1]) <= _MOST_FRONTMATTER else None
        if not isinstance(given, dict) or not model.line(given.get("id")):
            reading.lost.append(NotMapped(model.line(file.name)[:200], "file", "has no frontmatter with an id"))
            continue
        assert found is not None
        reading.tasks.append(_backlog_task(file, given, file.text[found.end() :]))
    if not reading.tasks:
        return InvalidInput("there is no task of Backlog.md among these files", "give the folder 'backlog'")
    return reading


def _backlog_task(file: SourceFile, given: dict[str, Any], body: str) -> ForeignTask:
    task = model.new_task(_backlog_key(given["id"]), given.get("title"))
    body = _MARK.sub("", body)
    criteria = _CRITERIA.search(body)
    if criteria is not None:
        points = _POINT.findall(criteria[1])
        model.set_acceptance(task, points)
        if ticked := len(_BACKLOG_TICKED.findall(criteria[1])):
            task.lose("checkboxes", f"ticked there: {ticked} of {len(points)}")
        body = body[: criteria.start()] + body[criteria.end() :] if points else body
    model.sections(task, (("", re.sub(r"\A\s*##[ \t]+Description[ \t]*\n", "", body)),))
    folders = file.name.split("/")[:-1]
    if "archive" in folders:
        task.status = "cancelled"
    elif "drafts" in folders:
        task.status = "backlog"
    else:
        model.set_status(task, given.get("status"), _BACKLOG_STATUS, _INEXACT)
        task.status = "done" if "completed" in folders else task.status
    model.set_priority(task, given.get("priority"), _PRIORITIES)
    model.set_tags(task, model.listed(given.get("labels")))
    model.set_owner(task, model.listed(given.get("assignee")))
    task.depends_on = tuple(dict.fromkeys(_backlog_key(one) for one in model.listed(given.get("dependencies"))))
    parent = model.line(given.get("parent_task_id"))
    number = task.key.rpartition("-")[2]
    if parent:
        task.parent = _backlog_key(parent)
    elif "." in number:
        task.parent = task.key.rpartition(".")[0]
    task.about |= {name: given[name] for name in _BACKLOG_ABOUT if given.get(name)}
    model.note_rest(task, given, _BACKLOG_USED)
    return task


def _backlog_key(given: object) -> str:
    """IDs are written as `task-7`, `TASK-7` and `7`."""
    text = model.line(given).lower()
    return text if "-" in text or not text[:1].isdigit() else f"task-{text}"


_BEADS_STATUS: Final[Mapping[str, Target]] = {
    "open": "ready",
    "in-progress": "ready",
    "hooked": "ready",
    "blocked": "blocked",
    "deferred": "backlog",
    "pinned": "backlog",
    "closed": "done",
    "tombstone": "cancelled",
}
_BEADS_INEXACT: Final = _INEXACT | {"hooked": "nobody holds a lease", "pinned": "there are no pins"}
_BEADS_PRIORITY: Final[Mapping[str, Priority]] = {
    "0": "critical", "1": "high", "2": "normal", "3": "low", "4": "low",
    "p0": "critical", "p1": "high", "p2": "normal", "p3": "low", "p4": "low",
}  # fmt: skip
_BULLET: Final = re.compile(r"\A\s*(?:[-*+]\s+)?(?:\[[ xX]\]\s*)?")
_BEADS_TICKED: Final = re.compile(r"^\s*(?:[-*+]\s+)?\[[xX]\]", re.MULTILINE)
_BEADS_ABOUT: Final = (
    "issue_type",
    "created_at",
    "updated_at",
    "closed_at",
    "close_reason",
    "external_ref",
    "created_by",
)
_BEADS_USED: Final = (
    *_BEADS_ABOUT, "id", "title", "description", "design", "acceptance_criteria", "notes", "status", "priority",
    "assignee", "labels", "dependencies", "comments", "content_hash", "due_at",
)  # fmt: skip
_BEADS_PARTS: Final = {
    "dependencies": ("issue_id", "depends_on_id", "type"),
    "comments": ("id", "issue_id", "author", "created_at", "text"),
}


def read_beads(files: list[SourceFile]) -> Reading | InvalidInput:
    """Every line is an issue."""
    reading = Reading([], [])
    for file in files:
        rows: list[dict[str, Any]] = []
        for number, row in enumerate(file.text.split("\n"), 1):
            if not row.strip():
                continue
            given = model.decoded(SourceFile(f"{file.name}:{number}", row))
            if isinstance(given, InvalidInput):
                return given
            if not isinstance(given, dict) or not model.line(given.get("id")):
                return InvalidInput(f"{file.name[:80]}:{number} is not an issue of beads", "export it with: bd export")
            reading.tasks.append(_beads_issue(given))
            rows += [given]
        for field, used in _BEADS_PARTS.items():
            model.note_parts(reading, file, field, (one for row in rows for one in _rows(row.get(field))), used)
    return reading


def _beads_issue(given: dict[str, Any]) -> ForeignTask:
    task = model.new_task(given["id"], given.get("title"))
    criteria = model.text(given.get("acceptance_criteria"))
    if ticked := len(_BEADS_TICKED.findall(criteria)):
        task.lose("checkboxes", f"ticked there: {ticked}")
    parts = (("", "description"), ("Design", "design"), ("Notes", "notes"))
    model.sections(task, [(heading, given.get(name)) for heading, name in parts])
    comments = [one if isinstance(one, dict) else {"text": model.line(one)} for one in _rows(given.get("comments"))]
    model.set_comments(task, [(one.get("author"), one.get("created_at"), one.get("text")) for one in comments])
    model.set_acceptance(task, (_BULLET.sub("", one) for one in criteria.splitlines()))
    model.set_status(task, given.get("status"), _BEADS_STATUS, _BEADS_INEXACT)
    model.set_priority(task, given.get("priority"), _BEADS_PRIORITY)
    kind = model.line(given.get("issue_type"))
    model.set_tags(task, [*model.listed(given.get("labels")), kind if kind != "task" else ""])
    model.set_owner(task, model.listed([given.get("assignee")]))
    model.set_field(task, BY_KEY["due"], given.get("due_at"))
    _set_edges(task, given.get("dependencies"))
    model.keep(task, given, _BEADS_ABOUT)
    model.note_rest(task, given, _BEADS_USED)
    return task


def _rows(given: object) -> list[Any]:
    return given if isinstance(given, list) else []


def _set_edges(task: ForeignTask, given: object) -> None:
    waits: list[str] = []
    for one in _rows(given):
        edge = one if isinstance(one, dict) else {"depends_on_id": one}
        target, kind = model.line(edge.get("depends_on_id")), model.line(edge.get("type")) or "blocks"
        if kind == "blocks" and target:
            waits.append(target)
        elif kind == "parent-child" and target and task.parent is None:
            task.parent = target
        elif target:
            task.lose("dependencies", f"'{kind[:40]}' of {target[:80]} has no place here")
    task.depends_on = tuple(dict.fromkeys(waits))


_GITHUB_PRIORITY: Final[Mapping[str, Priority]] = {
    **_PRIORITIES, "urgent": "critical", "normal": "normal",
    "p0": "critical", "p1": "high", "p2": "normal", "p3": "low",
}  # fmt: skip
_PRIORITY_LABEL = re.compile(r"(?:priority|prio)[ :/_-]+(\w+)", re.IGNORECASE)
_WAITS = re.compile(r"^[ \t>*-]*(?:depends on|blocked by):?\s+((?:#\d+[\s,and]*)+)", re.IGNORECASE | re.MULTILINE)
_ADDRESS = re.compile(r"https?://[^/]+/(?:repos/)?([^/]+/[^/]+)/issues/\d+")
_GITHUB_USED: Final = (
    "number", "title", "body", "state", "stateReason", "state_reason", "labels", "assignees", "assignee", "milestone",
    "url", "html_url", "createdAt", "created_at", "closedAt", "closed_at", "updatedAt", "updated_at", "author", "user",
    "comments", "closed", "closed_by", "id", "node_id",
)  # fmt: skip
_GITHUB_ABOUT: Final = {
    "url": ("html_url", "url"),
    "stateReason": ("stateReason", "state_reason"),
    "createdAt": ("createdAt", "created_at"),
    "closedAt": ("closedAt", "closed_at"),
    "updatedAt": ("updatedAt", "updated_at"),
}
_NAMES: Final = ("login", "is_bot", "id", "node_id", "type", "gravatar_id", "user_view_type")
_GITHUB_PARTS: Final = {
    "labels": ("name", "id", "node_id", "color", "default"),
    "comments": ("author", "user", "createdAt", "created_at", "body", "id", "node_id"),
    "assignees": _NAMES,
    "author": _NAMES,
    "user": _NAMES,
    "milestone": ("title", "dueOn", "due_on", "number", "id", "node_id"),
}
EXPORT: Final = (
    "gh issue list --state all --limit 1000 --json "
    "number,title,body,state,stateReason,labels,assignees,milestone,author,url,createdAt,updatedAt,closedAt,comments"
)


def read_github(files: list[SourceFile]) -> Reading | InvalidInput:
    """Every issue; pull requests are none."""
    reading = Reading([], [])
    for file in files:
        rows = model.decoded(file)
        if isinstance(rows, InvalidInput):
            return rows
        rows = rows if isinstance(rows, list) else [rows]
        for one in rows:
            if not isinstance(one, dict) or not isinstance(one.get("number"), int):
                return InvalidInput(
                    f"{file.name[:80]} holds something that is not an issue with a number",
                    f"export them with: {EXPORT}",
                )
            if one.get("pull_request"):
                reading.lost.append(NotMapped(f"#{one['number']}", "pull_request", "pull requests are not tasks"))
            else:
                reading.tasks.append(_github_issue(one))
        for field, used in _GITHUB_PARTS.items():
            found = (one.get(field) for one in rows if not one.get("pull_request"))
            parts = [part for one in found for part in (one if isinstance(one, list) else [one])]
            model.note_parts(reading, file, field, map(_without_addresses, parts), used)
    return reading


def _without_addresses(given: Any) -> Any:
    """A record without what only leads to other pages, and without counts of nothing."""
    if not isinstance(given, dict):
        return given
    return {key: value for key, value in given.items() if value != 0 and not str(key).endswith(("_url", "url"))}


def _github_issue(given: dict[str, Any]) -> ForeignTask:
    found = _ADDRESS.match(model.line(given.get("html_url") or given.get("url")))
    place = found[1] if found else ""
    task = model.new_task(f"{place}#{given['number']}", given.get("title"))
    model.sections(task, (("", given.get("body")),))
    closed = model.line(given.get("state")).lower() == "closed"
    reason = model.line(given.get("stateReason") or given.get("state_reason")).lower()
    if closed:
        task.status = "cancelled" if reason in ("not_planned", "duplicate") else "done"
    names = _names(given.get("labels"), "name")
    model.set_tags(task, names)
    for name in names:
        found = _PRIORITY_LABEL.fullmatch(name)
        word = (found[1] if found else name).lower()
        if word in _GITHUB_PRIORITY:
            task.priority = _GITHUB_PRIORITY[word]
    people = _names(given.get("assignees"), "login") or _names([given.get("assignee")], "login")
    model.set_owner(task, people)
    numbers = [one for row in _WAITS.findall(task.body) for one in re.findall(r"#(\d+)", row)]
    task.depends_on = tuple(dict.fromkeys(f"{place}#{number}" for number in numbers))
    model.set_comments(task, _comments(given.get("comments")))
    model.keep(
        task,
        {name: next((given[one] for one in places if given.get(one)), "") for name, places in _GITHUB_ABOUT.items()},
        _GITHUB_ABOUT,
    )
    milestone = given.get("milestone")
    stone = milestone if isinstance(milestone, dict) else {"title": milestone}
    author, closer = (
        _names([one], "login") for one in (given.get("author") or given.get("user"), given.get("closed_by"))
    )
    more = {
        "author": ", ".join(author),
        "closedBy": ", ".join(closer),
        "milestone": stone.get("title"),
        "milestoneDue": stone.get("dueOn") or stone.get("due_on"),
    }
    model.keep(task, more, more)
    if isinstance(given.get("comments"), int) and given["comments"]:
        task.lose("comments", f"{given['comments']} are not in the file; to have them: {EXPORT}")
    left = {name: value for name, value in _without_addresses(given).items() if _without_addresses(value)}
    model.note_rest(task, left, _GITHUB_USED)
    return task


def _names(given: object, key: str) -> list[str]:
    rows = given if isinstance(given, list) else []
    return [name for one in rows if (name := model.line(one.get(key) if isinstance(one, dict) else one))]


def _comments(given: object) -> list[tuple[object, object, object]]:
    """Only `gh` gives comments themselves; the REST API gives their number."""
    rows = [one for one in given if isinstance(one, dict)] if isinstance(given, list) else []
    comments: list[tuple[object, object, object]] = []
    for one in rows:
        author = one.get("author") or one.get("user") or {}
        name = author.get("login") if isinstance(author, dict) else author
        comments.append((name, one.get("createdAt") or one.get("created_at"), one.get("body")))
    return comments


_TASKMASTER_STATUS: Final[Mapping[str, Target]] = {
    "pending": "ready",
    "in-progress": "ready",
    "review": "ready",
    "blocked": "blocked",
    "deferred": "backlog",
    "done": "done",
    "completed": "done",
    "cancelled": "cancelled",
}
_TASKMASTER_USED: Final = (
    "id", "title", "description", "details", "testStrategy", "status", "priority", "dependencies", "subtasks",
    "metadata", "parentId", "parentTaskId",
)  # fmt: skip
_MAIN: Final = "master"


def read_taskmaster(files: list[SourceFile]) -> Reading | InvalidInput:
    """All tasks of all tags; those of other tags than `master` get the tag's name."""
    reading = Reading([], [])
    for file in files:
        whole = model.decoded(file)
        if isinstance(whole, InvalidInput):
            return whole
        lists = _lists(whole)
        if lists is None:
            return InvalidInput(
                f"{file.name[:80]} is not a tasks.json of Task Master",
                "give the file .taskmaster/tasks/tasks.json",
            )
        for tag, tasks in lists.items():
            for one in tasks:
                if not isinstance(one, dict) or not model.line(one.get("id")):
                    return InvalidInput(f"{file.name[:80]} has a task without an id", "repair it in Task Master first")
                reading.tasks += _with_subtasks(tag, one, model.line(one["id"]), None)
        if isinstance(whole, dict):
            lists_there = [whole, *(one for one in whole.values() if isinstance(one, dict))]
            model.note_parts(reading, file, "file", lists_there, ("tasks", *lists))
    return reading


def _lists(whole: object) -> dict[str, list[Any]] | None:
    if isinstance(whole, list):
        return {_MAIN: whole}
    if not isinstance(whole, dict):
        return None
    if isinstance(whole.get("tasks"), list):
        return {_MAIN: whole["tasks"]}
    tagged = {
        model.line(tag): one["tasks"]
        for tag, one in whole.items()
        if isinstance(one, dict) and isinstance(one.get("tasks"), list)
    }
    return tagged or None


def _with_subtasks(tag: str, given: dict[str, Any], own: str, parent: str | None) -> Iterator[ForeignTask]:
    task = _taskmaster_task(tag, given, own, parent)
    yield task
    subtasks = given.get("subtasks")
    for one in subtasks if isinstance(subtasks, list) else []:
        if isinstance(one, dict):
            number = model.line(one.get("id"))
            yield from _with_subtasks(tag, one, number if "." in number else f"{own}.{number}", own)
        else:
            task.lose("subtasks", f"{model.line(one)[:80]!r} is no subtask")


def _taskmaster_task(tag: str, given: dict[str, Any], own: str, parent: str | None) -> ForeignTask:
    task = model.new_task(_taskmaster_key(tag, own), given.get("title"))
    parts = (("", "description"), ("Details", "details"), ("Test strategy", "testStrategy"))
    model.sections(task, [(heading, given.get(name)) for heading, name in parts])
    model.set_status(task, given.get("status"), _TASKMASTER_STATUS, _INEXACT)
    model.set_priority(task, given.get("priority"), _PRIORITIES)
    if tag != _MAIN:
        model.set_tags(task, [tag])
    task.parent = _taskmaster_key(tag, parent) if parent is not None else None
    waits = given.get("dependencies")
    found = [model.line(one) for one in waits] if isinstance(waits, list) else []
    task.depends_on = tuple(dict.fromkeys(_taskmaster_key(tag, _full_number(one, parent)) for one in found if one))
    metadata = given.get("metadata")
    if metadata:
        task.about["metadata"] = metadata
    model.note_rest(task, given, _TASKMASTER_USED)
    return task


def _taskmaster_key(tag: str, number: str) -> str:
    return number if tag == _MAIN else f"{tag}/{number}"


def _full_number(number: str, parent: str | None) -> str:
    """A subtask names its siblings by their last number."""
    return f"{parent}.{number}" if parent is not None and "." not in number else number


COLUMNS: Final = (
    "id", "title", "status", "priority", "tags", "owner", "agent", "role", "team", "dependsOn", "parent",
    *(row.column for row in PLAIN if row.column and row.key != "owner"), "createdAt", "updatedAt", "endedAt",
    "description",
)  # fmt: skip
_LINE_END: Final = re.compile(r"(?<=\n)|(?<=\r)(?!\n)")  # other separators of Unicode are text
_FORMULA: Final = ("=", "+", "-", "@", "\t", "\r")
_SAME: Final = {
    "key": "id", "number": "id", "summary": "title", "name": "title", "subject": "title", "body": "description",
    "details": "description", "state": "status", "labels": "tags", "label": "tags", "tag": "tags", "assignee": "owner",
    "assignees": "owner", "dependson": "dependsOn", "depends_on": "dependsOn", "depends on": "dependsOn",
    "dependencies": "dependsOn", "blocked by": "dependsOn", "parentid": "parent", "parent_id": "parent",
    "createdat": "createdAt", "created": "createdAt", "updatedat": "updatedAt", "updated": "updatedAt",
    "endedat": "endedAt", "due date": "due", "due_date": "due", "deadline": "due",
}  # fmt: skip
_TABLE_STATUS: Final[Mapping[str, Target]] = {
    "ready": "ready", "open": "ready", "to-do": "ready", "todo": "ready", "new": "ready", "pending": "ready",
    "in-progress": "ready", "doing": "ready", "review": "ready", "backlog": "backlog", "draft": "backlog",
    "deferred": "backlog", "blocked": "blocked", "done": "done", "closed": "done", "completed": "done",
    "resolved": "done", "cancelled": "cancelled", "canceled": "cancelled", "wontfix": "cancelled",
    "deadletter": "cancelled",
}  # fmt: skip
_TABLE_INEXACT: Final = _INEXACT | {
    "doing": "nobody holds a lease",
    "deadletter": "there is no run that has failed",
}
_TABLE_PRIORITY: Final[Mapping[str, Priority]] = {
    **_PRIORITIES, "urgent": "critical", "highest": "critical", "normal": "normal", "lowest": "low",
}  # fmt: skip


def read_table(files: list[SourceFile]) -> Reading | InvalidInput:
    """Every row is a task; without a column of IDs, its title is its ID."""
    reading = Reading([], [])
    for file in files:
        problem = _read_one(file, reading)
        if problem is not None:
            return problem
    return reading


def _read_one(file: SourceFile, reading: Reading) -> InvalidInput | None:
    rows = csv.reader(_LINE_END.split(file.text.removeprefix("\ufeff")), strict=True)
    try:
        header = [model.line(one) for one in next(rows, [])]
        names = [_SAME.get(one.lower(), one if one in COLUMNS else one.lower()) for one in header]
        twice = sorted({name for name in names if names.count(name) > 1})
        if "title" not in names or twice:
            wrong = f"names {', '.join(twice)[:80]} twice" if twice else "has no column 'title'"
            there = ", ".join(COLUMNS)
            return InvalidInput(f"the first line of {file.name[:80]} {wrong}", f"name the columns, such as: {there}")
        for shown, name in zip(header, names, strict=True):
            if name not in COLUMNS:
                kept = "this column has no place here; its values are kept in metadata.source"
                reading.lost.append(NotMapped(file.name[:200], shown[:80], kept))
        for row in rows:
            if any(one.strip() for one in row):
                plain = [one[1:] if one.startswith("'") and one[1:].startswith(_FORMULA) else one for one in row]
                task = _table_task(dict(zip(names, plain, strict=False)))
                cells = zip(header, names, plain, strict=False)
                more = {shown: one for shown, name, one in cells if name not in COLUMNS}
                model.keep(task, more, more)
                if any(one.strip() for one in row[len(names) :]):
                    task.lose("columns", f"the row has {len(row)} values, the header {len(names)}")
                reading.tasks.append(task)
    except csv.Error as error:
        return InvalidInput(f"{file.name[:80]}, line {rows.line_num}: {error}", "save it as CSV in UTF-8")
    return None


def _table_task(given: dict[str, str]) -> ForeignTask:
    title = model.line(given.get("title"))
    task = model.new_task(given.get("id") or f"title-{hexdigest(title.encode())[:16]}", title)
    model.sections(task, (("", given.get("description")),))
    model.set_status(task, given.get("status"), _TABLE_STATUS, _TABLE_INEXACT)
    model.set_priority(task, given.get("priority"), _TABLE_PRIORITY)
    model.set_tags(task, model.listed(given.get("tags")))
    model.set_owner(task, model.listed(given.get("owner")))
    for row in PLAIN:
        if row.column and row.key != "owner":
            model.set_field(task, row, given.get(row.column))
    task.depends_on = tuple(dict.fromkeys(model.listed(given.get("dependsOn"))))
    task.parent = model.line(given.get("parent")) or None
    model.keep(task, given, ("createdAt", "updatedAt", "endedAt"))
    for name in ("agent", "role", "team"):
        if given.get(name):
            task.lose(name, "routing is not imported; set it with 'aof bulk edit'")
    return task


class _Lines:
    """What a writer of rows writes to."""

    def __init__(self) -> None:
        self.texts: list[str] = []

    def write(self, text: str) -> None:
        """Keep one row."""
        self.texts.append(text)


def write_table(tasks: Iterable[Task]) -> str:
    """The table of these tasks; a value that a spreadsheet would take for a formula begins with an apostrophe."""
    out = _Lines()
    rows = csv.writer(out, lineterminator="\n")
    rows.writerow(COLUMNS)
    for task in tasks:
        values: dict[str, Any] = {
            "id": task.id,
            "title": task.title,
            "status": task.status,
            "priority": task.priority,
            "tags": ",".join(task.routing.tags),
            "agent": task.routing.agent,
            "role": task.routing.role,
            "team": task.routing.team,
            "dependsOn": ",".join(task.depends_on),
            "parent": task.parent_id,
            **{row.column: getattr(task, row.name) for row in PLAIN if row.column},
            "createdAt": task.created_at,
            "updatedAt": task.updated_at,
            "endedAt": task.ended_at,
            "description": tasks_body.description(task.body).strip(),
        }
        texts = [str(values[name] or "") for name in COLUMNS]
        rows.writerow([f"'{text}" if text.startswith(_FORMULA) else text for text in texts])
    return "".join(out.texts)
