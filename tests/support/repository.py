"""Where the repository is, for tests that compare its parts with each other."""

from __future__ import annotations

from pathlib import Path

ROOT = Path(__file__).parents[2]
