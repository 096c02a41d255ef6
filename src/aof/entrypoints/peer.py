"""`python -m aof.entrypoints.peer`: the worker of a run that a peer does. The service starts it like any other.

It sends the task to the peer that the org chart names and follows it there. When it is asked to end because the task
was cancelled, the peer is told; else the remote task goes on, and the next run finds it again.
"""

from __future__ import annotations

import os
import signal
import sys
from importlib.util import find_spec
from typing import TYPE_CHECKING

from aof._support import lazy_imports
from aof._support.extras import install_hint
from aof.core.errors.base import AofError
from aof.entrypoints.bootstrap import open_fabric
from aof.ports.runner import PEER_PATIENCE, PEER_TOKEN_NAME, PEER_URL

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from aof.adapters.a2a.peer.delegation import Delegation
    from aof.app.fabric import Fabric
    from aof.app.runs.claimed_run import ClaimedRun

_PATIENCE = 60.0  # seconds without a usable answer


def main() -> int:
    """Work for the run that the environment names. A signal to end counts from the beginning, and kills nothing."""
    early = list[int]()
    signal.signal(signal.SIGTERM, lambda number, _frame: early.append(number))
    lazy_imports.settle()
    import anyio

    with open_fabric() as fabric:
        try:
            run = fabric.own_run()
        except AofError as error:
            sys.stderr.write(f"{error.message}\n")
            return 1
        if find_spec("a2a") is None:
            run.block(f"the library of Agent2Agent is not installed: {install_hint('a2a')}")
            return 0
        anyio.run(_worked, fabric, run, early)
    return 0


async def _worked(fabric: Fabric, run: ClaimedRun, early: list[int]) -> None:
    import anyio

    from aof.adapters.a2a.peer.connection import http_client
    from aof.adapters.a2a.peer.delegated_run import DelegatedRun
    from aof.adapters.a2a.peer.delegation import Delegation

    url = os.environ[PEER_URL]
    name = os.environ.get(PEER_TOKEN_NAME)
    patience = float(os.environ.get(PEER_PATIENCE, _PATIENCE))
    local = DelegatedRun(fabric, run, f"{os.environ['AOF_AGENT']} {url}")
    with anyio.open_signal_receiver(signal.SIGTERM) as signals:
        async with http_client(url, os.environ.get(name) if name else None) as http:
            delegation = Delegation(local, http, url, patience)
            if not early:
                await _until_ended(delegation, signals)
            if local.task.cancel is not None and not local.over:
                await delegation.cancel()


async def _until_ended(delegation: Delegation, signals: AsyncIterator[int]) -> None:
    """Work until the run is over, or until a signal comes."""
    import anyio

    async with anyio.create_task_group() as group:

        async def ended() -> None:
            async for _ in signals:
                group.cancel_scope.cancel()

        group.start_soon(ended)
        try:
            await delegation.run()
        except AofError as error:  # the run has ended, or its task is being cancelled
            sys.stderr.write(f"{error.message}\n")
        group.cancel_scope.cancel()


if __name__ == "__main__":
    sys.exit(main())
