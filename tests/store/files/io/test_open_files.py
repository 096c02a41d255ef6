"""Open files: a store that is closed has none left, and one that lives long does not gather them."""

from __future__ import annotations

import gc
import os
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from aof.api.fabric import Fabric
from aof.errors import AofError
from aof.service.bootstrap import init_data_dir, open_fabric
from aof.service.upkeep import diagnose
from aof.store.files.log.writer import Log
from aof.store.files.store import FilesystemStore
from tests.support.log_bench import MONDAY, TUESDAY, Bench, commit_of

_TIMES = 5


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = Path(init_data_dir(tmp_path / ".aof")[0])
    with open_fabric(root, actor="pm") as fabric:
        work(fabric)
        assert isinstance(fabric.store, FilesystemStore)
        fabric.store.checkpoint()
    return root


@pytest.fixture(autouse=True)
def _collected_by_hand() -> Iterator[None]:
    """What is only closed because the collector happens to come by counts as left open."""
    gc.collect()
    gc.disable()
    yield
    gc.enable()


def work(fabric: Fabric) -> None:
    """A whole life of a task, and a look at everything."""
    task_id = fabric.create("Work", review=False).task_id
    run = fabric.claim(task_id, agent="ada").run_id
    fabric.heartbeat(task_id, run=run, agent="ada")
    fabric.complete(task_id, run=run, agent="ada", summary="done")
    fabric.list()
    next(iter(fabric.events()))
    fabric.store.head()


def opened(root: Path) -> list[str]:
    """The files below a folder that this process has open."""
    found: list[str] = []
    for name in os.listdir("/proc/self/fd"):
        with suppress(FileNotFoundError):  # that of the listing itself
            found.append(os.readlink(f"/proc/self/fd/{name}"))
    return sorted(path for path in found if path.startswith(f"{root}/"))


def log_file(root: Path) -> Path:
    """The log's only file."""
    (found,) = (root / "events").glob("*.jsonl")
    return found


def lives(root: Path) -> None:
    """Open, work, close."""
    with open_fabric(root, actor="pm") as fabric:
        work(fabric)


def lives_with_threads(root: Path) -> None:
    """The same from several threads at once."""
    with open_fabric(root, actor="pm") as fabric:
        threads = [threading.Thread(target=work, args=(fabric,)) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)


def meets_a_lost_event(root: Path) -> None:
    """A log that lacks what was durable cannot be opened."""
    path = log_file(root)
    data = path.read_bytes()
    path.write_bytes(data[: data.rindex(b"\n", 0, -1) + 1])
    with pytest.raises(AofError):
        open_fabric(root)
    path.write_bytes(data)


def meets_a_broken_index(root: Path) -> None:
    """An index that is damaged below an open connection is built anew."""
    index = root / "index.sqlite"
    with open_fabric(root) as fabric:
        fabric.list()
        before = index.stat()
        with index.open("r+b") as file:
            file.seek(2 * 8192)  # the page of a table; those before say where everything is
            file.write(b"\xff" * 8192)
        os.utime(index, ns=(before.st_atime_ns, before.st_mtime_ns))
        fabric.list()


@pytest.mark.parametrize(
    "once",
    [lives, lives_with_threads, meets_a_lost_event, meets_a_broken_index, diagnose],
    ids=lambda one: one.__name__,
)
def test_nothing_stays_open_behind_a_store(root: Path, once: Callable[[Path], object]) -> None:
    once(root)
    assert opened(root) == []


def damage(path: Path) -> None:
    """Take a line out of the middle."""
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(lines[:-2] + lines[-1:]))


def replace(path: Path) -> None:
    """Put the same bytes there as another file."""
    other = path.with_suffix(".new")
    other.write_bytes(path.read_bytes())
    other.rename(path)


@pytest.mark.parametrize("harm", [damage, replace])
def test_a_store_that_lives_long_has_one_file_of_the_log_open(root: Path, harm: Callable[[Path], None]) -> None:
    """A service that meets a damaged log every second must not run out of files over it."""
    with open_fabric(root, actor="pm") as fabric:
        fabric.create("First")
        for number in range(_TIMES):
            if harm is replace or not number:
                harm(log_file(root))
            with suppress(AofError):
                fabric.create("Again")
        assert len([path for path in opened(root) if ".jsonl" in path]) == 1


def test_the_file_of_yesterday_is_closed_once_nobody_flushes_it_any_more(tmp_path: Path) -> None:
    bench = Bench(tmp_path / "data")
    flushing, go_on = threading.Event(), threading.Event()

    class Slow(Log):
        def flush(self, fd: int | None = None, mark: object = None) -> None:
            if threading.current_thread() is not threading.main_thread():
                flushing.set()
                assert go_on.wait(30)
                assert fd is not None
                assert os.readlink(f"/proc/self/fd/{fd}").endswith(f"{MONDAY}.jsonl"), "it is still the same file"
            super().flush(fd)

    log = Slow(bench.paths, bench.locks, bench.disk, durable=True)
    late = threading.Thread(target=log.append, args=(MONDAY, commit_of("late")))
    late.start()
    assert flushing.wait(30)
    log.append(TUESDAY, commit_of("early"))
    assert len([path for path in opened(tmp_path) if path.endswith(f"{MONDAY}.jsonl")]) == 1
    go_on.set()
    late.join(30)
    assert [path for path in opened(tmp_path) if ".jsonl" in path] == [f"{bench.paths.events}/{TUESDAY}.jsonl"]
    log.close()
    bench.close()
