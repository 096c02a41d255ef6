"""Task and run identifiers: their exact form, and how a short form finds its task.

IDs become file names, so they are matched whole and in ASCII. Must not know where tasks are kept.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache

OURSELVES = "aof"  # who acts where AOF does something by itself
NUMBER_DIGITS = 9  # at most
_LONGEST = len("TASK-2026-02-21-") + NUMBER_DIGITS
_PADDED = 3  # a number with more digits does not begin with zero
_PART = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-")
_PART_LENGTH = 40
_NAME = _PART | frozenset("abcdefghijklmnopqrstuvwxyz._@:+")
_NAME_LENGTH = 128
TAG_DIGITS = 8
_HEX = frozenset("0123456789abcdef")
_PARTS_UNTAGGED, _PARTS_TAGGED = 6, 7  # RUN, a day of three parts, number, attempt, tag


def is_day(text: str) -> bool:
    """Whether the text has the form of a day, such as 2026-02-21."""
    return text[4:5] == text[7:8] == "-" and text.isascii() and text[:4].isdigit() and _two(text[5:7], text[8:])


def _two(month: str, day: str) -> bool:
    return len(month) == len(day) == 2 and month.isdigit() and day.isdigit()  # noqa: PLR2004 - a form, no limit


def is_task_id(text: str) -> bool:
    """Whether the text is a whole task ID and nothing else, not even a trailing newline."""
    return len(text) <= _LONGEST and _has_form(text)


@lru_cache(maxsize=1024)  # a commit asks this of the same ID several times
def _has_form(text: str) -> bool:
    number = text[16:]
    return (
        text[:5] == "TASK-"
        and text[15:16] == "-"
        and is_day(text[5:15])
        and number.isascii()
        and number.isdigit()
        and (len(number) == _PADDED or (_PADDED < len(number) <= NUMBER_DIGITS and number[0] != "0"))
    )


def is_part(text: str) -> bool:
    """Whether the text could be a part of a task ID at all."""
    return 0 < len(text) <= _PART_LENGTH and _PART.issuperset(text)


def is_agent_name(text: str) -> bool:
    """Whether the text can name an agent, an actor, a role, a team or a resource."""
    return 0 < len(text) <= _NAME_LENGTH and _NAME.issuperset(text) and text[0].isalnum()


def task_id(day: str, number: int) -> str:
    """Build the ID of a day's nth task."""
    return f"TASK-{day}-{number:03d}"


def split_task_id(text: str) -> tuple[str, int]:
    """The day and the number of a valid task ID."""
    return text[5:15], int(text[16:])


def run_id(task: str, attempt: int, tag: str) -> str:
    """The ID of a task's nth run.

    The tag is eight random hex digits, so that the same attempt in another branch, clone or restored backup has
    another ID. Without a tag it is the form that earlier versions wrote.
    """
    return f"RUN-{task[5:]}-{attempt}-{tag}" if tag else f"RUN-{task[5:]}-{attempt}"


def task_of_run(run: str) -> str | None:
    """The task that a run belongs to, or None when the text is not a run ID; also for IDs without a tag."""
    parts = run.split("-")
    if parts[0] != "RUN" or not _PARTS_UNTAGGED <= len(parts) <= _PARTS_TAGGED:
        return None
    owner, attempt, tag = f"TASK-{'-'.join(parts[1:5])}", parts[5], "".join(parts[6:])
    if len(parts) == _PARTS_TAGGED and not (len(tag) == TAG_DIGITS and _HEX.issuperset(tag)):
        return None
    return owner if is_task_id(owner) and attempt.isascii() and attempt.isdigit() else None


def is_tagged(run: str) -> bool:
    """Whether a run's ID has a random part; those of earlier versions have none."""
    return run.count("-") == _PARTS_TAGGED - 1


def run_place(task: str, hop: str | None) -> str:
    """What the records of a run go by: the task, or one of its hops."""
    return task if hop is None else f"{task}/hops/{hop}"


def attempt_of(run: str) -> int:
    """The number of a run among those of its task."""
    return int(run.split("-")[5])


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
