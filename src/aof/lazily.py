"""A module that is loaded when something of it is first used, for what most calls never need."""

from __future__ import annotations

from types import ModuleType
from typing import Any


class Lazily:
    """Stands in for a module."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._module: ModuleType | None = None

    def __getattr__(self, attribute: str) -> Any:
        if self._module is None:
            from importlib import import_module  # noqa: PLC0415 - part of the first use

            self._module = import_module(self._name)
        found = getattr(self._module, attribute)
        if isinstance(found, type):  # a class stays what it is, so the next look costs nothing
            setattr(self, attribute, found)
        return found
