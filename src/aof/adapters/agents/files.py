"""The files that connecting an agent reads and changes: of the project, or of the person who works in it.

What a link shares with others is not ours to change. Must not know what is in the files.
"""

from __future__ import annotations

import os
import re
import tempfile
from contextlib import suppress
from typing import Literal

import msgspec

from aof.core.errors.base import InvalidInput
from aof.core.errors.storage import StorageFailed

Action = Literal["create", "change", "delete", "keep"]
_TOKEN = re.compile(r"Bearer [^\s\"'$<{]+")  # the name of a variable, or a gap, is no secret
_LARGEST = 4 * 1024 * 1024  # bytes of somebody's settings


class FileChange(msgspec.Struct, frozen=True, kw_only=True):
    """One file that would become another; `after` is None when it would go.

    `edited` says that somebody has changed what is taken away, or is kept for that reason. `file` is the file itself.
    """

    path: str
    file: str
    action: Action
    added: str
    after: str | None
    edited: bool = False


class Drafts:
    """What the files of a project and its person hold, and what they are to hold."""

    def __init__(self, project: str, home: str) -> None:
        self._roots = {False: os.path.realpath(project), True: os.path.realpath(home)}
        self._before: dict[str, str | None] = {}
        self._after: dict[str, str | None] = {}
        self._names: dict[str, str] = {}
        self._edited: set[str] = set()

    def is_within(self, path: str) -> bool:
        """Whether we may change the file; what is behind a link that leads out was never written by us."""
        try:
            self._file(path)
        except InvalidInput:
            return False
        return True

    def text(self, path: str) -> str | None:
        """What the file is to hold; None for no file."""
        file = self._file(path)
        if file not in self._after:
            self._before[file] = self._after[file] = _read(file, path)
        return self._after[file]

    def put(self, path: str, text: str | None, *, edited: bool = False) -> None:
        """Let the file hold this."""
        self.text(path)
        self._after[self._file(path)] = text
        self._edited |= {self._file(path)} if edited else set()

    def keep(self, path: str) -> None:
        """Leave a file that was ours to the person who has edited it, and say so."""
        self._edited.add(self._file(path))

    def changes(self) -> list[FileChange]:
        """What has to be done on the disk, and what is kept there."""
        return [
            _change(self._names[file], file, self._before[file], after, edited=file in self._edited)
            for file, after in self._after.items()
            if after != self._before[file] or file in self._edited
        ]

    def _file(self, path: str) -> str:
        """The file itself, if it is below the folder that it was named in."""
        root = self._roots[path.startswith("~/")]
        real = os.path.realpath(os.path.join(root, path.removeprefix("~/")))
        if os.path.commonpath((real, root)) != root:
            where = "your home directory" if path.startswith("~/") else "the project"
            raise InvalidInput(f"{path} is a link out of {where}", "change what it leads to by hand, or unlink it")
        self._names.setdefault(real, path)
        return real


def make(changes: list[FileChange]) -> None:
    """Make the changes, each file at once."""
    for change in changes:
        if change.action == "keep":
            continue
        folder = os.path.dirname(change.file)
        try:
            if change.after is None:
                os.unlink(change.file)
                with suppress(OSError):  # a folder that others use as well is not empty
                    for _ in range(change.path.removeprefix("~/").count("/")):
                        os.rmdir(folder)
                        folder = os.path.dirname(folder)
                continue
            os.makedirs(folder, exist_ok=True)
            mode = os.stat(change.file).st_mode & 0o7777 if os.path.exists(change.file) else 0o644
            handle, new = tempfile.mkstemp(dir=folder, prefix=".aof-")
            with open(handle, "w", encoding="utf-8", newline="") as file:
                file.write(change.after)
            os.chmod(new, mode)
            os.replace(new, change.file)
        except OSError as error:
            raise StorageFailed(f"{change.path} cannot be written: {error.strerror}", "look at its rights") from None


def _read(file: str, path: str) -> str | None:
    try:
        with open(file, encoding="utf-8", newline="") as opened:
            text = opened.read(_LARGEST + 1)
    except FileNotFoundError:
        return None
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidInput(f"{path} cannot be read: {error}", "correct it, or leave this agent out") from None
    if len(text) > _LARGEST:
        raise InvalidInput(f"{path} is too large", "add the settings by hand, or leave this agent out")
    return text


def _change(path: str, file: str, before: str | None, after: str | None, *, edited: bool) -> FileChange:
    action: Action = (
        "keep" if after == before else "delete" if after is None else "create" if before is None else "change"
    )
    old, new = (before or "").splitlines(), (after or "").splitlines()
    shown = [f"+ {line}" for line in new if line not in old] + [f"- {line}" for line in old if line not in new]
    added = _TOKEN.sub("Bearer …", "\n".join(shown))
    return FileChange(path=path, file=file, action=action, added=added, after=after, edited=edited)
