"""What was reported about a task's acceptance criteria and tests. Must not judge whether that is enough.

A report names a criterion as text (then it is met), as `{"criterion": …, "met": true}`, or as `{criterion: "met"}`.
The last word counts. What nobody reported is not there, and reads as unknown.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from aof._support.hashing import hexdigest
from aof.core.model.events import Event
from aof.core.model.task import Task

_NAMES: Final = ("criterion", "id", "text")
_WORDS: Final = {True: "met", False: "unmet"}
_LONG: Final = 40  # bytes of a criterion's name that the record repeats; a longer one goes by its digest


def name_of(criterion: Any) -> str:
    """What reports call a criterion."""
    if isinstance(criterion, dict):
        return next((str(criterion[name]) for name in _NAMES if name in criterion), "")
    return str(criterion)


def reported(reports: Iterable[Any]) -> dict[str, str]:
    """What the reports say of each criterion that they name."""
    said: dict[str, str] = {}
    for report in reports:
        if isinstance(report, str):
            said[report] = "met"
        elif isinstance(report, dict) and (name := name_of(report)):
            said[name] = str(report.get("status", _WORDS[bool(report.get("met", True))]))
        elif isinstance(report, dict):
            said |= {str(one): str(word) for one, word in report.items()}
    return {name: word for name, word in said.items() if word in _WORDS.values()}


def standing(task: Task, reports: Iterable[Any] = ()) -> list[str]:
    """How each criterion stands, in the task's order, once these reports count too."""
    kept, said = task.validation.get("acceptance", {}), reported(reports)
    names = [name_of(one) for one in task.acceptance]
    return [said.get(name) or kept.get(_key(name), "unknown") for name in names]


def _key(name: str) -> str:
    return name if len(name.encode()) <= _LONG else f"sha256:{hexdigest(name.encode())[:24]}"


def covered(task: Task, event: Event) -> dict[str, Any]:
    """The task's account of its checks after an event; what sends the work back ends the account."""
    if event.type in ("task.transitioned", "task.hop.approved"):
        return _judged(task, event)
    if event.type == "task.retrying":
        return {"validation": {}} if event.payload.get("byHand") and task.validation else {}
    told = event.payload if event.type == "task.progress" else event.payload.get("result", {})
    reports, tests = told.get("acceptance"), told.get("tests")
    account = dict(task.validation)
    if task.acceptance and isinstance(reports, list | tuple):
        account["acceptance"] = _kept(task, reports)
    if isinstance(tests, dict):
        account["tests"] = tests
    return {"validation": account} if account != task.validation else {}


def _judged(task: Task, event: Event) -> dict[str, Any]:
    payload = event.payload
    if "acceptance" in payload:
        return {"validation": task.validation | {"acceptance": _kept(task, payload["acceptance"])}}
    sent_back = payload.get("from") == "review" and payload.get("to") in ("ready", "in-progress")
    return {"validation": {}} if sent_back and task.validation else {}


def _kept(task: Task, reports: Iterable[Any]) -> dict[str, str]:
    words = zip(task.acceptance, standing(task, reports), strict=True)
    return {_key(name_of(one)): word for one, word in words if word != "unknown"}


REPORTS: Final = frozenset(
    {"task.completed", "task.progress", "task.transitioned", "task.retrying", "task.hop.approved"}
)
