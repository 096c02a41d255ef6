"""One run of a task at a peer.

Send it once, follow it, and end the run by what the peer says and what is really here.
"""

from __future__ import annotations

import uuid
from collections.abc import Awaitable, Callable, Iterable
from contextlib import suppress
from typing import Any, Final, Literal, TypeVar

import anyio
import httpx
import msgspec
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
from aof.surfaces.a2a.content import folder_of, text_of
from aof.surfaces.a2a.peer import (
    ArtifactMissing,
    Connection,
    Gathered,
    PeerRefused,
    connected,
    message_as_artifact,
    says_something,
    take_in,
)
from aof.tasks.body import description
from aof.tasks.model import Task

_FAILED: Final = frozenset({"failed", "canceled", "rejected"})
_TROUBLE: Final = (
    A2AError, httpx.HTTPError, httpx.InvalidURL, json_format.Error, ValueError, TypeError, LookupError, AttributeError,
    ArithmeticError, RuntimeError, SystemError,
)  # fmt: skip
"""Whatever an answer that makes no sense causes in the libraries that read it."""
_SHORTEST, _LONGEST = 0.2, 5.0  # seconds between two looks
_LAST_MOMENT: Final = 4.0  # seconds: a worker that was asked to end has five
_NAME: Final = 1_000  # characters of an ID that the peer gives
_GO_ON: Final = "Please go on."
_Answer = TypeVar("_Answer")


class Silence(Exception):
    """The peer gave no usable answer for longer than our patience."""


def _is_name(text: str) -> bool:
    """Whether it can be an ID of the peer that we keep."""
    return 0 < len(text) <= _NAME and text.isprintable()


class Delegation:
    """Works for one run."""

    def __init__(self, local: DelegatedRun, http: httpx.AsyncClient, url: str, patience: float) -> None:
        self._local = local
        self._http = http
        self._url = url
        self._patience = patience
        self._gathered = Gathered()
        self._peer: Connection
        self._remote: Remote

    async def run(self) -> None:
        """Until the run is over, one way or another."""
        try:
            self._peer = await self._patiently(lambda: connected(self._http, self._url))
            await self._begun()
            await self._followed()
        except PeerRefused as error:
            self._local.fail("peer_refused", str(error), retryable=False)
        except Silence as error:
            self._local.fail("peer_unreachable", str(error), lost=True)

    async def cancel(self) -> None:
        """Pass a cancellation on in the moment that a worker has to end; also of a send that is not answered yet."""
        remote = self._local.remote
        if remote is None:
            return
        self._remote = remote
        with anyio.move_on_after(_LAST_MOMENT), suppress(PeerRefused, Silence, AofError, *_TROUBLE):
            self._peer = await self._patiently(lambda: connected(self._http, self._url))
            known = remote.remote_task_id
            await self._cancelled(await self._patiently(self._id_of_send) if known is None else known)

    async def _id_of_send(self) -> str:
        """The task that the last message became at the peer, which may be about to take it."""
        if (found := await self._found()) is None:
            raise ValueError("the peer does not know the message")
        return found.id

    async def _cancelled(self, task_id: str) -> None:
        """Cancel; a peer that refuses is not asked again. What it says is recorded where the task still takes that."""
        while True:
            try:
                task = await self._peer.client.cancel_task(CancelTaskRequest(id=task_id))
                break
            except A2AClientError:  # it could not be reached
                await anyio.sleep(_SHORTEST)
        self._keep(remote_task_id=task_id, remote_status=content.word_of(task.status.state))

    async def _patiently(self, ask: Callable[[], Awaitable[_Answer]]) -> _Answer:
        """The answer; whatever goes wrong is tried again while our patience lasts."""
        pause, until = _SHORTEST, anyio.current_time() + self._patience
        while True:
            try:
                with anyio.fail_after(until - anyio.current_time()):
                    return await ask()
            except (TimeoutError, *_TROUBLE) as error:
                if anyio.current_time() + pause > until:
                    what = clean(str(error))[:300] or "it does not answer"
                    raise Silence(f"no usable answer from {self._url} for {self._patience:g} s: {what}") from None
            await anyio.sleep(pause)
            pause = min(2 * pause, _LONGEST)

    async def _begun(self) -> None:
        """Go on with the remote task, or send the task; its ID is stored before anything else is done."""
        remote = self._local.remote
        if remote is not None and remote.remote_task_id is not None and remote.remote_status not in _FAILED:
            self._remote = remote
            self._keep(agent_card_ref=self._peer.card_ref)
            if remote.remote_status in ("input-required", "auth-required"):
                await self._answered()
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
        self._keep(agent_card_ref=self._peer.card_ref, delivery_mechanism="polling")
        found = await self._found() if in_doubt else None
        if found is None:
            task = self._local.task
            await self._say(f"{task.title}\n\n{description(task.body)}".strip(), described=len(description(task.body)))
        else:
            self._is_remote(found)

    async def _found(self) -> PeerTask | None:
        """The task that an earlier run has sent without hearing of it; a peer that cannot list is sent it again."""
        try:
            asked = ListTasksRequest(context_id=self._remote.remote_context_id, history_length=50)
            listed = await self._peer.client.list_tasks(asked)
        except _TROUBLE:
            return None
        wanted = self._remote.message_id
        found = (one for one in listed.tasks if any(said.message_id == wanted for said in one.history))
        return next((one for one in found if _is_name(one.id)), None)

    async def _answered(self) -> None:
        """Tell the peer what was added to the description since it asked."""
        said = description(self._local.task.body)
        told = said[self._remote.described :].strip() or _GO_ON
        sent = f"{self._remote.remote_task_id} {self._remote.described} {len(said)}"
        self._keep(message_id=str(uuid.uuid5(uuid.NAMESPACE_URL, sent)))  # the same in a run that has to send it again
        await self._say(told, described=len(said))

    async def _say(self, text: str, *, described: int) -> None:
        """Send one message; the same again is known to the peer by its ID."""
        remote = self._remote
        message = Message(
            message_id=remote.message_id,
            role=Role.ROLE_USER,
            parts=[Part(text=text)],
            context_id=remote.remote_context_id,
            task_id=remote.remote_task_id or "",
        )
        answer = await self._patiently(lambda: self._sent(SendMessageRequest(message=message)))
        self._keep(described=described)
        if not answer.HasField("message"):
            self._is_remote(answer.task)
            return
        self._local.said(answer.message)
        if remote.remote_task_id is None:  # it has done the task at once; else the task itself says how it stands
            await self._completed([message_as_artifact(answer.message)], text_of(answer.message.parts))

    async def _sent(self, request: SendMessageRequest) -> StreamResponse:
        asked = request.message.task_id
        async for answer in self._peer.client.send_message(request):
            if answer.HasField("message") and says_something(answer.message):
                return answer
            if _is_name(answer.task.id) and answer.task.id == (asked or answer.task.id):
                return answer
        raise ValueError("the peer answered without the task")

    def _is_remote(self, task: PeerTask) -> None:
        """Store whose task it is, before the answer is acted upon."""
        word = content.word_of(task.status.state)
        context = task.context_id if _is_name(task.context_id) else self._remote.remote_context_id
        self._keep(remote_task_id=task.id, remote_context_id=context, remote_status=word)

    async def _followed(self) -> None:
        """Hear what happens until the run is over: on a subscription while that holds, else by asking again."""
        follows = self._peer.streams
        pause, unclear = _SHORTEST, anyio.current_time() + self._patience
        while not self._local.over:
            follows = follows and await self._subscribed()
            task = await self._patiently(self._asked)
            if content.word_of(task.status.state) != content.UNKNOWN:
                unclear = anyio.current_time() + self._patience
            elif anyio.current_time() > unclear:
                raise Silence(f"{self._url} is in a state that we do not know for {self._patience:g} s")
            if await self._acted(task):
                return
            if not follows:
                self._keep(delivery_mechanism="polling")
                await anyio.sleep(pause)
                pause = min(2 * pause, _LONGEST)

    async def _subscribed(self) -> bool:
        """Follow the stream; what it does not tell is asked for afterwards. Whether it was only quiet for too long."""
        request = SubscribeToTaskRequest(id=self._remote.remote_task_id or "")
        stream, until = aiter(self._peer.follower.subscribe(request)), anyio.current_time() + self._patience
        try:
            while True:
                with anyio.fail_after(until - anyio.current_time()):
                    answer = await anext(stream)
                self._keep(delivery_mechanism="subscription")
                if self._is_about_ours(answer):
                    if self._heard(answer):
                        return False
                    until = anyio.current_time() + self._patience
        except TimeoutError:
            return True
        except (StopAsyncIteration, *_TROUBLE):
            return False

    def _is_about_ours(self, answer: StreamResponse) -> bool:
        """Whether an update is about our task, and in a state that we know."""
        ours = self._remote.remote_task_id
        match answer.WhichOneof("payload"):
            case "task":
                return answer.task.id == ours and content.word_of(answer.task.status.state) != content.UNKNOWN
            case "status_update":
                update = answer.status_update
                return update.task_id == ours and content.word_of(update.status.state) != content.UNKNOWN
            case "artifact_update":
                return answer.artifact_update.task_id == ours
        return False

    def _heard(self, answer: StreamResponse) -> bool:
        """Take one update about our task; whether the peer rests."""
        if answer.HasField("artifact_update"):
            update = answer.artifact_update
            self._gathered.add(update.artifact, append=update.append)
            return False
        status = answer.task.status if answer.HasField("task") else answer.status_update.status
        return self._noted(status.state, status.message)

    def _noted(self, state: int, message: Message) -> bool:
        self._keep(remote_status=content.word_of(state))
        if state not in content.WAITING and state not in content.FINAL:
            self._local.said(message)
        return state in content.FINAL or state in content.WAITING

    async def _asked(self) -> PeerTask:
        task = await self._peer.client.get_task(GetTaskRequest(id=self._remote.remote_task_id or ""))
        if task.id != self._remote.remote_task_id:
            raise ValueError(f"asked for {self._remote.remote_task_id}, the peer answers about {task.id[:80]!r}")
        return task

    async def _acted(self, task: PeerTask) -> bool:
        """Do what the peer's task, as it is now, asks for; whether the run is over."""
        state, message = task.status.state, task.status.message
        self._noted(state, message)
        text = clean(text_of(message.parts))[:500]
        if state == TaskState.TASK_STATE_COMPLETED:
            await self._completed(task.artifacts, text)
            return True
        if state in content.WAITING:
            self._local.wait(text or "the peer needs something", asks=state == TaskState.TASK_STATE_INPUT_REQUIRED)
            return True
        if state in content.FINAL:
            word = content.word_of(state)
            retryable = state == TaskState.TASK_STATE_FAILED
            self._local.fail(f"peer_{word}", text or f"the peer's task is {word}", retryable=retryable)
            return True
        return False

    async def _completed(self, artifacts: Iterable[Artifact], text: str) -> None:
        """Success counts when every artifact is here."""
        self._gathered.replace(artifacts)
        until, pause = anyio.current_time() + self._patience, _SHORTEST
        while True:
            try:
                paths = await self._local.take_in(self._gathered.all, self._http)
                break
            except ArtifactMissing as error:
                if anyio.current_time() + pause > until:
                    self._local.fail("artifact_missing", f"the peer is done, but {error}")
                    return
            await anyio.sleep(pause)
            pause = min(2 * pause, _LONGEST)
        self._keep(remote_artifact_refs=paths)
        self._local.complete(text, paths)

    def _keep(
        self,
        *,
        agent_card_ref: str | None = None,
        remote_context_id: str | None = None,
        remote_task_id: str | None = None,
        message_id: str | None = None,
        described: int | None = None,
        delivery_mechanism: Mechanism | None = None,
        remote_status: str | None = None,
        remote_artifact_refs: tuple[str, ...] | None = None,
    ) -> None:
        """Store what is known of the remote task now."""
        given = {
            "agent_card_ref": agent_card_ref,
            "remote_context_id": remote_context_id,
            "remote_task_id": remote_task_id,
            "message_id": message_id,
            "described": described,
            "delivery_mechanism": delivery_mechanism,
            "remote_status": remote_status,
            "remote_artifact_refs": remote_artifact_refs,
        }
        self._remote = msgspec.structs.replace(
            self._remote, **{name: value for name, value in given.items() if value is not None}
        )
        self._local.keep(self._remote)


MOST_WRITES: Final = 10_000  # of one run
_SUMMARY: Final = 9_000  # characters


class DelegatedRun:
    """Writes for one run. `over` says that it has ended."""

    def __init__(self, fabric: Fabric, run: ClaimedRun, agent_ref: str, most: int = MOST_WRITES) -> None:
        self._fabric = fabric
        self._run = run
        self._left = most
        self.agent_ref = agent_ref
        self.over = False
        self._kept = self.remote
        self._told: set[str] = set()

    @property
    def task(self) -> Task:
        """The task as it is now."""
        return self._run.task

    @property
    def remote(self) -> Remote | None:
        """What is known of the remote task."""
        return remote_of(self.task, self.agent_ref, self._hop)

    @property
    def _hop(self) -> str | None:
        return self._run.hop if isinstance(self._run.hop, str) else None

    def keep(self, remote: Remote) -> None:
        """Store it; the same again writes nothing."""
        if remote != self._kept and not self.over:
            self._count()
            self._fabric.edit(self._run.task_id, metadata=kept(remote, self._hop))
            self._kept = remote

    def said(self, message: Message) -> None:
        """Record as progress what the peer says, each message once, also over several runs."""
        text = clean(text_of(message.parts))[:PROGRESS]
        if not text or message.message_id in self._told:
            return
        self._told.add(message.message_id)
        key = f"peer-{hexdigest(message.message_id.encode())[:40]}"
        if not any(one.value == key for one in self.task.requests):
            self._count()
            self._run.progress(text, key=key)

    def _count(self) -> None:
        """Every update of the peer is an event here: one that floods us must not fill the log."""
        if self._left <= 0:
            raise PeerRefused("the peer sends more updates than are taken in one run")
        self._left -= 1

    async def take_in(self, artifacts: Iterable[Artifact], http: httpx.AsyncClient) -> tuple[str, ...]:
        """Write the artifacts below the task's own folder."""
        return await take_in(artifacts, folder_of(self._fabric, self.task), http)

    def complete(self, text: str, paths: tuple[str, ...]) -> None:
        """End the run as done; while something that the task itself declares is open here, it waits for a person."""
        try:
            self._run.complete(clean(text)[:_SUMMARY] or "the peer is done", deliverables=paths[:50])
        except AofError as error:
            if error.kind not in ("refused", "invalid"):
                raise
            self.wait(f"the peer is done, but: {error.message}", asks=False)
        self.over = True

    def wait(self, reason: str, *, asks: bool) -> None:
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


KEY: Final = "remote"
Mechanism = Literal["polling", "streaming", "subscription", "push notification", "custom"]


class Remote(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """The remote task. `message_id` is that of the last message, sent or about to be; `described` what it has told.

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


def key_of(hop: str | None) -> str:
    """The key of the metadata: each hop of a workflow has a counterpart of its own."""
    return KEY if hop is None else f"{KEY}:{hop}"


def remote_of(task: Task, agent_ref: str, hop: str | None) -> Remote | None:
    """The counterpart at this peer; one at another peer is none."""
    found = task.metadata.get(key_of(hop))
    try:
        remote = msgspec.convert(found, prepare_type(Remote))
    except msgspec.ValidationError:
        return None
    return remote if remote.remote_agent_ref == agent_ref else None


def kept(remote: Remote, hop: str | None) -> dict[str, Any]:
    """The change of the metadata that keeps it."""
    return {key_of(hop): msgspec.to_builtins(remote)}
