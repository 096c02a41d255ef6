"""The files that git says have changed, for the commands that compare them with a lane."""

from __future__ import annotations

from aof._support import git
from aof.core.errors.base import InvalidInput, Unavailable

_MOST = 5_000  # files
_MOST_BYTES = 32 * 1024 * 1024


def changed_files(data_dir: str, since: str) -> list[str]:
    """What differs between a revision and the files as they are, and new files, relative to the project."""
    if since.startswith("-"):
        raise InvalidInput(f"{since[:40]!r} is no revision", "name a commit, a branch or HEAD")
    project, _, inside = data_dir.rpartition("/")
    try:
        told = git.changed_files(project, since, most=_MOST_BYTES)
    except OSError:
        raise Unavailable("git could not be asked", "name the files with --changed") from None
    if told is None:
        raise InvalidInput("git cannot tell what has changed", "name the files with --changed, or another revision")
    found = [name for name in told if not name.startswith(f"{inside}/")]
    if len(found) > _MOST:
        raise InvalidInput(f"{len(found)} files have changed, more than {_MOST}", "name some with --changed")
    return found
