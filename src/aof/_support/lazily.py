"""Loads a module when something of it is first used: the one way in which AOF puts off what a call may never need.

On the command line every import is the user's time. So whatever a list loads (`aof list`, `aof ready`, `aof status`)
imports no `msgspec`, `typing`, `re`, `json` or `hashlib` at its top: types stand in an `if TYPE_CHECKING` block, where
`TYPE_CHECKING = False` is a plain name that type checkers know, and the rest stands behind this class. A test lists
the modules that each verb loads.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import ModuleType
    from typing import Any


class Lazily:
    """Stands in for a module."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._module: ModuleType | None = None

    def __getattr__(self, attribute: str) -> Any:
        if self._module is None:
            from importlib import import_module

            self._module = import_module(self._name)
        found = getattr(self._module, attribute)
        if isinstance(found, type):  # a class stays what it is, so the next look costs nothing
            setattr(self, attribute, found)
        return found
