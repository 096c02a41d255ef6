"""What a verb answers, and how it is delivered: JSON for scripts, text for people, both on standard output."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import msgspec

from aof.adapters.cli.screen import Screen

if TYPE_CHECKING:
    from aof.app.fabric import Fabric

SCHEMA_VERSION = 1


class Unsaid(Exception):
    """What was asked for is done, but standard output does not take the answer."""


class Answer:
    """Data, the same said to a person, the exit code, and whether all was said already."""

    __slots__ = ("code", "data", "said", "text")

    def __init__(self, data: Any, text: Callable[[Screen], None], code: int = 0, *, said: bool = False) -> None:
        self.data = data
        self.text = text
        self.code = code
        self.said = said


class Context:
    """What a verb works with: the options of the call, and the fabric once it is needed."""

    def __init__(self, options: dict[str, Any], bootstrap: Callable[[str], Any]) -> None:
        self.options = options
        self.bootstrap = bootstrap
        self._fabric: Fabric | None = None

    @property
    def fabric(self) -> Fabric:
        """The fabric of the data directory, opened when it is first needed."""
        if self._fabric is None:
            self._fabric = self.bootstrap("open_fabric")(self.options.get("data_dir"), actor=self.options.get("actor"))
        return self._fabric

    def deliver_line(self, data: Any, text: Callable[[Screen], None]) -> None:
        """One item of an answer that goes on."""
        if self.options.get("json"):
            sys.stdout.buffer.write(msgspec.json.encode(data) + b"\n")
            sys.stdout.flush()
        else:
            text(Screen())
            sys.stdout.flush()

    def close(self) -> None:
        """Let go of the data directory."""
        if self._fabric is not None:
            self._fabric.close()


def deliver(context: Context, answer: Answer) -> int:
    """Print the answer and tell the exit code."""
    if answer.said:
        return answer.code
    try:
        if context.options.get("json"):
            line = msgspec.json.encode({"schema_version": SCHEMA_VERSION, "data": answer.data})
            sys.stdout.buffer.write(line + b"\n")
        else:
            answer.text(Screen(compact=context.options.get("compact", False)))
        sys.stdout.flush()
    except BrokenPipeError:
        raise
    except OSError as error:
        raise Unsaid(error.strerror) from error
    return answer.code
