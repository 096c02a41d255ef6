"""One run of a task at a peer, in this process: claim, delegate, look."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import anyio

from aof.api.fabric import Fabric
from aof.service.bootstrap import init_data_dir, open_fabric
from aof.surfaces.a2a.delegation import MOST_ANSWER_BYTES, MOST_WRITES, DelegatedRun, Delegation, http_client
from aof.tasks.model import Task
from tests.support.portable import valid

SETTINGS = 'schemaVersion = 1\n[storage]\ndurability = "relaxed"\n[retry]\nbase = 0.0\n'
PATIENT = 20.0  # seconds: a peer that answers is heard on a busy machine, too
IMPATIENT = 0.5  # for a peer from which nothing is to come


@contextmanager
def fabric_of(folder: Path) -> Iterator[Fabric]:
    """A data directory in which a failed task may be tried again at once."""
    root = Path(init_data_dir(folder / ".aof")[0])
    (root / "aof.toml").write_text(SETTINGS, encoding="utf-8")
    with open_fabric(root, actor="pia") as fabric:
        yield fabric


def run_at(
    fabric: Fabric,
    task_id: str,
    url: str,
    *,
    agent: str = "pia",
    patience: float = PATIENT,
    most: int = MOST_ANSWER_BYTES,
    writes: int = MOST_WRITES,
) -> Task:
    """One run, from its claim to its end; the task afterwards."""
    run = fabric.claim(task_id, agent=agent, worker="a2a")

    async def worked() -> None:
        async with http_client(url, None, most) as http:
            await Delegation(DelegatedRun(fabric, run, f"{agent} {url}", writes), http, url, patience).run()

    anyio.run(worked)
    return fabric.get(task_id)


def portable(fabric: Fabric, task_id: str) -> dict[str, Any]:
    """The task as the snapshot shows it."""
    found: dict[str, Any] = next(one for one in valid(fabric.snapshot())["tasks"] if one["taskId"] == task_id)
    return found


def output(fabric: Fabric, task_id: str, path: str) -> bytes:
    """A file of the task."""
    files = fabric.store.working_copy
    assert files is not None
    return (Path(files.root) / fabric.store.path_of(fabric.get(task_id)).removesuffix(".md") / path).read_bytes()
