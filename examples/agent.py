"""A small agent: claims what it can take, reports progress, completes, until nothing is left.

Run it by hand against any data directory: python examples/agent.py NAME DATA_DIR
"""

from __future__ import annotations

import os
import signal
import sys

import aof


def work(name: str, data_dir: str, *, dies_in: str | None = None) -> int:
    """Take tasks until there is none; tells how many were finished. In one task it may die on purpose."""
    finished = 0
    with aof.open(data_dir, actor=name) as fabric:
        while True:
            try:
                run = fabric.claim(agent=name, ttl=1.5)
            except aof.errors.NothingReady:
                return finished
            title = fabric.get(run.task_id).title
            fabric.progress(run.task_id, run=run.run_id, text="read the brief", percent=25)
            if dies_in is not None and dies_in in title:
                os.kill(os.getpid(), signal.SIGKILL)
            fabric.progress(run.task_id, run=run.run_id, text="did the work", percent=90)
            fabric.complete(run.task_id, run=run.run_id, summary=f"{title}: done by {name}")
            finished += 1


if __name__ == "__main__":
    work(sys.argv[1], sys.argv[2], dies_in=sys.argv[3] if len(sys.argv) > 3 else None)  # noqa: PLR2004 - optional word
