"""The words of the portable view: what stands for missing data, how refs are spelled, how long a text may be.

A ref stays valid whatever folder its task moves to. Must not know records or where files lie.
"""

from __future__ import annotations

from typing import Any, Final

from aof._support.frozen import FrozenDict

SCHEMA_VERSION: Final = "1"
UNKNOWN: Final = "unknown"
NOT_APPLICABLE: Final = "not_applicable"
SHORT: Final = 500  # characters of any text; the whole is where its ref leads


_MISSING: Final = {word: FrozenDict(state=word) for word in (UNKNOWN, NOT_APPLICABLE)}


def missing(word: str = UNKNOWN) -> dict[str, Any]:
    """An object that is not there."""
    return _MISSING[word]


def short(text: str) -> str:
    """A text for people, cut where it is long."""
    return text if len(text) <= SHORT else f"{text[: SHORT - 1]}…"


def task_ref(task_id: str, seq: int) -> str:
    """A task as it was after an event."""
    return f"aof://tasks/{task_id}?at={seq}"


def file_ref(task_id: str, path: str) -> str:
    """A file among the task's own, by its path below the task's folder."""
    return f"aof://tasks/{task_id}/{path.removeprefix('./')}"


def run_ref(run_id: str, name: str) -> str:
    """A file of a run."""
    return f"aof://runs/{run_id}/{name}"


def event_ref(seq: int) -> str:
    """An event."""
    return f"aof://log/{seq}"


def log_ref(first: int, last: int) -> str:
    """A range of the log."""
    return f"aof://log/{first}-{last}"


def handoff_ref(handoff_id: str) -> str:
    """A handoff's record."""
    return f"aof://handoffs/{handoff_id}"


def job_ref(job_id: str) -> str:
    """A job's record."""
    return f"aof://jobs/{job_id}"
