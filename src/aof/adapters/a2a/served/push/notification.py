"""What an address is sent: the updates that it was not told yet, in the form of its revision of the protocol. Pure.

Revision 1.0 gets each update as a stream has it, 0.3 the whole task once.
"""

from __future__ import annotations

import json

import msgspec
from a2a.compat.v0_3 import conversions
from google.protobuf.json_format import MessageToJson

from aof.adapters.a2a.served.updates import EVENT_ID, updates
from aof.adapters.a2a.served.view import TaskView
from aof.ports.push import PushTarget

ID_HEADER = "X-A2A-Event-Id"
TOKEN_HEADER = "X-A2A-Notification-Token"  # noqa: S105 - the header's name


class PushNotification(msgspec.Struct, frozen=True):
    """One request. With it, everything up to the event `seq` has been told."""

    body: bytes
    event_id: str
    seq: int

    def headers(self, target: PushTarget) -> dict[str, str]:
        """Its headers, with what the peer wants to know us by."""
        headers = {"Content-Type": "application/json", ID_HEADER: self.event_id}
        if target.token:
            headers[TOKEN_HEADER] = target.token
        if target.scheme:
            headers["Authorization"] = f"{target.scheme} {target.credentials}"
        return headers


def notifications(shown: TaskView, target: PushTarget) -> list[PushNotification]:
    """What the target has not been told of the task, in order."""
    pending = updates(shown, target.seq, target.state)
    if target.version == "1.0" or not pending:
        return [
            PushNotification(MessageToJson(one.response, indent=None).encode(), one.event_id, one.seq)
            for one in pending
        ]
    last = pending[-1]
    task = conversions.to_compat_task(shown.task).model_dump(mode="json", by_alias=True, exclude_none=True)
    task["metadata"] = (task.get("metadata") or {}) | {EVENT_ID: last.event_id}
    return [PushNotification(json.dumps(task).encode(), last.event_id, shown.seq)]
