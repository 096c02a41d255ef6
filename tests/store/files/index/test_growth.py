"""What a list costs does not grow with the number of tasks: counted in steps of SQLite's machine, not in time."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from aof.bench.commits import set_durability
from aof.service.bootstrap import init_data_dir
from aof.store.files.index import queries
from aof.store.lists import Query
from aof.testing import FakeClock
from tests.support.indexes import open_fabric

FEW, MANY = 120, 1_200
NOW = "2026-03-02T10:00:00.000Z"


@pytest.fixture(scope="module")
def indexes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[sqlite3.Connection, sqlite3.Connection]]:
    """The indexes of a small directory and of a large one."""
    found = []
    for tasks in (FEW, MANY):
        root = init_data_dir(tmp_path_factory.mktemp("growth") / ".aof")[0]
        set_durability(root, "relaxed")
        with open_fabric(Path(root), FakeClock("2026-03-02T09:00:00Z")) as fabric:
            for number in range(tasks):
                made = fabric.create(f"Invoice {number:03}", review=False)
                if number % 10 == 0:
                    fabric.claim(made.task_id, agent="ada")
                    fabric.complete(made.task_id, "paid", actor="ada")
            fabric.list(search="invoice")
        found.append(sqlite3.connect(Path(root, "index.sqlite")))
    with closing(found[0]), closing(found[1]):
        yield found[0], found[1]


def steps(database: sqlite3.Connection, query: Query) -> int:
    """How many steps the page and the counts take."""
    counts, page, values = queries.asked(query)
    taken = 0

    def step() -> int:
        nonlocal taken
        taken += 1
        return 0

    database.set_progress_handler(step, 1)
    assert database.execute(queries.showing(page), values).fetchall() or query.open_handoffs
    database.execute(counts, values).fetchall()
    database.set_progress_handler(None, 1)
    return taken


@pytest.mark.parametrize(
    "query",
    [
        Query(limit=10),
        Query(limit=10, status=("ready",)),
        Query(limit=10, status=("done",)),
        Query(limit=10, order="schedule", status=("ready",)),
        Query(limit=10, order="updated", reverse=True),
        Query(limit=10, order="updated", status=("done",)),
        Query(limit=10, order="schedule", runnable_at=NOW, busy_resources=("gpu",)),
        Query(limit=10, among=("TASK-2026-03-02-012", "TASK-2026-03-02-013"), runnable_at=NOW),
        Query(limit=10, search="voice 033"),
        Query(limit=10, search="voice 033", order="relevance", archived=True),
        Query(open_handoffs=True),
    ],
    ids=lambda query: " ".join(
        f"{name}={value}" for name, value in vars(query).items() if value != getattr(Query(), name)
    ),
)
def test_ten_times_as_many_tasks_take_no_more_steps(
    indexes: tuple[sqlite3.Connection, sqlite3.Connection], query: Query
) -> None:
    few, many = (steps(database, query) for database in indexes)
    assert many <= 1.3 * few
