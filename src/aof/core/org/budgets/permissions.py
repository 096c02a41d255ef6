"""What an agent may read, write, run and reach: security first, then what its chart denies and allows.

Patterns are those of shell globs, and `*` also crosses slashes. Must not know tasks, runs or how much was used.
"""

from __future__ import annotations

from fnmatch import fnmatchcase
from typing import Final, Literal

from aof.core.errors.base import AofError
from aof.core.model.org_chart import Autonomy
from aof.core.validation import limits
from aof.core.validation.project_paths import covers, normalised

Access = Literal["read", "write", "command", "network"]
ACCESSES: Final[tuple[Access, ...]] = ("read", "write", "command", "network")
# The least level that may do it at all, where the chart lists nothing for it.
LEAST_LEVEL: Final[dict[Access, int]] = {"read": 0, "write": 1, "command": 2, "network": 3}
_OURS: Final = (".aof", ".git")  # written only by AOF and by git
_CREDENTIALS: Final = frozenset({"169.254.169.254", "fd00:ec2::254", "metadata.google.internal"})
_LONGEST: Final = 4_096


def unsafe(access: Access, subject: str) -> str | None:
    """Why no agent may do this, whatever its chart says."""
    if problem := limits.line("subject", subject, _LONGEST, required=True):
        return problem.message
    if access in ("read", "write"):
        path = normalised("subject", subject)
        if isinstance(path, AofError):
            return path.message
        folder = next((one for one in _OURS if covers(one, path) or path == "."), None) if access == "write" else None
        return f"'{path[:80]}' belongs to {folder}, which agents do not write to directly" if folder else None
    if access == "network" and host_of(subject) in _CREDENTIALS:
        return f"'{host_of(subject)}' gives out the machine's own credentials"
    return None


def host_of(subject: str) -> str:
    """The host of an address or URL, in lower case."""
    rest = subject.partition("://")[2] or subject
    host = rest.partition("/")[0].rpartition("@")[2]
    return host.partition("]")[0].lstrip("[").lower() if host.startswith("[") else host.partition(":")[0].lower()


def denied(autonomy: Autonomy, access: Access, subject: str) -> str | None:
    """The pattern by which the chart denies it."""
    return _match(getattr(autonomy.deny, access), access, subject)


def allowed(autonomy: Autonomy, access: Access, subject: str) -> str | None:
    """The pattern by which the chart allows it."""
    return _match(getattr(autonomy.allow, access), access, subject)


def granted(autonomy: Autonomy, access: Access) -> bool:
    """Whether the level alone allows it: not where the chart lists what is allowed."""
    level = autonomy.level
    return not getattr(autonomy.allow, access) and level is not None and level >= LEAST_LEVEL[access]


def _match(patterns: tuple[str, ...], access: Access, subject: str) -> str | None:
    forms = {subject}
    if access in ("read", "write"):
        forms = {str(normalised("subject", subject))}
    elif access == "network":
        forms |= {host_of(subject)}
    return next((pattern for pattern in patterns if any(_fits(form, pattern) for form in forms)), None)


def _fits(form: str, pattern: str) -> bool:
    """A pattern that names a folder also means what is below it."""
    folder = pattern.rstrip("/")
    return fnmatchcase(form, pattern) or fnmatchcase(form, f"{folder}/*") or (pattern == "**" and bool(form))
