"""Turns as each surface begins and ends them: with mail at the start, and in the log."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from aof.api.fabric import Fabric
from aof.service.bootstrap import init_data_dir, open_fabric
from tests.support.requirements import requirement
from tests.support.service import Up, directory
from tests.support.waiting import eventually
from tests.surfaces.doors import answer_of, mcp_session, of_tool, root_of

WORKER = "import sys, pathlib; pathlib.Path('told.md').write_text(sys.stdin.read())"


@pytest.fixture
def fabric(tmp_path: Path) -> Iterator[Fabric]:
    """A data directory with a message for bob."""
    root, _ = init_data_dir(tmp_path / ".aof", actor="ada")
    with open_fabric(root, actor="ada") as fabric:
        fabric.mail_send("bob", "Which port?", priority="P0", body="Tell me.")
        yield fabric


def _turns(fabric: Fabric) -> list[tuple[str, str, str]]:
    told = fabric.store.events_of_types(("agent.turn.",))
    return [(event.type.rpartition(".")[2], event.payload["agent"], event.payload["channel"]) for event in told]


@requirement("comms.sla.p0")
def test_an_mcp_session_is_a_turn(fabric: Fabric) -> None:
    root = root_of(fabric)
    with mcp_session(root, tools="mail", actor="bob") as (portal, client):
        inbox = answer_of(of_tool(portal.call(client.call_tool, "aof_mail_inbox", {})))
        assert inbox["unread"] == 1
        assert _turns(fabric) == [("began", "bob", "mcp")]
    eventually(lambda: _turns(fabric) == [("began", "bob", "mcp"), ("ended", "bob", "mcp")])
    assert [one.tier for one in fabric.mail_list().overdue] == ["P0"]


@requirement("comms.mailbox.turn-trigger")
def test_a_worker_gets_its_mail_with_its_brief(tmp_path: Path) -> None:
    root = directory(tmp_path, {"bob": [sys.executable, "-c", WORKER]})
    with open_fabric(root, actor="pm") as fabric:
        sent = fabric.mail_send("bob", "Which port?", from_agent="bob", body="Tell me.").message_id
        fabric.create("Work", agent="bob")
        with Up(root, "--once") as up:
            up.finish()
        told = (tmp_path / "told.md").read_text()
        assert sent in told
        assert "Tell me." in told
        assert told.index("## Unread mail") < told.index("## How to report")
        assert ("began", "bob", "runner") in _turns(fabric)
        assert ("ended", "bob", "runner") in _turns(fabric)
        assert fabric.mail_show(sent).status == "unread"
