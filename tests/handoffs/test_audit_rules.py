"""The audit record of a handoff's step, and the event that it is."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from aof.handoffs import audit
from aof.handoffs.context import TASK_STATUS, digest
from aof.handoffs.model import Rationale
from aof.kernel.events import Event
from aof.kernel.model import TRANSITIONS
from tests.support.audits import handoff_between
from tests.support.requirements import requirement
from tests.support.strategies import json_objects
from tests.support.world import World

FIELDS = (
    "handoff_id",
    "timestamp",
    "event_type",
    "from_agent",
    "to_agent",
    "handoff_type",
    "reason",
    "context_snapshot",
    "decision_rationale",
    "risk_level",
    "duration_ms",
    "tokens_consumed",
    "outcome",
)


def made(step: audit.AuditStep = "initiated", variables: dict[str, Any] | None = None) -> dict[str, Any]:
    world = World()
    task = world.tasks[world.create()]
    why = Rationale(decision_rationale="bob knows it", risk_level="medium")
    return audit.audited(step, task, handoff_between(variables=variables, artifacts=2, why=why))


def event(payload: dict[str, Any]) -> Event:
    return Event(
        seq=7,
        type="handoff.initiated",
        timestamp="2026-03-02T09:00:00.000Z",
        actor="ada",
        task_id="TASK-2026-03-02-001",
        payload={"handoffId": "h-1", **payload},
        commit=(1, 1),
        hash="f" * 64,
    )


def test_an_audited_event_is_its_record_with_the_fields_in_the_specified_order() -> None:
    found = audit.audit_record(event({"audit": made()}))
    assert found is not None
    line = audit.line_of(found)
    whole = msgspec.json.decode(line)
    assert tuple(whole)[: len(FIELDS)] == FIELDS
    assert (whole["handoff_id"], whole["timestamp"]) == ("h-1", "2026-03-02T09:00:00.000Z")
    assert (whole["seq"], whole["hash"]) == (7, "f" * 64)
    assert whole["context_snapshot"]["task_status"] == "pending"
    assert line.count(b"\n") == 1
    assert line.endswith(b"\n")


def test_what_is_not_known_is_left_out_of_the_event_and_null_in_the_line() -> None:
    payload = made()
    assert not {"duration_ms", "tokens_consumed", "outcome", "status", "notes"} & payload.keys()
    found = audit.audit_record(event({"audit": payload}))
    assert found is not None
    assert found.outcome is None


def test_an_event_without_an_audit_is_no_record() -> None:
    assert audit.audit_record(event({})) is None


def test_an_audit_with_a_foreign_step_is_no_record() -> None:
    with pytest.raises(msgspec.ValidationError):
        audit.audit_record(event({"audit": made() | {"event_type": "begun"}}))


@requirement("handoff.audit.variables-hash")
@given(json_objects(), st.randoms())
def test_equal_variables_have_equal_hashes_whatever_their_order(variables: dict[str, Any], random: Any) -> None:
    names = list(variables)
    random.shuffle(names)
    found = digest(variables)
    assert digest({name: variables[name] for name in names}) == found
    assert len(found) == 64
    assert int(found, 16) >= 0
    assert digest(variables | {"one more": 1}) != digest(variables | {"one more": 2})
    assert made(variables=variables)["context_snapshot"]["context_variables_hash"] == found


def test_every_status_has_a_word() -> None:
    words = {status: TASK_STATUS[status] for status in TRANSITIONS}
    assert set(words.values()) == {"pending", "in_progress", "blocked", "complete", "failed"}
    assert (words["review"], words["done"], words["cancelled"]) == ("in_progress", "complete", "failed")
