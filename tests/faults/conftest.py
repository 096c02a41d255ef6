"""What these tests share: folders for data directories, and directories with fewer stripes."""

from __future__ import annotations

import importlib
import pkgutil
from functools import cache
from types import ModuleType

import pytest

from aof.store import files as filesystem
from tests.support.desk import desk
from tests.support.directories import quick, root, shm_path
from tests.support.log_bench import bench

__all__ = ["bench", "desk", "few_stripes", "quick", "root", "shm_path"]

_FEW = 6


@pytest.fixture
def few_stripes(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Directories with few stripes, for tests in one process that let it die at every step.

    All stripes are alike, and every recovery takes each of them: with as many as there are, most of the steps at which
    something can die would be one and the same. The long sweeps keep all.
    """
    if request.node.get_closest_marker("full"):
        return
    for module in _modules():
        if hasattr(module, "STRIPES"):
            monkeypatch.setattr(module, "STRIPES", _FEW)
        for several in ("STRIPE_NAMES", "EVERY_STRIPE"):
            if hasattr(module, several):
                monkeypatch.setattr(module, several, getattr(module, several)[:_FEW])


@cache
def _modules() -> tuple[ModuleType, ...]:
    """All of the store, as one that is loaded later would keep what it finds then."""
    found = pkgutil.walk_packages(filesystem.__path__, f"{filesystem.__name__}.")
    return tuple(importlib.import_module(module.name) for module in found)
