"""Clones of one repository with a data directory: real git, real `aof` processes, and their data compared by bytes.

Every command is a process of its own, as it is for people. Nothing here knows how histories are merged.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tests.support.terminal import Ended
from tests.support.terminal import aof as command

_SETTINGS = (
    ("user.name", "x"),
    ("user.email", "x@example.org"),
    ("commit.gpgsign", "false"),
    ("gc.auto", "0"),
    ("advice.detachedHead", "false"),
    ("protocol.file.allow", "always"),
)
_HERE_ONLY = ("locks", "tmp", "logs", "index.sqlite", "tokens.json")
_DEADLINE = 120


class Clone:
    """One working copy, and the actor that works in it."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.name = path.name
        self.data = path / ".aof"

    def git(self, *words: str, fails: bool = False) -> str:
        """Run git here; it must succeed, or fail."""
        done = self.try_git(*words)
        assert (done.returncode != 0) == fails, f"git {' '.join(words)}\n{done.stdout}{done.stderr}"
        return done.stdout

    def try_git(self, *words: str) -> subprocess.CompletedProcess[str]:
        """Run git here, however it ends."""
        settings = [part for name, value in _SETTINGS for part in ("-c", f"{name}={value}")]
        environment = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
        environment |= {"GIT_EDITOR": "true", "GIT_TERMINAL_PROMPT": "0", "GIT_CONFIG_GLOBAL": os.devnull}
        return subprocess.run(
            ["git", *settings, *words],
            cwd=self.path,
            env=environment,
            capture_output=True,
            text=True,
            timeout=_DEADLINE,
            check=False,
        )

    def try_aof(self, *words: str, **more: str) -> Ended:
        """Run a command as the person of this clone, however it ends."""
        return command(*words, cwd=self.path, **({"AOF_ACTOR": f"person-{self.name}"} | more))

    def aof(self, *words: str, **more: str) -> Any:
        """Run a command that must succeed, and give its data."""
        done = self.try_aof(*words, "--json", **more)
        assert done.code == 0, f"{self.name}: aof {' '.join(words)}\n{done.out}{done.err}"
        return done.data

    def refused(self, *words: str, **more: str) -> str:
        """Run a command that must be refused, and give the code."""
        done = self.try_aof(*words, "--json", **more)
        assert done.code != 0, f"{self.name}: aof {' '.join(words)}\n{done.out}"
        code: str = done.error["code"]
        return code

    def create(self, title: str, *words: str) -> str:
        """Create a task, and give its ID."""
        made: str = self.aof("create", title, "--no-review", *words)["taskId"]
        return made

    def commit(self, message: str = "tasks") -> None:
        """Commit the whole of the data directory, if anything has changed."""
        self.git("add", "-A", ".")
        if self.git("status", "--porcelain"):
            self.git("commit", "-qm", message)

    def pull(self, other: Clone, *options: str) -> bool:
        """Pull another clone's branch; whether git could do so by itself."""
        return (
            self.try_git("pull", "-q", "--no-edit", *(options or ("--no-rebase",)), str(other.path), "main").returncode
            == 0
        )

    def settle(self, message: str = "merge tasks") -> Any:
        """What a person does after a pull: merge the histories, and commit what came of it."""
        report = self.aof("merge")
        self.git("add", "-A", ".aof")
        if self.git("status", "--porcelain") or (self.path / ".git/MERGE_HEAD").exists():
            self.git("commit", "-qm", message)
        return report

    def take(self, other: Clone) -> Any:
        """Commit, pull and settle: this clone has all that the other has committed."""
        self.commit()
        self.pull(other)
        return self.settle()

    def healthy(self) -> None:
        """Doctor finds nothing wrong."""
        done = self.try_aof("doctor", "--json")
        assert done.code == 0, done.out + done.err

    def tasks(self) -> dict[str, dict[str, Any]]:
        """Every task by its title, archived ones too."""
        listed = self.aof("list", "--limit", "1000", "--archived")["tasks"]
        return {row["title"]: row for row in listed}

    def show(self, task_id: str) -> Any:
        """One task, by the very ID that it has now."""
        return self.aof("show", f"={task_id}")

    def log(self) -> list[Any]:
        """Every event on the path from the first to the last."""
        found: list[Any] = self.aof("log", "--limit", "100000")["events"]
        return found

    def lines(self) -> Iterator[Any]:
        """Every line of every file of the log, headers of lanes too."""
        for file in sorted((self.data / "events").glob("*.jsonl")):
            for line in file.read_bytes().splitlines():
                yield json.loads(line)

    def bytes(self, *parts: str) -> dict[str, bytes]:
        """Every file of the data directory that travels, or those below some of its folders, with its content."""
        found: dict[str, bytes] = {}
        for folder, names, files in os.walk(self.data):
            below = os.path.relpath(folder, self.data)
            names[:] = [name for name in names if below != "." or name not in _HERE_ONLY]
            for name in files:
                path = os.path.normpath(f"{below}/{name}")
                if _travels(path) and (not parts or path.split("/")[0] in parts):
                    found[path] = (self.data / path).read_bytes()
        return found


def _travels(path: str) -> bool:
    name = path.rpartition("/")[2]
    return (
        not path.startswith((*_HERE_ONLY, "events/torn"))
        and not name.endswith((".log", ".gitkeep"))
        and not name.startswith(("process.json", "run_heartbeat.json", ".git"))
    )


def origin(folder: Path, *titles: str, driver: bool = False) -> Clone:
    """A repository whose data directory was made here, with a task for each title, committed.

    Without AOF's merge `driver` git stops at files that both sides changed, as it does in a clone without `aof init`.
    """
    first = Clone(folder / "a")
    first.path.mkdir(parents=True)
    first.git("init", "-q", "-b", "main")
    first.aof("init")
    if not driver:
        first.git("config", "--remove-section", "merge.aof")
    for title in titles:
        first.create(title)
    first.commit("begin")
    return first


def cloned(of: Clone, name: str, *options: str) -> Clone:
    """A clone that git made."""
    path = of.path.parent / name
    of.git("clone", "-q", *options, of.path.as_uri() if options else str(of.path), str(path))
    return Clone(path)


def copied(of: Clone, name: str) -> Clone:
    """A clone that `cp -r` made, with its locks and caches."""
    path = of.path.parent / name
    shutil.copytree(of.path, path, symlinks=True)
    return Clone(path)


def differing(*clones: Clone, parts: tuple[str, ...] = ()) -> list[str]:
    """The files that are not the same in all clones."""
    first, *others = [clone.bytes(*parts) for clone in clones]
    names = {name for each in (first, *others) for name in each}
    return sorted(name for name in names if any(other.get(name) != first.get(name) for other in others))
