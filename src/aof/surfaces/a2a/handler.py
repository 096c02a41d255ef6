"""The requests of peers, whatever transport they come by; the agent card, and how our refusals look to a peer."""

from __future__ import annotations

import logging
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from functools import partial
from typing import Any, Final, TypeVar

import anyio
import anyio.to_thread
from a2a.compat.v0_3.conversions import to_compat_agent_card
from a2a.server.context import ServerCallContext
from a2a.server.events.event_queue import Event
from a2a.server.request_handlers.request_handler import RequestHandler, validate_request_params
from a2a.types import (
    AgentCapabilities,
    AgentCard,
    AgentInterface,
    AgentSkill,
    CancelTaskRequest,
    DeleteTaskPushNotificationConfigRequest,
    GetExtendedAgentCardRequest,
    GetTaskPushNotificationConfigRequest,
    GetTaskRequest,
    HTTPAuthSecurityScheme,
    ListTaskPushNotificationConfigsRequest,
    ListTaskPushNotificationConfigsResponse,
    ListTasksRequest,
    ListTasksResponse,
    Message,
    SecurityRequirement,
    SecurityScheme,
    SendMessageConfiguration,
    SendMessageRequest,
    StringList,
    SubscribeToTaskRequest,
    TaskPushNotificationConfig,
)
from a2a.types import Task as PeerTask
from a2a.utils.errors import (
    A2AError,
    ExtendedAgentCardNotConfiguredError,
    InternalError,
    InvalidParamsError,
    InvalidRequestError,
    TaskNotFoundError,
    UnsupportedOperationError,
)
from google.protobuf.json_format import MessageToDict

from aof.api.async_bridge import Follower
from aof.api.call import Caller
from aof.errors import AofError
from aof.kernel.faults import record
from aof.org.model import OrgChart
from aof.surfaces.a2a import content
from aof.surfaces.a2a.content import INPUT_MODES, Revision
from aof.surfaces.a2a.peer_tasks import ORIGIN, PeerInbox, TaskView, context_of, is_own, updates, view_task
from aof.surfaces.a2a.push import PushConfigs

CALLER: Final = "caller"  # where the context of a call has our caller
PREFIX: Final = "/a2a"
RPC: Final = f"{PREFIX}/rpc"
_BINDINGS: Final = (("JSONRPC", RPC), ("HTTP+JSON", PREFIX))
_SCHEME: Final = "token"
_VERSION_HEADER: Final = "a2a-version"
_WAIT: Final = 30.0  # seconds that a sender who waits for the end is kept waiting; the task goes on
_SETTLE: Final = 10.0  # seconds for a running task to settle after it was cancelled
_PAGE, _LARGEST_PAGE = 50, 100
_BY_KIND: Final[dict[str, type[A2AError]]] = {
    "invalid": InvalidParamsError,
    "not_found": TaskNotFoundError,
    "conflict": InvalidRequestError,
    "refused": UnsupportedOperationError,
    "internal": InternalError,
    "unavailable": InternalError,
}
_PARSING: Final = "Failed to "  # how the library begins what it says of a request that it cannot read
_Answer = TypeVar("_Answer")


class PeerRequests(RequestHandler):
    """Answers peers from one fabric. `push_added` is called with the task that a push notification was set for."""

    def __init__(self, follower: Follower, configs: PushConfigs, push_added: Callable[[str], None]) -> None:
        self._follower = follower
        self._configs = configs
        self._push_added = push_added
        self._fabric = follower.fabric
        self._inbox = PeerInbox(follower.fabric)

    @validate_request_params
    async def on_message_send(self, params: SendMessageRequest, context: ServerCallContext) -> PeerTask | Message:
        """Take a message. The answer comes at once if that is wanted, else when the task rests or after a while."""
        history = _history(params.configuration)
        task_id = await self._receive(params, context)
        if not params.configuration.return_immediately:
            await self._until(task_id, _WAIT, lambda view: view.rests)
        return (await _in_thread(view_task, self._fabric, task_id, history=history)).task

    @validate_request_params
    async def on_message_send_stream(
        self, params: SendMessageRequest, context: ServerCallContext
    ) -> AsyncGenerator[Event]:
        """Take a message, and stream what happens to its task until that rests."""
        task_id = await self._receive(params, context)
        async for event in self._events(task_id):
            yield event

    @validate_request_params
    async def on_subscribe_to_task(
        self, params: SubscribeToTaskRequest, context: ServerCallContext
    ) -> AsyncGenerator[Event]:
        """Stream what happens to a task from now on."""
        task = await _in_thread(self._inbox.own, params.id, _caller(context))
        if content.state_of(task) in content.FINAL:
            raise UnsupportedOperationError(f"{task.id} has ended; get it instead")
        async for event in self._events(task.id):
            yield event

    @validate_request_params
    async def on_get_task(self, params: GetTaskRequest, context: ServerCallContext) -> PeerTask | None:
        """A task of the caller."""
        task = await _in_thread(self._inbox.own, params.id, _caller(context))
        return (await _in_thread(view_task, self._fabric, task.id, history=_history(params))).task

    @validate_request_params
    async def on_cancel_task(self, params: CancelTaskRequest, context: ServerCallContext) -> PeerTask | None:
        """Cancel a task of the caller; one that runs gets a moment to settle."""
        await _in_thread(self._inbox.cancel, params.id, _caller(context))
        return (await self._until(params.id, _SETTLE, lambda view: view.state in content.FINAL)).task

    async def on_list_tasks(self, params: ListTasksRequest, context: ServerCallContext) -> ListTasksResponse:
        """The tasks of the caller, the last changed first."""
        return await _in_thread(self._list, params, _caller(context))

    def _list(self, params: ListTasksRequest, caller: Caller) -> ListTasksResponse:
        size = params.page_size if params.HasField("page_size") else _PAGE
        token = params.page_token or "0"
        if not 1 <= size <= _LARGEST_PAGE or not (token.isascii() and token.isdigit() and len(token) < 10):  # noqa: PLR2004
            raise InvalidParamsError(f"give a page size from 1 to {_LARGEST_PAGE}, and a page token that we gave")
        start = int(token)
        after = params.status_timestamp_after.ToJsonString() if params.HasField("status_timestamp_after") else ""
        found = [
            task
            for task in self._fabric.tasks(tag=ORIGIN)
            if is_own(task, caller)
            and (not params.context_id or context_of(task) == params.context_id)
            and (not params.status or content.state_of(task) == params.status)
            and task.updated_at > after
        ]
        found.sort(key=lambda task: (task.updated_at, task.id), reverse=True)
        history = _history(params) or 0
        page = [
            view_task(self._fabric, task.id, history=history, artifacts=params.include_artifacts).task
            for task in found[start : start + size]
        ]
        more = str(start + size) if len(found) > start + size else ""
        return ListTasksResponse(tasks=page, next_page_token=more, page_size=size, total_size=len(found))

    async def _receive(self, params: SendMessageRequest, context: ServerCallContext) -> str:
        """The task that the message is about. A push notification that it asks for is kept before the answer."""
        wanted = params.configuration.task_push_notification_config
        pushes = params.configuration.HasField("task_push_notification_config")
        if pushes:
            self._configs.check(wanted, _caller(context))
        task_id = await _in_thread(self._inbox.receive, params.message, _caller(context))
        if pushes:
            await self._add_push(wanted, task_id, context)
        return task_id

    async def _until(self, task_id: str, seconds: float, is_enough: Callable[[TaskView], bool]) -> TaskView:
        """The task once it is as wanted, or after so many seconds as it is then."""
        view = await _in_thread(view_task, self._fabric, task_id)
        with anyio.move_on_after(seconds):
            async for view in self._views(task_id):
                if is_enough(view):
                    break
        return view

    async def _views(self, task_id: str) -> AsyncIterator[TaskView]:
        """The task now, and again after each change."""

        def changed(rev: int) -> TaskView | None:
            return view_task(self._fabric, task_id) if self._fabric.get(task_id).rev != rev else None

        rev = -1
        while True:
            head = await anyio.to_thread.run_sync(self._fabric.store.head)
            view = await _in_thread(changed, rev)
            if view is not None:
                rev = view.seq
                yield view
            while not await self._follower.after(head):
                pass

    async def _events(self, task_id: str) -> AsyncIterator[Event]:
        """The task first, then each difference; ends when the task rests."""
        last: TaskView | None = None
        async for view in self._views(task_id):
            if last is None:
                yield view.task
            else:
                for update in updates(view, last.seq, last.state):
                    yield update.event
            last = view
            if view.rests:
                return

    @validate_request_params
    async def on_create_task_push_notification_config(
        self, params: TaskPushNotificationConfig, context: ServerCallContext
    ) -> TaskPushNotificationConfig:
        """Push what happens to a task from now on to an address of the caller."""
        caller = _caller(context)
        self._configs.check(params, caller)
        task = await _in_thread(self._inbox.own, params.task_id, caller)
        return await self._add_push(params, task.id, context)

    async def _add_push(
        self, config: TaskPushNotificationConfig, task_id: str, context: ServerCallContext
    ) -> TaskPushNotificationConfig:
        """Keep a configuration that was checked. A peer from before revision 1.0 does not say which it speaks."""
        view = await _in_thread(view_task, self._fabric, task_id, artifacts=False)
        version = str(context.state["headers"].get(_VERSION_HEADER, ""))
        revision: Revision = "1.0" if version.startswith("1.") else "0.3"
        added = await _in_thread(self._configs.create, config, view, _caller(context), revision)
        self._push_added(task_id)
        return added

    async def on_get_task_push_notification_config(
        self, params: GetTaskPushNotificationConfigRequest, context: ServerCallContext
    ) -> TaskPushNotificationConfig:
        """One configuration of a task of the caller; revision 0.3 may ask without saying which."""
        for config in await self._configs_of(params.task_id, context):
            if config.id == (params.id or params.task_id):
                return config
        raise TaskNotFoundError(f"{params.task_id[:80]!r} has no push notification configuration {params.id[:80]!r}")

    @validate_request_params
    async def on_list_task_push_notification_configs(
        self, params: ListTaskPushNotificationConfigsRequest, context: ServerCallContext
    ) -> ListTaskPushNotificationConfigsResponse:
        """All configurations of a task of the caller; there are few."""
        return ListTaskPushNotificationConfigsResponse(configs=await self._configs_of(params.task_id, context))

    async def _configs_of(self, task_id: str, context: ServerCallContext) -> list[TaskPushNotificationConfig]:
        task = await _in_thread(self._inbox.own, task_id, _caller(context))
        return await _in_thread(self._configs.of, task.id, _caller(context))

    @validate_request_params
    async def on_delete_task_push_notification_config(
        self, params: DeleteTaskPushNotificationConfigRequest, context: ServerCallContext
    ) -> None:
        """Delete one configuration of a task of the caller."""
        task = await _in_thread(self._inbox.own, params.task_id, _caller(context))
        await _in_thread(self._configs.delete, task.id, params.id, _caller(context))

    async def on_get_extended_agent_card(
        self, params: GetExtendedAgentCardRequest, context: ServerCallContext
    ) -> AgentCard:
        """Refuse: the one card says all."""
        raise ExtendedAgentCardNotConfiguredError


async def _in_thread(work: Callable[..., _Answer], *given: Any, **named: Any) -> _Answer:
    """Do it in a thread. Our refusals become the protocol's, with our code and hint; a fault is told by reference."""
    try:
        return await anyio.to_thread.run_sync(partial(work, *given, **named))
    except A2AError:
        raise
    except AofError as error:
        raise _BY_KIND[error.kind](f"{error.message}; {error.hint}", {"code": error.code}) from None
    except Exception as error:  # noqa: BLE001 - the library would tell the peer what it says
        raise InternalError(f"an internal error, recorded as {record('an A2A request', error)}") from None


def _caller(context: ServerCallContext) -> Caller:
    caller: Caller = context.state[CALLER]
    return caller


def _history(params: SendMessageConfiguration | GetTaskRequest | ListTasksRequest) -> int | None:
    """How many messages are wanted; None where nothing is said."""
    if not params.HasField("history_length"):
        return None
    if params.history_length < 0:
        raise InvalidParamsError("the history length must be zero or more")
    return int(params.history_length)


def agent_card(
    base: str, project: str, version: str, chart: OrgChart | None, *, push: bool, revision: Revision
) -> dict[str, Any]:
    """The card of a data directory that is served at this address, as JSON for peers of that revision."""
    interfaces = [
        AgentInterface(url=f"{base}{path}", protocol_binding=binding, protocol_version=revision)
        for binding, path in _BINDINGS
    ]
    bearer = SecurityScheme(http_auth_security_scheme=HTTPAuthSecurityScheme(scheme="Bearer"))
    card = AgentCard(
        name=project,
        description=f"Tasks for the agents of {project}, kept by AOF.",
        version=version,
        supported_interfaces=interfaces,
        capabilities=AgentCapabilities(streaming=True, push_notifications=push),
        security_schemes={_SCHEME: bearer},
        security_requirements=[SecurityRequirement(schemes={_SCHEME: StringList()})],
        default_input_modes=INPUT_MODES,
        default_output_modes=("text/plain", "application/octet-stream"),
        skills=_skills(chart),
    )
    if revision == "1.0":
        return MessageToDict(card)
    return to_compat_agent_card(card).model_dump(mode="json", by_alias=True, exclude_none=True)


def _skills(chart: OrgChart | None) -> list[AgentSkill]:
    """One skill for any task, and one per capability that some agent of the chart has; agents are not named."""
    names = {name for agent in chart.agents if agent.active for name in agent.skills} if chart is not None else set()
    general = AgentSkill(
        id="task", name="Any task", description="Becomes a task for whoever fits, and is followed to its end.",
        tags=["task"],
    )  # fmt: skip
    return [general] + [
        AgentSkill(id=name, name=name, description=f"Work that needs {name}.", tags=[name]) for name in sorted(names)
    ]


class FaultHandler(logging.Handler):
    """Records the unexpected errors that the protocol's library logs, and drops the rest."""

    def emit(self, line: logging.LogRecord) -> None:
        """Look at one line of the library."""
        error = line.exc_info[1] if line.exc_info else None
        refused = isinstance(error, (A2AError, RecursionError, UnicodeError)) or str(line.msg).startswith(_PARSING)
        if isinstance(error, Exception) and not refused:
            record("an A2A request", error)


def record_library_faults() -> None:
    """Take over what the library logs in this process; once is enough."""
    log = logging.getLogger("a2a")
    if not any(isinstance(one, FaultHandler) for one in log.handlers):
        log.addHandler(FaultHandler())
        log.propagate = False
