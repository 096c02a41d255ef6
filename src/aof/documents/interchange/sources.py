"""The tools whose tasks can be read, and the check of what was read as a whole. A new tool is a row here."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from functools import partial
from graphlib import CycleError, TopologicalSorter
from typing import Final

from aof.core.errors.base import AofError, InvalidInput, PayloadTooLarge
from aof.core.errors.tasks import DependencyCycle
from aof.core.validation import limits
from aof.documents.interchange import backlog, beads, github, table, taskmaster
from aof.documents.interchange.model import MOST_BYTES, MOST_TASKS, ForeignTask, Reading, SourceFile

Reader = Callable[[list[SourceFile]], Reading | InvalidInput]
_SHOWN: Final = 5


def readers(yaml: backlog.Yaml) -> dict[str, Reader]:
    """How the files of each tool are read."""
    return {
        "backlog": partial(backlog.read, yaml),
        "beads": beads.read,
        "taskmaster": taskmaster.read,
        "github": github.read,
        "csv": table.read,
    }


def read(source: str, files: list[SourceFile], yaml: backlog.Yaml) -> Reading | AofError:
    """The tasks in the files of a tool, each after those that it depends on; a refusal of what is not sound."""
    known = readers(yaml)
    if problem := limits.choice("source", source, tuple(known)):
        return problem
    if not files:
        return InvalidInput("there is no file to read", "give the file, or the folder of Backlog.md")
    if (size := sum(len(file.text) for file in files)) > MOST_BYTES:
        return PayloadTooLarge(
            f"the files have {size:,} characters, the limit is {MOST_BYTES:,}", "import them in parts"
        )
    reading = known[source](files)
    if isinstance(reading, AofError):
        return reading
    if len(reading.tasks) > MOST_TASKS:
        return PayloadTooLarge(
            f"there are {len(reading.tasks):,} tasks, the limit is {MOST_TASKS:,}", "import them in parts"
        )
    return _unsound(reading.tasks) or Reading(ordered(reading.tasks), reading.lost)


def _unsound(tasks: list[ForeignTask]) -> AofError | None:
    """The refusal of what cannot be imported as a whole: IDs that stand twice, and circles."""
    twice = [key for key, count in Counter(task.key for task in tasks).items() if count > 1]
    if twice:
        more = f" and {len(twice) - _SHOWN} more" if len(twice) > _SHOWN else ""
        return InvalidInput(
            f"these IDs stand twice in the source: {', '.join(twice[:_SHOWN])}{more}", "remove the duplicates first"
        )
    known = {task.key for task in tasks}
    for what, edges in (
        ("depend on each other", {task.key: [one for one in task.depends_on if one in known] for task in tasks}),
        ("are below each other", {task.key: [task.parent] if task.parent in known else [] for task in tasks}),
    ):
        try:
            TopologicalSorter(edges).prepare()
        except CycleError as circle:
            path = " → ".join(map(str, circle.args[1][: 2 * _SHOWN]))
            return DependencyCycle(
                f"tasks of the source {what} in a circle: {path}", "remove one of these edges there first"
            )
    return None


def ordered(tasks: list[ForeignTask]) -> list[ForeignTask]:
    """Each task after those that it depends on, otherwise as in the source."""
    place = {task.key: number for number, task in enumerate(tasks)}
    by_key = {task.key: task for task in tasks}
    sorter = TopologicalSorter({task.key: [one for one in task.depends_on if one in by_key] for task in tasks})
    sorter.prepare()
    found: list[ForeignTask] = []
    while sorter.is_active():
        free = sorted(sorter.get_ready(), key=place.__getitem__)
        found += (by_key[key] for key in free)
        sorter.done(*free)
    return found
