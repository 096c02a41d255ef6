"""Wrote `format-1/`, a data directory of the first format. Kept to show how; a later format gets a sample of its own.

PYTHONPATH=src:. python tests/data/make_format_1.py
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path

from tests.support.desk import Desk

HERE = Path(__file__).parent


def make(desk: Desk) -> None:
    """One task in each status, runs and retries, a dependency, a person's layout and an edit by hand."""
    fabric = desk.fabric
    ready = desk.create("Ready", agent="ada", tags=["api", "größer"], priority="high", metadata={"size": "xl"})
    desk.create("Waits for the first", depends_on=[ready], parent_id=ready)
    laid_out = desk.create("In the backlog", backlog=True)
    desk.change(laid_out, 'priority: "normal"', "priority: low   # some day\nsprint:\n  - 7   # or 8")
    fabric.get(laid_out)
    fabric.edit(laid_out, title="In the backlog, for now")
    running = desk.create("Running", resource="gpu", key="once")
    desk.clock.time += 1_000
    run = fabric.claim(running, agent="ada").run_id
    fabric.progress(running, run=run, agent="ada", text="half way", percent=50)
    review = desk.create("In review")
    run = fabric.claim(review, agent="bob").run_id
    fabric.complete(review, run=run, agent="bob", summary="please look")
    fabric.block(desk.create("Blocked"), reason="waiting for the customer", kind="waiting_input")
    done = desk.create("Done at the second try", review=False)
    desk.clock.time += 60_000
    run = fabric.claim(done, agent="ada").run_id
    fabric.fail(done, run=run, agent="ada", message="no luck")
    desk.clock.time += 3_600_000
    run = fabric.claim(done, agent="bob").run_id
    fabric.complete(done, run=run, agent="bob", summary="done", notes="fine", deliverables=["outputs/result.txt"])
    fabric.cancel(desk.create("Cancelled"), reason="not wanted")
    dead = desk.create("Dead", max_attempts=1)
    run = fabric.claim(dead, agent="ada").run_id
    fabric.fail(dead, run=run, agent="ada", message="broken", code="crashed")
    gone = desk.create("Archived", review=False)
    run = fabric.claim(gone, agent="ada").run_id
    fabric.complete(gone, run=run, agent="ada", summary="long ago")
    fabric.archive(gone)
    desk.clock.time += 24 * 3_600_000
    desk.create("On the next day")


def shown(desk: Desk) -> dict[str, object]:
    """All that a reader of the data sees."""
    rows = desk.fabric.list(archived=True).tasks
    return {row.id: desk.fabric.show(row.id) for row in rows}


def main() -> None:
    root = HERE / "format-1"
    shutil.rmtree(root, ignore_errors=True)
    desk = Desk(root)
    (root / "aof.toml").write_text("schemaVersion = 1\n")
    make(desk)
    text = json.dumps(shown(desk), indent=1, ensure_ascii=False, sort_keys=True)
    (HERE / "format-1.json").write_text(f"{text}\n")
    desk.store.close()
    for name in ("locks", "tmp", "events/torn"):
        shutil.rmtree(root / name)
    (root / "index.sqlite").unlink()


if __name__ == "__main__":
    main()
