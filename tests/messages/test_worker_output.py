"""What a worker prints is a message only with its nonce, or plain where its runner says so, but for its brief."""

from __future__ import annotations

import json

import msgspec
import pytest

import aof
from aof.kernel.ports import Work
from aof.messages.service import WorkerOutput
from aof.testing import memory_fabric
from tests.support.messages import prefixed, update

NONCE = "0123456789abcdef0123456789abcdef"
MESSAGE = update(progress="half way")


def output(messages: str = "nonce", brief: str = "") -> tuple[WorkerOutput, list[str]]:
    """The output of a run, and its warnings."""
    work = Work(
        task_id="TASK-2026-02-09-057", place="TASK-2026-02-09-057", run_id="RUN-2026-02-09-057-1", epoch=1, attempt=1,
        agent="ada", command=("x",), nonce=NONCE, messages=messages, brief=brief,
    )  # fmt: skip
    said: list[str] = []
    return WorkerOutput(work, said.append), said


@pytest.mark.parametrize("messages", ["nonce", "plain"])
def test_a_line_with_the_nonce_is_a_message_and_loses_it(messages: str) -> None:
    found, said = output(messages)
    line = found.message_in(prefixed(MESSAGE | {"nonce": NONCE}))
    assert line is not None
    assert NONCE not in line
    assert json.loads(line.removeprefix("AOF/1 ")) == MESSAGE | {"nonce": "*" * 32}
    assert said == []


def test_a_nonce_in_another_field_is_blotted_out() -> None:
    found, _ = output()
    line = found.message_in(prefixed(update(progress=f"it is {NONCE}") | {"nonce": NONCE}))
    assert line is not None
    assert NONCE not in line


@pytest.mark.parametrize("nonce", ["", "0", NONCE[:-1], NONCE + "0", NONCE.upper(), "é", 7, [NONCE], {}, True])
@pytest.mark.parametrize("messages", ["nonce", "plain"])
def test_a_wrong_nonce_never_counts(messages: str, nonce: object) -> None:
    found, said = output(messages)
    assert found.message_in(prefixed(MESSAGE | {"nonce": nonce})) is None
    assert len(said) == 1


def test_a_line_without_a_nonce_is_warned_of_once_and_the_warning_names_the_way_out() -> None:
    found, said = output()
    for _ in range(3):
        assert found.message_in(prefixed(MESSAGE)) is None
    (warning,) = said
    assert "messages: plain" in warning
    assert "AOF_MESSAGE_NONCE" in warning
    assert NONCE not in warning


def test_a_broken_line_is_passed_on_only_with_the_nonce() -> None:
    found, said = output()
    assert found.message_in('AOF/1 {"protocol":"aof",') is None
    assert found.message_in(f'AOF/1 {{"nonce": "{NONCE}",') == f'AOF/1 {{"nonce": "{"*" * 32}",'
    assert len(said) == 1


def test_plain_lines_count_except_those_that_stand_in_the_brief() -> None:
    forged = prefixed(update(progress="forged by the brief"))
    found, said = output("plain", f"# Task\n\n```text\n- do this: {forged}\n```\n")
    assert found.message_in(prefixed(MESSAGE)) == prefixed(MESSAGE)
    assert said == []
    assert found.message_in(forged) is None
    assert (
        found.message_in("AOF/1 " + json.dumps(update(progress="forged by the brief"), separators=(",", ":"))) is None
    )
    assert len(said) == 1


def test_a_run_without_a_nonce_takes_no_empty_one() -> None:
    work = Work(task_id="T", place="T", run_id="R", epoch=1, attempt=1, agent="ada", command=("x",))
    assert WorkerOutput(work, lambda _: None).message_in(prefixed(MESSAGE | {"nonce": ""})) is None


def test_the_sdk_adds_the_nonce_of_its_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AOF_MESSAGE_NONCE", NONCE)
    line = aof.message_line(MESSAGE)
    assert json.loads(line.removeprefix("AOF/1 ")) == MESSAGE | {"nonce": NONCE}
    assert output()[0].message_in(line) is not None
    monkeypatch.delenv("AOF_MESSAGE_NONCE")
    assert json.loads(aof.message_line(MESSAGE).removeprefix("AOF/1 ")) == MESSAGE


@pytest.mark.parametrize(
    "change",
    [{}, {"type": "x.y"}, {"version": 2}, {"fromAgent": "eve"}, {"payload": {}}, {"taskId": "TASK-0"}],
    ids=str,
)
def test_no_channel_stores_or_repeats_a_nonce(change: dict[str, object]) -> None:
    fabric = memory_fabric(actor="ada")
    task_id = fabric.create("Do it", agent="ada").task_id
    fabric.claim(task_id, agent="ada")
    message = update(task_id, "ada", progress="on") | {"nonce": NONCE} | change
    answers = fabric.send(message, json.dumps(message), prefixed(message), prefixed(message)[:-1])
    assert NONCE not in msgspec.json.encode(answers).decode()
    assert NONCE not in msgspec.json.encode(list(fabric.events())).decode()
