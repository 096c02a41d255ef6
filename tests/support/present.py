"""What a test is sure of: something is there."""

from __future__ import annotations

from typing import TypeVar

_T = TypeVar("_T")


def present(value: _T | None) -> _T:
    """The value, which is not None."""
    assert value is not None
    return value
