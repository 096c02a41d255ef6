"""Requests that no client of ours would send: an error of the protocol, no traceback, and nothing left behind."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from aof.service.bootstrap import init_data_dir, open_fabric
from aof.surfaces.a2a.handler import FaultHandler
from tests.support import peers

Ask = Any


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return Path(init_data_dir(tmp_path / ".aof")[0])


@pytest.fixture
def ask(root: Path) -> Iterator[Ask]:
    """Send a body as it is to our JSON-RPC; the code and the message of the error."""
    with peers.served(root) as (address, token):
        headers = {"Authorization": f"Bearer {token}", "A2A-Version": "1.0", "Content-Type": "application/json"}

        def asked(body: bytes) -> tuple[int, str]:
            answer = httpx.post(f"{address}/a2a/rpc", content=body, headers=headers, timeout=30)
            error = answer.json()["error"]
            return error["code"], error["message"]

        yield asked


def call(method: str, params: str) -> bytes:
    """A request whose parameters are this text."""
    return f'{{"jsonrpc": "2.0", "id": 1, "method": "{method}", "params": {params}}}'.encode()


def message(part: str, more: str = "", asked: str = "{}") -> str:
    """The parameters of a message with one part."""
    said = f'{{"messageId": "m", "role": "ROLE_USER", "parts": [{part}]{more}}}'
    return f'{{"message": {said}, "configuration": {asked}}}'


@pytest.mark.parametrize(
    ("body", "code"),
    [
        pytest.param(call("SendMessage", message('{"data": Infinity}')), -32005, id="a number that JSON has not"),
        pytest.param(call("SendMessage", message('{"text": "x"}', ', "metadata": {"a": NaN}')), -32602, id="metadata"),
        pytest.param(
            call("SendMessage", message('{"text": "x"}', ', "metadata": {"aof": {"tags": "abc"}}')), -32602, id="tags"
        ),
        pytest.param(
            call("SendMessage", message('{"text": "x"}', ', "metadata": {"aof": {"tags": 1.5}}')), -32602, id="no tags"
        ),
        pytest.param(call("SendMessage", message('{"data": ' + "[" * 900 + "]" * 900 + "}")), -32700, id="nested"),
        pytest.param(call("SendMessage", message('{"text": "\\ud800"}')), -32602, id="half a character"),
        pytest.param(call("SendMessage", '{"message": "x"}'), -32602, id="a text for an object"),
        pytest.param(call("SendMessage", "null"), -32602, id="nothing"),
        pytest.param(call("GetTask", '{"id": 7}'), -32602, id="a number for an ID"),
        pytest.param(call("GetTask", '{"id": "../../etc/passwd"}'), -32001, id="a path for an ID"),
        pytest.param(call("ListTasks", '{"historyLength": -5}'), -32602, id="less than no history"),
        pytest.param(
            call("SendMessage", message('{"text": "x"}', asked='{"historyLength": -5}')), -32602, id="in a message"
        ),
        pytest.param(call("ListTasks", '{"statusTimestampAfter": "yesterday"}'), -32602, id="no time"),
        pytest.param(b"[" * 100_000, -32700, id="nested without end"),
    ],
)
def test_a_wrong_request_is_an_error_without_noise(
    root: Path, ask: Ask, body: bytes, code: int, capfd: pytest.CaptureFixture[str]
) -> None:
    assert ask(body)[0] == code
    assert capfd.readouterr().err == "", "the service's output is for its operator"
    with open_fabric(root, actor="pm") as fabric:
        assert not fabric.tasks()


def test_a_fault_is_recorded_and_the_peer_learns_only_where(
    ask: Ask, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def broken(*_: object) -> None:
        raise RuntimeError("the secret plan")

    monkeypatch.setattr("aof.surfaces.a2a.peer_tasks.PeerInbox.own", broken)
    code, said = ask(call("GetTask", json.dumps({"id": "x"})))
    assert code == -32603
    assert said.startswith("an internal error, recorded as FAULT-")
    assert said.rpartition(" ")[2] in caplog.text
    assert "the secret plan" in caplog.text
    assert "the secret plan" not in said


def test_what_the_library_itself_did_not_foresee_is_recorded(caplog: pytest.LogCaptureFixture) -> None:
    handler = FaultHandler()
    wrong = UnicodeEncodeError("utf-8", "read", 0, 1, "half a character")
    for error, text in (
        (KeyError("unforeseen"), "Unhandled exception"),
        (wrong, "Unhandled exception"),
        (ValueError("read"), "Failed to parse"),
    ):
        told = logging.LogRecord("a2a", logging.ERROR, "", 0, text, (), (type(error), error, None))
        handler.emit(told)
    assert "unforeseen" in caplog.text
    assert "read" not in caplog.text
