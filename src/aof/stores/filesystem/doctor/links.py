"""Finds symbolic links where AOF reads or writes. It follows none; this reports all of them. Reads only."""

from __future__ import annotations

import os
from collections.abc import Iterator

from aof._support.confined_folder import is_link
from aof.core.model.ids import is_task_id
from aof.ports.working_copy import Problem
from aof.stores.filesystem.io.paths import DIRECTORIES

_TOP = ("org", "workflows", "templates", "events", "logs", "handoffs", "locks", "tmp", "runs", "archive", "push")
_SINGLE = ("tokens.json", "org", "workflows", "templates", ".gitattributes", "handoffs", "logs", "push")
_MOST = 1_000
_WHAT = "a symbolic link lies where AOF reads or writes, and links are not followed"
_FIX = "put what it leads to in its place, or remove the link; AOF goes through none"


def standing(root: str) -> list[Problem]:
    """Links among what every command opens: nothing else can be told before they are gone."""
    return [_problem(name) for name in _standing_names(root)]


def check(root: str) -> list[Problem]:
    """All links in the way, up to a thousand."""
    found = dict.fromkeys((*_standing_names(root), *_single(root)))
    for top in _TOP:
        if top not in found:
            for path in _below(f"{root}/{top}"):
                found[os.path.relpath(path, root)] = None
                if len(found) >= _MOST:
                    break
    for path in _own_folders(root):
        found[os.path.relpath(path, root)] = None
    return [_problem(name) for name in list(found)[:_MOST]]


def _standing_names(root: str) -> Iterator[str]:
    return (name for name in (*DIRECTORIES, "index.sqlite") if is_link(f"{root}/{name}"))


def _single(root: str) -> Iterator[str]:
    return (name for name in _SINGLE if is_link(f"{root}/{name}"))


def _below(folder: str) -> Iterator[str]:
    """The links at any depth; what a link leads to is not looked at."""
    waiting = [folder]
    while waiting:
        try:
            with os.scandir(waiting.pop()) as entries:
                for entry in entries:
                    if entry.is_symlink():
                        if not entry.path.endswith(
                            ".jsonl"
                        ):  # one in the place of a log is reported as damage of the log
                            yield entry.path
                    elif entry.is_dir(follow_symlinks=False):
                        waiting.append(entry.path)
        except OSError:
            continue


def _own_folders(root: str) -> Iterator[str]:
    """A task's own folder; what a person links inside of it is that person's."""
    for name in DIRECTORIES:
        if name.startswith("tasks/") and not is_link(f"{root}/{name}"):
            try:
                with os.scandir(f"{root}/{name}") as entries:
                    yield from (entry.path for entry in entries if is_task_id(entry.name) and entry.is_symlink())
            except OSError:
                continue


def _problem(name: str) -> Problem:
    return Problem("link_in_the_way", name, _WHAT, _FIX)
