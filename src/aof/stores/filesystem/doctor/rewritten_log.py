"""Detects a log that was rewritten with new hashes. Several notes outside of it hold its earlier hashes.

Nothing of such a log can be proven, so nothing is repaired, and nothing else is compared with it: what still knows the
truth, the table of heads and the index, would be made to follow it. Must not know what the events mean.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from aof.core.errors.storage import LogDamaged, LogRewritten
from aof.stores.filesystem.doctor import indexed
from aof.stores.filesystem.integrity import takeover
from aof.stores.filesystem.io.locks import STRIPE_NAMES
from aof.stores.filesystem.log.position import Position
from aof.stores.filesystem.log.state import State
from aof.stores.filesystem.log.writer import LOCK
from aof.stores.filesystem.recovery import journal
from aof.stores.filesystem.recovery.journal import STATE_AT
from aof.stores.filesystem.store import FilesystemStore
from aof.stores.filesystem.working_copy.status import file_status

_FIX = (
    "copy events/ aside, then restore it from a backup or version control, and find out who did it; nothing is "
    "repaired, because nothing in this log can be proven; to go on without its history, move the log's files out of "
    "events/ and run 'aof doctor --fix', which puts what the tasks' files say into a new one"
)


def refuse(store: FilesystemStore) -> None:
    """Raise LogRewritten where events that were appended here were replaced by others, while the tasks' files stayed.

    The chain must hold.
    """
    last = store.reader.newest()
    witnesses = [one for one in _witnesses(store) if one.seq]
    missing = [one for one in witnesses if not store.reader.has_seen(one)]
    changed = min((one.seq for one in missing if one.seq <= last), default=0)
    if not changed:
        return
    try:
        takeover.refuse_alone(store)
    except LogDamaged as damage:
        sound = max((one.seq for one in witnesses if one not in missing and one.seq < changed), default=0)
        which = f"event {changed}" if sound + 1 == changed else f"one of the events {sound + 1} to {changed}"
        what = (
            f"the log was tampered with: its hashes hold, but {which} is not what was appended, and is the first "
            f"that is wrong; {_restorable(store)}; {damage.message}"
        )
        raise LogRewritten(what, _FIX, seq=changed) from None


def told(store: FilesystemStore, damage: LogDamaged) -> LogDamaged:
    """The damage, or LogRewritten where the chain holds all the same."""
    try:
        for _ in store.reader.proven(Position()):
            pass
        refuse(store)
    except LogRewritten as rewritten:
        return rewritten
    except (LogDamaged, OSError):
        return damage
    return damage


def cut(store: FilesystemStore) -> Position | None:
    """The last event that was acknowledged, where the log ends before it."""
    stamp = _stamped(store)
    if stamp is None or stamp.seq <= store.reader.newest() or store.reader.has_seen(stamp):
        return None
    return stamp


def _witnesses(store: FilesystemStore) -> Iterator[Position]:
    """Where the log stood: after the last append, after the last write under each stripe, when all was synced."""
    stamped, known = _stamped(store), journal.load_checkpoint(store.paths)
    if stamped is not None:
        yield stamped
    if known is not None:
        yield known.position
    for name in STRIPE_NAMES:
        with suppress(OSError), _opened(f"{store.paths.locks}/{name}") as fd:
            if (noted := Position.parse(os.pread(fd, STATE_AT, 0).decode("ascii", "replace").split())) is not None:
                yield noted
    if (read := indexed.position(store.paths)) is not None:
        yield read


def _stamped(store: FilesystemStore) -> Position | None:
    with suppress(OSError), _opened(f"{store.paths.locks}/{LOCK}") as fd:
        state = State.read(fd)
        return state.stamp.position if state is not None and state.stamp is not None else None
    return None


@contextmanager
def _opened(path: str) -> Iterator[int]:
    """Open a file to look at it, and wait for nothing that lies in its place."""
    fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOFOLLOW)
    try:
        yield fd
    finally:
        os.close(fd)


def _restorable(store: FilesystemStore) -> str:
    """How much of what was acknowledged is still known without the log."""
    heads = store.heads.table()
    intact = sum(
        file_status(store.paths.task(head.folder, task_id), head.matches) is None for task_id, head in heads.items()
    )
    return f"the files of {intact} of {len(heads)} tasks are as they were last written"
