"""Data directories for tests with real processes."""

from __future__ import annotations

from pathlib import Path

import pytest

from aof.entrypoints.bootstrap import init_data_dir


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A new data directory that flushes every commit."""
    return Path(init_data_dir(tmp_path / ".aof")[0])


@pytest.fixture
def quick(root: Path) -> Path:
    """A new data directory that leaves flushing to the system, for many commits."""
    (root / "aof.toml").write_text('[storage]\ndurability = "relaxed"\n\n[resources]\npair = 2\n')
    return root
