"""The gates of a session: which actions need nobody, which are told and wait, and which a person has to approve.

Must not know where they are written down, nor what an action does.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Literal

import msgspec

if TYPE_CHECKING:
    from collections.abc import Iterable

    from aof.core.model.task import Task

Band = Literal["auto", "delay", "approval"]
ACTIONS: Final = ("complete", "cancel", "retry", "archive")
SELECTORS: Final = ("tag", "risk", "priority", "agent", "team")
_STRICTER: Final = {"approval": 2, "delay": 1, "auto": 0}


class Gate(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """One band: what it covers, one item each, and the delay of the middle one.

    An item is an action, selectors such as `tag:release`, or both; selectors alone are about completing such a task.
    Whatever else it says is for people only.
    """

    band: Band
    scope: tuple[str, ...] = ()
    delay_seconds: int = 0
    line: int = 0


def enforced(item: str) -> tuple[str, tuple[tuple[str, str], ...]] | None:
    """The action and the selectors that an item names; None where it says something else."""
    action, selected = "", list[tuple[str, str]]()
    for word in item.split():
        key, colon, value = word.partition(":")
        if colon and key in SELECTORS and value:
            selected.append((key, value))
        elif word in ACTIONS and not action:
            action = word
        else:
            return None
    return (action or "complete", tuple(selected)) if action or selected else None


def gate_for(gates: Iterable[Gate], task: Task, action: str) -> Gate | None:
    """The strictest gate that such an action on this task meets; None where it needs nobody."""
    met = [gate for gate in gates if any(_covers(item, task, action) for item in gate.scope)]
    strictest = max(met, key=lambda gate: _STRICTER[gate.band], default=None)
    return None if strictest is None or strictest.band == "auto" else strictest


def selects(gates: Iterable[Gate], key: str) -> bool:
    """Whether any gate asks for this selector of a task."""
    found = (enforced(item) for gate in gates for item in gate.scope)
    return any(one is not None and any(name == key for name, _ in one[1]) for one in found)


def _covers(item: str, task: Task, action: str) -> bool:
    found = enforced(item)
    return found is not None and found[0] == action and all(_has(task, key, value) for key, value in found[1])


def _has(task: Task, key: str, value: str) -> bool:
    if key == "tag":
        return value in task.routing.tags
    told = {
        "risk": task.profile.get("risk") or task.metadata.get("risk"),
        "priority": task.priority,
        "agent": task.routing.agent,
        "team": task.routing.team,
    }
    return told[key] == value
