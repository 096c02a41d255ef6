"""A peer that we give tasks to: its card, a client that calls nobody else, and its artifacts as files of the task."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from itertools import groupby
from typing import Final

import httpx
import msgspec
from a2a.client import A2ACardResolver, Client, ClientConfig, ClientFactory
from a2a.types import Artifact, Message, Part

from aof.support.hashing import hexdigest
from aof.surfaces.a2a.content import json_of, safe_name, text_of, write_file

MOST_ANSWER_BYTES: Final = 48 * 1024 * 1024  # of one answer, encoded
MOST_ARTIFACT_BYTES: Final = 32 * 1024 * 1024
_MOST_ARTIFACTS: Final = 100
_FOLDER: Final = "outputs/peer"
_OK: Final = 200
_JOINED: Final = ("text", "raw")  # kinds of parts whose chunks are joined
_BINDINGS: Final = ["JSONRPC", "HTTP+JSON"]
_SECONDS: Final = 60.0  # for an answer, and between two lines of a stream
_CARD: Final = "/.well-known/agent-card.json"
_PLAIN: Final = "identity"


class PeerRefused(Exception):
    """The peer leads elsewhere, or sends more than is accepted. Trying again does not help."""


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
    """A peer that can be called: one client for single answers, one for streams, and what names exactly its card."""

    client: Client
    follower: Client
    card_ref: str
    streams: bool


def origin_of(url: httpx.URL) -> tuple[str, str, int | None]:
    """Scheme, host and port, with the usual port as none."""
    return url.scheme, url.host, url.port


@asynccontextmanager
async def http_client(url: str, token: str | None, most: int = MOST_ANSWER_BYTES) -> AsyncIterator[httpx.AsyncClient]:
    """A client that calls this origin only, follows no redirect and uses no proxy of the environment."""
    headers = {"Accept-Encoding": _PLAIN} | ({"Authorization": f"Bearer {token}"} if token else {})
    transport = _OnlyThisPeer(origin_of(httpx.URL(url)), most)
    async with httpx.AsyncClient(transport=transport, headers=headers, timeout=_SECONDS, trust_env=False) as http:
        yield http


async def connect(http: httpx.AsyncClient, url: str) -> Connection:
    """Read the card of the peer; raises A2AError, httpx.HTTPError or PeerRefused."""
    base = url.rstrip("/")
    card = await A2ACardResolver(http, base).get_agent_card()
    for interface in card.supported_interfaces:
        if origin_of(httpx.URL(interface.url)) != origin_of(httpx.URL(url)):
            raise PeerRefused(f"its card leads to {interface.url[:200]}, which is not the configured {base}")
    client, follower = (
        ClientFactory(
            ClientConfig(httpx_client=http, streaming=streaming, polling=True, supported_protocol_bindings=_BINDINGS)
        ).create(card)
        for streaming in (False, True)
    )
    digest = hexdigest(card.SerializeToString(deterministic=True))
    return Connection(client, follower, f"{base}{_CARD}#sha256={digest}", bool(card.capabilities.streaming))


class ArtifactMissing(Exception):
    """The peer names an artifact that cannot be had now."""


class ReceivedArtifacts:
    """The artifacts that a peer has sent so far, whole or in chunks."""

    def __init__(self) -> None:
        self._known: dict[str, Artifact] = {}
        self._chunks: dict[str, list[Part]] = {}  # what came after, joined only at the end: there may be many
        self._bytes = 0

    def add(self, artifact: Artifact, *, append: bool = False) -> None:
        """Take one, or a chunk of one; raises PeerRefused when it becomes too much."""
        self._bytes += artifact.ByteSize()
        if append and artifact.artifact_id in self._known:
            self._chunks[artifact.artifact_id] += artifact.parts
        else:
            self._known[artifact.artifact_id] = artifact
            self._chunks[artifact.artifact_id] = []
        if self._bytes > 2 * MOST_ARTIFACT_BYTES or len(self._known) > _MOST_ARTIFACTS:
            raise PeerRefused(
                f"the peer sends more artifacts than are taken: {_MOST_ARTIFACTS}, or {MOST_ARTIFACT_BYTES:,} bytes"
            )

    def replace(self, artifacts: Iterable[Artifact]) -> None:
        """Take those that the peer's task lists in place of what came on a stream; what it leaves out is kept."""
        self._bytes = 0
        for artifact in artifacts:
            self.add(artifact)

    @property
    def all(self) -> tuple[Artifact, ...]:
        """Every artifact, in the order in which each was first sent."""
        return tuple(_join(one, self._chunks[name]) for name, one in self._known.items())


def _join(artifact: Artifact, chunks: list[Part]) -> Artifact:
    """The whole: text goes to the text and bytes to the bytes before it, anything else is a part of its own."""
    whole = Artifact()
    whole.CopyFrom(artifact)
    for kind, group in groupby(chunks, key=lambda part: part.WhichOneof("content")):
        alike = list(group)
        if kind in _JOINED:
            if whole.parts and whole.parts[-1].WhichOneof("content") == kind:
                alike.insert(0, whole.parts.pop())
            joined = Part()
            joined.CopyFrom(alike[0])
            if kind == "text":
                joined.text = "".join(part.text for part in alike)
            else:
                joined.raw = b"".join(part.raw for part in alike)
            alike = [joined]
        whole.parts.extend(alike)
    return whole


def says_something(message: Message) -> bool:
    """Whether there is anything in a message that could be a result."""
    return bool(text_of(message.parts)) or any(part.raw for part in message.parts)


def message_as_artifact(message: Message) -> Artifact:
    """The message of a peer that answers with no task: its text, then its files."""
    text = text_of(message.parts)
    files = [part for part in message.parts if part.WhichOneof("content") in ("raw", "url")]
    return Artifact(artifact_id="message", name="message.md", parts=[*([Part(text=text)] if text else []), *files])


async def save_artifacts(artifacts: Iterable[Artifact], folder: str, http: httpx.AsyncClient) -> tuple[str, ...]:
    """Write every part below the task's folder; their paths there. Raises ArtifactMissing and PeerRefused."""
    left, paths = MOST_ARTIFACT_BYTES, []
    for artifact in artifacts:
        for number, part in enumerate(artifact.parts):
            data = await _content(part, http)
            left -= len(data)
            if left < 0:
                raise PeerRefused(f"the artifacts have more than {MOST_ARTIFACT_BYTES:,} bytes together")
            given = part.filename or artifact.name or artifact.artifact_id
            path = f"{_FOLDER}/{safe_name(given, f'{artifact.artifact_id} {number}')}"
            write_file(folder, path, data)
            paths.append(path)
    return tuple(paths)


async def _content(part: Part, http: httpx.AsyncClient) -> bytes:
    if "missing" in part.metadata:
        raise ArtifactMissing(str(part.metadata["missing"])[:200])
    match part.WhichOneof("content"):
        case "text":
            return part.text.encode()
        case "raw":
            return bytes(part.raw)
        case "data":
            if (data := json_of(part)) is None:
                raise ArtifactMissing("a part of an artifact is no JSON")
            return data.encode()
        case "url":
            try:
                answer = await http.get(part.url)  # from the peer itself only, which the client sees to
            except (httpx.HTTPError, httpx.InvalidURL) as error:
                raise ArtifactMissing(f"{part.url[:200]} cannot be fetched: {error}") from None
            if answer.status_code != _OK:
                raise ArtifactMissing(f"{part.url[:200]} answers {answer.status_code}")
            return answer.content
    raise ArtifactMissing("a part of an artifact is empty")
