"""One `send` takes so many messages; the rest is refused with one answer, on every surface."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.surfaces.conftest import Doors
from tests.surfaces.doors import Answer

LIMIT = 3


def _message(task_id: str, number: int) -> str:
    envelope: dict[str, Any] = {
        "protocol": "aof",
        "version": 1,
        "projectId": "unknown",
        "type": "status.update",
        "taskId": task_id,
        "fromAgent": "tester",
        "toAgent": "pm",
        "sentAt": "2026-11-16T12:00:00Z",
        "payload": {"taskId": task_id, "agentId": "tester", "notes": f"note {number}"},
    }
    return json.dumps(envelope)


@pytest.mark.parametrize("name", ["python", "cli", "mcp", "http"])
def test_what_comes_after_the_limit_is_refused_with_one_answer(
    tmp_path_factory: pytest.TempPathFactory, name: str
) -> None:
    with _door(tmp_path_factory.mktemp("send"), name) as door:
        task_id = door.elsewhere.create("Talk").task_id
        lines = ["just talk", *(_message(task_id, number) for number in range(LIMIT + 2)), "talk"]
        head = door.elsewhere.store.head()
        answer: Answer = door.ask("send", messages=lines)
        assert isinstance(answer, dict)
        results = answer["results"]
        assert [one["outcome"] for one in results[:-1]] == ["ignored", *["accepted"] * LIMIT], results
        assert (results[-1]["outcome"], results[-1]["reason"]) == ("rejected", "too_many_messages")
        assert f"{LIMIT:,} messages; 3 more" in results[-1]["detail"]
        assert "perSend" in results[-1]["hint"]
        refused = [event for event in door.elsewhere.events(after=head) if event.type == "protocol.message.rejected"]
        assert [event.payload["reason"] for event in refused] == ["too_many_messages"]


def _door(folder: Path, name: str) -> Any:
    """A door on a data directory with a low limit, which is read when the door opens."""
    from tests.surfaces import doors  # noqa: PLC0415 - the one place that changes its settings

    opened = {"python": doors.python_door, "cli": doors.cli_door, "mcp": doors.mcp_door, "http": doors.http_door}[name]
    return opened(folder, f"[messages]\nperSend = {LIMIT}\n")


def test_a_thousand_is_the_limit_unless_the_settings_say_otherwise(doors: Doors) -> None:
    door = doors["python"]
    assert door.elsewhere.services.environment.policy.messages_per_send == 1000
