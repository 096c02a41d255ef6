"""What follows when a version control brings another log. Must not know which system it is."""

from __future__ import annotations

from logging import Logger
from typing import TYPE_CHECKING

from aof.core.errors.storage import LogDamaged
from aof.stores.base.fold import fold
from aof.stores.filesystem.io.lock_set import EVERY_STRIPE
from aof.stores.filesystem.io.read import digest, read
from aof.stores.filesystem.log.reader import Position

if TYPE_CHECKING:
    from aof.stores.filesystem.store import FilesystemStore


def refuse_or_take_over(store: FilesystemStore, missing: Position) -> None:
    """The log lacks an event that was durable: damage, unless it was replaced together with the tasks."""
    lost = LogDamaged(
        f"the log lacks event {missing.seq}, which was durable",
        "restore events/ from a backup or from version control, or run 'aof doctor'; nothing was changed",
        seq=missing.seq,
    )
    if not store.repairs:
        raise lost
    try:
        start_over(store)
    except LogDamaged as damage:
        raise lost from damage


def start_over(store: FilesystemStore) -> None:
    """The log is another one than before: heads and index follow it, if the tasks' files belong to it."""
    held = store.locks.acquire_all(EVERY_STRIPE)
    try:
        store.log.refresh(sound=True)
        newest = store.recovery.highest_rev()
        if newest > store.log.seq:
            raise LogDamaged(
                f"the log was replaced by one that lacks event {newest}, which the file of a task was written by",
                "put the log and the tasks of one branch back, or run 'aof doctor'; nothing was changed",
                seq=newest,
            )
        refuse_alone(store)
        store.begin_anew(held)
        _log().warning(
            "the log was replaced as a whole, as by a switch of branches; it ends with event %d", store.log.seq
        )
    finally:
        store.locks.release(held)


def refuse_alone(store: FilesystemStore) -> None:
    """Raise LogDamaged where the log was changed and the files were not: then it was cut or rewritten.

    Switching branches changes both. Where heads and log disagree about a task, its file must be the log's.
    """
    known, heads = (
        fold(event for _, lines in store.reader.proven(Position()) for _, event in lines),
        store.heads.table(),
    )
    told = False
    for task_id in sorted({*known, *heads}):
        one, head = known.get(task_id), heads.get(task_id)
        mark = next(iter(one.last_files.values()), "") if one is not None else ""
        if head is not None and mark.startswith(head.digest):
            continue
        found = [digest(_bytes(store.paths.task(folder, task_id))) for folder in store.files.present(task_id)]
        if mark in found or not (mark or found):
            told = True
        elif head is not None and any(one.startswith(head.digest) for one in found):
            raise _rewritten(f"{task_id} was last written by event {head.rev}, and its file agrees", head.rev)
    if not told:
        raise _rewritten("the tasks' files are those of the log before", store.log.seq)


def _rewritten(why: str, seq: int) -> LogDamaged:
    return LogDamaged(
        f"the log was cut or rewritten, and not replaced together with the tasks: {why}",
        "restore events/ from a backup or from version control, or run 'aof doctor'; nothing was changed",
        seq=seq,
    )


def _bytes(path: str) -> bytes:
    try:
        return read(path) or b""
    except OSError:
        return b""


def _log() -> Logger:
    import logging  # only who finds another log has something to say

    return logging.getLogger(__name__)
