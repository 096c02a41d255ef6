"""Folders for tests that make data directories: on a disk, and in memory."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from aof.service.bootstrap import init_data_dir

_MEMORY = "/dev/shm"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A new data directory that flushes every commit."""
    return Path(init_data_dir(tmp_path / ".aof")[0])


@pytest.fixture
def quick(root: Path) -> Path:
    """A new data directory that leaves flushing to the system, for many commits."""
    (root / "aof.toml").write_text('[storage]\ndurability = "relaxed"\n\n[resources]\npair = 2\n')
    return root


@pytest.fixture
def shm_path(tmp_path: Path) -> Iterator[Path]:
    """A folder in memory where there is one, for tests that make a directory a thousand times."""
    if not os.access(_MEMORY, os.W_OK):
        yield tmp_path
        return
    path = Path(tempfile.mkdtemp(prefix="aof-test-", dir=_MEMORY))
    yield path
    shutil.rmtree(path)
