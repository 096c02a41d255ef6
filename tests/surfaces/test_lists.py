"""Lists: the same rows in the same order, whoever asks and whatever became of the index."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from aof.kernel.kinds import Priority
from aof.service.bootstrap import init_data_dir, open_fabric
from tests.support.requirements import requirement
from tests.surfaces.doors import (
    WHO,
    Door,
    InPython,
    OnTheCommandLine,
    OverHttp,
    OverMcp,
    http_server,
    mcp_session,
    new_token,
)

QUESTIONS: dict[str, dict[str, Any]] = {
    "all": {},
    "ready": {"status": "ready"},
    "of ada": {"agent": "ada"},
    "tagged": {"tag": "docs"},
    "found": {"search": "number 1"},
    "few": {"limit": 3},
    "archived": {"archived": True},
    "urgent": {"priority": "critical"},
    "by priority": {"sort": "priority", "reverse": True, "limit": 4},
    "by title": {"sort": "title", "created_after": "2026-01-01", "updated_before": "+1d"},
    "late": {"overdue": True},
    "due soon": {"due_before": "2030-01-01T00:00Z", "sort": "due"},
    "below one": {"parent_id": "001"},
    "none": {"status": "deadletter"},
}


@contextmanager
def four_doors(root: Path) -> Iterator[list[Door]]:
    """All surfaces on one data directory, each newly opened."""
    with ExitStack() as stack:
        fabric = stack.enter_context(open_fabric(root, actor=WHO))
        portal, client = stack.enter_context(mcp_session(root, tools="all"))
        headers = {"Authorization": f"Bearer {new_token(root, WHO, 'admin')}"}
        url = stack.enter_context(http_server(root))
        web = stack.enter_context(httpx.Client(base_url=url, headers=headers, timeout=30))
        yield [
            InPython(root, fabric),
            OnTheCommandLine(root, fabric),
            OverMcp(root, fabric, portal, client),
            OverHttp(root, fabric, web),
        ]


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """Tasks of several sorts, made in no order of theirs."""
    made = Path(init_data_dir(tmp_path / ".aof")[0])
    priorities: tuple[Priority, ...] = ("low", "critical", "normal", "high")
    with open_fabric(made, actor="pm") as fabric:
        ids = [
            fabric.create(
                f"Number {number}",
                agent="ada" if number % 3 else "bob",
                tags=["docs"] if number % 2 else [],
                priority=priorities[number % 4],
                review=False,
                due={2: "2026-02-01", 5: "2029-06-01T12:00+02:00", 1: "2026-02-02"}.get(number),
                parent_id="001" if number in (8, 9) else None,
            ).task_id
            for number in range(12)
        ]
        acts: tuple[Callable[[str], object], ...] = (
            lambda one: fabric.claim(one, agent="ada"),
            lambda one: fabric.block(one, reason="no key"),
            fabric.cancel,
        )
        for act, one in zip(acts, (ids[4], ids[7], ids[1]), strict=True):
            act(one)
        fabric.archive(ids[1])
    return made


def answers(doors: list[Door]) -> dict[str, list[Any]]:
    """What each door says to each question."""
    return {name: [door.ask("list", **given) for door in doors] for name, given in QUESTIONS.items()}


@requirement("task.control.list")
def test_every_surface_lists_the_same_also_without_the_index_that_was(root: Path) -> None:
    with four_doors(root) as doors:
        before = answers(doors)
    for name, said in before.items():
        assert said == [said[0]] * 4, name
    rows = {name: [row["id"][-3:] for row in said[0]["tasks"]] for name, said in before.items()}
    assert {name: len(found) for name, found in rows.items()} == {
        "all": 11, "ready": 9, "of ada": 7, "tagged": 5, "found": 2, "few": 3, "archived": 12, "none": 0,
        "urgent": 2, "by priority": 4, "by title": 11, "late": 1, "due soon": 2, "below one": 2,
    }  # fmt: skip
    assert rows["by priority"] == ["009", "005", "001", "011"]
    assert rows["by title"][:3] == ["001", "011", "012"], "Number 0, 10, 11"
    assert (rows["due soon"], rows["late"], rows["below one"]) == (["003", "006"], ["003"], ["009", "010"])
    shown = {row["id"][-3:]: (row.get("due"), row.get("overdue")) for row in before["due soon"][0]["tasks"]}
    assert shown == {"003": ("2026-02-01", True), "006": ("2029-06-01T10:00:00.000Z", None)}
    assert rows["few"] == rows["all"][:3]
    assert [one for one in rows["all"] if one in rows["tagged"]] == rows["tagged"], "one order for all questions"

    with four_doors(root) as doors:
        assert answers(doors) == before, "after a restart"
    for index in root.glob("index.sqlite*"):
        index.unlink()
    with four_doors(root) as doors:
        assert answers(doors) == before, "from a new index"
        assert isinstance(OnTheCommandLine(root, doors[0].elsewhere).run("reindex"), dict)
        assert answers(doors) == before, "from an index built anew under everybody's feet"


@pytest.mark.parametrize("operation", ["list", "blocked"])
def test_every_surface_reads_the_same_pages_by_the_cursor_of_the_page_before(root: Path, operation: str) -> None:
    with open_fabric(root, actor="pm") as fabric:
        for one in ("003", "005", "006"):
            if fabric.get(one).status == "ready":
                fabric.block(one, reason="later")
    asked = {"sort": "priority", "limit": 2}
    with four_doors(root) as doors:

        def pages(**given: Any) -> dict[str, Any]:
            said = [door.ask(operation, **given) for door in doors]
            assert said == [said[0]] * 4
            assert isinstance(said[0], dict)
            return said[0]

        whole = pages(sort="priority")
        assert "nextCursor" not in whole
        page = pages(**asked)
        rows = list(page["tasks"])
        while "nextCursor" in page:
            page = pages(**asked, cursor=page["nextCursor"])
            rows += page["tasks"]
    assert rows == whole["tasks"]
    assert len(rows) == whole["total"] >= 3
