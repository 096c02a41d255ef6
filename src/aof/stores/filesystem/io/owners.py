"""Whose a file or a process is, by name. Must not know why it is asked."""

from __future__ import annotations

import os
import pwd


def owner_of(path: str) -> str | None:
    """The user that a file belongs to, unless that is the one who asks; None also where the system does not tell."""
    try:
        owner = os.stat(path, follow_symlinks=False).st_uid
    except OSError:
        return None
    return None if owner == os.geteuid() else _name(owner)


def runs_as(pid: int) -> str | None:
    """The same for a process."""
    return owner_of(f"/proc/{pid}")


def _name(uid: int) -> str:
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return f"user {uid}"
