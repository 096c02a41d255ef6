"""`python -m aof.service.peer`: the worker of a run that a peer does. The service starts it like any other.

It sends the task to the peer that the org chart names and follows it there. When it is asked to end because the task
was cancelled, the peer is told; else the remote task goes on, and the next run finds it again.
"""

from __future__ import annotations

import os
import signal
import sys
from importlib.util import find_spec
from typing import TYPE_CHECKING

from aof.errors import AofError
from aof.kernel.ports import PEER_PATIENCE, PEER_TOKEN_NAME, PEER_URL
from aof.service.bootstrap import open_fabric
from aof.service.extras import install_hint
from aof.support import lazy_imports

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from aof.api.fabric import Fabric
    from aof.runs.claimed_run import ClaimedRun
    from aof.surfaces.a2a.delegation import Delegation

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

    from aof.surfaces.a2a.delegation import DelegatedRun, Delegation, http_client

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
