"""The shared context of a workflow: what a handoff takes along, and who may write what."""

from __future__ import annotations

import hashlib
import json
from typing import Any, get_args

import msgspec
import pytest

from aof.errors import AofError, ContextConflict, OutOfScope
from aof.handoffs.context import (
    TaskStatus,
    Write,
    Writer,
    Written,
    context_of,
    digest,
    snapshot,
    write,
)
from aof.handoffs.model import HandoffType
from aof.kernel.events import Draft, Event
from aof.kernel.evolve import evolve
from aof.kernel.kinds import LockMode
from aof.kernel.model import PRIORITIES, STATUSES
from aof.tasks.model import FileLock, Task

TOP, SUB, OTHER = "TASK-2026-03-02-001", "TASK-2026-03-02-002", "TASK-2026-03-02-003"
NOON = "2026-03-02T12:00:00.000Z"
ADA, BOB, PM = Writer(agent="ada"), Writer(agent="bob", roles=frozenset({"reviewer"})), Writer(agent="pm", steers=True)


def task(task_id: str = TOP, **given: Any) -> Task:
    parts: dict[str, Any] = {"status": "in-progress", "priority": "high", "title": "Add refresh endpoint"} | given
    parts |= dict.fromkeys(("created_at", "updated_at", "last_transition_at"), NOON)
    return Task(schema_version=1, id=task_id, rev=1, created_by="pm", **parts)


def after(top: Task, drafts: tuple[Draft, ...]) -> Task:
    """The task once these are recorded."""
    for number, draft in enumerate(drafts, top.rev + 1):
        top = evolve(
            top,
            Event(
                seq=number,
                type=draft.type,
                timestamp=NOON,
                actor="ada",
                task_id=draft.task_id,
                payload=draft.payload,
                commit=(1, 1),
            ),
        )
    return top


def wrote(top: Task, writer: Writer, *writes: Write, on: str = TOP) -> Task:
    written = write(top, writes, writer=writer, task_id=on)
    assert not written.refusals, written.refusals
    return after(top, written.drafts)


def values(top: Task) -> dict[str, Any]:
    return {name: one.value for name, one in context_of(top).variables.items()}


def refused(written: Written) -> AofError:
    (refusal,) = written.refusals
    return refusal


def test_a_snapshot_states_the_task_and_its_hash_is_of_the_canonical_json() -> None:
    top = wrote(task(), ADA, Write(name="branch", value="main"))
    taken = snapshot(top, "sequential")
    told = taken.context_variables
    assert (told.task_id, told.task_status, told.task_priority) == (TOP, "in_progress", "high")
    assert told.custom == {"branch": "main"}
    plain = json.dumps(json.loads(msgspec.json.encode(told)), sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    assert taken.context_variables_hash == hashlib.sha256(plain.encode()).hexdigest()


@pytest.mark.parametrize("status", STATUSES)
def test_every_status_and_priority_is_told_in_the_words_of_a_handoff(status: str) -> None:
    for priority in PRIORITIES:
        told = snapshot(task(status=status, priority=priority), "sequential").context_variables
        assert told.task_status in get_args(TaskStatus)
        assert told.task_priority == priority


def test_the_files_that_agents_work_on_are_listed_with_owner_and_kind_of_lock() -> None:
    modes: tuple[LockMode, LockMode] = ("exclusive", "shared")
    locks = [
        FileLock(path=f"src/{mode}.py", mode=mode, agent="ada", run_id="RUN-2026-03-02-001-1", since=NOON)
        for mode in modes
    ]
    listed = snapshot(task(), "sequential", files=locks).context_variables.files_in_progress
    assert [msgspec.to_builtins(one) for one in listed] == [
        {"path": "src/exclusive.py", "owner": "ada", "lock_type": "exclusive"},
        {"path": "src/shared.py", "owner": "ada", "lock_type": "shared"},
    ]


def test_a_delegation_takes_along_what_concerns_the_subtask_and_the_others_take_all() -> None:
    top = task()
    for writer, name, scope, on in (
        (ADA, "private", "ada", TOP),
        (ADA, "named", "ada", TOP),
        (ADA, "open", "shared", TOP),
        (PM, "review", "role:reviewer", TOP),
        (ADA, "sub", "ada", SUB),
    ):
        top = wrote(top, writer, Write(name=name, value=1, scope=scope), on=on)
    sub = task(SUB, parent_id=TOP)
    kinds: tuple[HandoffType, ...] = ("sequential", "broadcast", "escalation")
    for kind in kinds:
        whole = snapshot(sub, kind, top=top, receiver=BOB).context_variables
        assert set(whole.custom) == {"private", "named", "open", "review", "sub"}
    scoped = snapshot(sub, "delegation", top=top, receiver=BOB, names=("named",)).context_variables
    assert set(scoped.custom) == {"named", "open", "review", "sub"}


def test_an_escalation_takes_its_rationale_along_and_nothing_else_does() -> None:
    assert snapshot(task(), "escalation", rationale="above my risk").escalation_rationale == "above my risk"
    assert snapshot(task(), "sequential", rationale="above my risk").escalation_rationale is None


def test_a_write_within_the_scope_is_stored_and_one_outside_changes_nothing() -> None:
    top = wrote(task(), ADA, Write(name="plan", value="a"))
    before = digest(snapshot(top, "sequential").context_variables)
    written = write(top, (Write(name="plan", value="b"),), writer=BOB, task_id=TOP)
    refusal = refused(written)
    assert isinstance(refusal, OutOfScope)
    assert refusal.details["scope"] == "ada"
    top = after(top, written.drafts)
    assert digest(snapshot(top, "sequential").context_variables) == before
    assert [(one.type, one.payload["reason"]) for one in written.drafts] == [("context.refused", "out_of_scope")]


def test_an_agent_writes_shared_variables_and_those_of_its_roles_and_the_orchestrator_all() -> None:
    top = wrote(task(), ADA, Write(name="open", value=1, scope="shared"), Write(name="mine", value=1))
    top = wrote(top, BOB, Write(name="open", value=2), Write(name="verdict", value="ok", scope="role:reviewer"))
    top = wrote(top, PM, Write(name="mine", value=3))
    assert values(top) == {"open": 2, "mine": 3, "verdict": "ok"}
    assert isinstance(
        refused(write(top, (Write(name="verdict", value=0),), writer=ADA, task_id=TOP)),
        OutOfScope,
    )
    assert isinstance(
        refused(write(top, (Write(name="new", value=0, scope="bob"),), writer=ADA, task_id=TOP)), OutOfScope
    )


def test_of_two_writes_from_one_version_the_first_holds_and_both_are_recorded() -> None:
    top = wrote(task(), ADA, Write(name="port", value=1, scope="shared"))
    top = wrote(top, ADA, Write(name="port", value=2, base=1))
    late = write(top, (Write(name="port", value=3, base=1),), writer=BOB, task_id=TOP)
    assert isinstance(refused(late), ContextConflict)
    (told,) = late.drafts
    assert told.type == "context.conflict"
    assert (told.payload["value"], told.payload["held"]["value"]) == (3, 2)
    assert (told.payload["rule"], told.payload["resolution"]) == ("first", "kept")
    assert values(after(top, late.drafts)) == {"port": 2}


def test_the_orchestrators_rule_may_let_the_last_write_hold() -> None:
    top = wrote(task(), ADA, Write(name="port", value=1, scope="shared"))
    top = after(top, (Draft(type="context.rule", task_id=TOP, payload={"rule": "last"}),))
    late = write(top, (Write(name="port", value=3, base=0),), writer=BOB, task_id=TOP)
    assert not late.refusals
    assert [one.type for one in late.drafts] == ["context.conflict", "context.set"]
    assert late.drafts[0].payload["resolution"] == "replaced"
    assert values(after(top, late.drafts)) == {"port": 3}


def test_the_orchestrator_decides_a_conflict_by_writing() -> None:
    top = wrote(task(), ADA, Write(name="port", value=1, scope="shared"))
    assert values(wrote(top, PM, Write(name="port", value=9, base=0))) == {"port": 9}


def test_a_return_changes_what_is_in_the_returning_agents_scope_and_records_the_rest() -> None:
    top = wrote(task(), ADA, Write(name="plan", value="a"), Write(name="open", value=1, scope="shared"))
    brought = {"open": 2, "plan": "b", "found": [1]}
    writes = tuple(Write(name=name, value=value) for name, value in brought.items())
    written = write(top, writes, writer=BOB, task_id=SUB)
    assert [one.code for one in written.refusals] == ["out_of_scope"]
    top = after(top, written.drafts)
    assert values(top) == {"plan": "a", "open": 2, "found": [1]}
    assert context_of(top) == msgspec.structs.replace(
        written.context,
        variables={
            name: msgspec.structs.replace(one, written_at=NOON) for name, one in written.context.variables.items()
        },
    )
    assert context_of(top).variables["found"].scope == "bob"


@pytest.mark.parametrize(
    ("name", "value", "scope"),
    [
        ("task_status", "stuck", None),
        ("", 1, None),
        ("a\nb", 1, None),
        ("a", float("nan"), None),
        ("a", b"\x00", None),
        ("a", "x" * 30_000, None),
        ("a", 1, "role:"),
        ("a", 1, "../x"),
    ],
)
def test_what_is_no_variable_is_refused_and_recorded(name: str, value: object, scope: str | None) -> None:
    written = write(task(), (Write(name=name, value=value, scope=scope),), writer=ADA, task_id=TOP)
    assert refused(written).kind == "invalid"
    assert [one.type for one in written.drafts] == ["context.refused"]
    msgspec.json.encode([one.payload for one in written.drafts])
    assert not context_of(after(task(), written.drafts)).variables


def test_the_same_value_again_writes_nothing() -> None:
    top = wrote(task(), ADA, Write(name="plan", value={"a": 1}))
    assert write(top, (Write(name="plan", value={"a": 1}),), writer=ADA, task_id=TOP).drafts == ()


def test_a_context_has_a_limit() -> None:
    top = task()
    for number in range(3):
        written = write(top, (Write(name=f"n{number}", value="x" * 10_000),), writer=ADA, task_id=TOP)
        top = after(top, written.drafts)
    assert refused(written).code == "payload_too_large"
    assert set(values(top)) == {"n0", "n1"}
