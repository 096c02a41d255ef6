"""Has git a merge below the data directory that nobody has settled? Nothing is repaired before: it would be a guess."""

from __future__ import annotations

from aof.core.errors.storage import Unmerged
from aof.ports.working_copy import Problem
from aof.stores.filesystem.working_copy.git_index import unmerged

_SHOWN = 20
_SETTLE = (
    "run 'aof merge', then 'git add -A .aof': it brings both histories together and writes the files of tasks anew; "
    "settings such as aof.toml are settled as any other file; or give the merge up with 'git merge --abort'"
)


def check(root: str) -> list[Problem]:
    """One problem for each path, up to a few."""
    return [
        Problem("unmerged_paths", path, "git has not merged this path yet", _SETTLE) for path in unmerged(root)[:_SHOWN]
    ]


def refuse(root: str) -> None:
    """Raise where a merge is unsettled."""
    paths = unmerged(root)
    if paths:
        more = f" and {len(paths) - 3} more" if len(paths) > 3 else ""  # noqa: PLR2004 - enough to recognise the merge
        raise Unmerged(
            f"git has not merged {', '.join(paths[:3])}{more}; nothing was changed", _SETTLE, paths=paths[:_SHOWN]
        )
