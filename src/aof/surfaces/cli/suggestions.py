"""Which task somebody meant who mistyped its ID, or wrote its title instead.

Only asked after a task was not found. Looks at what shares the number, never at all tasks: there may be very many.
"""

from __future__ import annotations

import re
from difflib import SequenceMatcher

from aof.api.fabric import Fabric
from aof.surfaces.cli.output import Context

_LETTERS_FOR_DIGITS = str.maketrans("lIiOo", "11100")
_MOST = 3


def suggest(context: Context, error: Exception) -> None:
    """Add the tasks that may have been meant to the hint of a task that was not found."""
    asked = getattr(error, "details", {}).get("asked") if getattr(error, "code", "") == "task_not_found" else None
    if not asked or "did you mean" in getattr(error, "hint", ""):
        return
    if meant := _meant(context.fabric, asked):
        error.hint = f"did you mean {' or '.join(meant)}? List what there is"  # type: ignore[attr-defined]


def _meant(fabric: Fabric, asked: str) -> list[str]:
    """The nearest tasks, each with its title."""
    is_number = any(one.isdigit() for one in asked)
    numbers = re.findall(r"[0-9]+", asked.translate(_LETTERS_FOR_DIGITS)) if is_number else []
    found = fabric.store.ids(numbers[-1].lstrip("0").zfill(3)) if numbers else ()
    near = sorted(found, key=lambda one: (-SequenceMatcher(None, one, asked.upper()).ratio(), one))[:_MOST]
    titled = {row.id: row.title for row in fabric.list(search=asked, limit=_MOST).tasks} if not near else {}
    titles = titled or {task_id: task.title for task_id, task in fabric.relatives(near).items()}
    return [f"{task_id} ({titles[task_id]})" for task_id in near or titled if task_id in titles]
