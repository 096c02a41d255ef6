"""What a verb answers, and how it is delivered: JSON for scripts, text for people, both on standard output.

Must not know any verb.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from functools import cached_property

import msgspec

from aof.support import lazy_imports
from aof.support.printable import escaped
from aof.surfaces.cli.grammar import SCHEMA_VERSION
from aof.surfaces.cli.screen import Screen

TYPE_CHECKING = False
if TYPE_CHECKING:
    from contextlib import AbstractContextManager
    from typing import Any

    from aof.api.fabric import Fabric
    from aof.support.printable import Say

_DELETE = b"\x7f"


class AnswerNotWritten(Exception):
    """What was asked for is done, but standard output does not take the answer."""


class Answer:
    """Data, the same said to a person, and the exit code.

    `error` is there where part of what was asked went wrong; `printed` where all was printed already.
    """

    __slots__ = ("code", "data", "error", "printed", "text")

    def __init__(
        self,
        data: Any,
        text: Callable[[Screen], None],
        code: int = 0,
        error: dict[str, str] | None = None,
        *,
        printed: bool = False,
    ) -> None:
        self.data = data
        self.error = error
        self.text = text
        self.code = code
        self.printed = printed


class Context:
    """What a verb works with: the options of the call, and the fabric once it is needed."""

    def __init__(self, options: dict[str, Any], service: Callable[[str], Any]) -> None:
        self.options = options
        self.service = service  # by its name, a module of the service

    @cached_property
    def fabric(self) -> Fabric:
        """The fabric of the data directory, opened when it is first needed."""
        opened: Fabric = self.service("bootstrap").open_fabric(
            self.options.get("data_dir"), actor=self.options.get("actor")
        )
        return opened

    def histories(self) -> int:
        """How many histories there are that nobody has merged; one where the data directory was not opened."""
        files = self.fabric.store.working_copy if "fabric" in self.__dict__ else None
        return 1 if files is None else files.tips()

    def restored(self) -> tuple[str, ...]:
        """The tasks whose deleted file the command has restored."""
        files = self.fabric.store.working_copy if "fabric" in self.__dict__ else None
        return () if files is None else files.restored()

    def progress(self, what: str) -> AbstractContextManager[Say]:
        """A line that says how far this is, for a person who waits; call it with each step."""
        from aof.surfaces.cli.live import progress

        return progress(what, as_json=bool(self.options.get("json")))

    def deliver_line(self, data: Any, text: Callable[[Screen], None]) -> None:
        """One item of an answer that goes on."""
        if self.options.get("json"):
            sys.stdout.buffer.write(encoded(data) + b"\n")
            sys.stdout.flush()
        else:
            text(Screen())
            sys.stdout.flush()

    def close(self) -> None:
        """Let go of the data directory."""
        if "fabric" in self.__dict__:
            self.fabric.close()


def deliver(context: Context, answer: Answer) -> int:
    """Print the answer and tell the exit code."""
    if answer.printed:
        return answer.code
    try:
        if context.options.get("json"):
            whole = {"schema_version": SCHEMA_VERSION, "data": answer.data}
            sys.stdout.buffer.write(encoded(whole | ({"error": answer.error} if answer.error else {})) + b"\n")
        else:
            answer.text(Screen(compact=context.options.get("compact", False)))
        sys.stdout.flush()
    except BrokenPipeError:
        raise
    except OSError as error:
        raise AnswerNotWritten(error.strerror) from error
    return answer.code


def encoded(data: Any) -> bytes:
    """Data as JSON, with all escaped that controls a terminal.

    Records are msgspec's; a list is made of plain objects, and `json` loads in a tenth of the time.
    """
    if lazy_imports.has_run("msgspec"):
        text = msgspec.json.encode(data)
        return text if text.isascii() and _DELETE not in text else escaped(text.decode()).encode()

    return escaped(json.dumps(data, ensure_ascii=False, separators=(",", ":"))).encode()
