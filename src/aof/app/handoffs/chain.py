"""All handoffs of a task as a sequence diagram, in the words of Mermaid. Must not know any surface."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from aof.core.model.handoffs.record import Handoff

_TEXT = 80
_ENTITIES = {"#": "#35;", ";": "#59;", "<": "#lt;", ">": "#gt;", '"': "#quot;", "&": "#amp;", "%": "#37;", "\\": "#92;"}
_ANSWERS = {"accepted": "-->>", "rejected": "--x", "deferred": "-->>"}


def drawn(task_id: str, handoffs: Sequence[Handoff]) -> dict[str, Any]:
    """The diagram, and the handoffs that it shows."""
    return {"taskId": task_id, "handoffs": [one.id for one in handoffs], "text": mermaid(handoffs)}


def mermaid(handoffs: Sequence[Handoff]) -> str:
    """A diagram of who handed what to whom, and what came back."""
    names = {agent: f"A{number}" for number, agent in enumerate(_agents(handoffs))}
    lines = ["sequenceDiagram"]
    lines += [f"    participant {name} as {escaped(agent)}" for agent, name in names.items()]
    for one in handoffs:
        lines += [f"    {line}" for line in _lines(one, names[one.from_agent], names[one.to_agent])]
    return "\n".join(lines) + "\n"


def escaped(text: str) -> str:
    """Text that Mermaid shows as it is: one line, with what means something to it spelled as entities."""
    shown = " ".join("".join(one if one.isprintable() else " " for one in text).split())
    short = shown if len(shown) <= _TEXT else f"{shown[: _TEXT - 1]}…"
    return "".join(_ENTITIES.get(one, one) for one in short)


def _agents(handoffs: Iterable[Handoff]) -> Iterable[str]:
    return dict.fromkeys(agent for one in handoffs for agent in (one.from_agent, one.to_agent))


def _lines(one: Handoff, sender: str, receiver: str) -> Iterable[str]:
    yield f"{sender}->>{receiver}: {one.type} {one.id[:8]}: {escaped(one.reason)}"
    answer = one.acceptance
    if answer is not None:
        why = f": {escaped(answer.reason)}" if answer.reason else ""
        yield f"{receiver}{_ANSWERS[answer.status]}{sender}: {answer.status}{why}"
    if one.forwarded_to is not None:
        yield f"Note over {receiver}: goes on as {one.forwarded_to[:8]}"
    if one.returned is not None:
        yield f"{receiver}-->>{sender}: return {one.returned.status}"
    elif one.state == "failed":
        yield f"{receiver}--x{sender}: failed{f': {escaped(one.closed_reason)}' if one.closed_reason else ''}"
