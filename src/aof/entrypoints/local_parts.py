"""Parts of a fabric that look at this machine, each loaded only when it is asked: trust, project files, orphans."""

from __future__ import annotations

from aof.adapters import project_folder, trust_file
from aof.adapters.runners import orphans

TYPE_CHECKING = False
if TYPE_CHECKING:
    from aof.ports.clock import Clock
    from aof.ports.trust import CommandLine


class TrustedCommands:
    """What a person has allowed on this machine; loaded when a command is about to be started."""

    def __init__(self, root: str) -> None:
        self._root = root

    @property
    def folder(self) -> str:
        """Where a change of it can be seen."""
        return trust_file.TrustFile(self._root).folder

    def covers(self, command: CommandLine) -> bool:
        """Whether exactly this command is allowed."""
        return trust_file.TrustFile(self._root).covers(command)


class LocalProject:
    """The files of the project; what looks at them is loaded when a document names one."""

    def __init__(self, root: str) -> None:
        self._root = root

    def has(self, path: str) -> bool:
        """Whether there is something at a path below the project's folder."""
        return project_folder.ProjectFolder(self._root).has(path)


class OrphanedProcesses:
    """Ends what is left of runs; what that takes is loaded when a lease has ended, which is seldom."""

    def __init__(self, root: str, clock: Clock) -> None:
        self._root = root
        self._clock = clock

    def end(self, place: str, attempt: int, run_id: str) -> str | None:
        """End every process of the run; None when none is left, else why that is not so."""
        return orphans.ProcessOrphans(self._root, self._clock).end(place, attempt, run_id)
