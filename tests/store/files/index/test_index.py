"""The index is a pure cache: whatever happens to it costs time and changes no answer."""

from __future__ import annotations

import os
import shutil
import sqlite3
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from aof.api.fabric import Fabric
from aof.errors import AlreadyClaimed, NothingReady, Unavailable
from aof.service.clock import SystemClock
from aof.store.files.index import builder, index, schema, tables
from aof.store.files.store import FilesystemStore
from aof.store.lists import Query
from aof.testing import FakeClock
from tests.support.indexes import caught_up, from_the_log, open_fabric, store_of
from tests.support.invariants import check_invariants
from tests.support.processes import together


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A new data directory."""
    FilesystemStore.create(str(tmp_path / ".aof"))
    return tmp_path / ".aof"


@pytest.fixture
def fabric(root: Path) -> Iterator[Fabric]:
    """A fabric with some tasks, and an index that is up to date."""
    with open_fabric(root, FakeClock()) as made:
        for number in range(30):
            made.create(f"Number {number}", depends_on=["001"] if number % 5 == 4 else (), brief="x" * 500)
        made.claim("002", agent="ada")
        caught_up(made)
        yield made


@pytest.fixture
def live(root: Path) -> Iterator[Fabric]:
    """The same on the real clock, for what really waits."""
    with open_fabric(root, SystemClock()) as made:
        for number in range(30):
            made.create(f"Number {number}", depends_on=["001"] if number % 5 == 4 else ())
        caught_up(made)
        yield made


def execute(path: Path, sql: str) -> None:
    with closing(sqlite3.connect(path)) as database, database:
        database.execute(sql)


def delete(path: Path) -> None:
    path.unlink()


def empty(path: Path) -> None:
    path.write_bytes(b"")


def truncate(path: Path) -> None:
    os.truncate(path, path.stat().st_size // 2)


def scribble(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[100:200] = b"\xff" * 100
    path.write_bytes(data)


def no_database(path: Path) -> None:
    path.write_bytes(b"This was an index once.\n" * 1000)


def another_database(path: Path) -> None:
    path.unlink()
    execute(path, "CREATE TABLE tasks (id TEXT)")


def a_changed_status(path: Path) -> None:
    """Valid in every byte, and a lie."""
    execute(path, "UPDATE tasks SET status = 'done', record = replace(record, '\"ready\"', '\"done\"')")


def of_a_newer_version(path: Path) -> None:
    execute(path, "UPDATE meta SET version = 99")


def a_moment_later(path: Path) -> None:
    """File systems tell moments apart by milliseconds, and a test is faster than that."""
    if path.exists():
        os.utime(path, ns=(0, path.stat().st_mtime_ns + 1_000_000_000))


HARM = [delete, empty, truncate, scribble, no_database, another_database, a_changed_status, of_a_newer_version]


class TestHarm:
    """Somebody does something to the file."""

    @pytest.mark.parametrize("harm", HARM)
    @pytest.mark.parametrize("state", ["up to date", "behind"])
    def test_the_answer_is_the_same_whatever_was_done_to_the_file(
        self, fabric: Fabric, root: Path, harm: Callable[[Path], None], state: str
    ) -> None:
        if state == "behind":
            fabric.create("Not yet in the index", depends_on=["001"])
        expected = from_the_log(fabric)

        harm(root / "index.sqlite")
        a_moment_later(root / "index.sqlite")

        assert caught_up(fabric) == expected
        assert caught_up(fabric) == expected
        with open_fabric(root, FakeClock()) as another:
            assert caught_up(another) == expected

    @settings(max_examples=30, deadline=None)
    @given(place=st.integers(0, 2**32), junk=st.binary(min_size=1, max_size=64))
    def test_any_bytes_anywhere_in_the_file_are_noticed(self, place: int, junk: bytes) -> None:
        with tempfile.TemporaryDirectory() as folder:
            FilesystemStore.create(folder + "/.aof")
            with open_fabric(Path(folder, ".aof"), FakeClock()) as fabric:
                for number in range(5):
                    fabric.create(f"Number {number}")
                expected = caught_up(fabric)
                path = Path(folder, ".aof", "index.sqlite")
                data = bytearray(path.read_bytes())
                place %= len(data)
                data[place : place + len(junk)] = junk[: len(data) - place]
                path.write_bytes(data)
                a_moment_later(path)

                assert caught_up(fabric) == expected

    def test_an_older_copy_that_is_put_back_is_not_believed(self, fabric: Fabric, root: Path) -> None:
        shutil.copy(root / "index.sqlite", root / "older")
        fabric.cancel("001")
        caught_up(fabric)

        shutil.copy(root / "older", root / "index.sqlite")

        assert caught_up(fabric) == from_the_log(fabric)

    @pytest.mark.parametrize("size", [5, 31], ids=["shorter", "longer"])
    def test_an_index_of_another_log_is_not_believed(
        self, fabric: Fabric, root: Path, tmp_path: Path, size: int
    ) -> None:
        """As after `git checkout`: tasks and log are others, what git ignores is still there."""
        FilesystemStore.create(str(tmp_path / "other"))
        with open_fabric(tmp_path / "other", FakeClock()) as other:
            for number in range(size):
                other.create(f"Elsewhere {number}", brief="y" * 500)
        fabric.close()
        for name in ("tasks", "events"):
            shutil.rmtree(root / name)
            shutil.copytree(tmp_path / "other" / name, root / name)

        with open_fabric(root, FakeClock()) as again:
            assert [task.title for task in again.store.find(Query(limit=2)).tasks] == ["Elsewhere 0", "Elsewhere 1"]
            assert caught_up(again) == from_the_log(again)

    def test_a_task_whose_file_a_person_has_deleted_stays_in_a_rebuilt_index(self, fabric: Fabric, root: Path) -> None:
        store_of(fabric).checkpoint()
        expected = caught_up(fabric)
        (root / "tasks/ready/TASK-2026-01-05-003.md").unlink()

        store_of(fabric).index.rebuild()

        assert caught_up(fabric) == expected

    def test_a_rebuilt_index_takes_files_in_a_persons_layout_and_those_of_the_archive(
        self, fabric: Fabric, root: Path
    ) -> None:
        for name in ("003", "007"):
            path = root / f"tasks/ready/TASK-2026-01-05-{name}.md"
            path.write_text(path.read_text().replace("priority:", "# soon\nmine: [1, 2]\npriority:"))
        fabric.sync()
        fabric.cancel("006")
        fabric.archive("006")
        expected = from_the_log(fabric)
        store_of(fabric).checkpoint()

        store_of(fabric).index.rebuild()

        assert caught_up(fabric) == expected
        assert fabric.store.find(Query(archived=True)).total == 30

    def test_a_file_that_is_damaged_or_moved_by_hand_counts_as_the_log_has_it(self, fabric: Fabric, root: Path) -> None:
        expected = caught_up(fabric)
        (root / "tasks/ready/TASK-2026-01-05-003.md").write_text("---\n: : :\n")
        (root / "tasks/ready/TASK-2026-01-05-004.md").rename(root / "tasks/done/TASK-2026-01-05-004.md")

        store_of(fabric).index.rebuild()

        assert caught_up(fabric) == expected


class TestWriters:
    """Whoever writes the index may die over it."""

    @pytest.mark.parametrize("step", ["catch_up", "build_tables"])
    def test_a_writer_that_dies_over_the_index_is_made_good(
        self, live: Fabric, monkeypatch: pytest.MonkeyPatch, root: Path, step: str
    ) -> None:
        live.create("One more", depends_on=["003"])
        expected = from_the_log(live)
        if step == "build_tables":
            (root / "index.sqlite").unlink()
        really = getattr(builder, step)

        def die(number: int) -> None:
            def dying(*arguments: Any) -> None:
                really(*arguments)
                os._exit(0)  # everything is written, nothing is noted

            monkeypatch.setattr(builder, step, dying)
            with open_fabric(root, SystemClock()) as mine:
                caught_up(mine)

        with pytest.raises(AssertionError, match="without an answer"):
            together(1, die)

        assert caught_up(live) == expected

    def test_a_half_written_index_is_not_believed(self, live: Fabric, root: Path) -> None:
        live.create("One more")
        expected = from_the_log(live)

        def die(number: int) -> None:
            mine = open_fabric(root, SystemClock())
            store = store_of(mine)
            held = store.locks.take(index.INDEX_LOCK)
            assert held is not None
            store.index._cache._dirty(held)
            database = schema.connect(str(root / "index.sqlite"))
            database.execute("DELETE FROM tasks WHERE place % 10 = 5")
            database.commit()
            os._exit(0)

        with pytest.raises(AssertionError, match="without an answer"):
            together(1, die)

        assert caught_up(live) == expected

    def test_the_index_catches_up_with_what_other_processes_have_written(self, live: Fabric, root: Path) -> None:
        def write(number: int) -> str:
            with open_fabric(root, SystemClock()) as mine:
                return mine.create(f"From {number}", depends_on=["001"]).task_id

        for _ in range(3):
            made = together(4, write)
            assert {task.id for task in live.store.find(Query(search="from")).tasks} >= set(made)
            assert caught_up(live) == from_the_log(live)

    def test_a_deleted_index_changes_nothing_while_four_processes_work(self, root: Path) -> None:
        def work(number: int) -> int:
            claimed = 0
            with open_fabric(root, SystemClock()) as mine:
                for round_ in range(25):
                    mine.create(f"{number} {round_}", review=False)
                    try:
                        run = mine.claim(agent=f"agent-{number}")
                    except NothingReady:
                        continue
                    claimed += 1
                    if round_ % 3 == number % 3:
                        (root / "index.sqlite").unlink(missing_ok=True)
                    mine.complete(run.task_id, run=run.run_id)
            return claimed

        claimed = sum(together(4, work))

        folded = check_invariants(root, durable=False)
        done = [one for one in folded.values() if one.task is not None and one.task.status == "done"]
        assert len(folded) == 100
        assert len(done) == claimed
        assert all(len(one.runs) == 1 for one in done)

    def test_many_threads_ask_one_index(self, live: Fabric) -> None:
        answers: list[int] = []

        def ask() -> None:
            for _ in range(20):
                live.store.find(Query(limit=1))
            answers.append(live.store.find(Query()).total)

        threads = [threading.Thread(target=ask) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)

        assert answers == [30] * 8
        assert len(store_of(live).index._cache._idle) <= 8

    def test_a_child_process_does_not_use_what_its_parent_has_open(self, live: Fabric) -> None:
        caught_up(live)

        def ask(number: int) -> int:
            return live.store.find(Query()).total

        assert together(3, ask) == [30, 30, 30]
        assert live.store.find(Query()).total == 30


def test_claiming_without_an_id_takes_what_the_core_lets_start(fabric: Fabric) -> None:
    taken = []
    while True:
        try:
            taken.append(fabric.claim(agent="bob").task_id)
        except NothingReady:
            break

    assert len(taken) == len(set(taken)) == 23
    with pytest.raises(AlreadyClaimed):
        fabric.claim(taken[0], agent="cem")


def test_without_full_text_search_in_sqlite_a_search_says_so_and_lists_go_on(
    fabric: Fabric, monkeypatch: pytest.MonkeyPatch
) -> None:
    task = fabric.create("One", tags=["a"]).task_id
    monkeypatch.setattr(tables, "_MODULE", "no_such_module")
    with pytest.raises(Unavailable, match=r"^the SQLite [\d.]+ of this Python has no full-text search"):
        fabric.search("one")
    with pytest.raises(Unavailable):
        fabric.list(search="one")
    assert [row.id for row in fabric.list(tag="a").tasks] == [task]
    monkeypatch.undo()
    assert [row.id for row in fabric.search("one").tasks] == [task]
