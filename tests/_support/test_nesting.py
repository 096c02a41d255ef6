"""JSON that is nested too deeply is refused by that name, wherever it comes from."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

import aof
from aof.errors import AofError
from aof.service import serve
from aof.support import nesting
from tests.support.terminal import aof as command
from tests.surfaces.doors import http_server

DEEP = 100_000
SHAPES: dict[str, Callable[[int], str]] = {
    "lists": lambda depth: "[" * depth + "]" * depth,
    "objects": lambda depth: '{"a":' * depth + "1" + "}" * depth,
    "both, with others beside": lambda depth: ('[[], {"a": [1]}, ' * depth) + "1" + "]" * depth,
    "in strings too": lambda depth: '{"[{\\"": ' * depth + '"]}"' + "}" * depth,
}
_PYTHON = "recursion"


@pytest.mark.parametrize("shape", SHAPES)
def test_the_bound_is_the_same_for_every_shape(shape: str) -> None:
    room = 2 if shape.startswith("both") else 0
    nesting.refuse_nesting(SHAPES[shape](nesting.MOST_NESTED - room))
    for depth in (nesting.MOST_NESTED + 1, DEEP):
        with pytest.raises(nesting.NestedTooDeeply, match="nested too deeply"):
            nesting.refuse_nesting(SHAPES[shape](depth))
        with pytest.raises(nesting.NestedTooDeeply):
            nesting.refuse_nesting(SHAPES[shape](depth).rstrip("]}").encode())


@pytest.mark.parametrize("text", ['["' + "[" * DEEP + '"]', '"' + "\\" * DEEP + "[" * 64, '["\\"' + "{" * DEEP + '"]'])
def test_brackets_in_strings_do_not_count(text: str) -> None:
    assert _is_taken(text)


def test_many_beside_each_other_are_not_deep() -> None:
    assert _is_taken("[" + ",".join(['{"a": [[], {}]}'] * 50_000) + "]")


def _is_taken(text: str) -> bool:
    try:
        nesting.refuse_nesting(text)
    except nesting.NestedTooDeeply:
        return False
    return True


def _depth(value: Any) -> int:
    inside = value.values() if isinstance(value, dict) else value if isinstance(value, list) else None
    return 0 if inside is None else 1 + max(map(_depth, inside), default=0)


@given(
    st.recursive(
        st.text(alphabet='ab[]{}"\\', max_size=4),
        lambda inner: (
            st.lists(inner, max_size=4) | st.dictionaries(st.text(alphabet="[{x", max_size=2), inner, max_size=3)
        ),
        max_leaves=60,
    ),
    st.integers(0, 80),
)
def test_what_is_refused_is_what_is_deeper_than_the_bound(value: Any, more: int) -> None:
    for _ in range(more):
        value = [value, []]
    text = msgspec.json.encode(value)
    if _depth(value) > nesting.MOST_NESTED:
        with pytest.raises(nesting.NestedTooDeeply):
            nesting.decode_json(text, object)
    else:
        assert nesting.decode_json(text, object) == value


@pytest.fixture
def root(tmp_path: Path) -> Path:
    made, _ = aof.init(tmp_path / ".aof", actor="tester")
    with aof.open(made, actor="tester") as fabric:
        fabric.create("one", review=False)
        fabric.claim("001", agent="ada")
    return Path(made)


def _assert_named(ended: Any) -> None:
    said = ended.out + ended.err
    assert ended.code != 0
    assert "nested too deeply" in said, said[:500]
    assert _PYTHON not in said.lower()
    assert "Traceback" not in said


@pytest.mark.parametrize("shape", SHAPES)
def test_a_deep_line_of_the_log_is_damage_with_a_name(root: Path, shape: str) -> None:
    (log,) = (root / "events").glob("*.jsonl")
    lines = log.read_bytes().splitlines(keepends=True)
    head, commit, tail = lines[1].partition(b'"commit":')
    assert commit
    lines[1] = head + b'"payload":{"x":' + SHAPES[shape](DEEP).encode() + b"}," + commit + tail
    log.write_bytes(b"".join(lines))
    for words in (("log", "--json"), ("verify",), ("doctor",), ("replay", "--at", "1"), ("create", "two"), ("list",)):
        ended = command(*words, cwd=root.parent)
        assert _PYTHON not in (ended.out + ended.err).lower(), words
        assert "Traceback" not in ended.err, words
    _assert_named(command("log", "--json", cwd=root.parent))


def test_the_last_line_of_the_log_too(root: Path) -> None:
    (log,) = (root / "events").glob("*.jsonl")
    log.write_bytes(log.read_bytes() + SHAPES["lists"](DEEP).encode() + b"\n")
    for words in (("list",), ("create", "two"), ("doctor",), ("verify",)):
        ended = command(*words, cwd=root.parent)
        assert _PYTHON not in (ended.out + ended.err).lower(), words
        assert "Traceback" not in ended.err, words


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("prefix", ["", "AOF/1 "])
def test_a_deep_message_is_refused_by_its_name(root: Path, tmp_path: Path, shape: str, prefix: str) -> None:
    payload = SHAPES[shape](DEEP)
    text = f'{prefix}{{"protocol": "aof", "version": 1, "type": "status.update", "payload": {payload}}}'
    (tmp_path / "message").write_text(text)
    ended = command("send", str(tmp_path / "message"), "--json", cwd=root.parent)
    _assert_named(ended)


def test_a_deep_message_of_a_program_is_refused_by_its_name(root: Path) -> None:
    deep: Any = []
    for _ in range(5_000):
        deep = [deep]
    with aof.open(root, actor="tester") as fabric:
        report = fabric.send({"protocol": "aof", "version": 1, "type": "status.update", "payload": deep})
        assert "nested too deeply" in str(report)
        assert _PYTHON not in str(report)
        with pytest.raises(AofError) as caught:
            fabric.create("two", metadata={"deep": deep})
        assert _PYTHON not in str(caught.value)


@pytest.mark.parametrize("shape", SHAPES)
def test_deep_bodies_over_http_are_refused_by_their_name(root: Path, shape: str) -> None:
    token = serve.create_token(str(root), "ada", None, scope="admin").token
    headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
    body = f'{{"title": "x", "metadata": {{"deep": {SHAPES[shape](DEEP)}}}}}'
    with http_server(root) as url, httpx.Client(base_url=url, headers=headers, timeout=60) as client:
        refused = client.post("/api/v1/create", content=body)
        assert refused.status_code == 400
        assert "nested too deeply" in refused.json()["error"]["message"]
        accept = {"Accept": "application/json, text/event-stream"}
        params = f'{{"name": "aof_dispatch", "arguments": {body}}}'
        call = f'{{"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {params}}}'
        for path in ("/mcp", "/a2a/rpc"):
            told = client.post(path, content=call, headers=accept)
            assert told.status_code == (400 if path == "/mcp" else 200)
            assert "nested too deeply" in told.text
            assert _PYTHON not in told.text.lower()


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("runs/{id}/run_result.json", "{deep}"),
        ("runs/{id}/run.json", "{deep}"),
        ("jobs.json", '{{"rev": 1, "jobs": {deep}}}'),
        ("tokens.json", "{deep}"),
        ("locks/org-chart.json", "{deep}"),
    ],
)
def test_a_deep_file_is_told_and_crashes_nothing(root: Path, name: str, text: str) -> None:
    task_id = next(one for one in os.listdir(root / "runs") if one.startswith("TASK-"))
    path = root / name.format(id=task_id)
    path.parent.mkdir(exist_ok=True)
    path.write_text(text.format(deep=SHAPES["objects"](DEEP)))
    path.chmod(0o600)
    said = ""
    for words in (("show", "001"), ("doctor",), ("job", "list"), ("token", "list"), ("session-end", "--agent", "ada")):
        ended = command(*words, cwd=root.parent)
        said += ended.out + ended.err
    assert _PYTHON not in said.lower()
    assert "Traceback" not in said
    if name in ("jobs.json", "tokens.json"):
        assert "nested too deeply" in said
    if name.startswith("runs/"):
        assert "run_file_differs" in said


@pytest.mark.parametrize("shape", SHAPES)
def test_deep_frontmatter_is_refused_by_its_depth(root: Path, shape: str) -> None:
    (path,) = (root / "tasks").rglob("*-001.md")
    path.write_text(path.read_text().replace("\nstatus:", f"\nextra: {SHAPES[shape](1_000)}\nstatus:", 1))
    ended = command("show", "001", cwd=root.parent)
    said = ended.out + ended.err
    assert _PYTHON not in said.lower()
    assert "Traceback" not in said
    assert "nested" in said + command("doctor", cwd=root.parent).out


def test_a_deep_result_of_a_handoff_and_deep_options_are_refused_by_their_name(root: Path, tmp_path: Path) -> None:
    deep = SHAPES["lists"](20_000)
    _assert_named(
        command(
            "handoff", "return", "HO-1", "--agent", "ada", "--status", "completed", "--result", deep, cwd=root.parent
        )
    )
    _assert_named(command("create", "two", "--meta", f"deep={deep}", cwd=root.parent))
    (tmp_path / "batch").write_text(json.dumps({"title": "x"}) + f'\n{{"title": "y", "metadata": {deep}}}\n')
    words = ("job", "add", "nightly", "--cron", "0 2 * * *", "--file", str(tmp_path / "batch"))
    _assert_named(command(*words, cwd=root.parent))
