"""What comes to an MCP server on standard input and is not a message that it can take: each line is answered."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from threading import Timer
from typing import Any

import pytest

from aof.service.bootstrap import init_data_dir
from tests.support.desk import contents
from tests.support.warm import warm
from tests.surfaces.doors import environment

_HELLO = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "raw", "version": "1"}}
_OPENING = [
    {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": _HELLO},
    {"jsonrpc": "2.0", "method": "notifications/initialized"},
]


def _spoken(root: Path, *lines: bytes, awaited: set[Any]) -> dict[Any, dict[str, Any]]:
    """What a server says to these lines, by the ID that it answers; it may stop once all awaited ones have come."""
    opening = [json.dumps(message).encode() for message in _OPENING]
    process = subprocess.Popen(
        [*warm(), "aof", "mcp"],
        env=environment(root),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    bound = Timer(60, process.kill)
    bound.start()
    with process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(b"\n".join((*opening, *lines, b"")))
        process.stdin.flush()
        answers: dict[Any, dict[str, Any]] = {}
        while not awaited <= answers.keys() and (line := process.stdout.readline()):
            answer = json.loads(line)
            answers[answer["id"]] = answer
        process.stdin.close()
    bound.cancel()
    return answers


def _dispatch(arguments: bytes) -> bytes:
    params = b'{"name":"aof_dispatch","arguments":{"title":"x",%b}}' % arguments
    return b'{"jsonrpc":"2.0","id":7,"method":"tools/call","params":%b}' % params


@pytest.mark.parametrize(
    ("line", "answered", "code"),
    [
        (_dispatch(rb'"brief":"\ud800"'), 7, -32600),
        (_dispatch(b'"brief":"b","metadata":{"a":%b}' % (b"9" * 5000)), 7, -32600),
        (_dispatch(b'"brief":"b","metadata":%b1%b' % (b'{"a":' * 300, b"}" * 300)), 7, -32600),
        (_dispatch(b'"brief":"\xff"'), 7, -32700),
        (b'{"jsonrpc":"2.0","id":7,"method":"tools/call","params":[]}', 7, -32600),
        (b'{"jsonrpc":"1.0","id":"a","method":"ping"}', "a", -32600),
        (b'{"jsonrpc":"2.0","id":7,', None, -32700),
        (b"[]", None, -32600),
    ],
)
def test_a_line_that_cannot_be_taken_is_answered_and_changes_nothing(
    tmp_path: Path, line: bytes, answered: int | str | None, code: int
) -> None:
    root = Path(init_data_dir(tmp_path / ".aof")[0])
    before = contents(root)
    said = _spoken(root, line, b"", b'{"jsonrpc":"2.0","id":99,"method":"ping"}', awaited={answered, 99})
    assert said[answered]["error"]["code"] == code
    assert said[99]["result"] == {}
    assert contents(root) == before


def test_a_wait_that_is_neither_true_nor_false_is_refused(tmp_path: Path) -> None:
    root = Path(init_data_dir(tmp_path / ".aof")[0])
    before = contents(root)
    result = _spoken(root, _dispatch(b'"brief":"b","wait":"yes"'), awaited={7})[7]["result"]
    assert result["isError"]
    assert "'wait'" in json.loads(result["content"][0]["text"])["error"]["message"]
    assert contents(root) == before
