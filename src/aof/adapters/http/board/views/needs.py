"""What needs a person, with the report and the answer in place: the view that the page opens with.

Must not decide what that is, nor in which order.
"""

from __future__ import annotations

import re
import secrets
from typing import Any, Final

from aof.adapters.http.board.actions import BY_NAME, PageAction, last_entries
from aof.adapters.http.board.calls import Asker, PageAddress
from aof.adapters.http.board.views.spec import PageView
from aof.core.errors.base import AofError

_EACH, _MOST = 30, 500
LABELS: Final = {
    "question": "asks",
    "gate": "review",
    "overdue": "overdue",
    "blocked": "blocked",
    "deadletter": "given up",
    "lease": "lease ran out",
    "agent": "does not answer",
    "mail": "mail",
    "handoff": "handoff",
    "edit": "edited by hand",
}
_ACTIONS: Final = {
    "blocked": ("unblock", "cancel"),
    "deadletter": ("retry", "archive"),
    "overdue": ("edit",),
    "lease": ("release",),
}


_MOMENT: Final = re.compile(r"(?m)(?<=^- )\d{4}-\d\d-\d\dT[\d:.]+Z ")
_IN_PLACE: Final = {"gate": ("approve", "reject"), "question": ("answer",)}


def needs(ask: Asker, asked: PageAddress) -> dict[str, Any]:
    """The inbox, each with what can be done about it."""
    kind, limit = asked.text("kind"), asked.number("n", _EACH, least=1, most=_MOST)
    kind = kind if kind in LABELS else None
    found = ask("inbox", kind=[kind] if kind else None, limit=limit)
    return {
        "items": [one | _offered(ask, one) for one in found["items"]],
        "total": found["total"],
        "counts": found["byKind"],
        "kind": kind,
        "labels": LABELS,
        "more": min(limit + _EACH, _MOST),
    }


def _offered(ask: Asker, one: dict[str, Any]) -> dict[str, Any]:
    """What can be done about it: in place, or in a dialog; of a review also what was reported."""
    kind = one["kind"]
    named = (BY_NAME[name] for name in _ACTIONS.get(kind, ()))
    actions: list[PageAction] = [action for action in named if ask.may(action.operation)]
    inline = [name for name in _IN_PLACE.get(kind, ()) if ask.may(name)]
    offered = {"actions": actions, "inline": inline, "key": secrets.token_hex(8)}
    return offered | ({"report": _report(ask, one["taskId"])} if kind == "gate" else {})


def _report(ask: Asker, task_id: str) -> dict[str, Any]:
    """What the last run said of itself."""
    try:
        task = ask("show", task_id=task_id)
    except AofError:
        return {"result": None, "said": ""}  # it was removed or damaged meanwhile; the rest is shown all the same
    return {"result": task.get("result"), "said": _MOMENT.sub("", last_entries(task))}


VIEW = PageView(name="needs", path="/", template="needs.html", title="Needs you", key="n", context=needs)
