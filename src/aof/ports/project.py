"""The files of the project that a data directory belongs to. Above: checks of what documents name. Below: the disk."""

from __future__ import annotations

from typing import Protocol


class ProjectFiles(Protocol):
    """Looks, and changes nothing."""

    def has(self, path: str) -> bool:
        """Whether there is something at a path below the project's folder; what leads out of it is not there."""
        ...
