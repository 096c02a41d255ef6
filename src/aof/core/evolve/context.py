"""What each event makes of the shared context of a workflow. Must not judge: it was decided before."""

from __future__ import annotations

from typing import Any, Final

import msgspec

from aof._support.typed import prepare_type
from aof.core.model.events import Event
from aof.core.model.handoffs.context import (
    RecordedArtifact,
    RecordedDecision,
    SharedContext,
    Variable,
    builtins,
    context_of,
)
from aof.core.model.task import Task

_replace = msgspec.structs.replace


def context_changes(task: Task, event: Event) -> dict[str, Any]:
    """What an event about the context changes in the record of its task."""
    handler = _HANDLERS.get(event.type)
    return {} if handler is None else {"context": builtins(handler(context_of(task), event))}


def _set(context: SharedContext, event: Event) -> SharedContext:
    payload = event.payload
    fields = {name: value for name, value in payload.items() if name != "name"}
    variable = msgspec.convert(fields | {"writtenAt": event.timestamp}, prepare_type(Variable))
    return _replace(context, variables=context.variables | {payload["name"]: variable})


def _decided(context: SharedContext, event: Event) -> SharedContext:
    made = msgspec.convert(event.payload | {"timestamp": event.timestamp}, prepare_type(RecordedDecision))
    return _replace(context, decisions=(*context.decisions, made))


def _artifact(context: SharedContext, event: Event) -> SharedContext:
    """A new artifact, or a known one in another state: what identifies it stays."""
    fields = event.payload["artifact"]
    known = next((one for one in context.artifacts if one.id == fields["id"]), None)
    created = known.created_at if known is not None else event.timestamp
    artifact = msgspec.convert(fields | {"createdAt": created}, prepare_type(RecordedArtifact))
    if known is None:
        return _replace(context, artifacts=(*context.artifacts, artifact))
    return _replace(context, artifacts=tuple(artifact if one.id == known.id else one for one in context.artifacts))


def _rule(context: SharedContext, event: Event) -> SharedContext:
    return _replace(context, rule=event.payload["rule"])


_HANDLERS: Final = {
    "context.set": _set,
    "context.decided": _decided,
    "context.artifact": _artifact,
    "context.rule": _rule,
}
