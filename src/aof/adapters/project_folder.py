"""The folder that a data directory lies in, as far as documents name files of it. Must not know any document."""

from __future__ import annotations

from aof._support.confined_folder import ConfinedFolder


class ProjectFolder:
    """Keeps the contract of `ports.working_copy.ProjectFiles`; follows no link out of the folder."""

    def __init__(self, root: str) -> None:
        above, _, name = root.rpartition("/")
        self.path = above if name.startswith(".") else root

    def has(self, path: str) -> bool:
        """Whether there is something at the path."""
        parts = [part for part in path.split("/") if part not in ("", ".")]
        if path.startswith("/") or ".." in parts or "\0" in path or not parts:
            return False
        folder = ConfinedFolder(self.path)
        folder.begin()
        try:
            return folder.has("/".join((self.path, *parts)))
        except OSError:
            return False
