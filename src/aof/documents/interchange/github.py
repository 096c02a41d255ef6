"""Reads GitHub issues as JSON, from `gh issue list --json …` or the REST API. Must not know any other tool."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from aof.core.errors.base import InvalidInput
from aof.core.model.kinds import Priority
from aof.documents.interchange import model
from aof.documents.interchange.model import ForeignTask, NotMapped, Reading, SourceFile

_PRIORITIES: Final[Mapping[str, Priority]] = {
    "critical": "critical", "urgent": "critical", "p0": "critical", "high": "high", "p1": "high",
    "normal": "normal", "medium": "normal", "p2": "normal", "low": "low", "p3": "low",
}  # fmt: skip
_PRIORITY = re.compile(r"(?:priority|prio)[ :/_-]+(\w+)", re.IGNORECASE)
_WAITS = re.compile(r"^[ \t>*-]*(?:depends on|blocked by):?\s+((?:#\d+[\s,and]*)+)", re.IGNORECASE | re.MULTILINE)
_ADDRESS = re.compile(r"https?://[^/]+/(?:repos/)?([^/]+/[^/]+)/issues/\d+")
_USED: Final = (
    "number", "title", "body", "state", "stateReason", "state_reason", "labels", "assignees", "assignee", "milestone",
    "url", "html_url", "createdAt", "created_at", "closedAt", "closed_at", "updatedAt", "updated_at", "author", "user",
    "comments", "closed", "closed_by", "id", "node_id",
)  # fmt: skip
_ABOUT: Final = {
    "url": ("html_url", "url"),
    "stateReason": ("stateReason", "state_reason"),
    "createdAt": ("createdAt", "created_at"),
    "closedAt": ("closedAt", "closed_at"),
    "updatedAt": ("updatedAt", "updated_at"),
}
_NAMES: Final = ("login", "is_bot", "id", "node_id", "type", "gravatar_id", "user_view_type")
_PARTS: Final = {
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


def read(files: list[SourceFile]) -> Reading | InvalidInput:
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
                reading.tasks.append(_issue(one))
        for field, used in _PARTS.items():
            found = (one.get(field) for one in rows if not one.get("pull_request"))
            parts = [part for one in found for part in (one if isinstance(one, list) else [one])]
            model.note_parts(reading, file, field, map(_without_addresses, parts), used)
    return reading


def _without_addresses(given: Any) -> Any:
    """A record without what only leads to other pages, and without counts of nothing."""
    if not isinstance(given, dict):
        return given
    return {key: value for key, value in given.items() if value != 0 and not str(key).endswith(("_url", "url"))}


def _issue(given: dict[str, Any]) -> ForeignTask:
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
        found = _PRIORITY.fullmatch(name)
        word = (found[1] if found else name).lower()
        if word in _PRIORITIES:
            task.priority = _PRIORITIES[word]
    people = _names(given.get("assignees"), "login") or _names([given.get("assignee")], "login")
    model.set_owner(task, people)
    numbers = [one for row in _WAITS.findall(task.body) for one in re.findall(r"#(\d+)", row)]
    task.depends_on = tuple(dict.fromkeys(f"{place}#{number}" for number in numbers))
    model.set_comments(task, _comments(given.get("comments")))
    model.keep(
        task,
        {name: next((given[one] for one in places if given.get(one)), "") for name, places in _ABOUT.items()},
        _ABOUT,
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
    model.note_rest(task, {name: _told(value) for name, value in _without_addresses(given).items()}, _USED)
    return task


def _told(value: object) -> object:
    """A value, or nothing where a record only counts nothing."""
    rest = _without_addresses(value)
    return value if rest else None


def _names(given: object, key: str) -> list[str]:
    rows = given if isinstance(given, list) else []
    return [name for one in rows if (name := model.line(one.get(key) if isinstance(one, dict) else one))]


def _comments(given: object) -> list[tuple[object, object, object]]:
    """Only `gh` gives comments themselves; the REST API gives their number."""
    rows = [one for one in given if isinstance(one, dict)] if isinstance(given, list) else []
    said: list[tuple[object, object, object]] = []
    for one in rows:
        author = one.get("author") or one.get("user") or {}
        name = author.get("login") if isinstance(author, dict) else author
        said.append((name, one.get("createdAt") or one.get("created_at"), one.get("body")))
    return said
