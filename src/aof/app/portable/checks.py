"""How far a task's acceptance criteria are met and its tests passed, by what was reported. Pure: words are not read.

A report names a criterion as text (then it is met), as `{"criterion": …, "met": true}`, or as `{criterion: "met"}`.
What nobody reported is `unknown`, never met.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from aof.app.portable.task_histories import Life
from aof.app.portable.vocabulary import UNKNOWN, missing

_NAMES = ("criterion", "id", "text")
_WORDS = {True: "met", False: "unmet"}


def acceptance(life: Life) -> list[dict[str, Any]]:
    """Every criterion with how it stands."""
    said = _said(_reports(life))
    return [_criterion(one) | {"status": said.get(_name(one), UNKNOWN)} for one in life.task.acceptance]


def validation(life: Life) -> dict[str, Any] | None:
    """Tests and coverage of the criteria; None where there is nothing to check and nothing was reported."""
    tests = _tests(life)
    criteria = acceptance(life)
    if tests is None and all(one["status"] == UNKNOWN for one in criteria):
        return None
    met = sum(one["status"] == "met" for one in criteria)
    return {"tests": tests or missing(), "acceptance": {"met": met, "total": len(criteria)}}


def _reports(life: Life) -> Iterable[Any]:
    """What the runs reported, oldest first, so that the last word counts."""
    for attempt in life.attempts:
        if attempt.result is not None:
            yield from attempt.result.acceptance
    told = life.task.progress.get("acceptance")
    yield from told if isinstance(told, list) else ()


def _tests(life: Life) -> dict[str, Any] | None:
    told = life.task.progress.get("tests")
    if isinstance(told, dict):
        return told
    return next((one.result.tests for one in reversed(life.attempts) if one.result and one.result.tests), None)


def _said(reports: Iterable[Any]) -> dict[str, str]:
    said: dict[str, str] = {}
    for report in reports:
        if isinstance(report, str):
            said[report] = "met"
        elif isinstance(report, dict) and (name := _name(report)):
            word = str(report.get("status", _WORDS[bool(report.get("met", True))]))
            said[name] = word if word in _WORDS.values() else UNKNOWN
        elif isinstance(report, dict):
            said |= {str(one): str(word) for one, word in report.items() if word in _WORDS.values()}
    return said


def _name(one: Any) -> str:
    if isinstance(one, dict):
        return next((str(one[name]) for name in _NAMES if name in one), "")
    return str(one)


def _criterion(one: Any) -> dict[str, Any]:
    return {"criterion": _name(one) or one}
