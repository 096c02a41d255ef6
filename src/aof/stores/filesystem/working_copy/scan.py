"""Scans all folders for task files that differ from the log, and for files that belong to no task. Reads only."""

from __future__ import annotations

import os
from hashlib import sha256

from aof.core.model.ids import is_task_id, split_task_id
from aof.stores.filesystem.io.paths import Paths
from aof.stores.filesystem.io.read import read
from aof.stores.filesystem.working_copy.manifest import Manifest


class Scan:
    """What was found, in the order of IDs.

    `changed` are tasks whose file is changed, moved, doubled, missing, new or not known; `places` is where each task
    has a file; `nameless` are Markdown files without an ID as name; `others` is whatever else lies there; `newest` is
    the highest number of an event that surely was committed.
    """

    __slots__ = ("changed", "digests", "nameless", "newest", "others", "places")

    def __init__(self) -> None:
        self.changed: list[str] = []
        self.digests: dict[str, str] = {}
        self.nameless: list[str] = []
        self.newest = 0
        self.others: list[str] = []
        self.places: dict[str, list[str]] = {}


def scan(paths: Paths, heads: Manifest) -> Scan:
    """Compare every file with the head of its task: 100,000 files in seconds."""
    found = Scan()
    known = heads.table()
    found.newest = max((head.rev for head in known.values()), default=0)
    odd: set[str] = set()
    for folder, path in paths.folders:
        for entry in os.scandir(path):
            name = entry.name
            task_id = name[:-3]
            if not name.endswith(".md") or not is_task_id(task_id):
                (found.nameless if _could_be_new(entry) else found.others).append(entry.path)
                continue
            found.places.setdefault(task_id, []).append(folder)
            digest = found.digests[task_id] = _digest(path + name)
            head = known.get(task_id)
            if head is None or head.folder != folder or not digest.startswith(head.digest) or not digest:
                odd.add(task_id)
    odd |= {task_id for task_id, places in found.places.items() if len(places) > 1}
    odd |= known.keys() - found.places.keys()
    found.changed = sorted(odd, key=split_task_id)
    found.nameless.sort()
    found.others.sort()
    return found


def _digest(path: str) -> str:
    try:
        data = read(path)
    except OSError:
        return ""
    return "" if data is None else sha256(data).hexdigest()


def _could_be_new(entry: os.DirEntry[str]) -> bool:
    """A person's Markdown file: not hidden, no editor's, and no README that describes the folder."""
    name = entry.name
    if not name.endswith(".md") or name.startswith((".", "#", "~")) or name.lower() == "readme.md":
        return False
    return entry.is_file(follow_symlinks=False)
