"""Task and run identifiers: their exact form, and how a short form finds its task.

IDs become file names, so they are matched whole and in ASCII. Must not know where tasks are kept.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

TASK_ID = re.compile(r"TASK-[0-9]{4}-[0-9]{2}-[0-9]{2}-(?:[0-9]{3}|[1-9][0-9]{3,8})\Z", re.ASCII)
NUMBER_DIGITS = 9  # at most
_PART = re.compile(r"[A-Z0-9-]{1,40}\Z", re.ASCII)
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._@:+-]{0,127}\Z", re.ASCII)


def is_task_id(text: str) -> bool:
    """Whether the text is a whole task ID and nothing else, not even a trailing newline."""
    return TASK_ID.match(text) is not None


def is_part(text: str) -> bool:
    """Whether the text could be a part of a task ID at all."""
    return _PART.match(text) is not None


def is_agent_name(text: str) -> bool:
    """Whether the text can name an agent, an actor, a role, a team or a resource."""
    return _NAME.match(text) is not None


def task_id(day: str, number: int) -> str:
    """Build the ID of a day's nth task."""
    return f"TASK-{day}-{number:03d}"


def split_task_id(text: str) -> tuple[str, int]:
    """The day and the number of a valid task ID."""
    return text[5:15], int(text[16:])


def run_id(task: str, attempt: int) -> str:
    """The ID of a task's nth run; unique over all tasks because task IDs are never given twice."""
    return f"RUN-{task[5:]}-{attempt}"


def task_of_run(run: str) -> str | None:
    """The task that a run belongs to, or None when the text is no run ID."""
    if not run.startswith("RUN-"):
        return None
    owner, _, attempt = f"TASK-{run[4:]}".rpartition("-")
    return owner if is_task_id(owner) and attempt.isascii() and attempt.isdigit() else None


def matches(part: str, candidates: Iterable[str]) -> list[str]:
    """Every ID that the part stands for: it begins at the start or after a dash.

    A full ID means only itself, also where a longer number starts with the same digits.
    """
    found: list[str] = []
    dashed = f"-{part}"
    for candidate in candidates:
        if candidate == part:
            return [candidate]
        if candidate.startswith(part) or dashed in candidate:
            found.append(candidate)
    exact_end = [candidate for candidate in found if candidate.endswith(dashed)]
    return exact_end if len(exact_end) == 1 else found
