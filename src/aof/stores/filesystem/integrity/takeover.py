"""What follows when a version control brings another log. Must not know which system it is."""

from __future__ import annotations

import json
from logging import Logger
from typing import TYPE_CHECKING

from aof.core.errors.storage import LogDamaged
from aof.stores.base.fold import fold
from aof.stores.filesystem.integrity import verification
from aof.stores.filesystem.io import locks
from aof.stores.filesystem.io.read import digest, read
from aof.stores.filesystem.log.position import Position

if TYPE_CHECKING:
    from aof.core.model.task import Task
    from aof.stores.filesystem.store import FilesystemStore


def refuse_or_take_over(store: FilesystemStore, missing: Position) -> None:
    """The log lacks an event that was durable: damage, unless it was replaced together with the tasks."""
    lost = LogDamaged(
        f"the log lacks event {missing.seq}, which was durable",
        verification.HINT,
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
    held = store.locks.acquire_all(locks.EVERY_STRIPE)
    try:
        store.log.refresh(sound=True)
        if store.reader.layout() is not None and store.merger.follow(held):
            return
        if not store.merger.is_pending():  # a rebase has brought a part of the log by now, and mixes the files
            newest = store.recovery.highest_rev()
            if newest > store.log.seq and store.reader.tips() == 1:
                raise _lacking(newest)
            if not store.log.seq:
                store.refuse_lost_log()
            refuse_alone(store)
        store.begin_anew(held)
        _log().warning(
            "the log was replaced as a whole, as by a switch of branches; it ends with event %d", store.log.seq
        )
    finally:
        store.locks.release(held)


def refuse_cut(store: FilesystemStore) -> None:
    """Raise LogDamaged where the log was cut while nobody knew its end, as after `locks/` was deleted too.

    Asked before the log's end is looked for: what was acknowledged must not be taken for what a dead writer left. Only
    the file of a task that the log knows is a proof; one of another birth is another history's, and bytes that another
    lane wrote are another clone's. While histories wait for their merge, git may have mixed the files of all.
    """
    if store.reader.tips() > 1:
        return
    last = store.reader.newest()
    later = [(task_id, rev) for task_id, rev in store.recovery.revs() if rev > last]
    known = fold(event for _, lines in store.reader.proven(Position()) for _, event in lines) if later else {}
    for task_id, rev in later:
        task = known[task_id].task if task_id in known else None
        folders = store.files.present(task_id) if task is not None else ()
        found = [_bytes(store.paths.task(one, task_id)) for one in folders]
        if task is not None and any(_is_of(task, data) and not store.files.lanes.wrote(digest(data)) for data in found):
            raise _lacking(rev)


def _is_of(task: Task, data: bytes) -> bool:
    """Whether the file was born as this task, in the form that AOF writes."""
    lines = data.split(b"\n")
    born = (f"createdAt: {json.dumps(task.created_at)}", f"createdBy: {json.dumps(task.created_by)}")
    return all(one.encode() in lines for one in born)


def _lacking(seq: int) -> LogDamaged:
    return LogDamaged(
        f"the log lacks event {seq}, which the file of a task was written by",
        "put the log and the tasks of one branch back, or run 'aof doctor'; nothing was changed",
        seq=seq,
    )


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
        verification.HINT,
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
