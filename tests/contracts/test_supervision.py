"""What may be done with a task now, what stands around it, and lists that are read page by page, on every store."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import msgspec
import pytest

from aof.api.catalogue import BY_NAME
from aof.api.fabric import Fabric
from aof.errors import AofError, InvalidInput
from aof.kernel.model import STATUSES, Policy
from aof.org.model import Agent, OrgChart
from aof.store.memory import FixedChart
from aof.store.port import Store
from aof.supervision.views import Moves
from aof.testing import FakeClock
from tests.contracts.conftest import read_through
from tests.support.room import in_status


def _offered(moves: Moves) -> set[str]:
    return {one.operation for one in moves.actions}


@pytest.mark.parametrize("status", STATUSES)
def test_every_move_that_is_offered_is_accepted_and_leads_where_it_says(fabric: Fabric, status: str) -> None:
    count = len(fabric.moves(in_status(fabric, status)).moves)
    for number in range(count):
        task_id = in_status(fabric, status)
        move = fabric.moves(task_id).moves[number]
        fields = {one.encode_name: one.name for one in msgspec.structs.fields(BY_NAME[move.operation].parameters)}
        getattr(fabric, move.operation)(**{fields[name]: value for name, value in move.arguments.items()})
        assert fabric.get(task_id).status == move.to
        assert move.operation != "approve"


def test_looking_at_moves_changes_nothing(fabric: Fabric) -> None:
    task_id = in_status(fabric, "review")
    before = (fabric.get(task_id).rev, fabric.store.head())
    found = fabric.moves(task_id)
    assert (fabric.get(task_id).rev, fabric.store.head()) == before
    assert found.rev == before[0]
    assert {"approve", "reject", "comment", "cancel", "block"} <= _offered(found)
    assert [one.to for one in found.moves] == ["blocked", "cancelled"]
    assert next(one for one in found.actions if one.operation == "approve").confirm


def test_what_a_caller_may_not_do_is_not_offered(store: Store, clock: FakeClock) -> None:
    chart = OrgChart(agents=(Agent(id="ada"), Agent(id="bob"), Agent(id="rev", roles=("reviewer",))))
    fabric = Fabric(store, clock, Policy(maintainers=("pm",)), "pm", org=FixedChart(chart))
    task_id = in_status(fabric, "review")
    assert "approve" in _offered(fabric.as_actor("rev").moves(task_id))
    assert not _offered(fabric.as_actor("bob").moves(task_id)) & {"approve", "cancel", "edit", "block"}
    assert "approve" not in _offered(fabric.as_actor("ada").moves(task_id))


def test_the_neighbourhood_is_bounded_and_says_what_it_left_out(fabric: Fabric) -> None:
    middle = fabric.create("Middle").task_id
    before = [fabric.create(f"B{number}").task_id for number in range(3)]
    for one in before:
        fabric.dep_add(middle, blocker_id=one)
    child = fabric.create("Child", parent_id=middle).task_id
    far = fabric.create("Far", depends_on=[child]).task_id
    fabric.create("Elsewhere")
    whole = fabric.neighbourhood(middle)
    assert {node.id: node.depth for node in whole.nodes} == {middle: 0, child: 1, far: 2} | dict.fromkeys(before, 1)
    assert whole.left_out == 0
    edges = {(edge.source, edge.target, edge.kind) for edge in whole.edges}
    assert edges == {(one, middle, "blocks") for one in before} | {(middle, child, "child"), (child, far, "blocks")}
    part = fabric.neighbourhood(middle, limit=3)
    assert (len(part.nodes), part.nodes[0].id, part.left_out) == (3, middle, 2)


def test_the_ready_queue_is_read_page_by_page(fabric: Fabric, clock: FakeClock) -> None:
    made = []
    for priority in ("low", "critical", "normal", "high", "normal"):
        made.append(fabric.create(priority, priority=priority).task_id)
        clock.sleep(1)
    whole = [row.id for row in fabric.ready().tasks]
    seen: list[str] = []
    page = fabric.ready(limit=2)
    seen += [row.id for row in page.tasks]
    fabric.claim(seen[0], agent="ada")
    while page.next_cursor:
        page = fabric.ready(limit=2, cursor=page.next_cursor)
        seen += [row.id for row in page.tasks]
    assert seen == whole
    assert page.total == len(made) - 1


def test_handoffs_and_mail_and_audit_records_are_read_page_by_page(fabric: Fabric, clock: FakeClock) -> None:
    for number in range(5):
        fabric.mail_send("bob", f"M{number}", from_agent="ada")
        task_id = fabric.create("x").task_id
        fabric.handoff_new(
            type="delegation", task_id=task_id, from_agent="pm", to=["bob"], reason=f"R{number}", timeout="5m"
        )
        clock.sleep(1)
    whole = [one.id for one in fabric.handoff_list()]
    assert read_through(fabric.handoff_list, lambda page: [one.id for one in page], 2) == whole
    assert fabric.handoff_list(limit=2).total == 5
    inbox = [f"M{number}" for number in (4, 3, 2, 1, 0)]
    asked: list[Callable[..., Any]] = [partial(fabric.mail_inbox, agent="bob"), fabric.mail_list]
    for ask in asked:
        assert read_through(ask, lambda page: [one.subject for one in page.messages], 2) == inbox
    every = [record.seq for record in fabric.audit().records]
    assert len(every) >= 5
    assert read_through(fabric.audit, lambda page: [one.seq for one in page.records], 2) == every
    asked += [fabric.handoff_list, fabric.audit, fabric.ready]
    for ask in asked:
        with pytest.raises(InvalidInput):
            ask(cursor="no cursor")
    with pytest.raises(AofError):
        fabric.agents(cursor=str(fabric.audit(limit=1).next_cursor))
