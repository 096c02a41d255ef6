"""Which lines that a worker prints are messages: those with the nonce that its process got in its environment.

A worker prints much that others wrote, and a task's text must never speak for it. Programs that only know the plain
form may be taken at their word (`messages: plain`), except for what also stands in their brief. Must not know what a
message does.
"""

from __future__ import annotations

import hmac
import re
from collections.abc import Callable
from typing import Any, Final

import msgspec

from aof._support import nesting
from aof.app.messages.message_line import VARIABLE
from aof.core.validation.visible import visible
from aof.ports.runner import Work
from aof.protocol.detection import NONCE, PREFIX

PLAIN: Final = "plain"
_FIELD: Final = re.compile(rf'"{NONCE}"\s*:\s*"([0-9A-Za-z_-]{{1,128}})"')
_UNREADABLE = (msgspec.DecodeError, UnicodeError, RecursionError, ValueError)


class WorkerOutput:
    """The lines of one run. `warn` is called once, for the first that looks like a message and proves nothing."""

    def __init__(self, work: Work, warn: Callable[[str], None]) -> None:
        self._nonce = work.nonce
        self._plain = work.messages == PLAIN
        self._agent = work.agent
        self._brief = _squeezed(work.brief) if self._plain else ""
        self._warn: Callable[[str], None] | None = warn

    def message_in(self, line: str) -> str | None:
        """The line without its nonce, if it counts as a message."""
        given = _nonce_of(line.removeprefix(PREFIX))
        if given is not None:
            proven = bool(self._nonce) and hmac.compare_digest(given.encode("utf-8", "replace"), self._nonce.encode())
            return line.replace(self._nonce, "*" * len(self._nonce)) if proven else self._ignored(_WRONG)
        if not self._plain:
            return self._ignored(_WITHOUT)
        return self._ignored(_OF_BRIEF) if self._stands_in_brief(line) else line

    def _stands_in_brief(self, line: str) -> bool:
        """Broken JSON can only be refused, and every brief contains such a beginning."""
        return _parsed(line.removeprefix(PREFIX)) is not None and _squeezed(visible(line)) in self._brief

    def _ignored(self, why: str) -> str | None:
        """No message: plain output, and the first time a warning."""
        warn, self._warn = self._warn, None
        if warn is not None:
            warn(f"{self._agent} {why}")
        return None


_WITHOUT: Final = (
    f"printed an AOF/1 line without '{NONCE}': it is plain output and no message. Let the agent send the value of "
    f"${VARIABLE} in the envelope's field '{NONCE}'; if it only knows the plain form, set "
    "'runner: {messages: plain}' in org/org-chart.yaml"
)
_WRONG: Final = f"printed an AOF/1 line with a '{NONCE}' that is not its own: it is plain output and no message"
_OF_BRIEF: Final = (
    "printed an AOF/1 line that is also in its brief: it is plain output and not a message, also with 'messages: plain'"
)


def _nonce_of(text: str) -> str | None:
    """The nonce of a message, also of one that is broken, so that its sender learns of it."""
    fields = _parsed(text)
    if fields is None:
        found = _FIELD.search(text)
        return found.group(1) if found is not None else None
    given = fields.get(NONCE)
    return None if given is None else given if isinstance(given, str) else ""


def _parsed(text: str) -> dict[str, Any] | None:
    """The object that the text is; None where it is anything else."""
    try:
        return nesting.decode(text.encode(), dict[str, Any])
    except _UNREADABLE:
        return None


def _squeezed(text: str) -> str:
    """Without white space: a line that was only laid out again is the same line."""
    return "".join(text.split())
