"""The way to one peer: its card, and a client that calls nobody else and takes no endless answers.

Must not know tasks or what an answer means.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final

import httpx
import msgspec
from a2a.client import A2ACardResolver, Client, ClientConfig, ClientFactory
from a2a.types import AgentCard

from aof._support.hashing import hexdigest

MOST_BYTES: Final = 48 * 1024 * 1024  # of one answer, encoded
_BINDINGS: Final = ["JSONRPC", "HTTP+JSON"]
_SECONDS: Final = 60.0  # for an answer, and between two lines of a stream
_CARD: Final = "/.well-known/agent-card.json"
_PLAIN: Final = "identity"


class PeerRefused(Exception):
    """The peer leads elsewhere, or sends more than is taken: no answer of it counts, now or later."""


class _OnlyThisPeer(httpx.AsyncHTTPTransport):
    """Carries requests to one origin. Whatever a card or an artifact names, nobody else is called."""

    def __init__(self, origin: tuple[str, str, int | None], most: int) -> None:
        super().__init__(retries=0)
        self._origin = origin
        self._most = most

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Send it, if it is for the peer."""
        if origin_of(request.url) != self._origin:
            raise PeerRefused(f"the peer leads to {request.url.host[:80]}, which is not configured")
        response = await super().handle_async_request(request)
        if response.headers.get("content-encoding", _PLAIN) != _PLAIN:  # a little of it may unpack to anything
            await response.aclose()
            raise PeerRefused("the peer sends a packed answer, which was not asked for")
        assert isinstance(response.stream, httpx.AsyncByteStream)
        response.stream = _Bounded(response.stream, self._most)
        return response


class _Bounded(httpx.AsyncByteStream):
    """A body that ends with an error when it is too long."""

    def __init__(self, body: httpx.AsyncByteStream, most: int) -> None:
        self._body = body
        self._most = most

    async def __aiter__(self) -> AsyncIterator[bytes]:
        count = 0
        async for part in self._body:
            count += len(part)
            if count > self._most:
                raise PeerRefused(f"the peer sends more than {self._most:,} bytes in one answer")
            yield part

    async def aclose(self) -> None:
        await self._body.aclose()


class Connection(msgspec.Struct, frozen=True):
    """A peer that can be called, with its card and what names exactly this card.

    `client` asks and gets one answer; `follower` is told more. The library's clients do either.
    """

    client: Client
    follower: Client
    card: AgentCard
    card_ref: str

    @property
    def streams(self) -> bool:
        """Whether the peer can be subscribed to."""
        return bool(self.card.capabilities.streaming)


def origin_of(url: httpx.URL) -> tuple[str, str, int | None]:
    """Scheme, host and port, with the usual port as none."""
    return url.scheme, url.host, url.port


@asynccontextmanager
async def http_client(url: str, token: str | None, most: int = MOST_BYTES) -> AsyncIterator[httpx.AsyncClient]:
    """A client that calls this origin only, follows no redirect and uses no proxy of the environment."""
    headers = {"Accept-Encoding": _PLAIN} | ({"Authorization": f"Bearer {token}"} if token else {})
    transport = _OnlyThisPeer(origin_of(httpx.URL(url)), most)
    async with httpx.AsyncClient(transport=transport, headers=headers, timeout=_SECONDS, trust_env=False) as http:
        yield http


async def connected(http: httpx.AsyncClient, url: str) -> Connection:
    """Read the card of the peer; raises A2AError, httpx.HTTPError or PeerRefused."""
    base = url.rstrip("/")
    card = await A2ACardResolver(http, base).get_agent_card()
    for interface in card.supported_interfaces:
        if origin_of(httpx.URL(interface.url)) != origin_of(httpx.URL(url)):
            raise PeerRefused(f"its card leads to {interface.url[:200]}, which is not the configured {base}")
    asks, follows = (
        ClientFactory(
            ClientConfig(httpx_client=http, streaming=streaming, polling=True, supported_protocol_bindings=_BINDINGS)
        ).create(card)
        for streaming in (False, True)
    )
    digest = hexdigest(card.SerializeToString(deterministic=True))
    return Connection(asks, follows, card, f"{base}{_CARD}#sha256={digest}")
