"""Lists: the same rows in the same order, whoever asks and whatever became of the index."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from aof.entrypoints.bootstrap import init_data_dir, open_fabric
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
    priorities = ("low", "critical", "normal", "high")
    with open_fabric(made, actor="pm") as fabric:
        ids = [
            fabric.create(
                f"Number {number}",
                agent="ada" if number % 3 else "bob",
                tags=["docs"] if number % 2 else [],
                priority=priorities[number % 4],
                review=False,
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
    }  # fmt: skip
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
