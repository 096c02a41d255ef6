"""A short life of a data directory in a process of its own, which may be killed at any of its system calls.

`python -m tests.support.child <directory> <file>`: carries out commands with the real disk and the real clock, and
writes a line to the file for each one that was acknowledged: the task, and the number of its last event.
"""

from __future__ import annotations

import os
import sys

from aof.api.fabric import Fabric
from aof.kernel.model import Policy
from aof.service.clock import SystemClock
from aof.store.files.store import FilesystemStore


def main(root: str, answers: str) -> None:
    """Live."""
    out = os.open(answers, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    clock = SystemClock()
    store = FilesystemStore(root, clock)
    fabric = Fabric(store, clock, Policy(retry_base_ms=0), "child")

    def told(task_id: str) -> None:
        os.write(out, f"{task_id} {fabric.get(task_id).rev}\n".encode())

    one = fabric.create("One", brief="A brief.", review=False).task_id
    told(one)
    run = fabric.claim(one, agent="ada").run_id
    told(one)
    fabric.fail(one, agent="ada", run=run, message="once")
    told(one)
    run = fabric.claim(one, agent="bob").run_id
    told(one)
    for number in range(3):
        fabric.progress(one, agent="bob", run=run, text=f"step {number}")
        told(one)
    two = fabric.create("Two", depends_on=[one], parent_id=one).task_id
    told(two)
    fabric.complete(one, agent="bob", run=run, summary="done", allow_open_children=True)
    told(one)
    fabric.cancel(two, reason="not needed")
    told(two)
    fabric.archive(one)
    told(one)
    store.checkpoint()
    fabric.close()


if __name__ == "__main__":
    main(*sys.argv[1:])
