"""One run of a task that is delegated to a peer: send it once, follow it, and end the run as the peer's task ends.

What is known of the peer's task is kept in the metadata of ours, so that a later run goes on with it. The client calls
nobody else than the peer, and its artifacts become files of the task.
"""

from __future__ import annotations

import uuid
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from contextlib import asynccontextmanager, suppress
from itertools import groupby
from typing import Any, Final, Literal, TypeVar

import anyio
import httpx
import msgspec
from a2a.client import A2ACardResolver, Client, ClientConfig, ClientFactory
from a2a.client.errors import A2AClientError
from a2a.types import (
    Artifact,
    CancelTaskRequest,
    GetTaskRequest,
    ListTasksRequest,
    Message,
    Part,
    Role,
    SendMessageRequest,
    StreamResponse,
    SubscribeToTaskRequest,
    TaskState,
)
from a2a.types import Task as PeerTask
from a2a.utils.errors import A2AError
from google.protobuf import json_format

from aof.api.fabric import Fabric
from aof.errors import AofError
from aof.kernel.limits import PROGRESS, REASON
from aof.runs.claimed_run import ClaimedRun
from aof.support.hashing import hexdigest
from aof.support.printable import clean
from aof.support.typed import prepare_type
from aof.surfaces.a2a import content
from aof.surfaces.a2a.content import folder_of, json_of, safe_name, text_of, write_file
from aof.tasks.body import description
from aof.tasks.model import Task

_FAILED: Final = frozenset({"failed", "canceled", "rejected"})
_TROUBLE: Final = (
    A2AError, httpx.HTTPError, httpx.InvalidURL, json_format.Error, ValueError, TypeError, LookupError, AttributeError,
    ArithmeticError, RuntimeError, SystemError,
)  # fmt: skip
"""Whatever an answer that makes no sense causes in the libraries that read it."""
_SHORTEST, _LONGEST = 0.2, 5.0  # seconds from one request to the next
_LAST_MOMENT: Final = 4.0  # seconds: a worker that was asked to end has five
_NAME: Final = 1_000  # characters of an ID that the peer gives
_GO_ON: Final = "Please go on."
_KEY: Final = "remote"  # of the metadata; each hop of a workflow has one of its own
MOST_WRITES: Final = 10_000  # of one run
_SUMMARY: Final = 9_000  # characters
Mechanism = Literal["polling", "streaming", "subscription", "push notification", "custom"]
_Answer = TypeVar("_Answer")


class PeerUnreachable(Exception):
    """The peer gave no usable answer for longer than our patience."""


class Delegation:
    """One run at a peer. `patience` is how many seconds the peer may give no usable answer."""

    def __init__(self, local: DelegatedRun, http: httpx.AsyncClient, url: str, patience: float) -> None:
        self._local = local
        self._http = http
        self._url = url
        self._patience = patience
        self._artifacts = ReceivedArtifacts()
        self._peer: Connection
        self._remote: Remote

    async def run(self) -> None:
        """Work until the run is over, one way or another."""
        try:
            self._peer = await self._retrying(lambda: connect(self._http, self._url))
            await self._begin()
            await self._follow()
        except PeerRefused as error:
            self._local.fail("peer_refused", str(error), retryable=False)
        except PeerUnreachable as error:
            self._local.fail("peer_unreachable", str(error), lost=True)

    async def cancel(self) -> None:
        """Pass a cancellation on in the moment that a worker has to end; also of a send that is not answered yet."""
        remote = self._local.remote
        if remote is None:
            return
        self._remote = remote
        with anyio.move_on_after(_LAST_MOMENT), suppress(PeerRefused, PeerUnreachable, AofError, *_TROUBLE):
            self._peer = await self._retrying(lambda: connect(self._http, self._url))
            known = remote.remote_task_id
            await self._cancel_peer_task(await self._retrying(self._id_of_sent_task) if known is None else known)

    async def _id_of_sent_task(self) -> str:
        """The ID of the task that the last message became at the peer, which may be about to take it."""
        if (found := await self._find_sent_task()) is None:
            raise ValueError("the peer does not know the message")
        return found.id

    async def _cancel_peer_task(self, task_id: str) -> None:
        """Cancel it; a peer that refuses is not asked again. Its answer is stored where our task still takes that."""
        while True:
            try:
                task = await self._peer.client.cancel_task(CancelTaskRequest(id=task_id))
                break
            except A2AClientError:  # it could not be reached
                await anyio.sleep(_SHORTEST)
        self._update_remote(remote_task_id=task_id, remote_status=content.word_of(task.status.state))

    async def _retrying(self, ask: Callable[[], Awaitable[_Answer]]) -> _Answer:
        """The answer; whatever goes wrong is tried again while our patience lasts."""
        pause, until = _SHORTEST, anyio.current_time() + self._patience
        while True:
            try:
                with anyio.fail_after(until - anyio.current_time()):
                    return await ask()
            except (TimeoutError, *_TROUBLE) as error:
                if anyio.current_time() + pause > until:
                    what = clean(str(error))[:300] or "it does not answer"
                    raise PeerUnreachable(
                        f"no usable answer from {self._url} for {self._patience:g} s: {what}"
                    ) from None
            await anyio.sleep(pause)
            pause = min(2 * pause, _LONGEST)

    async def _begin(self) -> None:
        """Go on with the remote task, or send the task; its ID is stored before anything else is done."""
        remote = self._local.remote
        if remote is not None and remote.remote_task_id is not None and remote.remote_status not in _FAILED:
            self._remote = remote
            self._update_remote(agent_card_ref=self._peer.card_ref)
            if remote.remote_status in ("input-required", "auth-required"):
                await self._send_answer()
            return
        in_doubt = remote is not None and remote.remote_task_id is None
        if remote is None or not in_doubt:
            remote = Remote(
                native_protocol="a2a",
                remote_agent_ref=self._local.agent_ref,
                remote_context_id=remote.remote_context_id if remote is not None else str(uuid.uuid4()),
                message_id=str(uuid.uuid4()),
            )
        self._remote = remote
        self._update_remote(agent_card_ref=self._peer.card_ref, delivery_mechanism="polling")
        found = await self._find_sent_task() if in_doubt else None
        if found is None:
            task = self._local.task
            await self._send(f"{task.title}\n\n{description(task.body)}".strip(), described=len(description(task.body)))
        else:
            self._store_peer_task(found)

    async def _find_sent_task(self) -> PeerTask | None:
        """The task that an earlier run sent without getting an answer; a peer that cannot list is sent it again."""
        try:
            request = ListTasksRequest(context_id=self._remote.remote_context_id, history_length=50)
            listed = await self._peer.client.list_tasks(request)
        except _TROUBLE:
            return None
        wanted = self._remote.message_id
        found = (task for task in listed.tasks if any(message.message_id == wanted for message in task.history))
        return next((task for task in found if _is_name(task.id)), None)

    async def _send_answer(self) -> None:
        """Send the peer what was added to the description since it asked."""
        text = description(self._local.task.body)
        sent = f"{self._remote.remote_task_id} {self._remote.described} {len(text)}"
        self._update_remote(
            message_id=str(uuid.uuid5(uuid.NAMESPACE_URL, sent))
        )  # the same in a run that has to send it again
        await self._send(text[self._remote.described :].strip() or _GO_ON, described=len(text))

    async def _send(self, text: str, *, described: int) -> None:
        """Send one message; the same again is known to the peer by its ID."""
        remote = self._remote
        message = Message(
            message_id=remote.message_id,
            role=Role.ROLE_USER,
            parts=[Part(text=text)],
            context_id=remote.remote_context_id,
            task_id=remote.remote_task_id or "",
        )
        answer = await self._retrying(lambda: self._first_answer(SendMessageRequest(message=message)))
        self._update_remote(described=described)
        if not answer.HasField("message"):
            self._store_peer_task(answer.task)
            return
        self._local.record_progress(answer.message)
        if remote.remote_task_id is None:  # it has done the task at once; else the task itself says how it stands
            await self._complete([message_as_artifact(answer.message)], text_of(answer.message.parts))

    async def _first_answer(self, request: SendMessageRequest) -> StreamResponse:
        task_id = request.message.task_id
        async for answer in self._peer.client.send_message(request):
            if answer.HasField("message") and says_something(answer.message):
                return answer
            if _is_name(answer.task.id) and answer.task.id == (task_id or answer.task.id):
                return answer
        raise ValueError("the peer answered without the task")

    def _store_peer_task(self, task: PeerTask) -> None:
        """Store which task of the peer it is, before the answer is acted upon."""
        word = content.word_of(task.status.state)
        context = task.context_id if _is_name(task.context_id) else self._remote.remote_context_id
        self._update_remote(remote_task_id=task.id, remote_context_id=context, remote_status=word)

    async def _follow(self) -> None:
        """Follow the peer's task until the run is over: on a subscription while that holds, else by asking again."""
        follows = self._peer.streams
        pause, unclear = _SHORTEST, anyio.current_time() + self._patience
        while not self._local.over:
            follows = follows and await self._subscribe()
            task = await self._retrying(self._get_peer_task)
            if content.word_of(task.status.state) != content.UNKNOWN:
                unclear = anyio.current_time() + self._patience
            elif anyio.current_time() > unclear:
                raise PeerUnreachable(f"{self._url} is in a state that we do not know for {self._patience:g} s")
            if await self._act_on(task):
                return
            if not follows:
                self._update_remote(delivery_mechanism="polling")
                await anyio.sleep(pause)
                pause = min(2 * pause, _LONGEST)

    async def _subscribe(self) -> bool:
        """Follow the stream; whether it only was quiet for too long. What it does not tell is asked for afterwards."""
        request = SubscribeToTaskRequest(id=self._remote.remote_task_id or "")
        stream, until = aiter(self._peer.follower.subscribe(request)), anyio.current_time() + self._patience
        try:
            while True:
                with anyio.fail_after(until - anyio.current_time()):
                    answer = await anext(stream)
                self._update_remote(delivery_mechanism="subscription")
                if (rests := self._take_update(answer)) is not None:
                    if rests:
                        return False
                    until = anyio.current_time() + self._patience
        except TimeoutError:
            return True
        except (StopAsyncIteration, *_TROUBLE):
            return False

    def _take_update(self, answer: StreamResponse) -> bool | None:
        """Take one update of our task: whether the peer rests now; None where it is of no use to us."""
        ours = self._remote.remote_task_id
        if answer.HasField("artifact_update"):
            update = answer.artifact_update
            if update.task_id != ours:
                return None
            self._artifacts.add(update.artifact, append=update.append)
            return False
        if answer.HasField("task"):
            about, status = answer.task.id, answer.task.status
        else:
            about, status = answer.status_update.task_id, answer.status_update.status
        if about != ours or content.word_of(status.state) == content.UNKNOWN:
            return None
        return self._note_status(status.state, status.message)

    def _note_status(self, state: int, message: Message) -> bool:
        """Store the state of the peer's task, and record what it says meanwhile; whether the peer rests."""
        self._update_remote(remote_status=content.word_of(state))
        rests = state in content.FINAL or state in content.WAITING
        if not rests:
            self._local.record_progress(message)
        return rests

    async def _get_peer_task(self) -> PeerTask:
        task = await self._peer.client.get_task(GetTaskRequest(id=self._remote.remote_task_id or ""))
        if task.id != self._remote.remote_task_id:
            raise ValueError(f"asked for {self._remote.remote_task_id}, the peer answers about {task.id[:80]!r}")
        return task

    async def _act_on(self, task: PeerTask) -> bool:
        """Do what the peer's task, as it is now, asks for; whether the run is over."""
        state, message = task.status.state, task.status.message
        self._note_status(state, message)
        text = clean(text_of(message.parts))[:500]
        if state == TaskState.TASK_STATE_COMPLETED:
            await self._complete(task.artifacts, text)
            return True
        if state in content.WAITING:
            self._local.block(text or "the peer needs something", asks=state == TaskState.TASK_STATE_INPUT_REQUIRED)
            return True
        if state in content.FINAL:
            word = content.word_of(state)
            retryable = state == TaskState.TASK_STATE_FAILED
            self._local.fail(f"peer_{word}", text or f"the peer's task is {word}", retryable=retryable)
            return True
        return False

    async def _complete(self, artifacts: Iterable[Artifact], text: str) -> None:
        """End the run as done once every artifact is here."""
        self._artifacts.replace(artifacts)
        until, pause = anyio.current_time() + self._patience, _SHORTEST
        while True:
            try:
                paths = await self._local.save_artifacts(self._artifacts.all, self._http)
                break
            except ArtifactMissing as error:
                if anyio.current_time() + pause > until:
                    self._local.fail("artifact_missing", f"the peer is done, but {error}")
                    return
            await anyio.sleep(pause)
            pause = min(2 * pause, _LONGEST)
        self._update_remote(remote_artifact_refs=paths)
        self._local.complete(text, paths)

    def _update_remote(self, **changes: Any) -> None:
        """Store what is known of the peer's task now."""
        self._remote = msgspec.structs.replace(self._remote, **changes)
        self._local.store(self._remote)


class DelegatedRun:
    """Our side of one run: what is written to the task. `over` says that the run has ended."""

    def __init__(self, fabric: Fabric, run: ClaimedRun, agent_ref: str, most: int = MOST_WRITES) -> None:
        self._fabric = fabric
        self._run = run
        self._left = most
        self.agent_ref = agent_ref
        self.over = False
        self._hop = run.hop if isinstance(run.hop, str) else None
        self._key = _KEY if self._hop is None else f"{_KEY}:{self._hop}"
        self._stored = self.remote
        self._recorded: set[str] = set()  # IDs of messages

    @property
    def task(self) -> Task:
        """The task as it is now."""
        return self._run.task

    @property
    def remote(self) -> Remote | None:
        """What is known of the task at this peer; one at another peer is none."""
        try:
            remote = msgspec.convert(self.task.metadata.get(self._key), prepare_type(Remote))
        except msgspec.ValidationError:
            return None
        return remote if remote.remote_agent_ref == self.agent_ref else None

    def store(self, remote: Remote) -> None:
        """Keep what is known of the peer's task; the same again writes nothing."""
        if remote != self._stored and not self.over:
            self._count_write()
            self._fabric.edit(self._run.task_id, metadata={self._key: msgspec.to_builtins(remote)})
            self._stored = remote

    def record_progress(self, message: Message) -> None:
        """Record as progress what the peer says, each message once, also over several runs."""
        text = clean(text_of(message.parts))[:PROGRESS]
        if not text or message.message_id in self._recorded:
            return
        self._recorded.add(message.message_id)
        key = f"peer-{hexdigest(message.message_id.encode())[:40]}"
        if not any(one.value == key for one in self.task.requests):
            self._count_write()
            self._run.progress(text, key=key)

    def _count_write(self) -> None:
        """Refuse a peer that floods us: every update is an event here, and must not fill the log."""
        if self._left <= 0:
            raise PeerRefused("the peer sends more updates than are taken in one run")
        self._left -= 1

    async def save_artifacts(self, artifacts: Iterable[Artifact], http: httpx.AsyncClient) -> tuple[str, ...]:
        """Write the artifacts below the task's own folder."""
        return await save_artifacts(artifacts, folder_of(self._fabric, self.task), http)

    def complete(self, text: str, paths: tuple[str, ...]) -> None:
        """End the run as done; while something that the task itself declares is open here, it waits for a person."""
        try:
            self._run.complete(clean(text)[:_SUMMARY] or "the peer is done", deliverables=paths[:50])
        except AofError as error:
            if error.kind not in ("refused", "invalid"):
                raise
            self.block(f"the peer is done, but: {error.message}", asks=False)
        self.over = True

    def block(self, reason: str, *, asks: bool) -> None:
        """End the run: somebody has to answer the peer, or to allow something."""
        if self._hop is not None:
            self._run.block(reason[:REASON])
        else:
            self._fabric.block(
                self._run.task_id, reason[:REASON], kind="waiting_input" if asks else "waiting_permission"
            )
        self.over = True

    def fail(self, code: str, message: str, *, retryable: bool = True, lost: bool = False) -> None:
        """End the run as failed, or as lost when nobody knows what became of it."""
        self._fabric.fail(
            self._run.task_id,
            run=self._run.run_id,
            code=code,
            message=message,
            cause="lost" if lost else "failed",
            retryable=retryable,
        )
        self.over = True


class Remote(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """What is known of the peer's task. `message_id` is that of the last message, sent or about to be.

    `remote_status` is the peer's own word. `described` counts the characters of the description that the peer knows.
    """

    native_protocol: Literal["a2a"] | None = None
    remote_agent_ref: str
    agent_card_ref: str | None = None
    remote_context_id: str
    remote_task_id: str | None = None
    message_id: str
    described: int = 0
    delivery_mechanism: Mechanism | None = None
    remote_status: str | None = None
    remote_artifact_refs: tuple[str, ...] = ()


def _is_name(text: str) -> bool:
    """Whether the text can be an ID of the peer that we keep."""
    return 0 < len(text) <= _NAME and text.isprintable()


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
