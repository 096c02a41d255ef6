"""The paths of all files in a data directory, the names of the log's files, and positions in the log."""

from __future__ import annotations

import os
from itertools import count

from aof.kernel.model import STATUSES, is_day

TYPE_CHECKING = False
if TYPE_CHECKING:
    from aof.tasks.model import Task


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


class Process:
    """The current process: its ID, which costs a system call, and a name that a forked child does not share."""

    __slots__ = ("id", "name")

    def __init__(self) -> None:
        self.refresh()

    def refresh(self) -> None:
        """Look who it is; two containers may share a directory and have the same ID."""
        self.id = os.getpid()
        self.name = f"{self.id}-{os.urandom(4).hex()}"


PROCESS = Process()
os.register_at_fork(after_in_child=PROCESS.refresh)


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
        self.blockers = f"{root}/locks/ends"  # `waited` of earlier versions did not know children
        self.journal = f"{root}/locks/journal"
        self.state = f"{root}/locks/log"
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

    def folder(self, status: str) -> str:
        """A status folder, or that of archived tasks."""
        return self._folders[status][:-1]

    def place_of(self, task: Task) -> str:
        """The file of a task, in the folder that the task belongs in."""
        return f"{self._folders[folder_of(task)]}{task.id}.md"

    def name_of(self, task: Task) -> str:
        """The path of a task's file below the data directory, as events and answers name it."""
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
        return f"{self.temporary}/{name}.{PROCESS.name}-{next(_numbers)}"

    def relative(self, path: str) -> str:
        """The path as events and answers name it."""
        return path[len(self.root) + 1 :]


def folder_of(task: Task) -> str:
    """The folder that a task belongs in."""
    return "archive" if task.archived else task.status


LANE_SUFFIX = ".jsonl"
MERGED = "m"
NAME_DIGITS = 12
_DAY = len("2026-01-01")


def is_segment(stem: str) -> bool:
    """Whether a file of this name, without its suffix, belongs to the log."""
    return is_day(stem[:_DAY]) and (len(stem) == _DAY or (stem[_DAY] == "." and _is_lane(stem[_DAY + 1 :])))


def _is_lane(name: str) -> bool:
    digits = name.removeprefix(MERGED)
    return len(digits) == NAME_DIGITS and not digits.strip("0123456789abcdef")


def day_of(segment: str) -> str:
    """The day of a segment."""
    return segment[:_DAY]


def lane_of(segment: str) -> str:
    """The lane of a segment; empty for the root lane."""
    return segment[_DAY + 1 :]


def is_merge_lane(segment: str) -> bool:
    """Whether it is a merge lane, which nobody appends to."""
    return segment[_DAY + 1 : _DAY + 2] == MERGED


def segment_of(day: str, lane: str) -> str:
    """The file of a lane on a day, without its suffix."""
    return f"{day}.{lane}" if lane else day


class LaneNames:
    """Looks at the folder of the log once for each change of it."""

    def __init__(self, paths: Paths) -> None:
        self._folder = paths.events
        self._known: tuple[int, bool, bool, bool] | None = None

    def none(self) -> bool:
        """Whether nothing was ever written to the log."""
        return self._looked()[1]

    def several(self) -> bool:
        """Whether there is a lane beside the root lane."""
        return self._looked()[2]

    def merged(self) -> bool:
        """Whether there is a merge lane."""
        return self._looked()[3]

    def _looked(self) -> tuple[int, bool, bool, bool]:
        changed = os.stat(self._folder).st_mtime_ns
        if self._known is None or self._known[0] != changed:
            stems = (name.removesuffix(LANE_SUFFIX) for name in os.listdir(self._folder) if name.endswith(LANE_SUFFIX))
            names = [stem for stem in stems if is_segment(stem)]
            self._known = changed, not names, any(map(lane_of, names)), any(map(is_merge_lane, names))
        return self._known


GENESIS = "0" * 64
HASH_MARK = b',"hash":"'
LINE_CLOSE = b'"}\n'
TAIL_BYTES = len(HASH_MARK) + 64 + len(LINE_CLOSE)


def tail_of(digest: str) -> bytes:
    """How a line with this hash ends."""
    return b"%b%b%b" % (HASH_MARK, digest.encode(), LINE_CLOSE)


_MOST = 8  # readers at different places at once


class Position:
    """A place between two commits: a segment (a file of the log), an offset in it, and the hash of the event before."""

    __slots__ = ("digest", "offset", "segment", "seq")

    def __init__(self, segment: str = "", offset: int = 0, seq: int = 0, digest: str = GENESIS) -> None:
        self.segment = segment
        self.offset = offset
        self.seq = seq
        self.digest = digest

    def text(self) -> str:
        """One line, without its end."""
        return f"{self.segment or '-'} {self.offset} {self.seq} {self.digest}"

    @staticmethod
    def parse(words: list[str]) -> Position | None:
        """What `text` has written, split into words; None where it makes no sense."""
        match words:
            case [segment, offset, seq, digest] if offset.isdigit() and seq.isdigit():
                return Position("" if segment == "-" else segment, int(offset), int(seq), digest)
        return None


class Bookmarks:
    """The last places, so that who reads the news again need not read the whole day again. Threads may share it."""

    def __init__(self) -> None:
        self._places: tuple[Position, ...] = ()

    def before(self, seq: int) -> Position | None:
        """The last known place that is not behind the event."""
        known = [place for place in self._places if place.seq <= seq]
        return max(known, key=lambda place: place.seq, default=None)

    def put(self, place: Position) -> None:
        """Remember a place; the oldest of many is forgotten."""
        others = tuple(known for known in self._places if known.seq != place.seq)
        self._places = (*others, place)[-_MOST:]

    def drop(self, place: Position) -> None:
        """Forget a place that is no longer there."""
        self._places = tuple(known for known in self._places if known is not place)


class LogReplaced(Exception):
    """The log was replaced, as by a switch of branches: whatever was loaded is out of date."""


class TipsApart(Exception):
    """The log has several tips, as clones have worked apart: they are merged before anything is appended."""


class Overtaken(Exception):
    """What a decision rests on has changed, as can happen where lock files are deleted: begin again."""
