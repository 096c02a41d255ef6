"""How far a task's acceptance criteria are met and its tests passed, by what was reported. Pure: words are not read."""

from __future__ import annotations

from typing import Any

from aof.app.portable.vocabulary import UNKNOWN, missing
from aof.core.evolve.task import name_of, standing
from aof.core.model.task import Task


def acceptance(task: Task) -> list[dict[str, Any]]:
    """Every criterion with how it stands: met, unmet, or unknown where nobody reported on it."""
    words = zip(task.acceptance, standing(task), strict=True)
    return [{"criterion": name_of(one) or one, "status": word} for one, word in words]


def validation(task: Task) -> dict[str, Any] | None:
    """Tests and coverage of the criteria; None where there is nothing to check and nothing was reported."""
    tests = task.validation.get("tests")
    words = standing(task)
    if tests is None and all(word == UNKNOWN for word in words):
        return None
    return {"tests": tests or missing(), "acceptance": {"met": words.count("met"), "total": len(words)}}
