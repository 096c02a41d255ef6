"""The status table, and `update` as the way along each of its edges."""

from __future__ import annotations

import itertools
from typing import Any, get_args

import pytest

from aof.kernel import commands, kinds
from aof.kernel.model import (
    BLOCKED_KINDS,
    CAUSES,
    PRIORITIES,
    STATUSES,
    TRANSITIONS,
    VISIBILITIES,
    priority_rank,
    status_allows,
)
from aof.queries.read_models import SORTS
from aof.runs.leases import STATES
from tests.support.world import World

PAIRS = list(itertools.product(STATUSES, STATUSES))


def test_the_table_is_that_of_the_design() -> None:
    assert {status: set(targets) for status, targets in TRANSITIONS.items()} == {
        "backlog": {"ready", "blocked", "cancelled"},
        "ready": {"in-progress", "backlog", "blocked", "deadletter", "cancelled"},
        "in-progress": {"review", "ready", "blocked", "deadletter", "cancelled"},
        "review": {"done", "in-progress", "ready", "blocked", "cancelled"},
        "blocked": {"ready", "backlog", "deadletter", "cancelled"},
        "done": set(),
        "cancelled": set(),
        "deadletter": {"ready"},
    }


@pytest.mark.parametrize(("before", "after"), PAIRS)
def test_an_update_follows_the_table_and_nothing_else(before: str, after: str) -> None:
    world = World()
    task = world.into(before)
    events = len(world.events)
    if before == after:
        assert world.act(commands.Update, task, "ada", status=after).drafts == ()
        assert len(world.events) == events
    elif status_allows(before, after):
        agent = "pm" if (before, after) == ("review", "done") else "ada"  # who did it does not approve it
        world.act(commands.Update, task, agent, status=after, reason="so it is")
        assert world.status(task) == after
        moved = world.log(task, "task.transitioned")[-1].payload
        assert (moved["to"], moved["reason"]) == (after, "so it is")
    else:
        refusal = world.refuse(commands.Update, task, "ada", status=after)
        assert refusal.code == "invalid_transition"
        assert refusal.details["allowed"] == list(TRANSITIONS[before])
        assert before in refusal.message
        assert after in refusal.message
        assert world.status(task) == before


def test_a_new_body_carries_its_reason() -> None:
    world = World()
    task = world.create()
    world.act(commands.Update, task, body="other words", reason="clearer")
    assert world.log(task, "task.updated")[-1].payload["reason"] == "clearer"


def test_priorities_are_ranked_from_the_most_urgent() -> None:
    ranked = sorted(["low", "critical", "normal", "high"], key=priority_rank)
    assert ranked == ["critical", "high", "normal", "low"]


@pytest.mark.parametrize(
    ("kind", "words"),
    [
        (kinds.Status, STATUSES),
        (kinds.Priority, PRIORITIES),
        (kinds.BlockedKind, BLOCKED_KINDS),
        (kinds.Visibility, VISIBILITIES),
        (kinds.Cause, CAUSES),
        (kinds.Delivery, STATES),
        (kinds.Sort, tuple(SORTS)),
    ],
)
def test_the_types_of_the_words_have_the_words_of_the_rules_in_their_order(kind: Any, words: tuple[str, ...]) -> None:
    assert get_args(kind) == tuple(words)
