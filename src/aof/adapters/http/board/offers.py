"""Which actions are offered for a task, and where it may be moved: asked of the operation `moves`."""

from __future__ import annotations

from typing import Any, Final

import msgspec

from aof.adapters.http.board.actions import ACTIONS, BY_NAME, PageAction, Shown
from aof.adapters.http.board.calls import Asker

_WITH_LINKS: Final = "unlink"  # is offered where links are, and there is one
_FOR_THE_HOLDER: Final = "release"  # who may act for the holder is decided with the call


class PageOffer(msgspec.Struct, frozen=True):
    """An action that would be accepted now, and what the operation is to be called with beside the form's fields."""

    action: PageAction
    arguments: dict[str, Any] = {}


def offered(task: Shown, ask: Asker) -> dict[str, PageOffer]:
    """What may be done with a task now, by name: the operation `moves` says it, and the token allows it."""
    found = _known(ask("moves", task_id=task["id"])["actions"], ask)
    if "link" in found and task.get("relationships") and ask.may(_WITH_LINKS):
        found[_WITH_LINKS] = PageOffer(BY_NAME[_WITH_LINKS])
    if _FOR_THE_HOLDER not in found and (held := task.get("lease")) and ask.may(_FOR_THE_HOLDER):
        found[_FOR_THE_HOLDER] = PageOffer(BY_NAME[_FOR_THE_HOLDER], {"agent": held["agent"], "run": held["runId"]})
    return {action.name: found[action.name] for action in ACTIONS if action.name in found}


def moves(told: Shown, ask: Asker) -> dict[str, PageAction]:
    """Where a task may be moved, and by which action, of what `moves` has told. Nothing is approved by a move."""
    return {one["to"]: offer.action for one in told["moves"] for offer in _known([one], ask).values()}


def _known(told: list[dict[str, Any]], ask: Asker) -> dict[str, PageOffer]:
    """The actions that the page has a form for; of several hops the first one counts."""
    found: dict[str, PageOffer] = {}
    for one in told:
        given = one["arguments"]
        for action in ACTIONS:
            same = action.operation == one["operation"] and action.status in (None, given.get("status"))
            if same and action.name not in found and ask.may(action.operation):
                asked = {field.name for field in action.fields} | {"taskId", *one["asks"]}
                found[action.name] = PageOffer(
                    action, {name: value for name, value in given.items() if name not in asked}
                )
    return found
