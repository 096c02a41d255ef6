"""Connects a project's agents to a data directory, or takes the connection away. Knows the adapter, and asks nobody."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Callable
from importlib.util import find_spec
from typing import NamedTuple

from aof._support.extras import install_hint
from aof.adapters.agents import connect
from aof.adapters.agents.address import checked_address
from aof.adapters.agents.clients import Kind
from aof.adapters.agents.entries import GAP, TOKEN, Server
from aof.adapters.agents.files import FileChange, make
from aof.core.errors.base import Unavailable

Sure = Callable[[list[FileChange]], bool]


class Wired(NamedTuple):
    """What was changed, and what is left for the person to do."""

    changes: list[FileChange]
    steps: list[str]


def wire_agents(
    root: str,
    names: tuple[str, ...] | None,
    *,
    http: str | None = None,
    dry_run: bool = False,
    sure: Sure | None = None,
) -> Wired:
    """Connect agents to a data directory: those that are named, else those that are found once somebody is `sure`.

    With `http` they connect to that address, else they start `aof mcp`.
    """
    place = _place(root)
    server = Server(url=checked_address(http)) if http is not None else Server(command=_command(place))
    kinds = connect.kinds_of(names if names is not None else connect.found(place.project))
    if names is not None:
        _check_installed(kinds, server)
    changes = connect.plan(place, tuple(kind.name for kind in kinds), server)
    if names is None and not dry_run:
        if not changes or sure is None or not sure(changes):
            return Wired([], [])
        _check_installed(kinds, server)
    if not dry_run:
        make(changes)
    changed = {change.path for change in changes}
    return Wired(changes, [step for kind in kinds for step in _steps(kind, server, changed)])


def unwire_agents(root: str, names: tuple[str, ...] | None, *, dry_run: bool = False) -> Wired:
    """Take away what connects these agents, or everything that ever was written for one."""
    changes = connect.plan_removal(_place(root), names)
    if not dry_run:
        make(changes)
    return Wired(changes, [])


def _place(root: str) -> connect.Workplace:
    project = os.path.dirname(root) if os.path.basename(root) == ".aof" else os.getcwd()
    return connect.Workplace(project, os.path.expanduser("~"), root)


def _command(place: connect.Workplace) -> tuple[str, ...]:
    """How an agent starts AOF: by its name where that is found."""
    aof = ["aof"] if shutil.which("aof") else [sys.executable, "-m", "aof"]
    where = [] if place.root == os.path.join(place.project, ".aof") else ["--data-dir", place.root]
    return (*aof, *where, "mcp", "--tools", "worker")


def _check_installed(kinds: tuple[Kind, ...], server: Server) -> None:
    if server.url is None and any(kind.settings for kind in kinds) and find_spec("mcp") is None:
        raise Unavailable("mcp is not installed, so no client could start 'aof mcp'", install_hint("mcp"))


def _steps(kind: Kind, server: Server, changed: set[str]) -> list[str]:
    """What a person has to know or do before a client works; nothing where its settings are as they were."""
    written = [path for path in kind.settings.paths if path in changed] if kind.settings is not None else []
    if not written or kind.settings is None:
        return []
    steps = [f"{kind.title} {kind.asks}"]
    if server.url is not None and kind.settings.form.gap:
        steps.append(
            f"{kind.title} reads no variables: replace {GAP} in {written[0]} by what "
            f"'aof admin token create {kind.name}' prints, and do not commit that file"
        )
    elif server.url is not None:
        steps.append(
            f"{kind.title} needs a token in {TOKEN}: the first line that 'aof admin token create {kind.name}' prints"
        )
    return steps
