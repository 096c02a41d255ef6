"""Protocol messages as senders write them, and a data directory that they are sent to."""

from __future__ import annotations

import json
from typing import Any

from aof.api.fabric import Fabric
from aof.kernel.results import Sent
from tests.support.room import Room

Fields = dict[str, Any]
TASK = "TASK-2026-02-09-057"
CHILD = "TASK-2026-02-09-061"
SENT_AT = "2026-02-09T21:00:00.000Z"


def message(kind: str, task_id: str, sender: str, payload: Fields, **more: Any) -> Fields:
    """An envelope with this payload."""
    fields = {
        "protocol": "aof",
        "version": 1,
        "type": kind,
        "taskId": task_id,
        "fromAgent": sender,
        "toAgent": "dispatcher",
        "sentAt": SENT_AT,
        "payload": payload,
    }
    return fields | more


def report(task_id: str = TASK, sender: str = "ada", outcome: str = "done", **payload: Any) -> Fields:
    """A completion report."""
    return message(
        "completion.report", task_id, sender, {"outcome": outcome, "summaryRef": "outputs/summary.md"} | payload
    )


def update(task_id: str = TASK, sender: str = "ada", **payload: Any) -> Fields:
    """A status update."""
    return message("status.update", task_id, sender, {"taskId": task_id, "agentId": sender} | payload)


def request(
    task_id: str = CHILD, parent_id: str = TASK, sender: str = "ada", to_agent: str = "bob", **payload: Any
) -> Fields:
    """A handoff request."""
    fields = {"taskId": task_id, "parentTaskId": parent_id, "fromAgent": sender, "toAgent": to_agent}
    return message("handoff.request", task_id, sender, fields | payload, toAgent=to_agent)


def accepted(task_id: str = CHILD, sender: str = "bob") -> Fields:
    """The answer that takes a handoff."""
    return message("handoff.accepted", task_id, sender, {"taskId": task_id, "accepted": True})


def rejected(task_id: str = CHILD, sender: str = "bob", reason: str = "Insufficient context to proceed") -> Fields:
    """The answer that does not."""
    return message("handoff.rejected", task_id, sender, {"taskId": task_id, "accepted": False, "reason": reason})


def without(fields: Fields, name: str) -> Fields:
    """The message without a field, or without one of its payload's."""
    outer, _, inner = name.partition(".")
    if inner:
        return fields | {outer: without(fields[outer], inner)}
    return {key: value for key, value in fields.items() if key != outer}


def having(fields: Fields, name: str, value: object) -> Fields:
    """The message with another value in a field, or in one of its payload's."""
    outer, _, inner = name.partition(".")
    return fields | {outer: having(fields[outer], inner, value) if inner else value}


def prefixed(fields: object) -> str:
    """As an agent prints it."""
    return f"AOF/1 {json.dumps(fields)}"


class Post:
    """Sends messages to a room, and looks at what came of them."""

    def __init__(self, room: Room) -> None:
        self.room = room

    @property
    def fabric(self) -> Fabric:
        """The room's fabric."""
        return self.room.fabric

    def send(self, fields: object, run: str | None = None) -> Sent:
        """One message's answer."""
        (sent,) = self.fabric.send(fields, run=run)
        return sent

    def takes(self, fields: object, run: str | None = None) -> Sent:
        """The message is accepted."""
        sent = self.send(fields, run)
        assert sent.outcome == "accepted", (sent, fields)
        return sent

    def idles(self, fields: object) -> None:
        """The message is fine, is received, and changes nothing but the log."""
        before, seen = self.files(), self.fabric.store.head()
        assert self.send(fields).outcome == "noop"
        assert self.files() == before
        assert self.types(seen) == ["protocol.message.received"]

    def refuses(self, reason: str, fields: object, *, run: str | None = None, beside: tuple[str, ...] = ()) -> Sent:
        """The message is refused with this reason, which is all that changes."""
        before, seen = self.files(), self.fabric.store.head()
        sent = self.send(fields, run)
        assert (sent.outcome, sent.reason) == ("rejected", reason), (sent, fields)
        assert sent.detail
        assert self.files() == before, "a refusal changes nothing but the log"
        assert self.types(seen) == ["protocol.message.rejected", *beside]
        event = next(self.fabric.store.events(seen))
        assert event.payload["reason"] == reason
        return sent

    def comes_late(self, fields: object, *, run: str | None = None) -> Sent:
        """The report is refused and kept with its task as a late result."""
        return self._late(fields, run, "task.late_result")

    def comes_late_again(self, fields: object, *, run: str | None = None) -> Sent:
        """The same report is refused once more; it is kept already."""
        return self._late(fields, run)

    def _late(self, fields: object, run: str | None, *beside: str) -> Sent:
        seen = self.fabric.store.head()
        sent = self.send(fields, run)
        assert (sent.outcome, sent.reason) == ("rejected", "stale_lease"), (sent, fields)
        assert "late result" in str(sent.detail)
        assert self.types(seen) == ["protocol.message.rejected", *beside]
        return sent

    def ignores(self, given: object) -> None:
        """What is not a message leaves no trace."""
        before = self.room.contents()
        assert self.send(given) == Sent(outcome="ignored")
        assert self.room.contents() == before

    def files(self) -> dict[str, str]:
        """The digest of every file but the log's."""
        return {path: digest for path, digest in self.room.contents().items() if not path.startswith("events/")}

    def types(self, after: int = 0) -> list[str]:
        """The types of the events since then."""
        return [event.type for event in self.fabric.store.events(after)]

    def running(self, agent: str = "ada", **given: Any) -> str:
        """A task that an agent has claimed."""
        task_id = self.room.task(**given)
        self.fabric.claim(task_id, agent=agent)
        return task_id

    def pair(self, agent: str = "ada", **given: Any) -> tuple[str, str]:
        """A task that an agent has claimed, and a ready one that could be its child."""
        return self.running(agent, **given), self.room.task()

    def status(self, task_id: str) -> str:
        """The folder that the task's one file lies in."""
        return self.room.file(task_id).parent.name

    def reasons(self, task_id: str) -> list[str]:
        """Why the task moved, each time."""
        return [event.payload.get("reason", "") for event in self.room.events(task_id, "task.transitioned")]

    def skip_to(self, last: str) -> None:
        """Use up the IDs of the day up to this one."""
        while self.fabric.store.reserve_id(self.fabric.now()) != last:
            pass
