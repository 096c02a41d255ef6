"""The table of rights is what every surface really does; the page is that table."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import httpx
import pytest

from aof.api.call import Caller, parameters, perform
from aof.api.catalogue import BY_NAME, OPERATIONS
from aof.api.fabric import Fabric
from aof.service.bootstrap import init_data_dir, open_fabric
from tests.support import rights
from tests.support.repository import ROOT
from tests.support.rights import CASES, CHART, COLUMNS, LISTED, PERSON, READS, WORKFLOW, Case, Column
from tests.support.service import definition
from tests.surfaces.doors import (
    Door,
    OnTheCommandLine,
    OverHttp,
    OverMcp,
    Refusal,
    http_server,
    mcp_session,
    new_token,
    root_of,
)

PAGE = ROOT / "docs" / "reference" / "rights.md"
EVERYWHERE = tuple(case for case in CASES if case.everywhere)
SETTINGS = f'maintainers = ["{PERSON}", "own"]\n[storage]\ndurability = "relaxed"\n'


@pytest.fixture
def fabric(tmp_path: Path) -> Iterator[Fabric]:
    """A data directory with the chart of the table."""
    root, _ = init_data_dir(tmp_path / ".aof")
    Path(root, "aof.toml").write_text(SETTINGS)
    for name, document in (("org/org-chart.yaml", CHART), ("workflows/build.yaml", WORKFLOW)):
        definition(Path(root), name, document)
    with open_fabric(root, actor=PERSON) as fabric:
        yield fabric


def _called(fabric: Fabric, door: Door, case: Case, column: Column) -> str:
    values = rights.prepare(fabric, case, column.name)
    said = door.ask(case.operation, **values)
    for task in fabric.running():  # who is not in the chart may hold one at a time
        if task.lease is not None:
            fabric.fail(task.id, run=task.lease.run_id, retryable=False)
    if isinstance(said, Refusal):
        return said.code
    return rights.of_messages(said["results"][0]) if case.operation == "send" else "yes"


def test_the_page_is_what_really_happens() -> None:
    assert PAGE.read_text() == rights.page(), "write it anew: python -m tests.support.rights > docs/reference/rights.md"


def test_every_operation_that_writes_has_a_case_and_every_other_one_only_reads() -> None:
    assert {case.operation for case in CASES} | set(READS) == {operation.name for operation in OPERATIONS}


@pytest.mark.parametrize("column", COLUMNS, ids=lambda column: column.title)
def test_everybody_reads(column: Column) -> None:
    fabric = rights.fabric_of(column)
    task_id = fabric.create("Work", workflow="build").task_id
    fabric.charter_init()
    fabric.job_add("nightly", title="Check", cron="@daily")
    fabric.worklog_add(
        "proposal.created",
        subject="x",
        scope="x",
        proposal="x",
        risks=["x"],
        rollback="x",
        deadline="2026-03-03",
    )
    on_task = {"taskId": task_id}
    needed: dict[str, dict[str, Any]] = {"show": on_task, "org_route": on_task, "graph": on_task, "replay": {"at": 1}}
    needed["workflow_show"] = {"name": task_id}
    needed["conflict_show"] = {"conflictId": "PROP-001"}
    needed["mail_show"] = {"messageId": fabric.mail_send("all", "Question").message_id}
    needed |= dict.fromkeys(("handoff_chain", "moves", "neighbourhood", "task_at"), on_task)
    needed["search"] = {"text": "work"}
    needed["job_show"] = {"jobId": "nightly"}
    ran = fabric.create("Ran").task_id
    fabric.claim(ran, agent=PERSON)
    needed["output"] = {"taskId": ran}
    needed |= {"workflow_show": {"name": task_id}, "context_show": on_task}
    for name in READS:
        if name in ("handoff_show", "handoff_group"):
            continue  # there is none to look at
        row = BY_NAME[name]
        caller = Caller(column.name, session=column.name)
        assert perform(fabric, row, parameters(row, needed.get(name, {})), caller) is not None, name


def _over_http(fabric: Fabric, stack: ExitStack, url: str, column: Column) -> OverHttp:
    headers = {"Authorization": f"Bearer {new_token(root_of(fabric), column.name, 'agent')}"}
    client = stack.enter_context(httpx.Client(base_url=url, headers=headers, timeout=60))
    return OverHttp(root_of(fabric), fabric, client)


def _assert_over_servers(fabric: Fabric, cases: tuple[Case, ...]) -> None:
    with ExitStack() as stack, http_server(root_of(fabric)) as url:
        for column in LISTED:
            http = _over_http(fabric, stack, url, column)
            with http.mcp() as session:
                mcp = OverMcp(http.root, fabric, *session)
                for case in cases:
                    expected = rights.by_session(case, column)
                    for door in (http, mcp):
                        assert _called(fabric, door, case, column) == expected, (column.title, case.what, door.name)


def _assert_over_stdio(fabric: Fabric, cases: tuple[Case, ...], columns: tuple[Column, ...]) -> None:
    for column in columns:
        with mcp_session(root_of(fabric), tools="all", actor=column.name) as (portal, client):
            door = OverMcp(root_of(fabric), fabric, portal, client)
            for case in cases:
                assert _called(fabric, door, case, column) == rights.by_session(case, column), (column.title, case.what)


def _assert_on_the_command_line(fabric: Fabric, cases: tuple[Case, ...], columns: tuple[Column, ...]) -> None:
    for column in columns:
        door = OnTheCommandLine(root_of(fabric), fabric, {"AOF_ACTOR": column.name})
        for case in cases:
            assert _called(fabric, door, case, column) == rights.by_name(case, column), (column.title, case.what)


def test_over_http_and_mcp_over_http_a_token_has_the_rights_of_the_table(fabric: Fabric) -> None:
    _assert_over_servers(fabric, EVERYWHERE)


def test_over_stdio_a_session_has_the_rights_of_the_table(fabric: Fabric) -> None:
    _assert_over_stdio(fabric, EVERYWHERE, (COLUMNS[0], COLUMNS[5]))


def test_on_the_command_line_a_name_has_the_rights_of_the_table(fabric: Fabric) -> None:
    few = tuple(case for case in EVERYWHERE if case.what in ("approve, another's", "claim a task routed to another"))
    _assert_on_the_command_line(fabric, few, (COLUMNS[0], COLUMNS[4], COLUMNS[5]))


@pytest.mark.full
def test_over_http_and_mcp_over_http_every_case_is_as_in_the_table(fabric: Fabric) -> None:
    _assert_over_servers(fabric, CASES)


@pytest.mark.full
def test_over_stdio_every_case_is_as_in_the_table(fabric: Fabric) -> None:
    _assert_over_stdio(fabric, CASES, LISTED)


@pytest.mark.full
def test_on_the_command_line_every_case_is_as_in_the_table(fabric: Fabric) -> None:
    _assert_on_the_command_line(fabric, CASES, LISTED)
