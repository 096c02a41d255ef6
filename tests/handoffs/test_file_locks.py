"""Locks on files: who gets one, what is in the way, and that the dead hold none."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from aof.errors import FileLocked
from aof.handoffs.access import LockFiles, UnlockFiles
from aof.kernel import commands
from aof.kernel.commands import Decision
from aof.kernel.limits import normalised, overlap
from aof.workflows.model import leases
from tests.support.world import MINUTE, World


def locking(world: World, task: str, agent: str, *paths: str, mode: str = "exclusive", **more: Any) -> Decision:
    return world.act(LockFiles, task, agent, paths=paths, mode=mode, **more)


def held(world: World, task: str) -> list[tuple[str, str, str]]:
    return sorted((lock.path, lock.mode, lock.agent) for lock in world.tasks[task].locks)


def two() -> tuple[World, str, str]:
    """Two running tasks, of ada and of bob."""
    world = World()
    first, second = world.create(), world.create()
    world.claim(first, "ada")
    world.claim(second, "bob")
    return world, first, second


def refused(world: World, task: str, agent: str, *paths: str, mode: str = "exclusive") -> FileLocked:
    decision = locking(world, task, agent, *paths, mode=mode)
    assert isinstance(decision.refusal, FileLocked)
    assert [draft.type for draft in decision.drafts] == ["file.refused"]
    return decision.refusal


@pytest.mark.parametrize(
    ("path", "spelled"),
    [
        ("src/api.py", "src/api.py"),
        ("./src//api.py", "src/api.py"),
        ("src/", "src"),
        ("SRC/Api.py", "SRC/Api.py"),
        ("src\\api.py", "src/api.py"),
        (".", "."),
        ("a..b/c", "a..b/c"),
    ],
)
def test_a_path_has_one_spelling_and_keeps_its_case(path: str, spelled: str) -> None:
    assert normalised("path", path) == spelled


@pytest.mark.parametrize(
    "path", ["/etc/passwd", "..", "a/../../b", "a/..", "~/x", "C:\\x", "\\\\host\\x", "", " ", "a\nb", "x" * 300]
)
def test_a_path_that_leads_out_of_the_project_is_refused(path: str) -> None:
    world, first, _ = two()
    assert world.refuse(LockFiles, first, "ada", paths=(path,)).kind == "invalid"


def test_an_exclusive_lock_keeps_others_away_and_the_refusal_says_who_has_what_since_when() -> None:
    world, first, second = two()
    locking(world, first, "ada", "src/api.py")
    world.later(MINUTE)
    for mode in ("exclusive", "shared"):
        refusal = refused(world, second, "bob", "src/api.py", mode=mode)
        told = refusal.details
        assert (told["holder"], told["holder_task"], told["since"]) == ("ada", first, "2026-03-02T09:00:00.000Z")
        assert told["holder_run"] == world.lease_run(first)
        assert all(word in refusal.message for word in ("ada", first, "since 2026-03-02T09:00:00.000Z"))
    assert held(world, second) == []


@pytest.mark.parametrize(("mine", "theirs"), [("src", "src/api.py"), ("src/api.py", "src"), (".", "a"), ("a", ".")])
def test_a_lock_on_a_folder_covers_what_is_below_it(mine: str, theirs: str) -> None:
    world, first, second = two()
    locking(world, first, "ada", mine)
    refused(world, second, "bob", theirs)
    assert not overlap("src", "srcs/a")
    assert not overlap("src/a", "src/A")


def test_shared_locks_go_together_and_an_exclusive_one_waits_for_all_of_them() -> None:
    world, first, second = two()
    third = world.create()
    world.claim(third, "cem")
    locking(world, first, "ada", "src", mode="shared")
    locking(world, second, "bob", "src", mode="shared")
    refused(world, third, "cem", "src")
    world.act(UnlockFiles, first, "ada", paths=("src",))
    refused(world, third, "cem", "src")
    world.act(UnlockFiles, second, "bob")
    locking(world, third, "cem", "src")
    assert held(world, third) == [("src", "exclusive", "cem")]


def test_several_paths_are_locked_together_or_not_at_all() -> None:
    world, first, second = two()
    locking(world, first, "ada", "b")
    refused(world, second, "bob", "a", "b")
    assert held(world, second) == []
    locking(world, second, "bob", "a", "c", "./a")
    assert held(world, second) == [("a", "exclusive", "bob"), ("c", "exclusive", "bob")]


def test_the_same_lock_again_changes_nothing_and_a_shared_one_may_become_exclusive() -> None:
    world, first, second = two()
    locking(world, first, "ada", "a", mode="shared")
    assert not locking(world, first, "ada", "a", mode="shared").drafts
    locking(world, first, "ada", "a")
    assert held(world, first) == [("a", "exclusive", "ada")]
    assert not locking(world, first, "ada", "a", mode="shared").drafts
    refused(world, second, "bob", "a", mode="shared")


def test_only_the_holder_of_a_run_locks_and_gives_back_and_only_its_own() -> None:
    world, first, second = two()
    locking(world, first, "ada", "a")
    assert world.refuse(LockFiles, first, "bob", paths=("b",)).code == "not_lease_holder"
    assert world.refuse(UnlockFiles, first, "bob").code == "not_lease_holder"
    assert world.refuse(LockFiles, world.create(), "ada", paths=("b",)).code == "stale_lease"
    assert (
        world.refuse(LockFiles, first, "ada", paths=("b",), run="RUN-2026-03-02-001-9-00000000").code == "stale_lease"
    )
    assert world.refuse(LockFiles, first, "ada", paths=("b",), mode="advisory").kind == "invalid"
    assert not world.act(UnlockFiles, second, "bob", paths=("a",)).drafts
    assert held(world, first) == [("a", "exclusive", "ada")]


ENDS: dict[str, tuple[type[commands.OnTask], str, dict[str, Any]]] = {
    "complete": (commands.Complete, "ada", {}),
    "blocked": (commands.Complete, "ada", {"outcome": "blocked", "blockers": ("x",)}),
    "fail": (commands.Fail, "ada", {}),
    "release": (commands.Release, "ada", {}),
    "block": (commands.Block, "pm", {"reason": "x"}),
    "pause": (commands.Pause, "pm", {}),
    "cancel": (commands.CancelTask, "pm", {}),
    "back": (commands.Update, "ada", {"status": "ready"}),
}


@pytest.mark.parametrize("end", ENDS)
def test_whatever_ends_a_run_ends_its_locks_and_no_others(end: str) -> None:
    world, first, second = two()
    locking(world, first, "ada", "a")
    locking(world, second, "bob", "b")
    kind, actor, fields = ENDS[end]
    world.act(kind, first, actor, **fields)
    assert held(world, first) == []
    assert held(world, second) == [("b", "exclusive", "bob")]
    locking(world, second, "bob", "a")


def test_the_locks_of_a_run_that_expired_are_gone() -> None:
    world = World()
    task = world.create()
    world.claim(task, "ada")
    locking(world, task, "ada", "a")
    world.expire(task)
    assert held(world, task) == []


def test_a_holder_that_shows_no_life_loses_its_lock_to_the_next_that_asks() -> None:
    world, first, second = two()
    locking(world, first, "ada", "a", "b")
    world.later(world.policy.lease_ttl_ms - MINUTE)
    world.act(commands.RecordHeartbeat, second, "bob")
    refused(world, second, "bob", "a")
    world.later(MINUTE)
    decision = locking(world, second, "bob", "a")
    assert [(one.type, one.task_id) for one in decision.drafts] == [("file.unlocked", first), ("file.locked", second)]
    assert decision.drafts[0].payload["reason"] == "holder_lost"
    world.act(commands.RecordHeartbeat, first, "ada")  # it lives after all, and keeps what nobody has asked for
    assert held(world, first) == [("b", "exclusive", "ada")]
    refused(world, first, "ada", "a")


AGENTS = ("ada", "bob", "cem")
PATHS = st.sampled_from(("a", "a/b", "a/b/c", "d", "."))
WHATS = ("exclusive", "exclusive", "shared", "unlock", "later", "beat", "expire", *ENDS)
STEPS = st.tuples(st.sampled_from(WHATS), st.sampled_from(AGENTS), PATHS)


def step(world: World, what: str, task: str, agent: str, path: str) -> None:
    """Let one thing happen to the run of an agent."""
    match what:
        case "exclusive" | "shared":
            locking(world, task, agent, path, mode=what)
        case "unlock":
            world.act(UnlockFiles, task, agent, paths=(path,))
        case "beat":
            world.act(commands.RecordHeartbeat, task, agent)
        case "later":
            world.later(4 * MINUTE)
        case "expire":
            world.act(commands.Expire, task, "aof")
        case _:
            kind, actor, fields = ENDS[what]
            world.act(kind, task, agent if actor == "ada" else actor, **fields)


@settings(max_examples=150, deadline=None)
@given(st.lists(STEPS, max_size=25))
def test_whatever_happens_the_dead_hold_no_lock_and_no_two_runs_exclude_each_other(
    steps: list[tuple[str, str, str]],
) -> None:
    world = World()
    tasks = dict.fromkeys(AGENTS, "")
    for what, agent, path in steps:
        task = tasks[agent]
        if not task or not leases(world.tasks[task]):
            task = tasks[agent] = world.create()
            world.claim(task, agent)
        step(world, what, task, agent, path)
        locks = [(lock, one) for one in world.tasks.values() for lock in one.locks]
        for number, (lock, owner) in enumerate(locks):
            assert lock.run_id in {lease.run_id for lease in leases(owner)}
            for other, _ in locks[:number]:
                together = lock.run_id == other.run_id or lock.mode == other.mode == "shared"
                assert together or not overlap(lock.path, other.path)
