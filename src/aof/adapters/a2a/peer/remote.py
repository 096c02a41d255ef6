"""What a task of ours keeps of its counterpart at a peer, in its metadata. Pure.

It is stored before anything that depends on it is done, so that a run after a crash goes on with the same remote task.
"""

from __future__ import annotations

from typing import Any, Final, Literal

import msgspec

from aof._support.typed import prepare_type
from aof.core.model.task import Task

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
