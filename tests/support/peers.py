"""A2A for tests: the official client against a server of ours, and what it is told."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path

import httpx
from a2a.client import Client, ClientConfig, create_client
from a2a.types import Message, Part, Role, SendMessageConfiguration, SendMessageRequest, StreamResponse, Task, TaskState

from aof.service import serve
from tests.support.waiting import BOUND


@contextmanager
def served(root: Path, actor: str = "mia", scope: str = "work") -> Iterator[tuple[str, str]]:
    """A server on a data directory, and a token for a peer of this name."""
    token = serve.create_token(str(root), actor, None, scope=scope).token
    with serve.serving(str(root), serve.ServeOptions(port=0)) as (address, *_):
        yield address, token


@asynccontextmanager
async def client(
    address: str, token: str, binding: str = "JSONRPC", *, streaming: bool = True
) -> AsyncIterator[Client]:
    """The official client, by the agent card."""
    headers = {"Authorization": f"Bearer {token}"}
    async with httpx.AsyncClient(headers=headers, timeout=BOUND) as http:
        config = ClientConfig(httpx_client=http, streaming=streaming, supported_protocol_bindings=[binding])
        yield await create_client(address, config)


def request(
    text: str, message_id: str = "m-1", *, at_once: bool = True, task_id: str = "", context_id: str = ""
) -> SendMessageRequest:
    """A message of one text."""
    parts = [Part(text=text)]
    message = Message(message_id=message_id, role=Role.ROLE_USER, parts=parts, task_id=task_id, context_id=context_id)
    return SendMessageRequest(message=message, configuration=SendMessageConfiguration(return_immediately=at_once))


async def sent(peer: Client, asked: SendMessageRequest) -> Task:
    """The task that a message has become, as the first answer tells it."""
    async for answer in peer.send_message(asked):
        return answer.task
    raise AssertionError("no answer")


def state(task: Task) -> str:
    """The word for its state."""
    return TaskState.Name(task.status.state).removeprefix("TASK_STATE_").lower()


def update(answer: StreamResponse) -> str:
    """What one answer of a stream tells, in one line."""
    match answer.WhichOneof("payload"):
        case "task":
            return f"task {state(answer.task)}"
        case "status_update":
            status = answer.status_update.status
            said = f": {status.message.parts[0].text}" if status.HasField("message") else ""
            return f"{TaskState.Name(status.state).removeprefix('TASK_STATE_').lower()}{said}"
        case "artifact_update":
            return f"artifact {answer.artifact_update.artifact.name}"
    return "message"
