"""What counts as a secret, and what a command must show of one."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aof.errors import ActorMismatch, StaleLease, Unauthenticated
from aof.kernel import commands
from aof.kernel.commands import Records
from aof.runs.authentication import contradicted, secret_of, understood, unproven
from aof.tasks.model import Lease, Task

TASK = "TASK-2026-03-02-001"
RUN = "RUN-2026-03-02-001-1"
DIGEST = "d" * 64
AT = "2026-03-02T09:00:00.000Z"


def _task(digest: str | None = DIGEST, *, held: bool = True) -> Task:
    lease = Lease(
        agent="ada",
        run_id=RUN,
        epoch=1,
        acquired_at=AT,
        expires_at=AT,
        ttl_ms=1,
        worker="pull",
        secret_digest=digest,
    )
    return Task(
        schema_version=1,
        id=TASK,
        title="x",
        status="in-progress" if held else "ready",
        priority="normal",
        rev=1,
        created_at=AT,
        updated_at=AT,
        last_transition_at=AT,
        created_by="pm",
        lease=lease if held else None,
    )


@given(st.text(alphabet="0123456789abcdef", min_size=64, max_size=64))
def test_a_secret_says_where_to_look(random: str) -> None:
    found = understood(secret_of(RUN, "ada", random))
    assert found is not None
    assert (found.task_id, found.run, found.agent, found.random) == (TASK, RUN, "ada", random)
    assert random not in repr(found)


@given(st.text())
def test_any_other_text_is_no_secret(text: str) -> None:
    assert understood(text) is None
    assert understood(f"{RUN}/ada/{text}") is None
    assert understood(f"{RUN}/{text}/{'a' * 63}") is None


@pytest.mark.parametrize(
    ("digest", "proof", "refused"),
    [
        (DIGEST, DIGEST, False),
        (DIGEST, None, False),
        (DIGEST, "", True),
        (DIGEST, "e" * 64, True),
        (None, None, False),
        (None, "", False),
        (None, DIGEST, True),
    ],
)
def test_a_lease_asks_for_its_own_secret_and_for_none_where_it_has_none(
    digest: str | None, proof: str | None, *, refused: bool
) -> None:
    task = _task(digest)
    assert task.lease is not None
    problem = unproven(task, task.lease, commands.RecordHeartbeat(actor="ada", task_id=TASK, proof=proof))
    assert isinstance(problem, Unauthenticated) is refused
    if problem is not None:
        assert DIGEST not in f"{problem.message} {problem.hint}"


def test_what_was_proven_is_held_against_what_is_claimed() -> None:
    here = Records(tasks={TASK: _task()})
    gone = Records(tasks={TASK: _task(held=False)})
    ada: dict[str, Any] = {"actor": "ada", "task_id": TASK, "proven": "ada"}
    assert contradicted(here, commands.Pause(**ada, run=RUN, proof=DIGEST)) is None
    assert isinstance(contradicted(here, commands.Pause(**ada | {"agent": "bob"})), ActorMismatch)
    assert isinstance(
        contradicted(here, commands.Pause(**ada | {"actor": "bob", "proven": "bob"}, run=RUN)), ActorMismatch
    )
    assert isinstance(contradicted(here, commands.Pause(**ada, run=RUN, proof="e" * 64)), Unauthenticated)
    assert isinstance(contradicted(gone, commands.Pause(**ada, run=RUN, proof=DIGEST)), StaleLease)
    assert contradicted(gone, commands.Pause(actor="bob", task_id=TASK)) is None
