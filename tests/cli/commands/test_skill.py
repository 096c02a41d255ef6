"""The skill is short and well formed, and every command in it works as it is written."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable
from pathlib import Path

import pytest

from aof.service.agents.edits import skill
from tests.support.command_line import Aof

REVIEW = """\
name: review
hops:
  - {id: implement, role: developer}
  - {id: code-review, role: reviewer, dependsOn: [implement], canReject: true}
"""
_MOST = 100  # lines


def test_the_skill_is_short_and_says_when_to_use_it() -> None:
    text = skill()
    head = text.split("---\n")[1]
    assert head.startswith("name: aof\ndescription: ")
    assert "Use it when" in head
    assert len(head) < 1024
    assert len(text.splitlines()) <= _MOST + 2


def _commands() -> list[str]:
    """The commands of the skill, without their comments."""
    blocks = re.findall(r"```sh\n(.*?)```", skill(), re.DOTALL)
    return [line.split(" #")[0].strip() for block in blocks for line in block.splitlines()]


class Worker:
    """An agent that has the skill and a shell: it fills in its name, the task and the run that its claim printed."""

    def __init__(self, aof: Aof, name: str) -> None:
        self._aof, self.name = aof, name
        self.task = self.run = self.message = ""
        self.used: set[str] = set()

    def do(self, beginning: str, **changes: str) -> str:
        """Run the one command of the skill that begins so; it must succeed."""
        (command,) = [one for one in _commands() if one.startswith(f"aof {beginning}")]
        self.used.add(command)
        words = command
        for old, new in (changes | {"MESSAGE": self.message, "OTHER": "bob"}).items():
            words = words.replace(old, new)
        for old, new in (("NAME", self.name), ("RUN", self.run), ("ID", self.task)):
            words = re.sub(rf"\b{old}\b", new, words)
        said = self._aof(*shlex.split(words)[1:])
        assert said.code == 0, (words, said.out, said.err)
        if beginning.startswith("claim"):
            self.run = re.findall(r"RUN-\S+", said.out)[0].rstrip(",")
        return said.out


@pytest.fixture
def workers(aof: Aof, tmp_path: Path) -> Callable[[str], Worker]:
    (tmp_path / ".aof/workflows").mkdir(exist_ok=True)
    (tmp_path / ".aof/workflows/review.yaml").write_text(REVIEW)
    return lambda name: Worker(aof, name)


def test_every_command_of_the_skill_works_in_the_order_of_a_workers_days(
    aof: Aof, workers: Callable[[str], Worker]
) -> None:
    ada, bob = workers("ada"), workers("bob")
    aof("create", "Add refresh", "--brief", "A new token.", "--actor", "boss")
    ada.task = bob.task = "001"
    ada.do("prime")
    assert "TASK-" in ada.do("ready")
    ada.do("claim")
    assert "A new token." in ada.do("show")
    ada.do("progress")

    ada.do("ask ID 'Which region?' --choice eu --choice us --wait", **{"--wait 10m": "--wait 0"})
    aof("answer", "001", "eu", "--actor", "boss")
    ada.do("ask ID 'Which region?' --leave")
    aof("answer", "001", "us", "--actor", "boss")
    ada.do("claim")
    assert "us (boss)" in ada.do("show")

    ada.do("create")
    ada.do("release ID --wait-for-children")
    bob.task = "002"
    bob.do("claim")
    bob.do("complete ID --agent NAME --run RUN --text")
    ada.task = "002"
    ada.do("approve")
    ada.task = bob.task = "001"
    ada.do("claim")
    ada.do("complete ID --agent NAME --run RUN --text")
    bob.do("reject")
    ada.do("claim")
    assert "no test for expiry" in ada.do("show")
    ada.do("complete ID --agent NAME --run RUN --text")
    bob.do("approve")

    for ending in ("fail", "release ID --agent", "block"):
        ada.task = re.findall(r"TASK-\S+", aof("create", f"Then {ending}").out)[0]
        ada.do("claim")
        ada.do(ending)

    ada.task = bob.task = re.findall(r"TASK-\S+", aof("create", "Gated", "--workflow", "review").out)[0]
    ada.do("claim")
    ada.do("complete ID --agent NAME --run RUN --text")
    bob.do("claim")
    bob.do("complete ID --agent NAME --run RUN --outcome")
    ada.do("claim")
    assert "no test for expiry" in ada.do("show")
    ada.do("complete ID --agent NAME --run RUN --text")
    bob.do("claim")
    assert "done" in bob.do("complete ID --agent NAME --run RUN --text")

    ada.do("mail send")
    bob.message = re.findall(r"MSG-\S+", bob.do("mail inbox"))[0]
    bob.do("mail ack")
    assert {*_commands()} == ada.used | bob.used
