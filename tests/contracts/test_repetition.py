"""Idempotency keys: on every store, the same request again has one effect and one answer, whatever happened since."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from aof.api.fabric import Fabric
from aof.errors import KeyConflict
from aof.kernel.model import Policy
from aof.store.files.store import FilesystemStore
from aof.store.port import Store
from aof.testing import FakeClock

Call = Callable[[Fabric, str], Any]
REQUESTS: dict[str, Call] = {
    "update": lambda fabric, task: fabric.update(task, body="New body", agent="ada", key="k"),
    "edit": lambda fabric, task: fabric.edit(task, title="New title", key="k"),
    "progress": lambda fabric, task: fabric.progress(task, text="half", percent=50, agent="ada", key="k"),
    "release": lambda fabric, task: fabric.release(task, agent="ada", key="k"),
    "complete": lambda fabric, task: fabric.complete(task, summary="done", agent="ada", key="k"),
    "fail": lambda fabric, task: fabric.fail(task, message="no disk", agent="ada", key="k"),
    "block": lambda fabric, task: fabric.block(task, reason="no key", key="k"),
    "pause": lambda fabric, task: fabric.pause(task, key="k"),
    "cancel": lambda fabric, task: fabric.cancel(task, key="k"),
    "link": lambda fabric, task: fabric.link(task, "evidence", "logs/a.txt", key="k"),
    "unlink": lambda fabric, task: fabric.unlink(task, "evidence", "logs/b.txt", key="k"),
}
LATER: dict[str, Call] = {
    "unblock": lambda fabric, task: fabric.unblock(task, key="k"),
    "resume": lambda fabric, task: fabric.resume(task, key="k"),
    "retry": lambda fabric, task: fabric.retry(task, reason="again", key="k"),
    "approve": lambda fabric, task: fabric.approve(task, key="k"),
    "reject": lambda fabric, task: fabric.reject(task, blockers=["no tests"], key="k"),
    "archive": lambda fabric, task: fabric.archive(task, key="k"),
}
BEFORE: dict[str, Call] = {
    "unblock": lambda fabric, task: fabric.block(task, reason="no key"),
    "resume": lambda fabric, task: fabric.pause(task),
    "retry": lambda fabric, task: fabric.cancel(task),
    "approve": lambda fabric, task: fabric.complete(task, agent="ada"),
    "reject": lambda fabric, task: fabric.complete(task, agent="ada"),
    "archive": lambda fabric, task: fabric.cancel(task),
}


def _history(store: Store, task: str) -> list[str]:
    return [event.type for event in store.events(task_id=task)]


@pytest.mark.parametrize("name", [*REQUESTS, *LATER])
def test_a_request_with_a_key_has_one_effect_and_one_answer(fabric: Fabric, store: Store, name: str) -> None:
    task = fabric.create("Try twice").task_id
    fabric.claim(task, agent="ada")
    if name in BEFORE:
        BEFORE[name](fabric, task)
    ask = (REQUESTS | LATER)[name]
    first = ask(fabric, task)
    after = _history(store, task)
    assert ask(fabric, task) == first
    assert _history(store, task) == after


def test_the_answer_is_the_first_one_also_when_the_task_has_moved_on(fabric: Fabric) -> None:
    task = fabric.create("Try twice").task_id
    first = fabric.block(task, reason="no key", key="k")
    fabric.unblock(task)
    fabric.claim(task, agent="ada")
    assert fabric.block(task, reason="no key", key="k") == first
    assert fabric.show(task)["status"] == "in-progress"


def test_a_request_that_changed_nothing_is_answered_again_too(fabric: Fabric) -> None:
    task = fabric.create("Try twice").task_id
    assert fabric.resume(task, key="k").status == "ready"
    fabric.pause(task)
    assert fabric.resume(task, key="k").status == "ready"
    assert fabric.show(task)["status"] == "blocked"


def test_a_key_of_another_request_is_refused_and_changes_nothing(fabric: Fabric, store: Store) -> None:
    task = fabric.create("Try twice").task_id
    fabric.block(task, reason="no key", key="k")
    before = _history(store, task)
    others: tuple[Call, ...] = (
        lambda fabric, task: fabric.block(task, reason="no disk", key="k"),
        lambda fabric, task: fabric.pause(task, key="k"),
        lambda fabric, task: fabric.unblock(task, key="k"),
    )
    for other in others:
        with pytest.raises(KeyConflict):
            other(fabric, task)
    assert _history(store, task) == before


def test_two_tasks_may_have_requests_with_one_key(fabric: Fabric) -> None:
    one, other = (fabric.create(title).task_id for title in ("One", "Other"))
    assert fabric.block(one, reason="x", key="k").task_id == one
    assert fabric.block(other, reason="x", key="k").task_id == other


def test_an_answer_that_was_given_holds_after_a_restart_and_a_rebuilt_index(tmp_path: Path) -> None:
    root, clock = str(tmp_path / ".aof"), FakeClock()
    FilesystemStore.create(root)
    store = FilesystemStore(root, clock)
    fabric = Fabric(store, clock, Policy(), "pm")
    task = fabric.create("Try twice").task_id
    first = fabric.edit(task, title="New title", key="k")
    store.close()
    (tmp_path / ".aof" / "index.sqlite").unlink(missing_ok=True)
    again = FilesystemStore(root, clock)
    renewed = Fabric(again, clock, Policy(), "pm")
    renewed.edit(task, title="Newer title")
    assert msgspec.to_builtins(renewed.edit(task, title="New title", key="k")) == msgspec.to_builtins(first)
    assert renewed.show(task)["title"] == "Newer title"
    again.close()


def test_the_oldest_keys_of_a_task_are_forgotten_first(fabric: Fabric) -> None:
    task = fabric.create("Try often").task_id
    for number in range(40):
        fabric.edit(task, title=f"Title {number}", key=f"k{number}")
    assert fabric.edit(task, title="Title 39", key="k39").updated_fields == ("title",)
    assert fabric.edit(task, title="Title 0", key="k0").task["title"] == "Title 0"
    assert fabric.show(task)["title"] == "Title 0"
    fabric.edit(task, title="Title 41")
    assert fabric.edit(task, title="Title 0", key="k0").task["title"] == "Title 0"
    assert fabric.show(task)["title"] == "Title 41"


def test_a_key_that_cannot_be_one_is_refused(fabric: Fabric) -> None:
    task = fabric.create("Try twice").task_id
    for key in ("", "a\nb", "k" * 300):
        with pytest.raises(Exception, match="key"):
            fabric.pause(task, key=key)
    assert fabric.show(task)["status"] == "ready"
