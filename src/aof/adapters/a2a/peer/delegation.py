"""One run of a task at a peer: send it once, follow it, and end the run by what the peer says and what is really here.

The remote task outlives the run: the next one goes on with it. A peer that is silent, lies or sends nonsense for longer
than our patience ends the run as lost; nothing but a final success with everything taken in completes the task. Must
not know how the process was started.
"""

from __future__ import annotations

import uuid
from collections.abc import Awaitable, Callable, Iterable
from contextlib import suppress
from typing import Final, TypeVar

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

from aof._support.printable import clean
from aof.adapters.a2a import states
from aof.adapters.a2a.content import text_of
from aof.adapters.a2a.peer.artifacts import ArtifactMissing, Gathered, message_as_artifact, says_something
from aof.adapters.a2a.peer.connection import Connection, PeerRefused, connected
from aof.adapters.a2a.peer.delegated_run import DelegatedRun
from aof.adapters.a2a.peer.remote import Mechanism, Remote
from aof.core.errors.base import AofError
from aof.core.evolve.work_log import description

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
        self._keep(remote_task_id=task_id, remote_status=states.word_of(task.status.state))

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
        word = states.word_of(task.status.state)
        context = task.context_id if _is_name(task.context_id) else self._remote.remote_context_id
        self._keep(remote_task_id=task.id, remote_context_id=context, remote_status=word)

    async def _followed(self) -> None:
        """Hear what happens until the run is over: on a subscription while that holds, else by asking again."""
        follows = self._peer.streams
        pause, unclear = _SHORTEST, anyio.current_time() + self._patience
        while not self._local.over:
            follows = follows and await self._subscribed()
            task = await self._patiently(self._asked)
            if states.word_of(task.status.state) != states.UNKNOWN:
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
                return answer.task.id == ours and states.word_of(answer.task.status.state) != states.UNKNOWN
            case "status_update":
                update = answer.status_update
                return update.task_id == ours and states.word_of(update.status.state) != states.UNKNOWN
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
        self._keep(remote_status=states.word_of(state))
        if state not in states.WAITING and state not in states.FINAL:
            self._local.said(message)
        return state in states.FINAL or state in states.WAITING

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
        if state in states.WAITING:
            self._local.wait(text or "the peer needs something", asks=state == TaskState.TASK_STATE_INPUT_REQUIRED)
            return True
        if state in states.FINAL:
            word = states.word_of(state)
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
