"""Which commands of a data directory a person has allowed on this machine: shows, allows and revokes them.

Must not know what a command is for.
"""

from __future__ import annotations

import os
from collections.abc import Iterable

from aof.adapters.system import SystemClock
from aof.adapters.trust_file import TrustFile
from aof.app.commands import identity
from aof.app.commands.trust import declared
from aof.config import load_settings
from aof.core.model import times
from aof.entrypoints.bootstrap import deliveries, find_data_dir
from aof.ports.trust import CommandLine
from aof.stores.filesystem.records.places import OrgPath


def trust_file(root: str) -> TrustFile:
    """Where it is kept which commands of a data directory are allowed."""
    return TrustFile(root)


def declared_commands(root: str) -> tuple[CommandLine, ...]:
    """Every command that a data directory would have AOF start."""
    settings = load_settings(root)
    notify = settings.notify
    outside = notify.file if notify.file is not None and os.path.isabs(notify.file) else None
    channels = deliveries().configured(root, settings) if notify.channels else ()
    commands = declared(OrgPath(root).chart(), notify.command, outside)
    return (*commands, *(channel.command for channel in channels))


def trust_data_dir(data_dir: str | os.PathLike[str] | None, commands: Iterable[CommandLine] | None = None) -> None:
    """Allow these commands of a data directory on this machine, by default all that it declares. Raises NotAllowed."""
    identity.refuse_in_run("change which commands are trusted", os.environ)
    root = find_data_dir(data_dir)
    trust_file(root).save(declared_commands(root) if commands is None else commands, times.iso(SystemClock().now()))


def revoke_trust(data_dir: str | os.PathLike[str] | None) -> bool:
    """Allow no command of a data directory any more; whether one was. Raises NotAllowed."""
    identity.refuse_in_run("change which commands are trusted", os.environ)
    return trust_file(find_data_dir(data_dir)).revoke()
