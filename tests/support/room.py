"""A data directory on a clock that only the test moves, a fabric on it, and eyes for its files."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest
import ryaml

from aof.api.fabric import Fabric
from aof.errors import AofError
from aof.kernel.events import Event
from aof.kernel.model import Policy
from aof.runs.model import Boot
from aof.service.clock import SystemClock
from aof.store.files.disk import Disk
from aof.store.files.store import FilesystemStore
from aof.store.port import Clock
from aof.testing import FakeClock
from tests.support.desk import contents

MONDAY = "2026-03-02T09:00:00Z"


class SameMoment(SystemClock):
    """For several processes: it is always the same moment, and who waits for another process really waits."""

    def __init__(self, moment: FakeClock) -> None:
        self._now, self._boot = moment.now(), moment.boot()

    def now(self) -> int:
        """Always the same."""
        return self._now

    def boot(self) -> Boot:
        """Always the same."""
        return self._boot


def in_status(fabric: Fabric, status: str, **given: Any) -> str:
    """The ID of a new task that lies in this status; `ada` has run it where somebody has."""
    given.setdefault("review", status != "done")
    given.setdefault("title", f"One that is {status}")
    task_id = fabric.create(**given, backlog=status == "backlog").task_id
    if status in ("in-progress", "review", "done", "deadletter"):
        run = fabric.claim(task_id, agent="ada").run_id
        if status == "deadletter":
            fabric.fail(task_id, run=run, retryable=False)
        elif status != "in-progress":
            fabric.complete(task_id, run=run, acceptance=given.get("acceptance", ()))
    elif status == "blocked":
        fabric.block(task_id, reason="waits for the key")
    elif status == "cancelled":
        fabric.cancel(task_id)
    assert fabric.get(task_id).status == status
    return task_id


class Room:
    """A data directory, a fabric on it, and eyes for its files."""

    def __init__(self, root: Path, clock: FakeClock) -> None:
        self.root = root
        self.clock = clock
        FilesystemStore.create(str(root))
        self.fabric = self.opened()

    def opened(self, disk: Disk | None = None, actor: str = "pm", clock: Clock | None = None) -> Fabric:
        """One more fabric on the directory, as another process would have it."""
        clock = clock or self.clock
        store = FilesystemStore(str(self.root), clock, durable=False, disk=disk)
        return Fabric(store, clock, Policy(), actor)

    def reopen(self) -> Fabric:
        """What the next process does."""
        self.fabric.close()
        self.fabric = self.opened()
        return self.fabric

    def task(self, status: str = "ready", **given: Any) -> str:
        """The ID of a new task that lies in this status; `ada` has run it where somebody has."""
        return in_status(self.fabric, status, **given)

    def file(self, task_id: str) -> Path:
        """The task's one file, wherever it lies."""
        (path,) = [*self.root.glob(f"tasks/*/{task_id}.md"), *self.root.glob(f"archive/tasks/{task_id}.md")]
        return path

    def front(self, task_id: str) -> dict[str, Any]:
        """The frontmatter of its file."""
        return msgspec.convert(ryaml.loads(self.file(task_id).read_text().split("\n---\n")[0][4:]), dict[str, Any])

    def body(self, task_id: str) -> str:
        """The Markdown below the frontmatter."""
        return self.file(task_id).read_text().split("\n---\n", 1)[1].removeprefix("\n")

    def run_file(self, task_id: str, name: str = "run") -> dict[str, Any]:
        """A JSON file of the current run."""
        return msgspec.json.decode((self.root / "runs" / task_id / f"{name}.json").read_bytes(), type=dict[str, Any])

    def normalized(self, task_id: str) -> str:
        """The normalized status."""
        return str(self.fabric.show(task_id)["normalizedStatus"])

    def attempts(self, task_id: str) -> list[dict[str, Any]]:
        """The runs of a task, as `show` has them."""
        return list(self.fabric.show(task_id)["attempts"])

    def edges(self, task_id: str) -> set[tuple[str, str]]:
        """Its relationships."""
        return {(edge["kind"], edge["targetId"]) for edge in self.fabric.show(task_id)["relationships"]}

    def events(self, task_id: str | None = None, kind: str | None = None) -> list[Event]:
        """What the log has."""
        return [event for event in self.fabric.events(task_id=task_id) if kind in (None, event.type)]

    def moves(self, task_id: str) -> list[tuple[str, str]]:
        """The status changes of a task."""
        return [(event.payload["from"], event.payload["to"]) for event in self.events(task_id, "task.transitioned")]

    def contents(self) -> dict[str, str]:
        """The digest of every file that counts."""
        return contents(self.root)

    def refused(self, code: str, call: Callable[..., object], *given: Any, **named: Any) -> AofError:
        """The call is refused with this code and a hint, and has changed nothing."""
        before = self.contents()
        with pytest.raises(AofError) as caught:
            call(*given, **named)
        assert caught.value.code == code, caught.value.message
        assert caught.value.hint
        assert self.contents() == before
        return caught.value

    def late(self, call: Callable[..., object], task_id: str, **named: Any) -> AofError:
        """The report comes too late: it is refused and kept, and the task is otherwise as it was."""
        before = self.fabric.get(task_id)
        with pytest.raises(AofError) as caught:
            call(task_id, **named)
        assert caught.value.code == "stale_lease", caught.value.message
        after = self.fabric.get(task_id)
        kept = msgspec.structs.replace(
            before, rev=after.rev, updated_at=after.updated_at, late_results=after.late_results
        )
        assert after == kept
        return caught.value

    def idle(self, call: Callable[..., Any], *given: Any, **named: Any) -> Any:
        """The call succeeds and has changed nothing; its answer."""
        before = self.contents()
        answer = call(*given, **named)
        assert self.contents() == before
        return answer
