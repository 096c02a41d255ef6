"""Looks after a whole data directory.

Checks and repairs it, writes it to a file and back, and changes which of its commands are trusted.
"""

from __future__ import annotations

import os
from collections.abc import Iterable

from msgspec.structs import replace

from aof.config import load_settings
from aof.errors import SettingsUnusable
from aof.kernel import identity
from aof.kernel import model as kernel_model
from aof.kernel.ports import CommandLine
from aof.maintenance import operations as maintenance_operations
from aof.scheduler.steps import started_commands
from aof.service.bootstrap import (
    TrustedCommands,
    find_data_dir,
    may_write,
    open_fabric,
    opened_store,
    plan_data_dir,
    read_only_store,
    writable,
)
from aof.service.clock import SystemClock
from aof.service.trust import TrustFile
from aof.store.directory import Problem
from aof.store.files import archive, doctor
from aof.store.files.definitions import OrgFile
from aof.store.files.disk import Disk
from aof.store.port import Clock
from aof.support.printable import Say, silent


def diagnose(
    data_dir: str | os.PathLike[str] | None = None,
    *,
    fix: bool = False,
    clock: Clock | None = None,
    disk: Disk | None = None,
    say: Say = silent,
) -> maintenance_operations.Diagnosis:
    """Doctor on a data directory, also on one that cannot be opened in the usual way."""
    root = find_data_dir(data_dir, needs="tasks")
    try:
        settings = load_settings(root)
    except SettingsUnusable as error:
        problem = Problem(error.code, "aof.toml", error.message, error.hint)
        return maintenance_operations.Diagnosis(ok=False, problems=(problem,))

    if linked := doctor.links_in_the_way(root):
        return maintenance_operations.Diagnosis(ok=False, problems=tuple(linked))
    clock = clock or SystemClock()
    if not may_write(root):
        raise read_only_store(root, settings, clock).refusal()
    store = opened_store(root, settings, clock, disk, doctor=True)
    try:
        found = maintenance_operations.doctor(
            store, clock, settings.policy(), org=OrgFile(root, disk), fix=fix, say=say
        )
    finally:
        store.close()
    if settings.notify.channels:
        from aof.service import channels as service_channels

        found = replace(found, advice=(*found.advice, *service_channels.advice(root, TrustedCommands(root))))
    return found


def export_data_dir(data_dir: str | os.PathLike[str] | None, target: str, say: Say = silent) -> int:
    """Write a whole data directory into one file; returns how many files it holds."""
    with open_fabric(data_dir) as fabric:
        return archive.pack(writable(fabric.store), target, say)


def import_data_dir(data_dir: str | os.PathLike[str] | None, source: str, say: Say = silent) -> tuple[str, int]:
    """Make a data directory from such a file; returns its path and how many files it has."""
    root, _ = plan_data_dir(data_dir)
    return root, archive.unpack(source, root, say)


def declared_commands(root: str) -> tuple[CommandLine, ...]:
    """Every command that a data directory would have AOF start."""
    settings = load_settings(root)
    notify = settings.notify
    outside = notify.file if notify.file is not None and os.path.isabs(notify.file) else None
    commands = started_commands(OrgFile(root).chart(), notify.command, outside)
    if not notify.channels:
        return tuple(commands)
    from aof.service import channels as service_channels

    return (*commands, *(channel.command for channel in service_channels.configured(root, settings)))


def trust_data_dir(data_dir: str | os.PathLike[str] | None, commands: Iterable[CommandLine] | None = None) -> None:
    """Allow these commands of a data directory on this machine, by default all that it declares. Raises NotAllowed."""
    identity.refuse_in_run("change which commands are trusted", os.environ)
    root = find_data_dir(data_dir)
    TrustFile(root).save(
        declared_commands(root) if commands is None else commands, kernel_model.iso(SystemClock().now())
    )


def revoke_trust(data_dir: str | os.PathLike[str] | None) -> bool:
    """Allow no command of a data directory any more; whether one was. Raises NotAllowed."""
    identity.refuse_in_run("change which commands are trusted", os.environ)
    return TrustFile(find_data_dir(data_dir)).revoke()
