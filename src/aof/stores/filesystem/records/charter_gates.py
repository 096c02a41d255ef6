"""The gates in SESSION_CHARTER.md, read again when the file has changed; without a file nothing is loaded.

Must not know what a gate does.
"""

from __future__ import annotations

from aof.stores.filesystem.io import read

TYPE_CHECKING = False
if TYPE_CHECKING:
    from aof.core.model.gate import Gate

_MOST = 4_000_000  # bytes


class CharterGates:
    """Keeps the contract of `ports.gates.GatesSource`. A file that cannot be read keeps the gates as they were."""

    def __init__(self, root: str) -> None:
        self._path = f"{root}/SESSION_CHARTER.md"
        self._seen: read.Seen | None = None
        self._gates: tuple[Gate, ...] = ()

    def gates(self) -> tuple[Gate, ...]:
        """The gates that hold anything up."""
        try:
            seen = read.seen(self._path)
            if seen != self._seen:
                data = read.read(self._path, limit=_MOST) if seen is not None else None
                self._gates = _parsed(data) if data else ()
                self._seen = seen
        except OSError:
            pass
        return self._gates


def _parsed(data: bytes) -> tuple[Gate, ...]:
    from aof.documents.charter.parse import parse

    found = parse(data.decode("utf-8", "replace")).gates
    return tuple(gate for gate in found if gate.band != "auto" and gate.scope)
