"""The capabilities that a task's profile requires, in each form that they may be written. Must not know any chart."""

from __future__ import annotations

from typing import Any, Final

from aof.core.errors.base import InvalidInput
from aof.core.validation import limits

KEY: Final = "requiredCapabilities"
_NAMES: Final = ("id", "capabilityId", "capability_id")
_LEAST: Final = ("minProficiency", "min_proficiency")
_SHAPE: Final = "use names, 'name:0.8', or objects with id and minProficiency from 0.0 to 1.0"


def required(profile: dict[str, Any]) -> dict[str, float]:
    """The capabilities that a profile requires, each with the least proficiency in it."""
    given = profile.get(KEY)
    asked = map(_asked, given) if isinstance(given, list | tuple) else ()
    return {one[0]: one[1] for one in asked if one is not None}


def bad_capabilities(field: str, given: object) -> InvalidInput | None:
    """Refuse a list of required capabilities that asks for something impossible."""
    if given is None:
        return None
    wrong = [one for one in given if _asked(one) is None] if isinstance(given, list | tuple) else [given]
    return InvalidInput(f"'{field}' cannot hold {str(wrong[0])[:80]!r}", _SHAPE) if wrong else None


def _asked(given: object) -> tuple[str, float] | None:
    """One required capability, however it is written; None for what is none."""
    if isinstance(given, dict):
        name = next((given[key] for key in _NAMES if key in given), None)
        least = next((given[key] for key in _LEAST if key in given), 0.0)
    else:
        name, least = _split(given) if isinstance(given, str) else (None, 0.0)
    sound = isinstance(name, str) and bool(name.strip()) and len(name) <= limits.ITEM
    number = isinstance(least, int | float) and not isinstance(least, bool) and 0.0 <= least <= 1.0
    return (str(name), float(least)) if sound and number else None


def _split(text: str) -> tuple[str, float]:
    """`python:0.8` as name and figure; a colon that no figure follows belongs to the name."""
    name, colon, least = text.rpartition(":")
    try:
        return (name, float(least)) if colon else (text, 0.0)
    except ValueError:
        return text, 0.0
