"""What must hold of every data directory, whatever happened to it before.

`check_invariants` opens the directory as the next command would, lets leftovers be redone, and compares log, files,
runs, heads and index with each other. It trusts the core's `evolve`, and nothing else that it can work out itself.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from hashlib import sha256
from pathlib import Path
from typing import Any

import msgspec

from aof.api.fabric import Fabric
from aof.handoffs.model import Handoff
from aof.kernel.events import Event, is_remark
from aof.kernel.model import Policy
from aof.runs.model import Heartbeat
from aof.store.files import markdown as files_markdown
from aof.store.files.changes import PERSON
from aof.store.files.locks import STATE_AT
from aof.store.files.paths import folder_of
from aof.store.files.store import FilesystemStore
from aof.store.files.task_files import document
from aof.store.fold import Folded, fold
from aof.store.lists import Query
from tests.support.clock import ManualClock
from tests.support.disks import SteppingDisk
from tests.support.verified import verify

LATER = 4_000_000_000_000  # a moment after everything that a test does
SAME_BOOT = "the-same-boot"


def open_store(root: str | os.PathLike[str], clock: ManualClock | None = None, **given: Any) -> FilesystemStore:
    """A store on a directory, with a boot id that tests can tell, and a disk that never syncs."""
    given.setdefault("boot_id", lambda: SAME_BOOT)
    given.setdefault("disk", SteppingDisk())
    return FilesystemStore(os.fspath(root), clock or ManualClock(), **given)


def fabric_on(store: FilesystemStore, clock: ManualClock | None = None) -> Fabric:
    """A fabric over a store."""
    return Fabric(store, clock or ManualClock(), Policy(), "tester")


def log_lines(root: str | os.PathLike[str]) -> list[bytes]:
    """The lines of the log from its root to its one tip, as they lie there; lanes say what they build on."""
    files = {path.name: path.read_bytes() for path in sorted(Path(root, "events").glob("*.jsonl"))}
    days = [name for name in files if len(name) == len("2026-01-01.jsonl")]
    headers = {name: json.loads(files[name].split(b"\n", 1)[0]) for name in files if name not in days}
    built_on = {(after["file"], after["offset"]) for after in (one["after"] for one in headers.values())}
    built_on |= {
        (head["file"], head["offset"]) for one in headers.values() if "merge" in one for head in one["merge"]["heads"]
    }
    last = [day for day in days if files[day]][-1:]
    ends = [name for name in (*last, *headers) if (name, len(files[name])) not in built_on]
    assert len(ends) <= 1, f"the log has several tips: {ends}"
    parts: list[bytes] = []
    here, end = (ends or [""])[0], None
    while here in headers:
        after = headers[here]["after"]
        parts.append(files[here][:end].split(b"\n", 1)[1])
        here, end = after["file"], after["offset"]
    earlier = [files[day] for day in days if day < here]
    whole = b"".join([*earlier, files.get(here, b"")[:end], *reversed(parts)])
    return whole.splitlines(keepends=True)


def check_invariants(
    root: str | os.PathLike[str],
    acknowledged: Iterable[tuple[str, int]] = (),
    *,
    lines: Iterable[bytes] = (),
    boot: str = SAME_BOOT,
    edited: bool = False,
    durable: bool = True,
) -> dict[str, Folded]:
    """Open the directory, settle it, and check everything.

    `acknowledged` are tasks with the number of an event that somebody was told is committed, `lines` are lines of the
    log that must be there byte for byte. `boot` other than the last opener's lets everything be redone, as after a
    power cut. `edited` says that people have written to files: what waits is then taken in first.
    Returns what the log says of each task.
    """
    store = open_store(root, boot_id=lambda: boot, durable=durable)
    try:
        store.locks.release(store.stripes.take_all())
        store.log.refresh(sound=True)  # the tail of a remark, which no stripe notes, is cut by the next who appends
        known = {event.task_id for event in store.events() if not is_remark(event)}
        if edited:
            fabric = fabric_on(store, ManualClock(LATER))
            for task_id in sorted(known | set(files_of(root))):
                fabric.get(task_id)
        events = check_log(root)
        verify(store.reader)
        assert [event.seq for event in store.events()] == [event.seq for event in events]
        if not edited:
            assert not [event for event in events if event.actor == PERSON], "nobody has edited anything"
        _check_acknowledged(events, acknowledged, log_lines(root), lines)
        folded = fold(events)
        check_files(root, folded)
        _check_heads(store, folded)
        _check_intents(root)
        _check_index(store, folded)
        _check_nothing_is_odd(store, folded, len(events))
    finally:
        store.close()
    return folded


def check_log(root: str | os.PathLike[str]) -> list[Event]:
    """Every line follows from the one before, and every commit is whole."""
    events: list[Event] = []
    previous, number, open_commit = "0" * 64, 0, (0, 0)
    for line in log_lines(root):
        assert line.endswith(b"\n"), "the log ends with a whole line"
        event = msgspec.json.decode(line, type=Event)
        text = line[: line.rindex(b',"hash":"')]
        assert sha256(previous.encode() + text).hexdigest() == event.hash, f"event {event.seq} is in the chain"
        assert event.seq > number, "numbers only grow"
        place, size = event.commit
        begins = open_commit[0] == open_commit[1]
        assert (place, size) == ((1, size) if begins else (open_commit[0] + 1, open_commit[1])), "commits are whole"
        previous, number, open_commit = event.hash, event.seq, event.commit
        events.append(event)
    assert open_commit[0] == open_commit[1], "the last commit is whole"
    return events


def _check_acknowledged(
    events: list[Event], acknowledged: Iterable[tuple[str, int]], found: list[bytes], lines: Iterable[bytes]
) -> None:
    there = {(event.task_id, event.seq) for event in events}
    lost = [one for one in acknowledged if one not in there]
    assert not lost, f"acknowledged, and not in the log: {lost}"
    have = frozenset(found)
    gone = [line for line in lines if line not in have]
    assert not gone, f"lines that were durable are gone: {gone}"


def files_of(root: str | os.PathLike[str]) -> dict[str, list[str]]:
    """Where each task has a file: folders by ID."""
    found: dict[str, list[str]] = {}
    for folder in _task_folders(root):
        name = "archive" if folder.parent.name == "archive" else folder.name
        for file in os.listdir(folder):
            if file.startswith("TASK-") and file.endswith(".md"):
                found.setdefault(file.removesuffix(".md"), []).append(name)
    return found


def _task_folders(root: str | os.PathLike[str]) -> list[Path]:
    return [*(Path(one.path) for one in os.scandir(Path(root, "tasks")) if one.is_dir()), Path(root, "archive/tasks")]


def check_files(root: str | os.PathLike[str], folded: dict[str, Folded]) -> None:
    """Every task lies in one folder, with the bytes that follow from the log; its runs too."""
    where, folders = files_of(root), _task_folders(root)
    assert where.keys() == folded.keys(), "files and log know the same tasks"
    for task_id, one in folded.items():
        task = one.task
        assert task is not None
        assert where[task_id] == [folder_of(task)], f"{task_id} is in one folder"
        ((path, digest),) = one.last_files.items()
        data = Path(root, path).read_bytes()
        assert data == files_markdown.render(task), f"the file of {task_id} is what the log says"
        assert sha256(data).hexdigest() == digest
        for folder in folders:
            own = folder / task_id
            assert folder == Path(root, path).parent or not own.exists(), "a task's own files move with it"
        _check_runs(Path(root), task_id, one, archived=task.archived)
        _check_handoffs(Path(root), Path(root, path).with_suffix(""), one)
    written = {path.stem for path in Path(root, "handoffs").glob("*.json")}
    assert written == {name for one in folded.values() for name in one.handoffs}, "every handoff has a record"
    for place in ("runs", "archive/runs"):
        names = {path.name for path in Path(root, place).iterdir()} - {".gitkeep"}
        assert names <= folded.keys(), "only tasks have runs"


def _check_runs(root: Path, task_id: str, folded: Folded, *, archived: bool) -> None:
    current = root / ("archive/runs" if archived else "runs") / task_id
    other = root / ("runs" if archived else "archive/runs") / task_id
    assert not other.exists(), f"the runs of {task_id} are in one place"
    if not folded.runs:
        assert not (current / "run.json").exists(), f"{task_id} has not been run"
        return
    numbers = [str(run.attempt) for run in folded.runs[:-1]]
    kept = current / "attempts"
    assert sorted(path.name for path in kept.iterdir()) == sorted(numbers) if numbers else not kept.exists()
    for run in folded.runs:
        place = current if run is folded.runs[-1] else kept / str(run.attempt)
        assert (place / "run.json").read_bytes() == document(run), f"run {run.run_id} is what the log says"
        result = folded.results.get(run.run_id)
        if result is None:
            assert not (place / "run_result.json").exists(), f"run {run.run_id} has reported nothing"
        else:
            assert (place / "run_result.json").read_bytes() == document(result)
        beat = _heartbeat(place / "run_heartbeat.json")
        assert beat is None or beat.run_id == run.run_id, "a sign of life is of its own run"


def _check_handoffs(root: Path, own: Path, folded: Folded) -> None:
    for name, handoff in folded.handoffs.items():
        found = msgspec.json.decode((root / "handoffs" / f"{name}.json").read_bytes(), type=Handoff)
        assert found == handoff, f"handoff {name} is what the log says"
    for place, data in folded.attached.items():
        assert (own / place).read_bytes() == data, f"{place} is what the log says"


def _heartbeat(path: Path) -> Heartbeat | None:
    """It is never flushed, so it may be torn."""
    try:
        return msgspec.json.decode(path.read_bytes(), type=Heartbeat)
    except (FileNotFoundError, msgspec.DecodeError, UnicodeDecodeError):
        return None


def _check_heads(store: FilesystemStore, folded: dict[str, Folded]) -> None:
    for task_id, one in folded.items():
        task, head = one.task, store.heads.get(task_id)
        assert task is not None
        assert head is not None, f"the head of {task_id} is known"
        assert (head.rev, head.folder) == (task.rev, folder_of(task)), f"the head of {task_id} is the log's"
        assert head.matches(files_markdown.render(task))


def _check_intents(root: str | os.PathLike[str]) -> None:
    for entry in os.scandir(os.path.join(root, "locks")):
        if entry.name.startswith("stripe-"):
            with open(entry.path, "rb", buffering=0) as file:
                state = file.readall()[STATE_AT:]
            assert not state or state.startswith(b"idle\n"), f"{entry.name} is idle: {state!r}"


def _check_index(store: FilesystemStore, folded: dict[str, Folded]) -> None:
    found = {task.id: task for task in store.find(Query(archived=True)).tasks}
    for task_id, one in folded.items():
        assert one.task is not None
        expected = msgspec.structs.replace(one.task, body="", layout=None)
        assert msgspec.structs.replace(found[task_id], archived=one.task.archived) == expected, (
            f"the index knows {task_id}"
        )
    assert found.keys() == folded.keys()


def _check_nothing_is_odd(store: FilesystemStore, folded: dict[str, Folded], count: int) -> None:
    """Looking at every task finds nothing to take in."""
    fabric = fabric_on(store)
    for task_id, one in folded.items():
        assert fabric.get(task_id) == one.task
        assert list(store.attempts(task_id)) == one.runs
    assert len(list(store.events())) == count, "looking changes nothing"


def check_it_goes_on(root: str | os.PathLike[str], *, boot: str = SAME_BOOT, durable: bool = True) -> None:
    """A task can be carried from the beginning to the end, and everything that was there can still be read."""
    clock = ManualClock(LATER)
    store = open_store(root, clock, boot_id=lambda: boot, durable=durable)
    try:
        fabric = fabric_on(store, clock)
        task_id = fabric.create("Carry on", brief="As if nothing had happened.", review=False).task_id
        run = fabric.claim(task_id, agent="late").run_id
        fabric.heartbeat(task_id, run=run, agent="late")
        fabric.progress(task_id, run=run, agent="late", text="half")
        assert fabric.complete(task_id, run=run, agent="late", summary="done").status == "done"
        rev = fabric.get(task_id).rev
    finally:
        store.close()
    check_invariants(root, [(task_id, rev)], boot=boot, edited=True, durable=durable)
