"""A task that a merge of histories renumbered answers under its old ID too, together with the task that has that ID."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

import aof
from aof.api.fabric import Fabric
from aof.errors import AmbiguousId, AofError
from aof.kernel.events import Draft
from aof.store.port import Scope
from aof.testing import memory_fabric

_NEW = "TASK-2026-03-02-4000001"


@pytest.fixture(params=["memory", "filesystem"])
def fabric(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Fabric]:
    """A store with two tasks, of which the second was the first one's namesake in another clone."""
    if request.param == "memory":
        yield memory_fabric(actor="ada")
        return
    aof.init(tmp_path / ".aof")
    with aof.open(tmp_path / ".aof", actor="ada") as opened:
        monkeypatch.setattr(type(opened.store.lane_names), "merged", lambda _self: True)  # type: ignore[attr-defined]
        yield opened


def _renumbered(fabric: Fabric) -> tuple[str, str]:
    """The task that kept the ID, and the one that had it elsewhere."""
    kept, other = fabric.create("kept it").task_id, fabric.create("had it in another clone").task_id
    with fabric.store.unit(Scope(write=frozenset({other}))) as unit:
        draft = Draft(type="task.merged", task_id=other, payload={"aliases": [kept]})
        unit.commit((draft,), actor="aof", agent=None, now=fabric.services.environment.clock.now())
    return kept, other


@pytest.mark.parametrize("part", [slice(None), slice(5, None), slice(16, None)])
def test_the_old_id_answers_with_both_tasks_in_full_and_in_short(fabric: Fabric, part: slice) -> None:
    kept, other = _renumbered(fabric)
    for call in (fabric.show, fabric.cancel, lambda one: fabric.claim(one, agent="bob")):
        with pytest.raises(AmbiguousId) as caught:
            call(kept[part])
        assert caught.value.details["matches"] == [kept, other]
        assert f"={kept}" in caught.value.hint


def test_both_tasks_are_reached_by_what_the_refusal_says(fabric: Fabric) -> None:
    kept, other = _renumbered(fabric)
    assert fabric.show(f"={kept}")["id"] == kept
    assert fabric.show(f"={kept[5:]}")["id"] == kept
    assert fabric.show(other)["id"] == other
    assert fabric.cancel(f"={kept}").task_id == kept


def test_a_worker_goes_on_with_its_own_run_whatever_the_id_means_to_others(fabric: Fabric) -> None:
    kept, _ = _renumbered(fabric)
    run = fabric.claim(f"={kept}", agent="bob").run_id
    assert fabric.heartbeat(kept, run=run).task_id == kept
    assert fabric.complete(kept, run=run, summary="done").task_id == kept


def test_an_old_id_that_no_other_task_has_leads_to_the_task(fabric: Fabric) -> None:
    made = fabric.create("alone").task_id
    old = f"{made[:16]}777"
    with fabric.store.unit(Scope(write=frozenset({made}))) as unit:
        draft = Draft(type="task.merged", task_id=made, payload={"aliases": [old]})
        unit.commit((draft,), actor="aof", agent=None, now=fabric.services.environment.clock.now())
    assert fabric.show(old)["id"] == made
    assert fabric.show("777")["id"] == made


def test_nothing_else_is_ambiguous_or_found(fabric: Fabric) -> None:
    _renumbered(fabric)
    with pytest.raises(AofError) as caught:
        fabric.show("TASK-2020-01-01-001")
    assert caught.value.code == "task_not_found"
    assert msgspec.to_builtins(fabric.list().total) == 2
