"""Lazy imports for the `aof` command: a module runs when something of it is first used, not when it is imported.

Start-up time is the user's time, and most calls need a small part of AOF. With this hook `from aof.api import fabric`
and `import msgspec` cost nothing until `fabric.Fabric` or `msgspec.Struct` is looked up. `from module import name`
looks the name up at once, so what only some calls need is imported as a module. Only the command's entry point installs
the hook: programs that import AOF get ordinary imports. Must not know what any module does.
"""

from __future__ import annotations

import os
import sys
from _thread import RLock
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from importlib.abc import Loader
    from types import ModuleType
    from typing import Any
else:
    ModuleType = type(sys)
NoneType = type(None)

_OURS = "aof."
# Modules of others that many of ours name and few calls use.
DEFERRED = frozenset({
    "ctypes", "difflib", "hashlib", "json", "msgspec", "re", "ryaml", "secrets", "selectors", "shutil", "signal",
    "socket", "sqlite3", "stat", "subprocess", "tempfile", "textwrap", "threading", "tomllib",
})  # fmt: skip
_running = RLock()


class LazyModule(ModuleType):
    """A module that has been imported and has not run yet."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") and name != "__all__":
            raise AttributeError(name)
        run(self)
        try:
            return self.__dict__[name]
        except KeyError:
            raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}") from None


def run(module: ModuleType) -> None:
    """Run the module's code now, unless that has happened. Other threads that need it wait until it has run."""
    with _running:
        loader = module.__dict__.pop("_pending", None)
        if loader is None:
            return
        spec = module.__spec__
        assert spec is not None
        module.__loader__ = spec.loader = loader
        try:
            loader.exec_module(module)
        except BaseException:
            sys.modules.pop(module.__name__, None)
            raise
        module.__class__ = ModuleType


def has_run(name: str) -> bool:
    """Whether the module is there, and not only its name."""
    return type(sys.modules.get(name)) not in (NoneType, LazyModule)


class _Deferring:
    """Stands in for a module's own loader until the module is used."""

    def __init__(self, loader: Loader) -> None:
        self._loader = loader

    def create_module(self, _spec: ModuleSpec) -> None:
        """The usual kind of module."""

    def exec_module(self, module: ModuleType) -> None:
        """Put it off."""
        module.__dict__["_pending"] = self._loader
        module.__class__ = LazyModule


class _Finder:
    """Finds what the import system would find, and puts off running it."""

    @staticmethod
    def find_spec(name: str, path: Sequence[str] | None = None, target: ModuleType | None = None) -> ModuleSpec | None:
        """The module's place, and a loader that puts off running it."""
        if name.startswith(_OURS):
            return _ours(name, path)
        if name not in DEFERRED:
            _refuse_unneeded(name)
            return None
        spec = PathFinder.find_spec(name, path, target)
        if spec is None:
            return None
        if isinstance(spec.loader, SourceFileLoader):  # those of compiled modules make the module themselves
            spec.loader = _Deferring(spec.loader)  # type: ignore[assignment]
        return spec


def _refuse_unneeded(name: str) -> None:
    """Keep msgspec from loading `typing_extensions` while it loads itself: `typing` has all that it needs.

    That package is there wherever pydantic is, and brings `inspect` and others with it: a tenth of a call's time.
    """
    loading = sys.modules.get("msgspec._utils") if name == "typing_extensions" else None
    if loading is not None and not hasattr(loading, "get_class_annotations"):
        raise ModuleNotFoundError(name)


class _Package(SourceFileLoader):
    """Loads a package of ours without reading its `__init__.py`, which holds nothing but a docstring."""

    def exec_module(self, module: ModuleType) -> None:
        """There is nothing to run."""


def _ours(name: str, path: Sequence[str] | None) -> ModuleSpec | None:
    """A module or package of ours by one look at its file: most of those that a call names, it never uses."""
    for folder in path or ():
        place = f"{folder}/{name.rpartition('.')[2]}"
        if _is_there(file := f"{place}.py"):
            spec = ModuleSpec(name, _Deferring(SourceFileLoader(name, file)), origin=file)  # type: ignore[arg-type]
        elif _is_there(file := f"{place}/__init__.py"):
            spec = ModuleSpec(name, _Package(name, file), origin=file, is_package=True)
            spec.submodule_search_locations = [place]
        else:
            continue
        spec.has_location = True
        spec.cached = file  # else it is worked out for each, also for those that never run; the loader looks by itself
        return spec
    return PathFinder.find_spec(name, path)


def _is_there(file: str) -> bool:
    try:
        os.stat(file)
    except OSError:
        return False
    return True


def install() -> None:
    """Import lazily from now on."""
    if _Finder not in sys.meta_path:
        sys.meta_path.insert(0, _Finder)


def settle() -> None:
    """Run everything that is pending, and import as usual from now on: for processes that start threads.

    The import system's own locks know nothing of ours, so two threads that import could wait for each other.
    """
    if _Finder in sys.meta_path:
        sys.meta_path.remove(_Finder)
    while waiting := [module for module in list(sys.modules.values()) if type(module) is LazyModule]:
        for module in waiting:
            run(module)
