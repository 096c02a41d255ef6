"""What needs a person, oldest first: the view that the page opens with. Must not decide what that is."""

from __future__ import annotations

from typing import Any, Final

from aof.adapters.http.board.actions import BY_NAME, PageAction
from aof.adapters.http.board.calls import Asker, PageAddress
from aof.adapters.http.board.views.spec import PageView

_EACH, _MOST = 50, 500
LABELS: Final = {
    "gate": "to review",
    "question": "asks",
    "blocked": "blocked",
    "deadletter": "given up",
    "overdue": "overdue",
    "lease": "lease ran out",
    "agent": "does not answer",
    "mail": "mail",
    "handoff": "handoff",
    "edit": "edited by hand",
}
_ACTIONS: Final = {
    "gate": ("approve", "reject"),
    "question": ("answer",),
    "blocked": ("unblock", "cancel"),
    "deadletter": ("retry", "archive"),
    "overdue": ("edit",),
    "lease": ("release",),
}


def needs(ask: Asker, asked: PageAddress) -> dict[str, Any]:
    """The inbox, each with what can be done about it."""
    kind, limit = asked.text("kind"), asked.number("n", _EACH, least=1, most=_MOST)
    kind = kind if kind in LABELS else None
    found = ask("inbox", kind=[kind] if kind else None, limit=limit)
    return {
        "items": [one | {"actions": _actions(ask, one["kind"])} for one in found["items"]],
        "total": found["total"],
        "counts": found["byKind"],
        "kind": kind,
        "labels": LABELS,
        "more": min(limit + _EACH, _MOST),
    }


def _actions(ask: Asker, kind: str) -> list[PageAction]:
    named = (BY_NAME[name] for name in _ACTIONS.get(kind, ()))
    return [action for action in named if ask.may(action.operation)]


VIEW = PageView(name="needs", path="/", template="needs.html", title="Needs you", key="n", context=needs)
