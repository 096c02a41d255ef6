"""The requests of the protocol, whatever transport they come by: send, stream, get, list, cancel, subscribe.

All that is told is derived from the log; a stream follows it. Must not know transports or how a task is stored.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Callable
from functools import partial
from typing import Final, TypeVar

import anyio
import anyio.to_thread
from a2a.server.context import ServerCallContext
from a2a.server.events.event_queue import Event
from a2a.server.request_handlers.request_handler import RequestHandler, validate_request_params
from a2a.types import (
    AgentCard,
    CancelTaskRequest,
    DeleteTaskPushNotificationConfigRequest,
    GetExtendedAgentCardRequest,
    GetTaskPushNotificationConfigRequest,
    GetTaskRequest,
    ListTaskPushNotificationConfigsRequest,
    ListTaskPushNotificationConfigsResponse,
    ListTasksRequest,
    ListTasksResponse,
    Message,
    SendMessageRequest,
    SubscribeToTaskRequest,
    TaskArtifactUpdateEvent,
    TaskPushNotificationConfig,
    TaskStatusUpdateEvent,
)
from a2a.types import Task as PeerTask
from a2a.utils.errors import (
    ExtendedAgentCardNotConfiguredError,
    InvalidParamsError,
    PushNotificationNotSupportedError,
    UnsupportedOperationError,
)

from aof.adapters.a2a import states
from aof.adapters.a2a.served.errors import peer_error
from aof.adapters.a2a.served.inbox import PeerInbox, is_own
from aof.adapters.a2a.served.view import ORIGIN, TaskView, context_of, seen
from aof.app.async_bridge import Follower
from aof.app.operations.call import Caller
from aof.core.errors.base import AofError
from aof.core.model.task import Task

CALLER: Final = "caller"
_ROLE_AGENT: Final = 2
_WAIT: Final = 30.0  # seconds that a sender who waits for the end is kept waiting; the task goes on
_SETTLE: Final = 10.0  # seconds for a running task to settle after it was cancelled
_PAGE, _LARGEST_PAGE = 50, 100
_Answer = TypeVar("_Answer")


class PeerRequests(RequestHandler):
    """Answers peers from one fabric."""

    def __init__(self, follower: Follower) -> None:
        self._follower = follower
        self._fabric = follower.fabric
        self._inbox = PeerInbox(follower.fabric)

    @validate_request_params
    async def on_message_send(self, params: SendMessageRequest, context: ServerCallContext) -> PeerTask | Message:
        """Take a message. The answer comes at once if that is wanted, else when the task rests or after a while."""
        task_id = await self._received(params, context)
        asked = params.configuration
        history = asked.history_length if asked.HasField("history_length") else None
        if not asked.return_immediately:
            await self._until(task_id, _WAIT, lambda shown: shown.rests)
        return (await _done(partial(seen, self._fabric, task_id, history=history))).task

    @validate_request_params
    async def on_message_send_stream(
        self, params: SendMessageRequest, context: ServerCallContext
    ) -> AsyncGenerator[Event]:
        """Take a message and tell what happens to its task until that rests."""
        task_id = await self._received(params, context)
        async for event in self._told(task_id):
            yield event

    @validate_request_params
    async def on_subscribe_to_task(
        self, params: SubscribeToTaskRequest, context: ServerCallContext
    ) -> AsyncGenerator[Event]:
        """Tell what happens to a task from now on."""
        task = await _done(partial(self._inbox.own, params.id, _caller(context)))
        if states.state_of(task) in states.FINAL:
            raise UnsupportedOperationError(f"{task.id} has ended; get it instead")
        async for event in self._told(task.id):
            yield event

    @validate_request_params
    async def on_get_task(self, params: GetTaskRequest, context: ServerCallContext) -> PeerTask | None:
        """A task of the caller."""
        task = await _done(partial(self._inbox.own, params.id, _caller(context)))
        history = params.history_length if params.HasField("history_length") else None
        return (await _done(partial(seen, self._fabric, task.id, history=history))).task

    @validate_request_params
    async def on_cancel_task(self, params: CancelTaskRequest, context: ServerCallContext) -> PeerTask | None:
        """Cancel a task of the caller; one that runs gets a moment to settle."""
        await _done(partial(self._inbox.cancel, params.id, _caller(context)))
        return (await self._until(params.id, _SETTLE, lambda shown: shown.state in states.FINAL)).task

    async def on_list_tasks(self, params: ListTasksRequest, context: ServerCallContext) -> ListTasksResponse:
        """The tasks of the caller, the last changed first."""
        return await _done(partial(self._listed, params, _caller(context)))

    def _listed(self, params: ListTasksRequest, caller: Caller) -> ListTasksResponse:
        size, start = _page(params)
        found = [task for task in self._fabric.tasks(tag=ORIGIN) if is_own(task, caller) and _is_asked(task, params)]
        found.sort(key=lambda task: (task.updated_at, task.id), reverse=True)
        history = params.history_length if params.HasField("history_length") else 0
        page = [
            seen(self._fabric, task.id, history=history, artifacts=params.include_artifacts).task
            for task in found[start : start + size]
        ]
        more = str(start + size) if len(found) > start + size else ""
        return ListTasksResponse(tasks=page, next_page_token=more, page_size=size, total_size=len(found))

    async def _received(self, params: SendMessageRequest, context: ServerCallContext) -> str:
        if params.configuration.HasField("task_push_notification_config"):
            raise PushNotificationNotSupportedError
        return await _done(partial(self._inbox.receive, params.message, _caller(context)))

    async def _until(self, task_id: str, seconds: float, is_enough: Callable[[TaskView], bool]) -> TaskView:
        """The task once it is as wanted, or after so many seconds as it is then."""
        shown = await _done(partial(seen, self._fabric, task_id))
        with anyio.move_on_after(seconds):
            async for shown in self._views(task_id):
                if is_enough(shown):
                    break
        return shown

    async def _views(self, task_id: str) -> AsyncIterator[TaskView]:
        """The task now, and again after each change."""
        rev = -1
        while True:
            head = await anyio.to_thread.run_sync(self._fabric.store.head)
            shown = await _done(partial(self._changed, task_id, rev))
            if shown is not None:
                rev = shown.seq
                yield shown
            while not await self._follower.after(head):
                pass

    def _changed(self, task_id: str, rev: int) -> TaskView | None:
        return seen(self._fabric, task_id) if self._fabric.get(task_id).rev != rev else None

    async def _told(self, task_id: str) -> AsyncIterator[Event]:
        """The task first, then each difference; ends when the task rests."""
        last: TaskView | None = None
        async for shown in self._views(task_id):
            if last is None:
                yield shown.task
            else:
                for event in _differences(last.task, shown.task):
                    yield event
            last = shown
            if shown.rests:
                return

    async def on_create_task_push_notification_config(
        self, params: TaskPushNotificationConfig, context: ServerCallContext
    ) -> TaskPushNotificationConfig:
        """We call nobody."""
        raise PushNotificationNotSupportedError

    async def on_get_task_push_notification_config(
        self, params: GetTaskPushNotificationConfigRequest, context: ServerCallContext
    ) -> TaskPushNotificationConfig:
        """We call nobody."""
        raise PushNotificationNotSupportedError

    async def on_list_task_push_notification_configs(
        self, params: ListTaskPushNotificationConfigsRequest, context: ServerCallContext
    ) -> ListTaskPushNotificationConfigsResponse:
        """We call nobody."""
        raise PushNotificationNotSupportedError

    async def on_delete_task_push_notification_config(
        self, params: DeleteTaskPushNotificationConfigRequest, context: ServerCallContext
    ) -> None:
        """We call nobody."""
        raise PushNotificationNotSupportedError

    async def on_get_extended_agent_card(
        self, params: GetExtendedAgentCardRequest, context: ServerCallContext
    ) -> AgentCard:
        """The one card says all."""
        raise ExtendedAgentCardNotConfiguredError


async def _done(work: Callable[[], _Answer]) -> _Answer:
    """Do it in a thread; a refusal becomes one of the protocol."""
    try:
        return await anyio.to_thread.run_sync(work)
    except AofError as error:
        raise peer_error(error) from None


def _caller(context: ServerCallContext) -> Caller:
    caller: Caller = context.state[CALLER]
    return caller


def _page(params: ListTasksRequest) -> tuple[int, int]:
    size = params.page_size if params.HasField("page_size") else _PAGE
    token = params.page_token or "0"
    if not 1 <= size <= _LARGEST_PAGE or not (token.isascii() and token.isdigit() and len(token) < 10):  # noqa: PLR2004
        raise InvalidParamsError(f"give a page size from 1 to {_LARGEST_PAGE}, and a page token that we gave")
    return size, int(token)


def _is_asked(task: Task, params: ListTasksRequest) -> bool:
    since = params.status_timestamp_after.ToJsonString() if params.HasField("status_timestamp_after") else ""
    return (
        (not params.context_id or context_of(task) == params.context_id)
        and (not params.status or states.state_of(task) == params.status)
        and task.updated_at > since
    )


def _differences(before: PeerTask, after: PeerTask) -> list[Event]:
    """What a follower has not been told yet: our messages, artifacts, then the state."""
    known = {message.message_id for message in before.history}
    said = [one for one in after.history if one.role == _ROLE_AGENT and one.message_id not in known]
    task_id, context_id = after.id, after.context_id
    events: list[Event] = []
    for message in said[:-1] if after.status.HasField("message") else said:
        update = TaskStatusUpdateEvent(task_id=task_id, context_id=context_id, status=before.status)
        update.status.message.CopyFrom(message)
        events.append(update)
    had = {artifact.artifact_id for artifact in before.artifacts}
    events += [
        TaskArtifactUpdateEvent(task_id=task_id, context_id=context_id, artifact=artifact, last_chunk=True)
        for artifact in after.artifacts
        if artifact.artifact_id not in had
    ]
    if said or before.status.state != after.status.state:
        events.append(TaskStatusUpdateEvent(task_id=task_id, context_id=context_id, status=after.status))
    return events
