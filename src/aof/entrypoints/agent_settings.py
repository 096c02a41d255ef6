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
from aof.entrypoints import bootstrap

Sure = Callable[[list[str], list[FileChange]], bool]


class Wired(NamedTuple):
    """What was changed, what is left for the person to do, and by what agents were found that nobody named."""

    changes: list[FileChange]
    steps: list[str]
    found: list[str]


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
    found = connect.found(place.project) if names is None else {}
    kinds = connect.kinds_of(tuple(found) if names is None else names)
    if names is not None:
        _check_installed(kinds, server)
    changes = connect.plan(place, tuple(kind.name for kind in kinds), server)
    if names is None and not dry_run:
        if not changes or sure is None or not sure([*found.values()], changes):
            return Wired([], [], [*found.values()])
        _check_installed(kinds, server)
    if not dry_run:
        make(changes)
    changed = {change.path for change in changes}
    steps = [step for kind in kinds for step in _steps(kind, server, changed)]
    return Wired(changes, [*_first_steps(place, server, changed), *steps], [*found.values()])


def unwire_agents(root: str, names: tuple[str, ...] | None, *, dry_run: bool = False) -> Wired:
    """Take away what connects these agents, or everything that ever was written for one."""
    changes = connect.plan_removal(_place(root), names)
    if not dry_run:
        make(changes)
    return Wired(changes, [], [])


def _place(root: str) -> connect.Workplace:
    """The project is the folder with the data directory; in a git worktree that shares one, the worktree."""
    project = os.path.dirname(root) if os.path.basename(root) == ".aof" else os.getcwd()
    worktree = bootstrap.worktree_of(os.getcwd())
    if worktree is not None and bootstrap.default_data_dir(worktree) == root:
        project = worktree
    start = ("aof",) if shutil.which("aof") else (sys.executable, "-m", "aof")
    return connect.Workplace(project, os.path.expanduser("~"), root, start)


def _command(place: connect.Workplace) -> tuple[str, ...]:
    """How an agent starts AOF, in words that suit every clone of the project and every machine."""
    where = os.path.relpath(place.root, place.project)
    named = not _is_found(place) and not where.startswith("..")
    return ("aof", *(("--data-dir", where) if named else ()), "mcp", "--tools", "worker")


def _is_found(place: connect.Workplace) -> bool:
    """Whether AOF finds the data directory from the project's folder, unless somebody has named another one."""
    return bootstrap.default_data_dir(place.project) == place.root


def _first_steps(place: connect.Workplace, server: Server, changed: set[str]) -> list[str]:
    """What a person has to do on this machine, because files that others get as well cannot say it."""
    if server.url is not None or not changed:
        return []
    steps = []
    if shutil.which("aof") is None:
        steps.append(f"aof is not on the PATH, by which clients find it: add {os.path.dirname(sys.executable)} to it")
    if not _is_found(place) and os.path.relpath(place.root, place.project).startswith(".."):
        steps.append(f"the data directory is outside the project: set AOF_DATA_DIR={place.root} where clients start")
    return steps


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
