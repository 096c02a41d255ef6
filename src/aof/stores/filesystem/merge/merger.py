"""Brings the histories of several clones together: reads all lanes, lets the core merge them, writes the merge lane.

The lane is written as a whole, durably and atomically, before anything follows it. Whoever dies after that leaves the
rest to the next process, which finds that the log goes on elsewhere and lets files, manifest and index follow. Two that
merge at once wait for each other, and the second finds one tip. Must not know any rule of the merge.
"""

from __future__ import annotations

from aof._support.gc_pause import uncollected
from aof.core.engine.merge.history import merge
from aof.core.engine.merge.model import Report
from aof.core.errors.storage import LogDamaged, MergePending
from aof.stores.filesystem.log.layout import Layout, last_before
from aof.stores.filesystem.merge import followers
from aof.stores.filesystem.merge.dropped_lanes import restore
from aof.stores.filesystem.merge.lane_commits import read_lanes
from aof.stores.filesystem.merge.merge_lane import MergeLane, sealed
from aof.stores.filesystem.merge.mixed_files import take_apart
from aof.stores.filesystem.working_copy import git_index

TYPE_CHECKING = False
if TYPE_CHECKING:
    from aof.stores.filesystem.io.locks import HeldLock
    from aof.stores.filesystem.store import FilesystemStore


class Merger:
    """Merges the lanes of one data directory."""

    def __init__(self, store: FilesystemStore) -> None:
        self._store = store

    def before_a_write(self) -> None:
        """Merge where git is idle, so that nobody's files change below it; raises MergePending."""
        going_on = git_index.in_progress(self._store.paths.root)
        if going_on is not None:
            raise _pending(going_on)
        self.merge(dry_run=False)

    def merge(self, *, dry_run: bool) -> Report | None:
        """Make one history of several; None where there is only one. With a dry run nothing is written."""
        store = self._store
        if git_index.is_running(store.paths.root):
            raise _pending(git_index.RUNNING)
        held = store.stripes.take_all()
        try:
            self._refresh(dry_run=dry_run)
            layout = store.reader.layout()
            if layout is None or len(layout.tips) == 1:
                if layout is not None and not dry_run:
                    if store.log.replaced:  # who has merged may have died before the files followed
                        self.follow(held)
                    followers.tidy_files(store)
                return None
            lane, report = self._merged(layout)
            if not dry_run:
                store.log.add_lane(lane.segment, lane.data)
                followers.follow_tip(store, held)
            return report
        finally:
            store.locks.release(held)

    def _refresh(self, *, dry_run: bool) -> None:
        try:
            self._store.log.refresh(sound=True)
        except LogDamaged:
            if dry_run or not self.take_apart():
                raise
            self._store.log.refresh(sound=True)

    def take_apart(self) -> bool:
        """Give each history a file of its own where one file holds several; whether that was so. Raises LogDamaged.

        The caller may hold stripes, but not the log.
        """
        with self._store.log.exclusively():
            return take_apart(self._store.paths, self._store.disk)

    def untangle(self) -> bool:
        """The same for who finds it on the way to something else: only where git is idle, and no damage is told.

        What a rebase has dropped comes back also while it goes on, for `aof merge` could not go on otherwise.
        """
        root = self._store.paths.root
        if not self._store.repairs or git_index.is_running(root):
            return False
        try:
            with self._store.log.exclusively():
                if restore(self._store.paths, self._store.disk):
                    return True
            return git_index.in_progress(root) is None and self.take_apart()
        except LogDamaged:
            return False

    def is_pending(self) -> bool:
        """Whether git is in the middle of bringing several histories together."""
        return self._store.reader.tips() > 1 and git_index.in_progress(self._store.paths.root) is not None

    def follow(self, held: list[HeldLock]) -> bool:
        """Let everything follow where another process or clone has merged; False where something was lost instead.

        The caller holds every stripe.
        """
        if not followers.nothing_is_lost(self._store, held):
            return False
        followers.follow_tip(self._store, held)
        return True

    def _merged(self, layout: Layout) -> tuple[MergeLane, Report]:
        store = self._store
        with uncollected():
            found = read_lanes(layout)
            tips = [last_before(store.paths, layout.path(tip))[1] for tip in layout.tips]
            merged = merge(found.lanes, tips)
            return sealed(merged, found.places, store.paths), merged.report


def _pending(why: str) -> MergePending:
    hint = "run 'aof merge', then 'git add -A .aof', and let git go on: 'git commit', or 'git rebase --continue'"
    if why == git_index.RUNNING:
        hint = "wait until it has ended (if it has died, remove .git/index.lock), then run 'aof merge'"
    return MergePending(f"other clones' work has come in and is not merged yet, and {why}; nothing was changed", hint)
