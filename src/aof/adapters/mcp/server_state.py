"""What all connections of one MCP server share: the fabric, background work, and the way from async to sync.

Must not know what a tool does. The fabric is synchronous; every call to it goes through `Hub.ask`.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

import anyio
import anyio.to_thread
from anyio.abc import TaskGroup
from mcp.server.subscriptions import InMemorySubscriptionBus

from aof.adapters.mcp.presence import Presence
from aof.app.async_bridge import Follower
from aof.app.operations.call import Caller

if TYPE_CHECKING:
    from aof.adapters.mcp.sessions import Session

_Answer = TypeVar("_Answer")
CallerOf = Callable[[Any], Caller]


class Hub:
    """One server's shared parts. `caller_of` tells who sent a request from what the transport knows of it.

    `keep` says that what is claimed outlives its session unless the claim says otherwise.
    """

    def __init__(
        self,
        follower: Follower,
        caller_of: CallerOf,
        tiers: tuple[str, ...],
        presence: Presence | None = None,
        *,
        keep: bool = False,
    ) -> None:
        self.follower = follower
        self.fabric = follower.fabric
        self.caller_of = caller_of
        self.tiers = tiers
        self.presence = presence or Presence()
        self.keep = keep
        self.bus = InMemorySubscriptionBus()
        self.sessions: set[Session] = set()
        self.stopping = False
        self.background: TaskGroup | None = None

    async def ask(self, function: Callable[..., _Answer], *given: Any, **named: Any) -> _Answer:
        """Call something synchronous without holding up the others."""
        return await anyio.to_thread.run_sync(partial(function, *given, **named), abandon_on_cancel=True)

    def start(self, work: Callable[..., Any], *given: Any) -> None:
        """Let something run beside the requests, for as long as the server does."""
        assert self.background is not None
        self.background.start_soon(work, *given)
