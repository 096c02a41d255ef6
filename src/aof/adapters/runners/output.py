"""What a worker prints: kept in files up to a limit, and searched for messages. Must not know what they mean."""

from __future__ import annotations

import os
from contextlib import suppress
from typing import Any

from aof.adapters.runners.redaction import Redaction

PREFIX = b"AOF/1 "
_LONGEST_LINE = 10 * 1024 * 1024 + 4096  # what is longer is passed on cut, so that it is refused for its size
_CHUNK = 65_536


class KeptStream:
    """One stream: a pipe that is read and a file that grows, for its owner only; known secrets are blotted out."""

    def __init__(self, pipe: int, file: int, shown: str, most: int, redaction: Redaction) -> None:
        os.set_blocking(pipe, False)
        self.pipe = pipe
        self._shown = shown
        self._most = most
        self._file = file
        self.came = 0
        self.kept = 0
        self._redaction = redaction

    def read(self) -> bytes | None:
        """What has come since; empty when nothing has, None at the end."""
        try:
            data = os.read(self.pipe, _CHUNK)
        except BlockingIOError:
            return b""
        except OSError:
            return None
        if not data:
            return None
        self.came += len(data)
        self._keep(self._redaction.feed(data))
        return data

    def _keep(self, data: bytes) -> None:
        room = data[: max(self._most - self.kept, 0)]
        if room:
            with suppress(OSError):  # a full disk costs the copy, not the messages in it
                self.kept += os.write(self._file, room)

    def close(self) -> None:
        """Let go of pipe and file; the file says so when it does not hold everything."""
        self._keep(self._redaction.rest())
        if self.came > self.kept:
            with suppress(OSError):
                os.write(self._file, f"\n[{self.came - self.kept:,} bytes more were not kept]\n".encode())
        os.close(self.pipe)
        os.close(self._file)

    def told(self) -> dict[str, Any]:
        """Where it lies and how much of it there is."""
        return {"path": self._shown, "bytes": self.came, "kept": self.kept}


class Messages:
    """Finds the lines of a stream that are protocol messages."""

    def __init__(self) -> None:
        self._rest = b""
        self._skipping = False

    def feed(self, data: bytes) -> list[str]:
        """The messages that have been completed by this."""
        *lines, rest = (self._rest + data).split(b"\n")
        found = [text for line in lines if (text := self._whole(line)) is not None]
        if len(rest) > _LONGEST_LINE and not self._skipping:
            if rest.startswith(PREFIX):
                found.append(_text(rest[:_LONGEST_LINE]))
            self._skipping = True
        ours = not self._skipping and (rest.startswith(PREFIX) or PREFIX.startswith(rest[: len(PREFIX)]))
        self._rest = rest if ours else rest[:0] if self._skipping else b"\x00"
        return found

    def last(self) -> list[str]:
        """A message that was not ended by a line break."""
        text = self._whole(self._rest)
        return [text] if text is not None else []

    def _whole(self, line: bytes) -> str | None:
        skipped, self._skipping = self._skipping, False
        return _text(line) if line.startswith(PREFIX) and not skipped else None


def _text(line: bytes) -> str:
    return line.decode("utf-8", "replace").rstrip("\r")
