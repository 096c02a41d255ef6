"""Merging the lanes of several clones: one history, the same bytes everywhere, whatever dies on the way."""

from __future__ import annotations

import json
import multiprocessing
import shutil
from pathlib import Path

import pytest

from aof.errors import AofError, MergePending
from aof.merge.history import merge
from aof.store.files.log import layout as log_layout
from aof.store.files.merge import read_lanes, sealed_lane
from aof.store.files.paths import Paths
from tests.support.deaths import deaths
from tests.support.disks import DyingDisk, Killed
from tests.support.invariants import check_invariants, check_it_goes_on, open_store
from tests.support.present import present
from tests.support.sites import Site

_YEARS = 10 * 365 * 24 * 3_600_000


@pytest.fixture
def apart(tmp_path: Path) -> tuple[Site, Site]:
    """Two clones that both have worked; each has the other's lane, and nobody has merged."""
    first = Site(tmp_path / "a")
    one = first.create("one")
    two = first.create("two")
    second = first.clone("b")
    run = first.fabric.claim(one, agent="ada").run_id
    first.fabric.complete(one, run=run, agent="ada", summary="done here")
    first.create("of a")
    second.clock.time += 10_000
    second.fabric.edit(one, title="one, better")
    second.fabric.claim(two, agent="bob")
    second.create("of b")
    first.fetch(second)
    second.fetch(first)
    return first, second


def merged_lane(site: Site) -> str:
    (name,) = [name for name in site.lanes() if ".m" in name]
    return name


def test_the_folder_of_the_log_is_not_listed_again_for_every_task(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    listed: list[str] = []
    look = log_layout._entries

    def counted(paths: Paths) -> list[tuple[str, bool]]:
        listed.append(paths.events)
        return look(paths)

    monkeypatch.setattr(log_layout, "_entries", counted)
    counts = []
    for number in (2, 12):
        first = Site(tmp_path / f"root{number}")
        first.create("one")
        for other in [first.clone(f"of{number}-{lane}") for lane in range(number)]:
            other.create(other.root.name)
            first.fetch(other)
        listed.clear()
        assert first.store.working_copy.merge(dry_run=False) is not None
        counts.append(len(listed))
        assert len(first.titles()) == number + 1
    assert counts[0] == counts[1]


def test_two_clones_write_the_same_merge_lane_and_the_same_files(apart: tuple[Site, Site]) -> None:
    first, second = apart
    reports = [site.store.working_copy.merge(dry_run=False) for site in apart]
    assert reports[0] == reports[1]
    assert present(reports[0]).touched == 4
    assert first.files() == second.files()
    assert merged_lane(first) == merged_lane(second)
    for site in apart:
        assert site.titles() == ["of a", "of b", "one, better", "two"]
        statuses = {row.title: row.status for row in site.fabric.list().tasks}
        assert (statuses["one, better"], statuses["two"]) == ("done", "in-progress")
        assert site.store.working_copy.merge(dry_run=False) is None, "there is one tip now"
        assert site.fabric.doctor().ok
        site.store.close()
        check_invariants(site.root)
    left, right = ({name: data for name, data in site.travelling().items() if name[0] in "er"} for site in apart)
    assert left.keys() == right.keys()
    tasks = [{name: data for name, data in site.travelling().items() if name.startswith("tasks/")} for site in apart]
    assert tasks[0] == tasks[1]


def test_recomputing_a_merge_lane_gives_its_bytes(apart: tuple[Site, Site]) -> None:
    site, _ = apart
    site.store.working_copy.merge(dry_run=False)
    name = merged_lane(site)
    layout = present(site.store.reader.layout())
    found = read_lanes(layout)
    heads = [head["hash"] for head in site.header(name)["merge"]["heads"]]
    segment, data = sealed_lane(merge(found.lanes, heads), found.places, site.store.paths)
    assert f"{segment}.jsonl" == name
    assert data == site.files()[name]


def test_a_dry_run_writes_nothing(apart: tuple[Site, Site]) -> None:
    site, _ = apart
    site.store.checkpoint()
    before = site.travelling()
    assert present(site.store.working_copy.merge(dry_run=True)).commits > 0
    assert site.travelling() == before
    assert site.store.working_copy.tips() == 2


def test_reads_go_on_with_what_this_clone_wrote_until_somebody_merges(apart: tuple[Site, Site]) -> None:
    first, second = apart
    assert first.titles() == ["of a", "one", "two"]
    assert second.titles() == ["of b", "one, better", "two"]
    assert second.reopen().list().total == 3
    assert all(site.store.working_copy.tips() == 2 for site in apart)


def test_a_write_merges_first(apart: tuple[Site, Site]) -> None:
    site, _ = apart
    task_id = site.create("after")
    assert site.titles() == ["after", "of a", "of b", "one, better", "two"]
    assert site.store.working_copy.tips() == 1
    header = site.header(
        next(name for name in site.lanes() if json.loads(site.files()[name].splitlines()[-1])["taskId"] == task_id)
    )
    assert header["after"]["file"] == merged_lane(site), "the next lane builds on the merge"
    site.store.close()
    check_invariants(site.root)
    check_it_goes_on(site.root)


@pytest.mark.parametrize("mark", ["index.lock", "MERGE_HEAD", "rebase-merge", "rebase-apply", "CHERRY_PICK_HEAD"])
def test_a_write_is_refused_while_git_is_in_the_middle_of_something(apart: tuple[Site, Site], mark: str) -> None:
    site, _ = apart
    git = site.root.parent / ".git"
    git.mkdir()
    (git / mark).touch()
    before = site.files()
    with pytest.raises(MergePending) as caught:
        site.create("no")
    assert "run 'aof merge'" in (caught.value.hint or "")
    assert ("wait" in (caught.value.hint or "")) == (mark == "index.lock")
    assert site.files() == before
    assert site.titles() == ["of a", "one", "two"], "reads go on"
    if mark == "index.lock":
        with pytest.raises(AofError):
            site.store.working_copy.merge(dry_run=False)
        (git / mark).unlink()
        assert site.create("yes")
    else:
        assert site.store.working_copy.merge(dry_run=False) is not None, "who asks for it settles what git could not"


def test_a_running_process_follows_what_another_has_merged(apart: tuple[Site, Site]) -> None:
    site, _ = apart
    assert site.titles() == ["of a", "one", "two"]
    other = Site(site.root)
    other.store.working_copy.merge(dry_run=False)
    other.store.close()
    assert site.titles() == ["of a", "of b", "one, better", "two"]
    assert site.create("goes on")
    assert site.fabric.doctor().ok


def test_a_clone_follows_a_merge_that_another_clone_has_made(apart: tuple[Site, Site]) -> None:
    first, second = apart
    first.store.working_copy.merge(dry_run=False)
    first.create("after")
    second.fetch(first)
    assert second.create("here")
    assert second.titles() == ["after", "here", "of a", "of b", "one, better", "two"]
    assert second.fabric.doctor().ok
    assert len([name for name in second.lanes() if ".m" in name]) == 1, "nothing was left to merge"


def test_merging_in_any_order_gives_the_same_history(tmp_path: Path) -> None:
    first = Site(tmp_path / "a")
    first.create("one")
    sites = [first, first.clone("b"), first.clone("c")]
    for number, site in enumerate(sites):
        site.clock.time += number * 10_000
        site.create(f"of {number}")
    a, b, c = sites
    a.fetch(b)
    a.store.working_copy.merge(dry_run=False)
    b.fetch(c)
    b.store.working_copy.merge(dry_run=False)
    c.fetch(a)
    c.store.working_copy.merge(dry_run=False)
    for site, others in ((a, (b, c)), (b, (a, c)), (c, (a, b))):
        for other in others:
            site.fetch(other)
        site.store.working_copy.merge(dry_run=False)
    for site in sites:
        assert site.titles() == ["of 0", "of 1", "of 2", "one"]
        assert site.fabric.doctor().ok
    assert len({tuple(event.hash for event in site.store.events()) for site in sites}) == 1


def test_what_an_author_had_seen_comes_first_though_the_clocks_are_years_apart(tmp_path: Path) -> None:
    first = Site(tmp_path / "a")
    one = first.create("one")
    second = first.clone("b")
    first.fabric.edit(one, title="of a")
    second.clock.time += _YEARS
    second.fabric.edit(one, title="of b, from the future")
    born = second.create("born in the future")
    first.fetch(second)
    first.store.working_copy.merge(dry_run=False)
    third = first.clone("c")
    third.clock.time -= _YEARS
    third.fabric.edit(one, title="of c, who has seen both")
    run = third.fabric.claim(born, agent="cat").run_id
    third.fabric.complete(born, run=run, agent="cat")
    second.create("beside it")
    second.fetch(third)
    third.fetch(second)
    for site in (second, third):
        site.store.working_copy.merge(dry_run=False)
        assert site.titles() == ["beside it", "born in the future", "of c, who has seen both"]
        assert site.fabric.get(born).status == "done"
        assert site.fabric.doctor().ok
    assert second.files() == third.files()


def _dead(template: Path, root: Path, disk: DyingDisk) -> Site:
    shutil.copytree(template, root)
    site = Site(root)
    try:
        site.reopen(disk)
        site.store.working_copy.merge(dry_run=False)
        site.store.close()
    except Killed:
        site.store.locks.close()
    return site


def _tasks(site: Site) -> dict[str, bytes]:
    return {name: data for name, data in site.travelling().items() if name.startswith("tasks/")}


@pytest.mark.parametrize("part", range(3))
def test_who_dies_at_any_step_of_a_merge_loses_nothing(apart: tuple[Site, Site], tmp_path: Path, part: int) -> None:
    _assert_nothing_is_lost(apart[0], tmp_path, part)


def _assert_nothing_is_lost(site: Site, tmp_path: Path, part: int) -> None:
    site.store.close()
    counting = DyingDisk()
    undisturbed = _dead(site.root, tmp_path / "counted", counting)
    whole, tasks = undisturbed.files(), _tasks(undisturbed)
    for number, moment in list(deaths(counting.taken))[part::12]:
        root = tmp_path / f"dead-{number}-{moment.name}"
        dead = _dead(site.root, root, DyingDisk(number, moment))
        kept = {name: data for name, data in dead.files().items() if name in whole}
        assert all(whole[name] == data for name, data in kept.items()), "a merge lane is there as a whole, or not"
        again = Site(root)
        again.store.working_copy.merge(dry_run=False)
        assert again.files() == whole
        assert _tasks(again) == tasks, "the files follow at once, whoever has written the lane"
        assert again.titles() == ["of a", "of b", "one, better", "two"]
        assert again.fabric.doctor().ok
        again.store.close()
        check_invariants(root)
        shutil.rmtree(root)


@pytest.mark.full
@pytest.mark.parametrize("part", range(12))
def test_every_death_in_a_merge(apart: tuple[Site, Site], tmp_path: Path, part: int) -> None:
    _assert_nothing_is_lost(apart[0], tmp_path, part)


def _merge(root: str) -> None:
    store = open_store(root, lock_timeout=60.0)  # each waits for those before it, on a machine that may be busy
    store.working_copy.merge(dry_run=False)
    store.close()


def test_processes_that_merge_at_once_write_one_lane(apart: tuple[Site, Site]) -> None:
    site, other = apart
    site.store.close()
    context = multiprocessing.get_context("spawn")
    workers = [context.Process(target=_merge, args=(str(site.root),)) for _ in range(3)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(60)
        assert worker.exitcode == 0
    other.store.working_copy.merge(dry_run=False)
    assert site.files() == other.files()
    check_invariants(site.root)
