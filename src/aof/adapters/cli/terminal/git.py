"""The files that git says have changed. Starts git with nothing that a repository could have it run."""

from __future__ import annotations

import os
import subprocess

from aof.core.errors.base import InvalidInput, Unavailable

_PATIENCE = 30.0  # seconds
_MOST = 5_000  # files
# A repository's own settings may name programs: for watching files, paging, comparing and for hooks.
_QUIET = ("-c", "core.fsmonitor=false", "-c", "core.hooksPath=/dev/null", "-c", "diff.external=", "--no-pager")


def changed_files(data_dir: str, since: str) -> list[str]:
    """What differs between a revision and the files as they are, and new files, relative to the project."""
    if since.startswith("-"):
        raise InvalidInput(f"{since[:40]!r} is no revision", "name a commit, a branch or HEAD")
    project, _, inside = data_dir.rpartition("/")
    differing = _git(project, "diff", "--no-ext-diff", "--no-textconv", "--name-only", "-z", "--relative", since, "--")
    new = _git(project, "ls-files", "--others", "--exclude-standard", "-z", "--", ".")
    found = sorted({name for name in (differing + new).split("\0") if name and not name.startswith(f"{inside}/")})
    if len(found) > _MOST:
        raise InvalidInput(f"{len(found)} files have changed, more than {_MOST}", "name some with --changed")
    return found


def _git(project: str, *words: str) -> str:
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("GIT_", "AOF_RUN_"))}
    try:
        done = subprocess.run(  # noqa: S603 - an argument list of ours; the revision cannot be an option
            ["git", *_QUIET, *words],  # noqa: S607 - git as the user has it
            cwd=project,
            env=environment | {"GIT_OPTIONAL_LOCKS": "0"},
            capture_output=True,
            timeout=_PATIENCE,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        raise Unavailable("git could not be asked", "name the files with --changed") from None
    if done.returncode:
        raise InvalidInput("git cannot tell what has changed", "name the files with --changed, or another revision")
    return done.stdout.decode("utf-8", "surrogateescape")
