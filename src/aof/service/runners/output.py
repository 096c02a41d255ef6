"""What a worker prints: kept in files without its secrets, and searched for protocol messages."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from contextlib import suppress
from typing import Any, Final

_PREFIX: Final = b"AOF/1 "
_LONGEST_LINE: Final = 10 * 1024 * 1024 + 4096  # what is longer is passed on cut, so that it is refused for its size
_CHUNK: Final = 65_536


class KeptStream:
    """One stream: a pipe that is read and a file that grows, for its owner only; known secrets are blotted out."""

    def __init__(self, pipe: int, file: int, path: str, most: int, redaction: Redaction) -> None:
        os.set_blocking(pipe, False)
        self.pipe = pipe
        self._path = path
        self._most = most
        self._file = file
        self._received = 0
        self._kept = 0
        self._redaction = redaction

    def read(self) -> bytes | None:
        """What has come since the last call; empty when nothing has, None at the end."""
        try:
            data = os.read(self.pipe, _CHUNK)
        except BlockingIOError:
            return b""
        except OSError:
            return None
        if not data:
            return None
        self._received += len(data)
        self._keep(self._redaction.feed(data))
        return data

    def _keep(self, data: bytes) -> None:
        fitting = data[: max(self._most - self._kept, 0)]
        if fitting:
            with suppress(OSError):  # a full disk costs the copy, not the messages in it
                self._kept += os.write(self._file, fitting)

    def close(self) -> None:
        """Close pipe and file; the file says so when it does not hold everything."""
        self._keep(self._redaction.rest())
        if self._received > self._kept:
            with suppress(OSError):
                os.write(self._file, f"\n[{self._received - self._kept:,} bytes more were not kept]\n".encode())
        os.close(self.pipe)
        os.close(self._file)

    def report(self) -> dict[str, Any]:
        """Where the output lies and how much of it there is."""
        return {"path": self._path, "bytes": self._received, "kept": self._kept}


class Messages:
    """Finds the lines of a stream that are protocol messages."""

    def __init__(self) -> None:
        self._rest = b""
        self._skipping = False

    def feed(self, data: bytes) -> list[str]:
        """The messages that have been completed by this."""
        *lines, rest = (self._rest + data).split(b"\n")
        found = [text for line in lines if (text := self._message(line)) is not None]
        if len(rest) > _LONGEST_LINE and not self._skipping:
            if rest.startswith(_PREFIX):
                found.append(_text(rest[:_LONGEST_LINE]))
            self._skipping = True
        begins = not self._skipping and (rest.startswith(_PREFIX) or _PREFIX.startswith(rest[: len(_PREFIX)]))
        self._rest = rest if begins else rest[:0] if self._skipping else b"\x00"
        return found

    def last(self) -> list[str]:
        """A message that was not ended by a line break."""
        text = self._message(self._rest)
        return [text] if text is not None else []

    def _message(self, line: bytes) -> str | None:
        skipped, self._skipping = self._skipping, False
        return _text(line) if line.startswith(_PREFIX) and not skipped else None


def _text(line: bytes) -> str:
    return line.decode("utf-8", "replace").rstrip("\r")


class Redaction:
    """Replaces each secret by as many asterisks; an end that may be the beginning of one is held back."""

    def __init__(self, secrets: Iterable[bytes] = ()) -> None:
        self._secrets = sorted({one for one in secrets if one}, key=len, reverse=True)
        self._pattern = re.compile(b"|".join(map(re.escape, self._secrets))) if self._secrets else None
        self._held = b""

    def feed(self, data: bytes) -> bytes:
        """What can be written now."""
        if self._pattern is None:
            return data
        whole = self._pattern.sub(lambda found: b"*" * len(found[0]), self._held + data)
        held = max(_begun_secret(secret, whole) for secret in self._secrets)
        self._held = whole[len(whole) - held :]
        return whole[: len(whole) - held]

    def rest(self) -> bytes:
        """What was held back, at the end of the stream."""
        rest, self._held = self._held, b""
        return rest


def _begun_secret(secret: bytes, text: bytes) -> int:
    """The length of the longest end of the text that the secret begins with, short of all of it."""
    tail = text[max(len(text) - len(secret) + 1, 0) :] if len(secret) > 1 else b""
    at = tail.find(secret[:1])
    while at != -1:
        if secret.startswith(tail[at:]):
            return len(tail) - at
        at = tail.find(secret[:1], at + 1)
    return 0
