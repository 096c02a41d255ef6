"""The working copy as the application needs it: files that people edit beside the log. Above: app. Below: filesystem.

Only a store of plain files has one; `Store.working_copy` is None for the others. It finds what people did, and never
judges it: that is the core's part.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Protocol

import msgspec

from aof.core.model.task import Task


class Problem(msgspec.Struct, frozen=True, rename="camel"):
    """Something that is wrong with the data: where, in what way, and what helps."""

    code: str
    path: str
    detail: str
    fix: str


class Checkup(msgspec.Struct, frozen=True):
    """What a store found wrong, the tasks with edits that have not been judged, and what could be better."""

    problems: tuple[Problem, ...] = ()
    edited: tuple[str, ...] = ()
    advice: tuple[Problem, ...] = ()


class WorkingCopy(Protocol):
    """The files of one data directory."""

    root: str

    def file_status(self, task: Task) -> str | None:
        """`stale` when the task's file was changed and not imported, `unknown` when it cannot be read, else None."""
        ...

    def modified_tasks(self) -> Iterator[str]:
        """The tasks whose files are not what the log wrote, or are new."""
        ...

    def preloaded(self, task_ids: Sequence[str]) -> Iterator[str]:
        """The same tasks one by one; what a look at each of them needs is read beforehand, for many at once."""
        ...

    def untracked_files(self) -> tuple[str, ...]:
        """Files that people added without a task's ID as name."""
        ...

    def adopt(self, path: str, now: int) -> str:
        """Give such a file an ID, under which it is new."""
        ...

    def quarantine(self, task_id: str) -> tuple[str, ...]:
        """Keep a file that cannot be imported under another name, and restore the log's version; returns the names."""
        ...

    def diagnose(self) -> Checkup:
        """Compare everything that the store keeps with everything else; changes nothing."""
        ...

    def repair(self) -> None:
        """Put right what a diagnosis finds, as far as that needs no person."""
        ...

    def rebuild_index(self) -> None:
        """Discard the index and rebuild it."""
        ...

    def checkpoint(self) -> None:
        """Sync everything, so that a power cut costs less afterwards."""
        ...

    def templates(self) -> tuple[str, ...]:
        """The names of the templates that people have written for new tasks."""
        ...

    def template(self, name: str) -> tuple[dict[str, Any], str] | None:
        """The keys and the text of a template; None where there is none. Raises UnreadableTask."""
        ...

    def watched(self) -> tuple[str, tuple[str, ...]]:
        """The folder in which the log grows, and those in which people edit tasks."""
        ...

    def log_end(self) -> object:
        """Differs from what it was when the log has grown; for systems that do not tell of changes."""
        ...


class ProjectFiles(Protocol):
    """The files of the project that a data directory belongs to. Looks, and changes nothing."""

    def has(self, path: str) -> bool:
        """Whether there is something at a path below the project's folder; what leads out of it is not there."""
        ...
