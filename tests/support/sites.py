"""Clones without git: data directories of one history, each with a process on it, and what travels between them."""

from __future__ import annotations

import json
import shutil
from typing import Any

from tests.support.clock import ManualClock
from tests.support.desk import Workplace

_HERE_ONLY = ("locks", "tmp", "logs", "index.sqlite", "torn", "run_heartbeat.json")


class Site(Workplace):
    """One of the clones."""

    def create(self, title: str) -> str:
        """A new task's ID; time passes, so that no two clones do anything in the same moment."""
        self.clock.time += 1000
        return self.fabric.create(title, review=False).task_id

    def clone(self, name: str) -> Site:
        """What git would make elsewhere: without locks and caches."""
        target = self.root.parent / name
        shutil.copytree(self.root, target, ignore=lambda _, names: [one for one in names if one in _HERE_ONLY])
        return Site(target, ManualClock(self.clock.time + 500))

    def copy(self, name: str) -> Site:
        """What `cp -r` makes."""
        target = self.root.parent / name
        shutil.copytree(self.root, target)
        return Site(target, ManualClock(self.clock.time + 500))

    def fetch(self, other: Site) -> None:
        """Let the other's files of the log come here, as git does where the same file was not changed on both sides."""
        for path in (other.root / "events").glob("*.jsonl"):
            here = self.root / "events" / path.name
            if not here.exists() or path.read_bytes().startswith(here.read_bytes()):
                there = here.with_suffix(".fetched")
                shutil.copy(path, there)
                there.rename(here)

    def titles(self) -> list[str]:
        """The titles of all tasks, as they are listed."""
        return sorted(row.title for row in self.fabric.list(limit=1000).tasks)

    def files(self) -> dict[str, bytes]:
        """The files of the log, by name."""
        return {path.name: path.read_bytes() for path in sorted((self.root / "events").glob("*.jsonl"))}

    def lanes(self) -> list[str]:
        """The files that are not of the root lane."""
        return [name for name in self.files() if name.count(".") > 1]

    def header(self, name: str) -> dict[str, Any]:
        """The first line of a lane."""
        found: dict[str, Any] = json.loads(self.files()[name].split(b"\n", 1)[0])
        return found

    def travelling(self) -> dict[str, bytes]:
        """All that git would carry."""
        return {
            str(path.relative_to(self.root)): path.read_bytes()
            for path in sorted(self.root.rglob("*"))
            if path.is_file() and not set(path.relative_to(self.root).parts) & set(_HERE_ONLY)
        }
