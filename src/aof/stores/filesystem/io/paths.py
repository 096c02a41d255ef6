"""Where everything lies in a data directory. Must not touch the disk."""

from __future__ import annotations

import os
from itertools import count

from aof.core.model.lifecycle import STATUSES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from aof.core.model.task import Task

STATUS_LETTERS = dict(zip((*STATUSES, "archive"), "brivxdcya", strict=True))
FOLDERS_BY_LETTER = {letter: name for name, letter in STATUS_LETTERS.items()}
DIRECTORIES = (
    "tasks",
    *(f"tasks/{status}" for status in STATUSES),
    "runs",
    "events",
    "events/torn",
    "archive",
    "archive/tasks",
    "archive/runs",
    "locks",
    "locks/heads",
    "locks/lanes",
    "locks/revs",
    "tmp",
)
DOCUMENTS = (
    *("WORKLOG.md", "WORKLOG_ARCHIVE.md", "WORKLOG_EDITS.md", "MAILBOX.md", "MAILBOX_ARCHIVE.md"),
    *("SESSION_CHARTER.md", "jobs.json"),
)
# Git changes no line ending: digests and the log's chain are of bytes. Of a file of the log that two clones wrote to,
# as older versions let them, it keeps every line: which ones belong together their hashes show. So it does with records
# that nobody edits and that `aof merge` writes anew from the log. Tasks and documents hold what people wrote: there the
# marks of a conflict tell both sides apart, or AOF's merge driver keeps both sides whole, where a clone has it. Log and
# runs are nothing to review line by line.
ATTRIBUTES = (
    "* -text",
    "events/*.jsonl merge=union linguist-generated",
    "runs/** merge=union linguist-generated",
    "archive/runs/** merge=union linguist-generated",
    "handoffs/** merge=union",
    "tasks/*/TASK-[0-9]*.md merge=aof",
    "archive/tasks/TASK-[0-9]*.md merge=aof",
    *(f"/{name} merge=aof" for name in DOCUMENTS),
)
OLD_ATTRIBUTES = ("events/*.jsonl -merge", "events/*.jsonl merge=union")  # what earlier versions wrote in its place
# What workers print is for this machine: it may hold what nobody wants in a repository.
# Heartbeats are signs of life on this machine: elsewhere they would say nothing, and git would find conflicts in them.
UNSHARED = (
    "runs/**/run_heartbeat.json",
    "archive/runs/**/run_heartbeat.json",
    "runs/**/attempts/*/*.log",
    "runs/**/attempts/*/process.json*",
    "archive/runs/**/attempts/*/*.log",
)
IGNORED = ("index.sqlite*", "locks/", "logs/", "tmp/", "events/torn/", "tokens.json", *UNSHARED)

_numbers = count()


def _name_process() -> None:
    global _process  # noqa: PLW0603 - a child needs a name of its own, and asking for the ID each time is a system call
    _process = f"{os.getpid()}-{os.urandom(4).hex()}"  # two containers may share a directory and have the same ID


_process = ""
_name_process()
os.register_at_fork(after_in_child=_name_process)


class Paths:
    """The names of all files below one data directory."""

    def __init__(self, root: str) -> None:
        self.root = root
        self.events = f"{root}/events"
        self.torn = f"{root}/events/torn"
        self.locks = f"{root}/locks"
        self.heads = f"{root}/locks/heads"
        self.lanes = f"{root}/locks/lanes"
        self.apart = f"{root}/locks/apart"
        self.revs = f"{root}/locks/revs"
        self.waited = f"{root}/locks/ends"  # `waited` of earlier versions did not know children
        self.journal = f"{root}/locks/journal"
        self.checkpoint = f"{root}/locks/checkpoint"
        self.flushed = f"{root}/locks/flushed"
        self.index = f"{root}/index.sqlite"
        self.tokens = f"{root}/tokens.json"
        self.runs = f"{root}/runs"
        self.handoffs = f"{root}/handoffs"
        self.push = f"{root}/push"
        self.temporary = f"{root}/tmp"  # noqa: S108 - inside the data directory
        self._folders = {status: f"{root}/tasks/{status}/" for status in STATUSES} | {
            "archive": f"{root}/archive/tasks/"
        }
        self.folders = tuple(self._folders.items())

    def log(self, day: str) -> str:
        """The log of a day."""
        return f"{self.events}/{day}.jsonl"

    def task(self, folder: str, task_id: str) -> str:
        """A task's file in a status folder, or in `archive`."""
        return f"{self._folders[folder]}{task_id}.md"

    def place_of(self, task: Task) -> str:
        """The file of a task, in the folder that the task belongs in."""
        return f"{self._folders[folder_of(task)]}{task.id}.md"

    def name_of(self, task: Task) -> str:
        """The same, as events and answers name it."""
        return self.place_of(task)[len(self.root) + 1 :]

    def files(self, folder: str, task_id: str) -> str:
        """The folder of a task's own files; it moves with the task."""
        return self._folders[folder] + task_id

    def run(self, task_id: str, *, archived: bool = False) -> str:
        """The folder of a task's runs."""
        return f"{self.root}/archive/runs/{task_id}" if archived else f"{self.runs}/{task_id}"

    def handoff(self, handoff_id: str) -> str:
        """A handoff's record."""
        return f"{self.handoffs}/{handoff_id}.json"

    def temporary_file(self, name: str) -> str:
        """A temporary file that no other writer uses, in this process or another."""
        return f"{self.temporary}/{name}.{_process}-{next(_numbers)}"

    def relative(self, path: str) -> str:
        """The path as events and answers name it."""
        return path[len(self.root) + 1 :]


def folder_of(task: Task) -> str:
    """The folder that a task belongs in."""
    return "archive" if task.archived else task.status
