"""Nothing that arrives raises, and what is refused says why."""

from __future__ import annotations

import json
from typing import Any

import hypothesis.strategies as st
from hypothesis import given, settings

from aof.errors import AofError
from aof.messages.protocol import Incoming, Unknown, Valid, detect, incoming, messages_in, validate
from tests.messages.test_validation import SOUND
from tests.support.messages import having, prefixed, without

TEXTS = st.text(st.characters(), max_size=40) | st.sampled_from(
    ["aof", "AOF/1 ", "TASK-2026-02-09-057", "done", "\ud800", "\x00", "2026-02-09T21:00:00.000Z", "x" * 20_000]
)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | TEXTS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXTS, inner, max_size=4),
    max_leaves=12,
)


def assert_answered(arrived: object) -> None:
    found = detect(arrived if isinstance(arrived, Incoming) else incoming(arrived))
    if found is None:
        return
    verdict = found.problem or validate(found.fields)
    assert isinstance(verdict, Valid | Unknown | AofError)
    if isinstance(verdict, AofError):
        assert verdict.code in ("invalid_json", "invalid_envelope", "payload_too_large", "taskId_mismatch")
        assert verdict.message
        assert verdict.hint
        json.dumps(verdict.message).encode()


@given(JSON | st.binary(max_size=60))
@settings(max_examples=400, deadline=None)
def test_whatever_arrives_is_answered(arrived: object) -> None:
    assert_answered(arrived)
    assert_answered(Incoming(payload=arrived, content=arrived))
    if isinstance(arrived, str):
        assert_answered(f"AOF/1 {arrived}")
        assert isinstance(messages_in(arrived), list)


@st.composite
def mutated(draw: st.DrawFn) -> dict[str, Any]:
    fields = SOUND[draw(st.sampled_from(sorted(SOUND)))]
    for _ in range(draw(st.integers(1, 3))):
        inner = draw(st.booleans()) and isinstance(fields.get("payload"), dict)
        there = fields["payload"] if inner else fields
        names = sorted(name for name in there if "." not in name)  # a dot in a drawn name would be read as a path
        name = draw(st.sampled_from([*names, "notes", "status", "tests", "dueBy", "runId"]))
        path = f"payload.{name}" if inner else name
        fields = without(fields, path) if draw(st.booleans()) else having(fields, path, draw(JSON))
    return fields


@given(mutated())
@settings(max_examples=400, deadline=None)
def test_a_message_that_is_almost_right_is_answered(fields: dict[str, Any]) -> None:
    assert_answered(fields)
    try:
        text = json.dumps(fields)
    except ValueError:
        return
    assert_answered(text)
    assert_answered(prefixed(fields))
