"""Events of the past, named by their numbers or by their hashes, also by those that they had in another clone."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from aof.api.fabric import Fabric
from aof.errors import InvalidInput
from aof.kernel.model import Policy
from aof.store.files.read_only import ReadOnlyStore
from aof.store.memory import MemoryStore
from aof.store.port import HashedEvent
from tests.support.clock import ManualClock
from tests.support.sites import Site


@pytest.fixture
def site(tmp_path: Path) -> Site:
    """One clone, in which a task was renamed."""
    found = Site(tmp_path / "a")
    found.fabric.edit(found.create("before"), title="after")
    return found


def _lines(site: Site) -> list[tuple[str, dict[str, Any]]]:
    """Every event of every file, with the file's name."""
    read = [(name, json.loads(line)) for name, data in site.files().items() for line in data.splitlines()]
    return [(name, event) for name, event in read if "hash" in event]


def _titles(past: dict[str, Any]) -> list[str]:
    return sorted(task["title"] for task in past["tasks"])


def test_a_hash_or_its_first_digits_name_the_same_event_as_its_number(site: Site) -> None:
    fabric = site.fabric
    for event in fabric.events():
        past = fabric.replay(event.seq)
        view = fabric.snapshot(at=event.seq)
        shown, moment = fabric.show("001", at=event.seq), fabric.task_at("001", seq=event.seq)
        for name in (event.hash, event.hash[:8], event.hash[:20].upper(), str(event.seq)):
            assert fabric.replay(name) == past
            assert fabric.snapshot(at=name) == view
            assert fabric.show("001", at=name) == shown
            assert fabric.task_at("001", seq=name) == moment
    assert fabric.replay(0) == fabric.replay("0") == fabric.replay("00000000") == {"seq": 0, "tasks": []}


@pytest.mark.parametrize(
    "name",
    [
        "abc",
        "",
        "-1",
        "0x12345678",
        "g" * 64,
        "a" * 65,
        "1" * 65,
        "12345678 ",
        "99",
        "deadbeefdeadbeef",
        "\uff11\uff12",
    ],
)
def test_what_names_no_event_is_refused_with_a_hint(site: Site, name: str) -> None:
    for ask in (
        site.fabric.replay,
        lambda at: site.fabric.snapshot(at=at),
        lambda at: site.fabric.task_at("001", seq=at),
    ):
        with pytest.raises(InvalidInput) as refused:
            ask(name)
        assert refused.value.hint


def test_digits_are_a_number_where_there_is_such_an_event_and_else_a_hash(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []

    def hashed(beginning: str) -> tuple[HashedEvent, ...]:
        asked.append(beginning)
        return (HashedEvent(beginning + "0" * 56, 1),)

    monkeypatch.setattr(site.store, "hashed", hashed)
    assert site.fabric.replay("00000002")["seq"] == 2
    assert asked == []
    assert site.fabric.replay("12345678")["seq"] == 1
    assert asked == ["12345678"]


def test_an_ambiguous_beginning_is_refused_with_the_hashes_that_it_could_mean(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    twins = tuple(HashedEvent("abcdef12" + digit * 56, 1) for digit in "34")
    monkeypatch.setattr(site.store, "hashed", lambda _: twins)
    with pytest.raises(InvalidInput, match="2 events begin with abcdef12") as refused:
        site.fabric.replay("abcdef12")
    assert "abcdef1233333333" in refused.value.hint
    assert "abcdef1244444444" in refused.value.hint


def test_a_store_without_hashes_says_that_there_is_no_such_event() -> None:
    clock = ManualClock()
    fabric = Fabric(MemoryStore(clock), clock, Policy(), "tester")
    fabric.create("one")
    assert fabric.replay("1")["seq"] == 1
    with pytest.raises(InvalidInput, match="no event whose hash"):
        fabric.replay("deadbeef")


class TestAcrossClones:
    """Three clones that have worked, and whose histories came together in two steps."""

    @pytest.fixture
    def sites(self, tmp_path: Path) -> tuple[Site, Site, Site]:
        """The clone of the root lane, and two others; nobody has anything of the others yet."""
        first = Site(tmp_path / "a")
        one = first.create("one")
        second, third = first.clone("b"), first.clone("c")
        for number, site in enumerate((first, second, third)):
            site.clock.time += 10_000 * number
            site.create(f"of {site.root.name}")
            site.clock.time += 10_000
            site.fabric.edit(one, priority=("low", "high", "critical")[number])
        return first, second, third

    def test_every_original_is_found_as_the_event_that_a_merge_made_of_it(self, sites: tuple[Site, Site, Site]) -> None:
        first, second, third = sites
        first.fetch(second)
        first.store.working_copy.merge(dry_run=False)
        first.create("after the first merge")
        first.fetch(third)
        first.store.working_copy.merge(dry_run=False)
        path = {event.seq: event for event in first.fabric.events()}
        hashes = {event.hash for event in path.values()}
        beside = [event for _, event in _lines(first) if event["hash"] not in hashes]
        own = [event for event in beside if event["type"] == "task.merged"]
        assert own, "the first merge is not on the path any more"
        for event in beside:
            if event in own:
                continue
            made = path[first.fabric.replay(event["hash"][:16])["seq"]]
            assert (made.timestamp, made.actor, made.type) == (event["timestamp"], event["actor"], event["type"])
            assert made.payload.get("title") == event.get("payload", {}).get("title")
        for event in own:
            with pytest.raises(InvalidInput, match=r"is in events/.*\.m[0-9a-f]+\.jsonl, which is not part of"):
                first.fabric.replay(event["hash"])
        read_only = ReadOnlyStore(str(first.root), first.clock)
        assert read_only.hashed(beside[0]["hash"]) == first.store.hashed(beside[0]["hash"])

    def test_what_is_not_merged_yet_is_refused_with_the_file_it_is_in(self, sites: tuple[Site, Site, Site]) -> None:
        first, second, _ = sites
        first.fetch(second)
        (lane,) = first.lanes()
        theirs = next(event for name, event in _lines(first) if name == lane)
        with pytest.raises(InvalidInput) as refused:
            first.fabric.replay(theirs["hash"])
        read_only = ReadOnlyStore(str(first.root), first.clock).working_copy
        assert read_only is not None
        assert read_only.tips() == 2, "who may only read is warned, too"
        assert f"events/{lane}" in refused.value.message
        assert refused.value.call is not None
        assert refused.value.call.operation == "merge"
        assert "of b" not in _titles(first.fabric.replay(first.store.head()))
        first.store.working_copy.merge(dry_run=False)
        assert "of b" in _titles(first.fabric.replay(theirs["hash"]))
