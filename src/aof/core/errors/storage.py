"""Errors about the data directory: settings, files, locks and the log."""

from __future__ import annotations

from aof.core.errors.base import Internal, InvalidInput, NotFound, Refused, Unavailable


class NoDataDirectory(NotFound):
    """There is no data directory here."""

    code = "no_data_directory"


class Unmerged(Refused):
    """Git is in the middle of a merge with unresolved conflicts."""

    code = "unmerged_paths"


class MergePending(Refused):
    """Several histories are not merged yet, and git is in the middle of a merge, a rebase or a cherry-pick."""

    code = "merge_pending"


def one_of_several(histories: int) -> str:
    """The warning that belongs to whatever is read meanwhile; one line, in ASCII."""
    return f"{MergePending.code}: {histories} clones have written, and this shows one of their histories"


class SettingsUnusable(InvalidInput):
    """`aof.toml` cannot be used as it is."""

    code = "settings_unusable"


class LockTimeout(Unavailable):
    """Another process kept a lock for too long."""

    code = "lock_timeout"


class DiskFull(Unavailable):
    """There is no space left; the change was not made."""

    code = "disk_full"


class StorageFailed(Unavailable):
    """The operating system refused a read or a write; the change was not made."""

    code = "storage_failed"


class LinkRefused(Unavailable):
    """A symbolic link lies where AOF would write; it was not followed."""

    code = "link_refused"


class ReadOnly(Unavailable):
    """The caller may not write to the data directory; reads that need no write still work."""

    code = "read_only"


class UnsupportedFilesystem(Unavailable):
    """The data directory lies on a file system whose locks cannot be relied on."""

    code = "unsupported_filesystem"


class UnsupportedVersion(Unavailable):
    """A newer AOF has written the data, in a form that this one does not know; it was left as it is."""

    code = "unsupported_version"


class CommitUnknown(Internal):
    """The change was appended, but not proven to be durable."""

    code = "commit_unknown"


class LogPoisoned(Internal):
    """A flush of the log failed earlier; nothing is appended until `doctor` has verified it."""

    code = "log_poisoned"


class LogDamaged(Internal):
    """The log's chain is broken in a place that no crash explains."""

    code = "log_damaged"


class LogRewritten(LogDamaged):
    """The log's hashes hold, but they are not those of what was appended: somebody calculated them again."""

    code = "log_rewritten"


class LaneRefused(LogDamaged):
    """A file in the log's folder is not a lane of it: from another repository, cut, or with a wrong header."""

    code = "lane_refused"


class LineEndingsConverted(LogDamaged):
    """The lines of the log end with CR LF, which AOF never writes: somebody converted them."""

    code = "log_line_endings"


class UnmergeableHistory(Refused):
    """Lanes of the log do not belong together, or a part of one is missing; nothing was changed."""

    code = "unmergeable_history"
