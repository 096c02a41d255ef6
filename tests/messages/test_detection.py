"""What is a message, in which of the three forms, and what is none of ours."""

from __future__ import annotations

import json
from typing import Any

import pytest

from aof.messages.protocol import LARGEST, Incoming, detect, incoming
from tests.support.messages import prefixed, update


def found(given: object) -> dict[str, Any] | None:
    detected = detect(incoming(given))
    if detected is None:
        return None
    assert detected.problem is None, detected.problem
    return detected.fields


def problem(given: object) -> str:
    detected = detect(incoming(given))
    assert detected is not None
    assert detected.problem is not None
    return detected.problem.code


@pytest.mark.parametrize(
    "form", [dict, json.dumps, prefixed, lambda m: json.dumps(m, indent=2), lambda m: json.dumps(m).encode()]
)
def test_a_message_is_recognised_in_each_form(form: Any) -> None:
    message = update(progress="x")
    assert found(form(message)) == message


def test_the_parsed_object_comes_before_the_text() -> None:
    first, second = update(progress="parsed"), update(progress="text")
    assert found(Incoming(payload=first, content=json.dumps(second))) == first
    assert found({"type": "message_received", "payload": first, "content": prefixed(second)}) == first
    assert found({"payload": {"foo": 1}, "content": prefixed(second)}) == second


@pytest.mark.parametrize(
    "given",
    [
        "hello", "", " ", "{not json", "[1,2]", "42", "null", '"AOF/1 {}"', '{"foo":1}', {"foo": 1}, [1], 42, None,
        '{"jsonrpc":"2.0","method":"x"}', '{"protocol":"AOF"}', {"protocol": "mcp"}, " AOF/1 {}", "AOF/2 {}", "AOF/1{}",
        "aof/1 {}", "[" * 100_000, "{" * 100_000, '{"a":' * 100_000, b"\xff\xfe", b"{\xff}", "\ud800", object(),
        {"payload": {"foo": 1}}, {"content": 42}, '{"protocol":"mcp"', '{"protocol":aof', "{protocol: aof}",
        'is "protocol" always "aof"?', '"protocol": "aof",', '{"jsonrpc":"2.0","method":"aof"',
    ],
)  # fmt: skip
def test_anything_else_is_left_alone(given: object) -> None:
    assert detect(incoming(given)) is None


@pytest.mark.parametrize(
    "text",
    [
        '{"protocol":"aof"', '{"protocol":"aof",}', '  {"protocol" : "aof", "version": 1,\n',
        '{"protocol":"aof","a":NaN}', '[{"protocol":"aof"}, {"protocol":"aof"', '{"protocol":"aof"}{"protocol":"aof"}',
        '{"protocol":"aof","a":"\ud800"}', '{"protocol":"aof","a":' + "[" * 100_000,
    ],
)  # fmt: skip
def test_broken_json_that_names_the_protocol_was_meant_as_a_message(text: str) -> None:
    assert problem(text) == "invalid_json"
    assert problem(text.encode("utf-8", "surrogatepass")) == "invalid_json"


@pytest.mark.parametrize("form", [json.dumps, prefixed, lambda m: json.dumps(m).encode()])
def test_a_byte_order_mark_makes_a_message_no_plain_text(form: Any) -> None:
    message = update(progress="x")
    text = form(message)
    marked = b"\xef\xbb\xbf" + text if isinstance(text, bytes) else f"\ufeff{text}"
    assert found(marked) == message
    assert problem(marked[:-1]) == "invalid_json"


def test_words_before_the_prefix_make_it_plain_text() -> None:
    assert detect(incoming(f"I say: {prefixed(update(notes='n'))}")) is None


@pytest.mark.parametrize(
    "text", ["AOF/1 ", "AOF/1 nonsense", 'AOF/1 {"protocol":"aof",', 'AOF/1 {"a":NaN}', "AOF/1 " + "[" * 100_000]
)
def test_what_follows_the_prefix_must_be_json(text: str) -> None:
    assert problem(text) == "invalid_json"
    assert problem(text.encode()) == "invalid_json"


@pytest.mark.parametrize("rest", ["42", "[]", "null", '"x"'])
def test_what_follows_the_prefix_must_be_an_object(rest: str) -> None:
    assert problem(f"AOF/1 {rest}") == "invalid_envelope"


@pytest.mark.parametrize("value", [object(), "\ud800", 1j])
def test_a_parsed_object_must_be_plain_json(value: object) -> None:
    assert problem({"protocol": "aof", "notes": value}) == "invalid_envelope"


@pytest.mark.parametrize("form", [dict, json.dumps, prefixed])
def test_a_message_has_at_most_ten_megabytes(form: Any) -> None:
    message = update(notes="n")
    spare = LARGEST - len(json.dumps(message | {"more": ""}, separators=(",", ":")))
    whole = json.dumps(message | {"more": "x" * spare}, separators=(",", ":"))
    assert len(whole) == LARGEST
    assert found(whole) is not None
    assert problem(form(message | {"more": "x" * (spare + 1000)})) == "payload_too_large"


def test_a_large_text_of_somebody_else_is_none_of_ours() -> None:
    assert detect(incoming(json.dumps({"jsonrpc": "2.0", "data": "x" * LARGEST}))) is None
