"""What the tests of this store share."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

_MEMORY = "/dev/shm"


@pytest.fixture
def shm_path(tmp_path: Path) -> Iterator[Path]:
    """A folder in memory where there is one, for tests that make a directory a thousand times."""
    if not os.access(_MEMORY, os.W_OK):
        yield tmp_path
        return
    path = Path(tempfile.mkdtemp(prefix="aof-test-", dir=_MEMORY))
    yield path
    shutil.rmtree(path)
