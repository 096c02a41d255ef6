"""What one call of the command line gave: exit code, output and parsed data."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any


class Said:
    """What one call of the command gave."""

    def __init__(self, code: int, out: str, err: str) -> None:
        self.code = code
        self.out = out
        self.err = err

    @property
    def answer(self) -> Any:
        """The JSON envelope."""
        return json.loads(self.out)

    @property
    def data(self) -> Any:
        """The envelope's data."""
        assert self.answer["schema_version"] == 1
        return self.answer["data"]

    @property
    def error(self) -> Any:
        """The envelope's error."""
        assert self.answer["schema_version"] == 1
        return self.answer["error"]


Aof = Callable[..., Said]
