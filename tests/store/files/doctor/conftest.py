"""The directory that doctor looks at."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.desk import Desk


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    """A directory with a task in most statuses, runs, and a person's layout."""
    desk = Desk(tmp_path / "data")
    desk.create("Waiting")
    running = desk.create("Running")
    desk.fabric.claim(running, agent="ada")
    done = desk.create("Done", review=False)
    for agent in ("ada", "bob"):
        run = desk.fabric.claim(done, agent=agent).run_id
        if agent == "ada":
            desk.fabric.release(done, run=run, agent=agent)
    desk.fabric.complete(done, run=run, agent="bob", summary="done")
    laid_out = desk.create("Laid out", backlog=True)
    desk.change(laid_out, 'priority: "normal"', "priority: high   # mine")
    desk.fabric.get(laid_out)
    gone = desk.create("Gone")
    desk.fabric.cancel(gone)
    desk.fabric.archive(gone)
    desk.fabric.list()
    return desk
