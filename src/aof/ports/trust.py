"""Which commands of a data directory a person has allowed. Above: hosting, ticks, notifications. Below: a state file.

A data directory can come from anybody: with a clone, an archive, a shared disk. Its commands run only after a person
on this machine has seen them.
"""

from __future__ import annotations

from typing import Literal, Protocol

import msgspec


class CommandLine(msgspec.Struct, frozen=True, kw_only=True):
    """What would be started: argument list, variables and folder. What a script contains is not part of it.

    `source` says who declares it and is not part of what is trusted. Of the kind `file` nothing is started: its one
    argument is a file outside of the data directory that AOF would write to. Of the kind `channel` neither: it is a
    service that AOF would send to, and `hidden` is the part of it that is trusted with the rest but never shown.
    """

    source: str
    kind: Literal["runner", "notify", "file", "channel"]
    command: tuple[str, ...]
    env: dict[str, str] = {}
    inherit_env: tuple[str, ...] | Literal["all"] = ()
    cwd: str | None = None
    hidden: str = ""


class Trust(Protocol):
    """Knows what is allowed."""

    @property
    def folder(self) -> str:
        """Where a change of it can be seen."""
        ...

    def covers(self, command: CommandLine) -> bool:
        """Whether exactly this command is allowed; looked at again."""
        ...
