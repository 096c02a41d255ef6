"""A data directory with its service, as a person has it: what they start, stop and sign in with."""

from __future__ import annotations

import signal
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from aof.api.catalogue import Scope
from aof.api.fabric import Fabric
from aof.maintenance.tokens import PageSessions
from aof.service.bootstrap import open_fabric
from aof.service.clock import SystemClock
from aof.service.serve import tokens_of
from aof.store.port import Clock
from tests.support.service import Up, directory

PERSON = "pm"
AGENTS: dict[str, Any] = {
    "pm": {"roles": ["lead"], "runner": {"kind": "human"}},
    "ada": {"roles": ["developer"], "concurrency": 20, "team": "eng"},
    "bob": {"roles": ["reviewer"], "concurrency": 2, "team": "eng"},
}
SETTINGS = """schemaVersion = 1
project = "Lighthouse"
[storage]
durability = "relaxed"
[lease]
ttl = 600
"""


class Served:
    """`aof up --http` on one directory, and the doors to it.

    `session` is of the first who signed in: the cookies, and what the page keeps.
    """

    def __init__(self, root: Path) -> None:
        self.root = root
        self.port = _free_port()
        self.session: tuple[Any, dict[str, str]] | None = None
        self._up: Up | None = None

    @property
    def origin(self) -> str:
        """Where the pages are."""
        return f"http://127.0.0.1:{self.port}"

    @property
    def pid(self) -> int:
        """The service's process."""
        assert self._up is not None
        return self._up.process.pid

    def start(self) -> None:
        """Begin to serve, on the same port each time."""
        self._up = Up(self.root, "--http", str(self.port))
        self._up.wait("http")

    def stop(self, number: signal.Signals = signal.SIGTERM) -> None:
        """Stop serving: politely, or as a crash would."""
        if self._up is not None:
            self._up.end(number)
            self._up = None

    def link(self, *, actor: str = PERSON, scope: Scope = "admin", clock: Clock | None = None) -> str:
        """A link as 'aof board --web' prints it."""
        key = PageSessions(tokens_of(str(self.root)), clock or SystemClock()).link(actor, scope)
        return f"{self.origin}/board/enter?key={key}"

    @contextmanager
    def fabric(self, actor: str = PERSON) -> Iterator[Fabric]:
        """The same directory, from another process than the service."""
        with open_fabric(self.root, actor=actor) as opened:
            yield opened


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as bound:
        port: int = bound.getsockname()[1]
    return port


@contextmanager
def serving(folder: Path, agents: dict[str, Any] | None = None, settings: str = SETTINGS) -> Iterator[Served]:
    """A service on a fresh directory until the end of the block."""
    with serving_on(directory(folder, AGENTS if agents is None else agents, settings)) as served:
        yield served


@contextmanager
def serving_on(root: Path) -> Iterator[Served]:
    """A service on a directory that there is, until the end of the block."""
    served = Served(root)
    served.start()
    try:
        yield served
    finally:
        served.stop(signal.SIGKILL)
