"""Lanes: a clone appends to a file of its own, which builds on a place in the log; what does not fit is refused."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from aof.errors import AofError
from aof.store.files.integrity import with_raised_version
from aof.store.files.log import chain
from aof.store.files.paths import GENESIS
from tests.support.clock import DAY
from tests.support.deaths import deaths
from tests.support.disks import DyingDisk, Killed
from tests.support.invariants import check_invariants, check_it_goes_on, log_lines, open_store
from tests.support.sites import Site
from tests.support.verified import verify

MONDAY, TUESDAY = "2026-03-02", "2026-03-03"


@pytest.fixture
def site(tmp_path: Path) -> Site:
    """Where the log was begun, with two tasks."""
    site = Site(tmp_path / "a")
    site.create("one")
    site.create("two")
    return site


def test_one_clone_alone_has_the_root_lane_and_the_first_format(site: Site) -> None:
    for _ in range(3):
        site.clock.time += DAY
        site.create("more")
        site.reopen()
    assert site.lanes() == []
    assert not (site.root / "aof.toml").exists(), "nothing asks for a newer version"
    assert site.store.log.owner() == "root"


def test_a_clone_begins_a_lane_with_its_first_write(site: Site) -> None:
    other = site.clone("b")
    assert other.store.log.owner() is None
    assert other.titles() == ["one", "two"]
    assert other.lanes() == [], "looking begins none"
    before = other.files()
    other.create("three")
    (lane,) = other.lanes()
    header = other.header(lane)
    root = before[f"{MONDAY}.jsonl"]
    assert other.files()[f"{MONDAY}.jsonl"] == root, "the other's file is left alone"
    assert header["after"] == {
        "file": f"{MONDAY}.jsonl",
        "offset": len(root),
        "hash": chain.digest_of(root.splitlines(keepends=True)[-1]),
        "seq": json.loads(root.splitlines()[-1])["seq"],
    }
    first = json.loads(other.files()[lane].splitlines()[1])
    assert lane == f"{MONDAY}.{first['hash'][:12]}.jsonl"
    assert header["lane"] == other.store.log.owner() == first["hash"][:12]
    assert first["seq"] == header["after"]["seq"] + 1
    other.create("four")
    other.reopen().create("five", review=False)
    assert other.lanes() == [lane], "it goes on in the same lane"
    assert other.titles() == ["five", "four", "one", "three", "two"]
    verify(other.store.reader)
    other.store.close()
    check_invariants(other.root)
    check_it_goes_on(other.root)


def test_the_first_lane_raises_the_version_that_older_ones_refuse(site: Site) -> None:
    (site.root / "aof.toml").write_text("# ours\nschemaVersion = 1\nproject = 'x'  # mine\n")
    other = site.clone("b")
    other.create("three")
    assert (other.root / "aof.toml").read_text() == "# ours\nschemaVersion = 2\nproject = 'x'  # mine\n"
    assert (site.root / "aof.toml").read_text().count("schemaVersion = 1") == 1


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (b"", b"schemaVersion = 2\n"),
        (b"schemaVersion=1", b"schemaVersion=2"),
        (b"schemaVersion = 7\n", b"schemaVersion = 7\n"),
        (b"[lease]\nttl = 3\n", b"schemaVersion = 2\n[lease]\nttl = 3\n"),
        (b"# schemaVersion = 1\n", b"schemaVersion = 2\n# schemaVersion = 1\n"),
        (b"[x]\nschemaVersion = 1\n", b"schemaVersion = 2\n[x]\nschemaVersion = 1\n"),
    ],
)
def test_only_the_version_of_the_settings_is_changed(before: bytes, after: bytes) -> None:
    assert with_raised_version(before) == after


def test_a_copied_folder_begins_a_lane_and_the_original_goes_on(site: Site) -> None:
    copy = site.copy("b")
    copy.create("of the copy")
    site.create("of the original")
    assert (len(copy.lanes()), len(site.lanes())) == (1, 0)
    moved = site.root.rename(site.root.parent / "moved")
    site.store.close()
    again = Site(moved)
    again.create("after the move")
    assert again.lanes() == [], "a folder that was moved is the same one"


def test_a_file_that_no_longer_ends_where_it_was_left_is_not_appended_to(site: Site, tmp_path: Path) -> None:
    """As after a checkout of an older commit, with the tasks' files; and back."""
    site.store.close()
    shutil.copytree(site.root, tmp_path / "older")
    site.reopen()
    site.create("three")
    site.store.close()
    shutil.copytree(site.root, tmp_path / "newer")

    def checkout(version: Path) -> None:
        for name in ("events", "tasks", "runs"):
            shutil.rmtree(site.root / name)
            shutil.copytree(version / name, site.root / name)

    checkout(tmp_path / "older")
    site.reopen()
    site.create("another three")
    assert len(site.lanes()) == 1
    assert site.titles() == ["another three", "one", "two"]
    site.store.close()
    checkout(tmp_path / "newer")
    site.reopen()
    assert site.titles() == ["one", "three", "two"]
    site.create("four")
    assert site.lanes() == [], "the root lane ends where this clone left it"
    assert site.store.log.owner() == "root"


def test_a_lane_goes_on_in_the_file_of_the_next_day(site: Site) -> None:
    other = site.clone("b")
    other.create("three")
    other.clock.time += DAY
    other.create("four")
    other.reopen()
    other.create("five")
    first, second = other.lanes()
    assert (first[:10], second[:10]) == (MONDAY, TUESDAY)
    assert first[10:] == second[10:], "the same lane"
    assert other.header(second)["after"]["file"] == first
    assert other.header(second)["after"]["offset"] == len(other.files()[first])
    assert other.titles() == ["five", "four", "one", "three", "two"]
    other.store.close()
    check_invariants(other.root)


def test_a_running_process_keeps_its_lane_when_somebody_deletes_the_locks(site: Site) -> None:
    shutil.rmtree(site.root / "locks")
    site.create("three")
    assert site.lanes() == []
    assert site.store.log.is_root_clone()


def test_clones_of_a_log_without_any_event_begin_at_its_very_beginning(tmp_path: Path) -> None:
    site = Site(tmp_path / "a")
    other = site.clone("b")
    other.create("of the clone")
    site.create("of the original")
    (lane,) = other.lanes()
    assert other.header(lane)["after"] == {"file": "", "offset": 0, "hash": GENESIS}
    assert site.lanes() == []
    other.store.close()
    check_invariants(other.root)


def test_who_dies_at_any_step_of_beginning_a_lane_loses_nothing(site: Site, tmp_path: Path) -> None:
    template = site.clone("template")
    template.store.close()
    counting = DyingDisk()
    shutil.copytree(template.root, tmp_path / "counted")
    counted = Site(tmp_path / "counted")
    counted.reopen(counting).create("three", review=False)
    counted.store.close()
    for number, moment in deaths(counting.taken):
        root = tmp_path / f"dead-{number}-{moment.name}"
        shutil.copytree(template.root, root)
        dead = Site(root)
        try:
            dead.reopen(DyingDisk(number, moment)).create("three", review=False)
        except Killed:
            dead.store.locks.close()
        before = {line for name in dead.files() for line in dead.files()[name].splitlines(keepends=True)[1:]}
        check_invariants(root)
        check_it_goes_on(root)
        kept = set(log_lines(root))
        assert all(line in kept for line in before if line.endswith(b"\n") and b'"commit":[1,3]' not in line)
        shutil.rmtree(root)


Damage = Callable[[Path], None]


def _reheaded(**changes: object) -> Damage:
    def damage(lane: Path) -> None:
        line, rest = lane.read_bytes().split(b"\n", 1)
        header = json.loads(line)
        header["after"] |= {key: value for key, value in changes.items() if key != "lane"}
        header |= {key: value for key, value in changes.items() if key == "lane"}
        lane.write_bytes(json.dumps(header, separators=(",", ":")).encode() + b"\n" + rest)

    return damage


def _cut_header(lane: Path) -> None:
    lane.write_bytes(lane.read_bytes()[:40])


def _no_header(lane: Path) -> None:
    lane.write_bytes(lane.read_bytes().split(b"\n", 1)[1])


@pytest.mark.parametrize(
    "damage",
    [
        _reheaded(offset=100),
        _reheaded(hash="f" * 64),
        _reheaded(file="2026-03-01.jsonl"),
        _reheaded(seq=2),
        _reheaded(lane="0123456789ab"),
        _cut_header,
        _no_header,
    ],
    ids=["offset", "hash", "file", "seq", "name", "cut", "none"],
)
def test_a_lane_whose_header_is_wrong_is_refused_and_nothing_changes(site: Site, damage: Damage) -> None:
    other = site.clone("b")
    other.create("three")
    other.store.close()
    damage(other.root / "events" / other.lanes()[0])
    before = other.files()
    for act in (lambda: open_store(other.root).close(), lambda: Site(other.root).create("no")):
        try:
            act()
        except AofError as refusal:
            found = refusal
    assert found.code == "lane_refused"
    assert "events/" in found.message
    assert "mv .aof/events/" in (found.hint or "")
    assert other.files() == before


def test_a_lane_of_another_repository_is_refused(site: Site, tmp_path: Path) -> None:
    strange = Site(tmp_path / "strange")
    strange.create("elsewhere")
    other = strange.clone("stranger")
    other.create("of a stranger")
    (lane,) = other.lanes()
    shutil.copy(other.root / "events" / lane, site.root / "events" / lane)
    with pytest.raises(AofError, match="another repository") as caught:
        site.create("no")
    assert caught.value.code == "lane_refused"
    (site.root / "events" / lane).unlink()
    assert site.create("yes")


@pytest.mark.parametrize("kept", [0.4, 0.9])
def test_the_cut_lane_of_another_clone_is_found(site: Site, kept: float) -> None:
    """A part of a commit is not there yet; a lane that this clone knows to be longer is damaged."""
    other = site.clone("b")
    other.create("three")
    other.create("four")
    other.store.close()
    path = other.root / "events" / other.lanes()[0]
    data = path.read_bytes()
    path.write_bytes(data[: int(len(data) * kept)])
    with pytest.raises(AofError) as caught:
        Site(other.root).create("no")
    assert caught.value.code == "log_damaged"
    path.write_bytes(data)
    assert Site(other.root).create("yes")


def test_two_clones_that_claim_one_lane_part(site: Site) -> None:
    """A copied folder, with all that says whose lane it is: the original goes on, the copy begins another."""
    other = site.clone("b")
    other.create("three")
    copy = other.copy("c")
    other.create("of the original")
    copy.create("of the copy")
    assert len(other.lanes()) == 1
    assert len(copy.lanes()) == 2
    assert not set(copy.lanes()) <= set(other.lanes())
