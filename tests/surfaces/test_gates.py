"""Nobody gets around a gate on any surface: by what its condition reads, by the owner, by a block, or by a file."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import httpx
import pytest

from aof.api.fabric import Fabric
from aof.service.bootstrap import init_data_dir, open_fabric
from tests.support.messages import prefixed, update
from tests.support.present import present
from tests.support.service import definition
from tests.surfaces.doors import (
    Answer,
    Door,
    InPython,
    OnTheCommandLine,
    OverHttp,
    OverMcp,
    Refusal,
    answer_of,
    code_of,
    http_server,
    mcp_session,
    new_token,
    root_of,
)

CHART = {
    "schemaVersion": 1,
    "agents": [
        {"id": "ada", "roles": ["developer"]},
        {"id": "bob", "roles": ["developer"]},
        {"id": "rev", "roles": ["reviewer"]},
    ],
}
WORKFLOW = {
    "name": "secured",
    "hops": [
        {"id": "build", "role": "developer"},
        {
            "id": "security",
            "role": "reviewer",
            "dependsOn": ["build"],
            "condition": {"or": [{"eq": {"field": "metadata.touchesAuth", "value": True}}, {"has_tag": "auth"}]},
        },
    ],
}


class AsAda(InPython):
    """The fabric in this process, called by ada."""

    def ask(self, operation: str, **given: Any) -> Answer:
        return super().ask(operation, **({"actor": "ada"} | given))


@pytest.fixture(params=["chart", "strict"])
def fabric(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Fabric]:
    """A data directory that binds its callers, with a maintainer."""
    root, _ = init_data_dir(tmp_path / ".aof", actor="pm")
    documents: dict[str, Any] = {"workflows/secured.yaml": WORKFLOW}
    if request.param == "chart":
        documents["org/org-chart.yaml"] = CHART
    else:
        settings = Path(root, "aof.toml")
        settings.write_text(f'identity = "strict"\n{settings.read_text()}')
    for name, document in documents.items():
        definition(Path(root), name, document)
    with open_fabric(root, actor="pm") as fabric:
        yield fabric


def _doors(fabric: Fabric, stack: ExitStack, name: str = "ada") -> Iterator[Door]:
    """Every surface, each called by the same name."""
    root = root_of(fabric)
    if name == "ada":
        yield AsAda(root, fabric)
    yield OnTheCommandLine(root, fabric, {"AOF_ACTOR": name})
    yield OverMcp(root, fabric, *stack.enter_context(mcp_session(root, tools="all", actor=name)))
    headers = {"Authorization": f"Bearer {new_token(root, name, 'admin')}"}
    url = stack.enter_context(http_server(root))
    http = OverHttp(root, fabric, stack.enter_context(httpx.Client(base_url=url, headers=headers, timeout=60)))
    yield http
    yield OverMcp(root, fabric, *stack.enter_context(http.mcp()))


def _gated(fabric: Fabric) -> str:
    return fabric.create("Log in", workflow="secured", metadata={"touchesAuth": True}, tags=["auth"]).task_id


def test_a_worker_turns_no_conditional_hop_off(fabric: Fabric) -> None:
    with ExitStack() as stack:
        for door in _doors(fabric, stack):
            task_id = _gated(fabric)
            fabric.claim(task_id, agent="ada")
            said = door.ask("edit", task_id=task_id, metadata={"touchesAuth": False}, priority="low")
            assert code_of(said) == "not_allowed", door.name
            assert isinstance(said, Refusal)
            assert "touchesAuth" in said.message
            fabric.complete(task_id, agent="ada", outcome="complete")
            assert [hop["status"] for hop in fabric.get(task_id).workflow["hops"]] == ["done", "ready"], door.name


def test_a_worker_becomes_no_owner_and_ends_nobodys_run(fabric: Fabric) -> None:
    with ExitStack() as stack:
        for door in _doors(fabric, stack):
            task_id = fabric.create("Work").task_id
            held = fabric.claim(task_id, agent="ada")
            assert code_of(door.ask("edit", task_id=task_id, owner="ada")) in ("not_allowed", "invalid"), door.name
            door.ask("bulk", command="edit", task_ids=[task_id], changes={"owner": "ada"})
            assert fabric.get(task_id).owner is None, door.name
            held.release()
            fabric.claim(task_id, agent="bob")
            for operation, given in (("block", {"reason": "mine"}), ("pause", {})):
                assert code_of(door.ask(operation, task_id=task_id, **given)) == "not_allowed", (door.name, operation)
            text = prefixed(update(task_id, "ada", status="blocked", blockers=["mine"]))
            sent = door.ask("send", messages=[text])
            rows = [] if isinstance(sent, Refusal) else sent["results"]
            assert all(row["outcome"] == "rejected" for row in rows), door.name
            assert present(fabric.get(task_id).lease).agent == "bob", door.name


def test_an_edit_of_the_file_waits_for_a_maintainer_whoever_asks_next(fabric: Fabric) -> None:
    with ExitStack() as stack:
        for door in _doors(fabric, stack):
            task_id = fabric.create("Work", metadata={"reviewRequired": True}).task_id
            fabric.claim(task_id, agent="ada")
            fabric.complete(task_id, agent="ada")
            lies = root_of(fabric) / f"tasks/review/{task_id}.md"
            lies.rename(root_of(fabric) / f"tasks/done/{task_id}.md")
            shown = answer_of(door.ask("show", task_id=task_id))
            assert (shown["status"], shown["problem"]["code"]) == ("review", "edit_waits"), door.name
            assert code_of(door.ask("sync", accept=task_id)) == "not_allowed", door.name
            assert code_of(door.ask("sync", refuse=task_id)) == "not_allowed", door.name
            door.ask("sync")
            door.ask("doctor", fix=True)
            assert fabric.get(task_id).status == "review", door.name


def test_a_maintainer_accepts_an_edit_or_turns_it_down_on_every_surface(fabric: Fabric) -> None:
    with ExitStack() as stack:
        for door in _doors(fabric, stack, "pm"):
            for parameter, priority in (("accept", False), ("refuse", None)):
                task_id = fabric.create("Work").task_id
                file = root_of(fabric) / f"tasks/ready/{task_id}.md"
                file.write_text(file.read_text().replace("---\n", '---\nmetadata: {"reviewRequired": false}\n', 1))
                items = answer_of(door.ask("inbox", kind=["edit"]))
                assert [one["taskId"] for one in items["items"]] == [task_id], door.name
                answer_of(door.ask("sync", **{parameter: task_id}))
                assert fabric.get(task_id).metadata.get("reviewRequired") is priority, door.name
