"""Short stories about a data directory: what is there before, and the commands that something then happens to.

Every story uses the surface that people use. What it acknowledges is noted as it goes along.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from aof.api.fabric import Fabric
from aof.store.files.disk import Disk
from aof.store.files.locks import STATE_AT
from aof.store.files.store import FilesystemStore
from tests.support import messages
from tests.support.clock import DAY, MONDAY, ManualClock
from tests.support.disks import Killed, SteppingDisk
from tests.support.invariants import SAME_BOOT, fabric_on, log_lines
from tests.support.same_place import adopt

ONE, TWO, THREE = (f"TASK-2026-03-02-00{number}" for number in (1, 2, 3))
HOUR = 60 * 60 * 1000


class Teller:
    """A fabric on a directory with a clock, and what it has acknowledged so far."""

    def __init__(
        self, root: Path, disk: Disk | None = None, *, now: int = MONDAY, boot: str = SAME_BOOT, durable: bool = True
    ) -> None:
        self.root = root
        self.clock = ManualClock(now)
        self.lines: list[bytes] = []
        self.store = FilesystemStore(
            str(root), self.clock, disk=disk or SteppingDisk(), boot_id=lambda: boot, durable=durable
        )
        self.fabric: Fabric = fabric_on(self.store, self.clock)

    def acknowledged(self) -> None:
        """Whatever is in the log now was answered with success."""
        self.lines = log_lines(self.root)

    def tell(self, *commands: Callable[[Teller], object]) -> Teller:
        """Carry out commands one after the other."""
        for command in commands:
            command(self)
            self.acknowledged()
        return self

    def close(self) -> None:
        """Let go, as a process that ends or is killed does: files are closed, nothing is written."""
        self.store.close()


Command = Callable[[Teller], object]


def create(title: str = "Write it", **given: object) -> Command:
    return lambda t: t.fabric.create(title, brief="A brief.\n", **given)  # type: ignore[arg-type]


def claim(task_id: str = ONE, agent: str = "ada") -> Command:
    return lambda t: t.fabric.claim(task_id, agent=agent)


def beat(task_id: str = ONE, agent: str = "ada") -> Command:
    return lambda t: t.fabric.heartbeat(task_id, agent=agent, run=_run(t, task_id))


def progress(task_id: str = ONE, agent: str = "ada") -> Command:
    return lambda t: t.fabric.progress(task_id, agent=agent, run=_run(t, task_id), text="half way", percent=50)


def lock(path: str, task_id: str = ONE) -> Command:
    return lambda t: t.fabric.lock(path, task_id=task_id, run=_run(t, task_id))


def share(task_id: str = ONE) -> Command:
    return lambda t: t.fabric.context_set(task_id, variables={"port": 8080}, run=_run(t, task_id))


def complete(task_id: str = ONE, agent: str = "ada") -> Command:
    return lambda t: t.fabric.complete(task_id, agent=agent, run=_run(t, task_id), summary="All done.", notes="fine")


def release(task_id: str = ONE, agent: str = "ada") -> Command:
    return lambda t: t.fabric.release(task_id, agent=agent, run=_run(t, task_id), reason="not today")


def fail(task_id: str = ONE, agent: str = "ada") -> Command:
    return lambda t: t.fabric.fail(task_id, agent=agent, run=_run(t, task_id), message="no luck")


def send(fields: messages.Fields) -> Command:
    """A protocol message."""
    return lambda t: t.fabric.send(fields)


def report(task_id: str = ONE, agent: str = "ada") -> Command:
    """A completion report."""
    return send(messages.report(task_id, agent, notes="fine"))


def delegate(to_agent: str = "bob") -> Command:
    """The second task is handed to another agent by the first one's."""
    criteria = [f"criterion {number}" for number in range(40)]
    return send(messages.request(TWO, ONE, "ada", to_agent, acceptanceCriteria=criteria))


def turn_down(agent: str = "bob") -> Command:
    """The addressee does not take it."""
    return send(messages.rejected(TWO, agent, "too little context"))


def hand(kind: str, task_id: str = ONE, to_agent: str = "bob", **given: Any) -> Command:
    """The first task's agent hands something to another one."""

    def new(teller: Teller) -> None:
        teller.fabric.handoff_new(
            type=kind, task_id=task_id, from_agent="ada", to=[to_agent], reason="needs another pair of eyes", **given
        )

    return new


def answer(how: str, agent: str = "bob", **given: Any) -> Command:
    """The receiver of the last handoff that is open does something about it."""

    def act(teller: Teller) -> None:
        last = teller.fabric.handoff_list(state="open")[-1]
        getattr(teller.fabric, f"handoff_{how}")(last.id, agent=agent, **given)

    return act


def later(millis: int) -> Command:
    def wait(teller: Teller) -> None:
        teller.clock.time += millis

    return wait


def own_files(task_id: str = ONE) -> Command:
    """Somebody keeps a file with the task."""

    def write(teller: Teller) -> None:
        folder = next(teller.root.glob(f"tasks/*/{task_id}.md")).with_suffix("") / "outputs"
        folder.mkdir(parents=True)
        (folder / "result.txt").write_text("kept")

    return write


def edit_by_hand(task_id: str = ONE) -> Command:
    """A person changes title and text in an editor."""

    def write(teller: Teller) -> None:
        path = next(teller.root.glob(f"tasks/*/{task_id}.md"))
        text = path.read_text()
        assert '"Write it"' in text
        path.write_text(text.replace('"Write it"', '"By hand"').replace("A brief.", "A better brief."))

    return write


def move_by_hand(task_id: str, folder: str) -> Command:
    """A person moves the file."""

    def move(teller: Teller) -> None:
        path = next(teller.root.glob(f"tasks/*/{task_id}.md"))
        path.rename(teller.root / "tasks" / folder / path.name)

    return move


def _run(teller: Teller, task_id: str) -> str:
    lease = teller.fabric.get(task_id).lease
    assert lease is not None
    return lease.run_id


class Story(NamedTuple):
    """What is there before, the commands in question, and whether people wrote to files."""

    before: tuple[Command, ...]
    then: tuple[Command, ...]
    by_hand: bool = False


_FAILED_ONCE = (create(), claim(), beat(), own_files(), fail(), later(HOUR))
_TREE = (create(), create("Below", parent_id=ONE), create("Further below", parent_id=TWO))

STORIES: dict[str, Story] = {
    "create": Story((), (create(),)),
    "create a dependent": Story((create(),), (create("After it", depends_on=[ONE]),)),
    "claim": Story((create(), own_files()), (claim(),)),
    "claim again": Story(_FAILED_ONCE, (claim(agent="bob"),)),
    "claim a third time": Story((*_FAILED_ONCE, claim(), beat(), release()), (claim(agent="bob"), beat(agent="bob"))),
    "progress": Story((create(), claim()), (progress(),)),
    "lock and share": Story((create(), claim(), lock("docs")), (lock("src"), share())),
    "complete without review": Story((create(review=False), own_files(), claim(), beat()), (complete(),)),
    "complete what another waits for": Story(
        (create(review=False), create("After it", depends_on=[ONE]), claim()), (complete(),)
    ),
    "cancel a tree": Story(_TREE, (lambda t: t.fabric.cancel(ONE, reason="no longer wanted"),)),
    "archive": Story(
        (create(review=False), own_files(), *(claim(), fail(), later(HOUR), claim(), complete())),
        (lambda t: t.fabric.archive(ONE),),
    ),
    "unarchive": Story(
        (create(review=False), own_files(), claim(), complete(), lambda t: t.fabric.archive(ONE)),
        (lambda t: t.fabric.unarchive(ONE), lambda t: t.fabric.archive(ONE), lambda t: t.fabric.reopen(ONE)),
    ),
    "take in an edit": Story((create(), edit_by_hand()), (lambda t: t.fabric.get(ONE),), by_hand=True),
    "take in an edit and claim": Story((create(), edit_by_hand()), (claim(),), by_hand=True),
    "take in a move": Story(
        (create(), own_files(), move_by_hand(ONE, "backlog")), (lambda t: t.fabric.get(ONE),), by_hand=True
    ),
    "report": Story((create(), claim()), (report(),)),
    "report again": Story((create(), claim(), report()), (complete(), report())),
    "end the session": Story(
        (create(review=False), claim(), report(), own_files()), (lambda t: t.fabric.session_end(),)
    ),
    "delegate": Story((create(), create("Below"), claim()), (delegate(),)),
    "delegate again": Story((create(), create("Below"), claim(), delegate()), (delegate("cem"), claim(TWO, "cem"))),
    "turn down": Story((create(), create("Below"), claim(), delegate()), (turn_down(),)),
    "hand over": Story((create(), claim()), (hand("sequential", segment_complete=True), answer("accept"))),
    "hand a part over": Story(
        (create(), create("Below"), claim()),
        (
            hand("delegation", TWO, timeout="5m", variables={"part": 1}, artifacts=["outputs/plan.md"]),
            answer("accept"),
            answer("return", status="success", result={"ok": True}, variables_changed={"tests": 3}),
        ),
    ),
    "turn a handoff down": Story(
        (create(), claim(), hand("escalation", rationale="unclear")),
        (answer("reject", reason="not mine"), answer("answer", "pm", text="go on")),
    ),
    "refuse a message": Story((create(), claim()), (report(agent="bob"), report("TASK-2026-03-02-404"), progress())),
    "a new day": Story((create(), later(DAY)), (claim(), progress())),
    "a checkpoint": Story((create(), claim()), (progress(), lambda t: t.store.checkpoint(), progress())),
}


def prepare(root: Path, story: Story, *, boot: str = SAME_BOOT) -> Teller:
    """Make a data directory and let everything happen that comes before."""
    FilesystemStore.create(str(root), SteppingDisk())
    teller = Teller(root, boot=boot)
    try:
        return teller.tell(*story.before)
    finally:
        teller.close()


def copy(source: Path, target: Path) -> Path:
    """The same directory once more; of the many lock files only those that say something."""
    if target.exists():
        remove(str(target))
    _copy(str(source), str(target))
    adopt(target)
    return target


def _copy(source: str, target: str) -> None:
    os.mkdir(target)
    for entry in os.scandir(source):
        place = f"{target}/{entry.name}"
        if entry.is_dir():
            _copy(entry.path, place)
            continue
        with open(entry.path, "rb", buffering=0) as file:
            data = file.readall()
        if not (entry.name.startswith("stripe-") and data[STATE_AT : STATE_AT + 5] in (b"", b"idle\n")):
            with open(place, "wb", buffering=0) as file:
                file.write(data)


def remove(target: str) -> None:
    """Nobody else is there, so this asks less than `shutil.rmtree` does, and takes half as long."""
    for entry in os.scandir(target):
        if entry.is_dir(follow_symlinks=False):
            remove(entry.path)
        else:
            os.unlink(entry.path)
    os.rmdir(target)


def told(root: Path, story: Story, disk: Disk, before: Teller) -> Teller:
    """Carry out the commands on a disk; they may be cut short."""
    teller = Teller(root, disk, now=before.clock.time)
    teller.lines = before.lines
    try:
        teller.tell(*story.then)
    except Killed:
        pass
    finally:
        teller.close()
    return teller
