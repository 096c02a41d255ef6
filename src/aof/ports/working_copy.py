"""The working copy as the application needs it: files that people edit beside the log. Above: app. Below: filesystem.

Only a store of plain files has one; `Store.working_copy` is None for the others. It finds what people did, and never
judges it: that is the core's part.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Literal, Protocol

import msgspec

from aof.core.engine.merge.model import Report as MergeReport
from aof.core.model.task import Task


class Problem(msgspec.Struct, frozen=True, rename="camel"):
    """Something that is wrong with the data: where, in what way, and what helps."""

    code: str
    path: str
    detail: str
    fix: str


class Checkup(msgspec.Struct, frozen=True):
    """What a store found wrong, the tasks with edits that have not been judged, and what could be better.

    `shared` are the running tasks of each resource that several of them occupy.
    """

    problems: tuple[Problem, ...] = ()
    edited: tuple[str, ...] = ()
    advice: tuple[Problem, ...] = ()
    shared: dict[str, tuple[str, ...]] = {}


class WorkingCopy(Protocol):
    """The files of one data directory."""

    root: str

    def file_status(self, task: Task) -> str | None:
        """`stale` when the task's file was changed and not imported, `unknown` when it cannot be read, else None."""
        ...

    def odd_files(self, tasks: Iterable[Task]) -> Iterator[Task]:
        """Those of many tasks whose files are not what the log wrote. It is cheap to ask again."""
        ...

    def changes(self) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Files that people added without a task's ID as name, and tasks whose files are new or not what the log wrote.

        Looks at every file.
        """
        ...

    def is_modified(self, task_id: str) -> bool:
        """Whether the file of a task may be another than what the log wrote; no lock is taken."""
        ...

    def places(self, task_id: str) -> tuple[str, ...]:
        """Where files of the task lie, relative to the data directory; one that somebody moved lies elsewhere."""
        ...

    def restored(self) -> tuple[str, ...]:
        """Tasks whose file somebody had deleted and that a command has restored from the log; each is told once."""
        ...

    def preloaded(self, task_ids: Sequence[str]) -> Iterator[str]:
        """These tasks one by one; what a look at each of them needs is read beforehand, for many at once."""
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

    def tips(self) -> int:
        """How many histories there are that nobody has brought together: one, unless git brought another."""
        ...

    def merge(self, *, dry_run: bool) -> MergeReport | None:
        """Bring all histories together, durably; None where there is only one. Raises MergePending."""
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

    def verified(self, most: int | None = None) -> int:
        """Verify the log's chain of hashes on from where it was verified, at most so many events; how far it holds.

        Raises LogDamaged where it does not.
        """
        ...

    def log_end(self) -> object:
        """Differs from what it was when the log has grown; for systems that do not tell of changes."""
        ...


class Whereabouts(Protocol):
    """The data directory as this process has found it, and what its caller's name comes from. Looks only when asked."""

    data_dir: str
    found_by: Literal["given", "environment", "folder"]
    actor: str
    actor_from: Literal["given", "environment", "run", "user"]

    @property
    def version(self) -> str:
        """Of AOF."""
        ...

    @property
    def python(self) -> str:
        """The version of Python."""
        ...

    def format(self) -> int:
        """The version of the data directory's format."""
        ...

    def lane(self) -> str | None:
        """The lane of the log that this clone appends to; None before it has begun one."""
        ...


class ProjectFiles(Protocol):
    """The files of the project that a data directory belongs to. Looks, and changes nothing."""

    def has(self, path: str) -> bool:
        """Whether there is something at a path below the project's folder; what leads out of it is not there."""
        ...
