"""One task as it was after an event, and what that event changed. Must not look at the present."""

from __future__ import annotations

import difflib
import json
from typing import Any

from aof.adapters.http.board.actions import description
from aof.adapters.http.board.calls import Asker, PageAddress
from aof.adapters.http.board.views.spec import PageView
from aof.core.errors.base import InvalidInput
from aof.core.errors.tasks import TaskNotFound

_SKIPPED = frozenset({"rev", "updatedAt", "lastTransitionAt", "body", "schemaVersion", "requests"})
_LONGEST = 400  # lines of a text that are compared
_DIGITS = 12


def past(ask: Asker, asked: PageAddress) -> dict[str, Any]:
    """The task at an event, beside how it was before."""
    given = asked.path["seq"]
    if not (given.isascii() and given.isdigit() and len(given) <= _DIGITS):
        raise InvalidInput(f"{given[:40]!r} is not an event's number", "open the task's history")
    seq, task_id = int(given), asked.path["task_id"]
    then = ask("show", task_id=task_id, at=seq)
    try:
        before: dict[str, Any] = ask("show", task_id=task_id, at=max(seq - 1, 0))
    except TaskNotFound:
        before = {}  # it was created by this event
    names = [name for name in (then | before) if name not in _SKIPPED and then.get(name) != before.get(name)]
    changed = [{"name": name, "was": _said(before.get(name)), "is": _said(then.get(name))} for name in names]
    return {
        "title": f"{then['id']} at event {seq}",
        "live": False,
        "task": then,
        "seq": seq,
        "brief": description(then),
        "changed": changed,
        "lines": _compared(before.get("body", ""), then.get("body", "")),
    }


def _said(value: Any) -> str:
    if value in (None, "", [], {}):
        return ""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _compared(before: str, then: str) -> list[tuple[str, str]]:
    """The lines of a text that were added or removed, with what stands around them."""
    if before == then:
        return []
    was, now = before.splitlines()[:_LONGEST], then.splitlines()[:_LONGEST]
    found = list(difflib.unified_diff(was, now, n=1, lineterm=""))[2:]
    return [(line[:1], line[1:]) for line in found if not line.startswith("@@")]


VIEW = PageView(name="past", path="/tasks/{task_id}/at/{seq}", template="past.html", title="The past", context=past)
