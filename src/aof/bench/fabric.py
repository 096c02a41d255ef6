"""AOF's own lifecycle: create, claim by ID, complete without a review. Three durable commits, with all their files.

Must not know how it is measured.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from aof.app.fabric import Fabric
from aof.bench.rounds import Operation, Subject
from aof.entrypoints.bootstrap import init_data_dir, open_fabric

COMMITS = 3
TITLE = "Compare the two parsers"
BRIEF = "Read both, time both on the same files, and say which one to keep and why. " * 3
SUMMARY = "The second one: it is twice as fast, and refuses what it does not know."


def prepare(folder: Path, durability: str = "full") -> str:
    """A new data directory."""
    root, _ = init_data_dir(folder / "data")
    set_durability(root, durability)
    return root


def set_durability(root: str, durability: str) -> None:
    """Change how the data directory is opened from now on."""
    storage = "" if durability == "full" else f'\n[storage]\ndurability = "{durability}"\n'
    Path(root, "aof.toml").write_text(f"schemaVersion = 1\n{storage}", encoding="utf-8")


def create(fabric: Fabric) -> str:
    """The first commit."""
    return fabric.create(TITLE, brief=BRIEF, review=False).task_id


def claim(fabric: Fabric, task_id: str) -> str:
    """The second commit."""
    return fabric.claim(task_id, agent="bench").task_id


def complete(fabric: Fabric, task_id: str) -> str:
    """The third commit."""
    return fabric.complete(task_id, agent="bench", summary=SUMMARY).task_id


def lifecycle(fabric: Fabric) -> None:
    """All three."""
    complete(fabric, claim(fabric, create(fabric)))


@contextmanager
def _opened(folder: Path, number: int) -> Iterator[Operation]:
    with open_fabric(folder / "data", actor=f"bench-{number}") as fabric:
        yield lambda: lifecycle(fabric)


LIFECYCLE = Subject("AOF", COMMITS, prepare, _opened)


def bytes_per_commit(folder: Path) -> float:
    """How much of the log one commit of a lifecycle takes."""
    root = prepare(folder, "relaxed")
    count = 20
    with open_fabric(root, actor="bench") as fabric:
        for _ in range(count):
            lifecycle(fabric)
    return sum(path.stat().st_size for path in Path(root, "events").glob("*.jsonl")) / (count * COMMITS)
