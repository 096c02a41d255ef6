"""A team that leaves mail for each other: in memory and on disk, on a clock that only the test moves."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from aof.api.fabric import Fabric
from aof.documents import mail_rules
from aof.errors import AofError
from aof.kernel.model import Policy
from aof.store.files.store import FilesystemStore
from aof.store.port import Scope
from aof.testing import FakeClock, memory_fabric


class Post:
    """A fabric whose caller is the maintainer, and the mailbox as a text."""

    def __init__(self, fabric: Fabric, clock: FakeClock, root: Path | None) -> None:
        self.fabric = fabric
        self.clock = clock
        self.root = root

    def text(self, path: str = mail_rules.PATH) -> str:
        """A file as it lies there."""
        with self.fabric.store.unit(Scope()) as unit:
            return unit.document(path)

    def write(self, text: str, path: str = mail_rules.PATH) -> None:
        """What a person saves."""
        if self.root is not None:
            (self.root / path).write_text(text, newline="")
        else:
            kept = self.fabric.store._state  # type: ignore[attr-defined]
            kept.texts[path] = (text, kept.texts.get(path, ("", 0))[1] + 1)

    def send(self, **given: Any) -> str:
        """A message from ada to bob."""
        defaults: dict[str, Any] = {"from_agent": "ada", "to": "bob", "subject": "Question"}
        return self.fabric.mail_send(**(defaults | given)).message_id

    def turn(self, agent: str) -> None:
        """A whole turn of an agent."""
        self.fabric.turn_began(agent, "test")
        self.fabric.turn_ended(agent, "test")

    def refused(self, call: Callable[..., object], *given: Any, **named: Any) -> AofError:
        """The refusal of a call, which changes no byte."""
        before = self.text()
        with pytest.raises(AofError) as caught:
            call(*given, **named)
        assert self.text() == before
        return caught.value

    def codes(self, **given: Any) -> list[str]:
        """What the check finds."""
        return [one.code for one in self.fabric.mail_check(**given).problems]


@pytest.fixture(params=["memory", "filesystem"])
def post(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Post]:
    """A mailbox of a team: maya maintains, ada, bob and cyd work."""
    clock = FakeClock()
    policy = Policy(maintainers=("maya",), project="demo")
    if request.param == "memory":
        yield Post(memory_fabric("maya", clock, policy), clock, None)
        return
    root = tmp_path / ".aof"
    FilesystemStore.create(str(root))
    with Fabric(FilesystemStore(str(root), clock), clock, policy, "maya") as fabric:
        yield Post(fabric, clock, root)
