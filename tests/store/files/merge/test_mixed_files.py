"""One file with two histories: clones of an older version, or of a copied folder, and git kept all lines."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from aof.errors import AofError
from tests.support.deaths import deaths
from tests.support.disks import DyingDisk, Killed
from tests.support.invariants import check_invariants
from tests.support.same_place import adopt
from tests.support.sites import Site

ROOT = "2026-03-02.jsonl"


@pytest.fixture
def forked(tmp_path: Path) -> tuple[Site, Site]:
    """Two directories whose root lanes forked inside one file, each with what git makes of both: the union."""
    first = Site(tmp_path / "a")
    first.create("one")
    first.store.close()
    shutil.copytree(first.root, tmp_path / "b")
    adopt(tmp_path / "b")  # as an older version would, it goes on in the same file
    first.reopen()
    second = Site(tmp_path / "b")
    second.clock.time = first.clock.time + 5_000
    common = len(first.files()[ROOT])
    first.create("of a")
    first.create("again of a")
    second.create("of b")
    ours, theirs = first.files()[ROOT], second.files()[ROOT]
    assert ours[:common] == theirs[:common]
    for site, data in ((first, ours + theirs[common:]), (second, theirs + ours[common:])):
        site.store.close()
        (site.root / "events" / ROOT).write_bytes(data)
    return first, second


def lines(site: Site) -> set[bytes]:
    return {line for data in site.files().values() for line in data.splitlines(keepends=True) if b'{"seq":' in line}


@pytest.mark.parametrize("first_act", ["list", "create", "merge"])
def test_each_history_gets_a_file_of_its_own_and_both_are_merged(forked: tuple[Site, Site], first_act: str) -> None:
    before = lines(forked[0])
    for site in forked:
        site.reopen()
        if first_act == "list":
            assert "one" in site.titles()
        elif first_act == "create":
            site.create("after")
        site.store.working_copy.merge(dry_run=False)
        assert {"one", "of a", "again of a"} <= set(site.titles())
        assert before <= lines(site), "no line is lost"
        assert site.fabric.doctor().ok
        site.store.close()
        check_invariants(site.root)
    if first_act == "merge":
        assert forked[0].files() == forked[1].files(), "all clones make the same of the same lines"
        assert len(forked[0].lanes()) == 2


def test_the_branch_that_began_earlier_stays_in_the_file(forked: tuple[Site, Site]) -> None:
    for site in forked:
        site.reopen()
        assert site.store.merger.take_apart()
        assert b"of a" in site.files()[ROOT]
        (lane,) = site.lanes()
        assert b"of b" in site.files()[lane]
        assert not site.store.merger.take_apart(), "nothing is left to do"


def _altered(data: bytes) -> bytes:
    return data.replace(b'"of b"', b'"of c"')


def _dropped(data: bytes) -> bytes:
    split = data.splitlines(keepends=True)
    return b"".join(split[:3] + split[4:])


def _swapped(data: bytes) -> bytes:
    split = data.splitlines(keepends=True)
    return b"".join([*split[:-2], split[-1], split[-2]])


@pytest.mark.parametrize("damage", [_altered, _dropped, _swapped])
def test_a_mixed_file_that_was_altered_is_refused_and_stays(
    forked: tuple[Site, Site], damage: Callable[[bytes], bytes]
) -> None:
    site, _ = forked
    path = site.root / "events" / ROOT
    path.write_bytes(damage(path.read_bytes()))
    before = site.files()
    site.reopen()
    for act in (site.titles, lambda: site.create("no"), lambda: site.store.working_copy.merge(dry_run=False)):
        with pytest.raises(AofError) as caught:
            act()
        assert caught.value.code == "log_damaged"
    assert site.files() == before


@pytest.mark.parametrize("damage", [_dropped, _swapped])
def test_a_log_of_one_history_that_was_altered_is_never_put_in_order(
    tmp_path: Path, damage: Callable[[bytes], bytes]
) -> None:
    site = Site(tmp_path / "a")
    for title in ("one", "two", "three"):
        site.create(title)
    path = site.root / "events" / ROOT
    path.write_bytes(damage(path.read_bytes()))
    before = path.read_bytes()
    with pytest.raises(AofError) as caught:
        site.create("no")
    assert caught.value.code == "log_damaged"
    assert path.read_bytes() == before


def test_who_dies_while_a_file_is_taken_apart_loses_no_line(forked: tuple[Site, Site], tmp_path: Path) -> None:
    site, _ = forked
    kept = lines(site)
    shutil.copytree(site.root, tmp_path / "counted")
    counting = DyingDisk()
    counted = Site(tmp_path / "counted")
    counted.reopen(counting)
    begun = len(counting.taken)
    counted.store.merger.take_apart()
    ended = len(counting.taken)
    whole = counted.files()
    for number, moment in deaths(counting.taken[:ended]):
        if number < begun:
            continue
        root = tmp_path / f"dead-{number}-{moment.name}"
        shutil.copytree(site.root, root)
        dead = Site(root)
        dead.reopen(DyingDisk(number, moment))
        with pytest.raises(Killed):
            dead.store.merger.take_apart()
        dead.store.locks.close()
        assert kept <= lines(dead)
        again = Site(root)
        again.store.merger.take_apart()
        assert again.files() == whole
        again.store.working_copy.merge(dry_run=False)
        assert again.titles() == ["again of a", "of a", "of b", "one"] or len(again.titles()) == 4
        again.store.close()
        check_invariants(root)
        shutil.rmtree(root)
