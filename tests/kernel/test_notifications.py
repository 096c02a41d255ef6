"""Who is told that a task came to review, was blocked or is done."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from aof.api.fabric import Fabric
from aof.kernel.model import TRANSITIONS, Policy
from aof.kernel.ports import Notification
from aof.service.bootstrap import open_fabric
from aof.service.upkeep import trust_data_dir
from aof.store.files.store import FilesystemStore
from aof.testing import FakeClock
from tests.support.command_line import Aof
from tests.support.messages import Post, accepted, prefixed, rejected, report, request, update
from tests.support.requirements import requirement
from tests.support.room import Room

TOLD = ("review", "blocked", "done")


class Recorder:
    """Remembers what it was told."""

    def __init__(self) -> None:
        self.told: list[Notification] = []

    def notify(self, notification: Notification) -> None:
        """Remember it."""
        self.told.append(notification)

    def news(self) -> list[tuple[str, str]]:
        """What was told since the last time."""
        told, self.told = self.told, []
        return [(one.task_id, one.status) for one in told]


@pytest.fixture
def recorder(room: Room) -> Iterator[Recorder]:
    """A notifier on the room's fabric."""
    made = Recorder()
    room.fabric.close()
    store = FilesystemStore(str(room.root), room.clock, durable=False)
    room.fabric = Fabric(store, room.clock, Policy(), "pm", notifier=made)
    yield made
    room.reopen()


@requirement("aof1.notify.on-update-transition")
def test_a_move_by_message_is_told_when_somebody_should_look(post: Post, recorder: Recorder) -> None:
    for origin, targets in TRANSITIONS.items():
        for target in targets:
            task_id = post.room.task(origin)
            recorder.news()
            sender = "zed" if (origin, target) == ("review", "done") else "ada"  # who ran it does not approve it
            post.takes(update(task_id, sender, status=target, notes="n"))
            assert post.status(task_id) == target
            assert recorder.news() == ([(task_id, target)] if target in TOLD else [])
    task_id = post.running()
    post.takes(update(task_id, notes="only an entry"))
    post.send(update(task_id, status="done", notes="not possible"))
    assert recorder.news() == []


@requirement("aof1.notify.on-completion")
@pytest.mark.parametrize("how", ["session end", "recovery"])
@pytest.mark.parametrize("to", [("blocked", "blocked"), ("partial", "review"), ("done", "done")])
def test_a_report_is_told_when_it_is_carried_out(
    post: Post, recorder: Recorder, clock: FakeClock, how: str, to: tuple[str, str]
) -> None:
    outcome, target = to
    task_id = post.running(review=False)
    post.takes(report(task_id, outcome=outcome, blockers=["no key"]))
    assert recorder.told == []
    if how == "recovery":
        clock.sleep(300)
        post.fabric.recover()
    else:
        post.fabric.session_end()
    assert recorder.news() == [(task_id, target)]
    post.fabric.session_end()
    post.send(report(task_id, outcome=outcome, blockers=["no key"]))
    assert recorder.news() == []


@requirement("aof1.notify.on-handoff-rejected")
def test_a_handoff_that_was_turned_down_is_told(post: Post, recorder: Recorder) -> None:
    parent, child = post.pair()
    post.takes(request(child, parent))
    post.takes(accepted(child))
    assert recorder.told == []
    post.takes(rejected(child, reason="no test plan"))
    (told,) = recorder.told
    assert (told.task_id, told.status, told.reason, told.actor) == (child, "blocked", "no test plan", "bob")
    post.send(rejected(child, reason="no test plan"))
    assert recorder.news() == [(child, "blocked")]


@requirement("aof1.notify.configurable")
def test_a_command_and_a_file_are_told_as_the_settings_say(room: Room, clock: FakeClock, aof: Aof) -> None:
    keep = room.root / "keep.py"
    keep.write_text(f"import sys; open({str(room.root / 'told.jsonl')!r}, 'a').write(sys.stdin.read())")
    settings = f'[notify]\ncommand = [{json.dumps(sys.executable)}, "keep.py"]\nfile = "also.jsonl"\n'
    (room.root / "aof.toml").write_text(settings)
    trust_data_dir(room.root)
    reviewed, blocked = room.task(), room.task()
    with open_fabric(room.root, clock=clock) as fabric:
        for task_id in (reviewed, blocked):
            fabric.claim(task_id, agent="ada")
        fabric.send(update(reviewed, status="review", notes="look"), update(blocked, status="blocked", notes="help"))
    for _ in range(2):
        fabric = open_fabric(room.root, clock=clock)
        fabric.send(update(blocked, "ada", status="blocked"))
        fabric.close()
    for name in ("told.jsonl", "also.jsonl"):
        told = [json.loads(line) for line in (room.root / name).read_text().splitlines()]
        assert [(one["taskId"], one["status"], one["reason"]) for one in told] == [
            (reviewed, "review", "look"),
            (blocked, "blocked", "help"),
        ]
        assert {"title", "fromStatus", "actor", "timestamp", "seq"} <= told[0].keys()


@pytest.mark.parametrize("command", [["/does/not/exist"], [sys.executable, "-c", "raise SystemExit(3)"], ["/dev/null"]])
def test_a_notifier_that_fails_is_warned_of_and_fails_nothing(
    room: Room, command: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    (room.root / "aof.toml").write_text(f'[notify]\ncommand = {json.dumps(command)}\nfile = "told.jsonl"\n')
    trust_data_dir(room.root)
    task_id = room.task()
    with open_fabric(room.root, clock=room.clock) as fabric:
        assert fabric.block(task_id, reason="no key").status == "blocked"
    assert task_id in capsys.readouterr().err
    assert (room.root / "told.jsonl").read_text().count("\n") == 1


def test_a_file_outside_the_data_directory_is_written_only_after_it_was_trusted(
    room: Room, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    outside = tmp_path / "elsewhere" / "profile"
    outside.parent.mkdir()
    (room.root / "aof.toml").write_text(f"[notify]\nfile = {json.dumps(str(outside))}\n")
    first, second, third = room.task(), room.task(), room.task()
    with open_fabric(room.root, clock=room.clock) as fabric:
        fabric.block(first, reason="$(touch /tmp/x)")
        fabric.block(second, reason="no key")
    assert not outside.exists()
    assert capsys.readouterr().err.count("is not trusted; see it and allow it: aof trust") == 1
    trust_data_dir(room.root)
    with open_fabric(room.root, clock=room.clock) as fabric:
        fabric.block(third, reason="no key")
    assert [json.loads(line)["taskId"] for line in outside.read_text().splitlines()] == [third]


def test_a_pipe_in_the_place_of_the_file_keeps_nobody_waiting(room: Room, capsys: pytest.CaptureFixture[str]) -> None:
    (room.root / "aof.toml").write_text('[notify]\nfile = "told.jsonl"\n')
    os.mkfifo(room.root / "told.jsonl")
    reader = os.open(room.root / "told.jsonl", os.O_RDONLY | os.O_NONBLOCK)
    task_id = room.task()
    with open_fabric(room.root, clock=room.clock) as fabric:
        assert fabric.block(task_id, reason="no key").status == "blocked"
        os.close(reader)
        assert fabric.unblock(task_id).status == "ready"
        assert fabric.block(task_id, reason="no key").status == "blocked"
    assert capsys.readouterr().err.count("nobody was notified") == 2


def test_a_notifier_of_somebodys_own_may_fail_too(room: Room) -> None:
    class Broken:
        def notify(self, notification: Notification) -> None:
            raise RuntimeError(notification.task_id)

    task_id = room.task()
    store = FilesystemStore(str(room.root), room.clock, durable=False)
    with Fabric(store, room.clock, Policy(), "pm", notifier=Broken()) as fabric:
        with pytest.warns(RuntimeWarning, match=task_id):
            fabric.block(task_id, reason="no key")
        assert fabric.get(task_id).status == "blocked"


def test_whoever_is_blocked_by_another_task_is_told_too(post: Post, recorder: Recorder) -> None:
    first = post.room.task()
    after = post.room.task(depends_on=[first])
    post.send(prefixed(update(first, status="cancelled", notes="no longer wanted")))
    assert recorder.news() == [(after, "blocked")]
