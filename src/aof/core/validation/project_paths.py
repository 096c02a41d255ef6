"""Paths and references into the project: one spelling for each, and none that leads out of it.

Must not know where the project lies, nor whether a file is there.
"""

from __future__ import annotations

import re
from typing import Final

from aof.core.errors.base import AofError, InvalidInput
from aof.core.validation import limits

WHOLE: Final = "."  # the project itself
_URI: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]{1,31}:\S", re.ASCII)
_DRIVE: Final = re.compile(r"[A-Za-z]:", re.ASCII)


def normalised(field: str, path: object) -> str | AofError:
    """The one spelling of a path below the project's folder; letters keep their case."""
    if problem := limits.line(field, path, limits.ITEM, required=True):
        return problem
    text = str(path).strip()
    if text.startswith(("/", "\\", "~")) or _DRIVE.match(text):
        return _outside(field, text)
    parts = [part for part in text.replace("\\", "/").split("/") if part not in ("", ".")]
    return _outside(field, text) if ".." in parts else "/".join(parts) or WHOLE


def _outside(field: str, text: str) -> InvalidInput:
    return InvalidInput(
        f"'{field}' leads out of the project: {text[:80]!r}",
        "use a path below the project's folder, such as src/api.py",
    )


def covers(path: str, other: str) -> bool:
    """Whether the first path is the other one, or a folder above it."""
    return path in (WHOLE, other) or other.startswith(f"{path}/")


def overlap(one: str, other: str) -> bool:
    """Whether two paths have a file in common, as far as their spelling tells."""
    return covers(one, other) or covers(other, one)


def is_uri(text: str) -> bool:
    """Whether a reference is a URI, such as `https://…`, and no path."""
    return _URI.match(text) is not None


def bad_reference(field: str, reference: object) -> AofError | None:
    """Refuse what is neither a path below the project's folder nor a URI that leads elsewhere than to local files."""
    if problem := limits.line(field, reference, limits.ITEM, required=True):
        return problem
    text = str(reference)
    if is_uri(text):
        return _outside(field, text) if text.lower().startswith("file:") else None
    path = normalised(field, text)
    return path if isinstance(path, AofError) else None
