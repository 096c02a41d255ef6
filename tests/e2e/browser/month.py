"""A month of work at a lighthouse, for the pictures: done before the service begins, by a clock that is set back."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from aof.api.fabric import Fabric
from aof.service.bootstrap import open_fabric
from tests.support.clock import DAY, ManualClock
from tests.support.service import directory, workflow

MINUTE = 60_000
HOUR = 60 * MINUTE
AGENTS: dict[str, Any] = {
    "pm": {"roles": ["lead"], "runner": {"kind": "human"}},
    "ada": {"roles": ["developer"], "concurrency": 4, "team": "light"},
    "bob": {"roles": ["reviewer"], "concurrency": 2, "team": "light"},
    "cleo": {"roles": ["developer", "surveyor"], "concurrency": 3, "team": "sea"},
}
SETTINGS = """schemaVersion = 1
project = "Lighthouse"
[storage]
durability = "relaxed"
[lease]
ttl = 86400
"""
ALMANAC: dict[str, Any] = {
    "name": "publish",
    "hops": [
        {"id": "draft", "role": "developer"},
        {"id": "tide-tables", "role": "surveyor", "dependsOn": ["draft"]},
        {"id": "proofread", "role": "reviewer", "dependsOn": ["draft"], "canReject": True, "autoAdvance": False},
        {"id": "print", "role": "developer", "dependsOn": ["tide-tables", "proofread"]},
        {"id": "ship", "role": "lead", "dependsOn": ["print"]},
    ],
}
ROUTINE = ("Polish the lens", "Trim the wick", "Log the weather", "Count the buoys", "Grease the clockwork")
FLOW, LAMP = "Publish the almanac", "Repair the lamp"


class Month:
    """Writes the story; `at` says when the next thing happens."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.end = int(time.time() * 1000)
        self.clock = ManualClock(self.end - 28 * DAY)

    def at(self, ago: int) -> None:
        """Go to the moment so long before the end."""
        self.clock.time = self.end - ago

    @contextmanager
    def by(self, actor: str = "pm") -> Iterator[Fabric]:
        """The directory as somebody sees it then."""
        with open_fabric(self.root, actor=actor, clock=self.clock) as fabric:
            yield fabric

    def create(self, title: str, agent: str = "ada", **given: Any) -> str:
        """A new task."""
        with self.by() as fabric:
            return fabric.create(title, agent=agent, **given).task_id

    def claim(self, task: str, agent: str = "ada", **given: Any) -> str:
        """A run begins."""
        with self.by(agent) as fabric:
            return fabric.claim(task, agent=agent, **given).run_id

    def finish(self, task: str, run: str, agent: str = "ada", **given: Any) -> None:
        """A run ends with a report."""
        with self.by(agent) as fabric:
            fabric.complete(task, run=run, agent=agent, **({"summary": "as asked"} | given))

    def past(self) -> None:
        """Four weeks of routine: most of it is done and approved, a few tasks die or are no longer wanted."""
        for day in range(27, 0, -1):
            for place in range(1 + day * 7 % 3):
                agent = ("ada", "cleo")[(day + place) % 2]
                self.at(day * DAY - place * HOUR)
                task = self.create(ROUTINE[(day + place) % len(ROUTINE)], agent, max_attempts=1)
                self.at(day * DAY - (place + 1) * HOUR)
                run = self.claim(task, agent)
                self.at(day * DAY - (place + 2 + day % 3) * HOUR)
                if day % 9 == 0 and place == 0:
                    with self.by(agent) as fabric:
                        fabric.fail(task, message="the gauge froze", run=run, agent=agent)
                    continue
                self.finish(task, run, agent)
                with self.by() as fabric:
                    fabric.approve(task)

    def today(self) -> None:
        """What the pictures are about."""
        with self.by() as fabric:
            for task in fabric.tasks():
                if task.status == "deadletter":
                    fabric.retry(task.id, reason="the gauge is thawed")
                    fabric.cancel(task.id, reason="not needed any more")
        workflow(self.root, ALMANAC)
        self.at(9 * HOUR)
        lamp = self.create(LAMP, priority="high", tags=["lamp"], brief=_BRIEF)
        oil = self.create("Order oil", "cleo", priority="low", tags=["supply"])
        paint = self.create("Paint the tower", depends_on=[lamp], tags=["tower"], due="2027-03-01", owner="pm")
        self.create("Invite the inspector", "pm", depends_on=[lamp, paint])
        for title in ("Mix the red paint", "Rig the bosun's chair"):
            self.create(title, parent_id=paint)
        almanac = self.create(FLOW, workflow="publish", brief="Print, bind and ship it.")
        dead = self.create("Reach the reef", "cleo", tags=["survey"], max_attempts=1)
        overdue = self.create("Wind the clockwork", due="2026-11-02", owner="pm")
        held = self.create("Ask the harbour master", "pm")
        with self.by() as fabric:
            fabric.link(lamp, kind="source_task", target=oil)
        self._lamp(lamp)
        self._almanac(almanac)
        self.at(3 * HOUR)
        run = self.claim(dead, "cleo")
        with self.by("cleo") as fabric:
            fabric.fail(dead, message="the boat leaks", run=run, agent="cleo")
        with self.by() as fabric:
            fabric.block(held, reason="he is at sea until Friday")
            fabric.comment(overdue, text="Twice a day, **please**.")
            fabric.worklog_decide("We paint the tower red", owner="pm")
        self.at(2 * HOUR)
        tide, flags = self.create("Measure the tide", "cleo", tags=["survey"]), self.create("Choose the flags")
        run = self.claim(tide, "cleo")
        with self.by("cleo") as fabric:
            fabric.progress(tide, text="half of the buoys read", percent=50, run=run, agent="cleo")
        run = self.claim(flags)
        self.at(40 * MINUTE)
        with self.by("ada") as fabric:
            fabric.ask(flags, text="Which flags do we hoist?", choices=("red", "white"), run=run, agent="ada")
        self.at(5 * MINUTE)

    def _lamp(self, task: str) -> None:
        """Rejected once, now in review again."""
        self.at(8 * HOUR)
        run = self.claim(task)
        self.at(7 * HOUR)
        self.finish(task, run, summary="The lamp burns again.")
        with self.by() as fabric:
            fabric.reject(task, blockers=["the wick is too short"])
            fabric.comment(task, text="Mind the *glass*: it is the last one that we have.")
        self.at(5 * HOUR)
        run = self.claim(task)
        self.at(4 * HOUR)
        self.finish(task, run, summary="A longer wick, and the glass is whole.")

    def _almanac(self, task: str) -> None:
        """Drafted; the tide tables are under way, and the proofreading waits for a verdict."""
        self.at(6 * HOUR)
        run = self.claim(task, hop="draft")
        self.at(5 * HOUR)
        self.finish(task, run, outcome="complete")
        self.claim(task, "cleo", hop="tide-tables")
        run = self.claim(task, "bob", hop="proofread")
        self.at(4 * HOUR)
        self.finish(task, run, "bob", outcome="complete", summary="two misprints mended")


_BRIEF = """The light went out twice this week.

- Replace the *wick*.
- Clean the **inner** side of the lens.
"""


def month(folder: Path) -> Path:
    """A data directory with all of it."""
    root = directory(folder, AGENTS, SETTINGS)
    story = Month(root)
    story.past()
    story.today()
    return root
