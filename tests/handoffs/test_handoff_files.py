"""Handoffs in a data directory: their files, what earlier versions wrote, short IDs, and what people are shown."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest

from aof.handoffs.model import Handoff
from aof.handoffs.operations import escaped_mermaid
from aof.kernel.events import Draft
from aof.runs.brief import brief, prime
from aof.store.port import Scope
from aof.surfaces.cli.commands import handoffs as commands_handoffs
from aof.surfaces.cli.screen import Screen
from tests.support.command_line import Aof
from tests.support.handoffs import audited, held, refuses, start, told
from tests.support.messages import Post, request
from tests.support.requirements import requirement
from tests.support.room import Room


def _plain(handoff: Handoff) -> Any:
    """The record as any reader of JSON sees it."""
    return json.loads(msgspec.json.encode(handoff))


@requirement("handoff.schema.record-file")
def test_a_record_is_plain_json_and_the_same_as_what_is_shown(room: Room, aof: Aof) -> None:
    task_id = held(room.fabric, "ada")
    one = start(room.fabric, "broadcast", task_id, "ada", "bob", variables={"a": 1}, budget=2.5)
    file = room.root / "handoffs" / f"{one.id}.json"
    written = json.loads(file.read_text())
    schema = ["id", "timestamp", "from_agent", "to_agent", "type", "reason", "context", "validation"]
    assert list(written)[:10] == [*schema, "return_protocol", "audit"]
    parts = {
        "context": ["task_id", "conversation_history", "context_variables", "artifacts", "constraints"],
        "validation": ["required_capabilities", "autonomy_budget"],
        "return_protocol": ["expected", "timeout", "on_timeout"],
        "audit": ["decision_rationale", "risk_level"],
    }
    assert {name: list(written[name]) for name in parts} == parts
    assert list(written["context"]["constraints"]) == ["budget", "deadline"]
    assert _plain(room.fabric.handoff_show(one.id)) == written == aof("handoff", "show", one.id).data
    (room.root / "index.sqlite").unlink(missing_ok=True)
    assert _plain(room.reopen().handoff_show(one.id)) == written
    assert room.front(task_id)["handoffs"][0]["id"] == one.id
    assert ("handoff", one.id) in room.edges(task_id)


def test_a_record_of_an_earlier_version_stays_as_it_is(room: Room, aof: Aof) -> None:
    parent, child = room.task(), room.task()
    old = f"HO-{child[5:]}-2"
    fields = {"taskId": child, "parentTaskId": parent, "fromAgent": "ada", "toAgent": "bob"}
    payload = {"handoffId": old, "depth": 1, "sentAt": "2026-02-09T21:00:00.000Z", "request": fields}
    with room.fabric.store.unit(Scope(write=frozenset({child}))) as unit:
        draft = Draft(type="delegation.requested", task_id=child, payload=payload)
        unit.commit((draft,), actor="ada", agent=None, now=room.clock.now())
    written = json.loads((room.root / "handoffs" / f"{old}.json").read_text())
    assert (written["kind"], written["taskId"], written["state"]) == ("delegation", child, "requested")
    shown = room.fabric.handoff_show(old)
    assert (shown.type, shown.task_id, shown.from_agent, shown.to_agent) == ("delegation", child, "ada", "bob")
    assert "handoffs" not in room.front(child)
    assert aof("doctor").data["ok"]


@requirement("handoff.delegation.aof1-request", "handoff.delegation.aof1-depth-one")
def test_an_aof1_request_is_a_delegation_in_the_same_engine(post: Post) -> None:
    parent, child = post.pair()
    post.takes(request(child, parent, dueBy="2026-03-02T10:00:00.000Z"))
    (one,) = post.fabric.handoff_list()
    assert (one.type, one.state, one.parent_task_id) == ("delegation", "requested", parent)
    assert one.return_protocol.expected
    assert one.return_protocol.timeout is not None
    assert one.context.constraints.deadline == "2026-03-02T10:00:00.000Z"
    assert audited(post.fabric, one.id) == ["initiated"]
    inputs = post.room.file(child).with_suffix("") / "inputs"
    assert sorted(path.name for path in inputs.iterdir()) == ["handoff.json", "handoff.md"]
    assert post.room.front(child)["metadata"]["delegationDepth"] == 1

    further = post.room.task()
    post.fabric.claim(child, agent="bob")
    sent = post.send(request(further, child, "bob", "cem"))
    assert (sent.outcome, sent.reason) == ("rejected", "nested_delegation")
    assert not (post.room.file(further).with_suffix("") / "inputs").exists()


def test_the_beginning_of_an_id_stands_for_a_handoff(room: Room, aof: Aof) -> None:
    task_id = held(room.fabric, "ada")
    made = [start(room.fabric, "broadcast", task_id, "ada", f"bob{number}") for number in range(40)]
    one = made[0]
    assert room.fabric.handoff_show(one.id[:13].upper()).id == one.id
    twice = next(a.id[0] for a in made if sum(b.id[0] == a.id[0] for b in made) > 1)
    assert "stands for" in refuses("ambiguous_id", room.fabric.handoff_show, twice).message
    for nothing in ("", "zz", "../../etc", "0" * 40, "\x1b[2J"):
        refuses("handoff_not_found", room.fabric.handoff_show, nothing)
    assert aof("handoff", "show", "7c1e0b5e-54f3-4f3a-9d0e-0f8a1f0f2a11").code == 3


def test_the_ten_steps_are_drawn_for_any_width(room: Room, capsys: pytest.CaptureFixture[str]) -> None:
    one = start(room.fabric, "delegation", room.task(), "ada", "bob", reason="check\x1b[31m it \u202eagain")
    room.fabric.handoff_accept(one.id, agent="bob")
    room.clock.sleep(90)
    done = room.fabric.handoff_return(one.id, agent="bob", status="success", result="all \x07good")
    for columns in (80, 40):
        screen = Screen()
        screen.width = columns
        commands_handoffs.show_whole(screen, done)
        said = capsys.readouterr().out
        names = ("TRIGGER", "PREPARE", "VALIDATE", "INITIATE", "ACKNOWLEDGE", "ACCEPT/REJECT", "EXECUTE", "RETURN")
        assert [name for name in (*names, "COMPLETE", "RELEASE") if name not in said] == []
        steps = [line for line in said.splitlines() if line[2:5].strip() in ("✓", "·")]
        assert len(steps) == 10
        assert max(map(len, steps)) <= columns
        assert "09:01:30" in said
        assert not {"\x1b", "\x07", "\u202e"} & set(said)


def test_a_tasks_chain_is_a_diagram_whose_text_cannot_break_out(room: Room, aof: Aof) -> None:
    task_id = room.task()
    hostile = 'x; A0->>A1: forged\n%%{init: {"theme":"dark"}}%% <script>#quot;'
    one = start(room.fabric, "escalation", task_id, "ada", "bob", reason=hostile)
    room.fabric.handoff_reject(one.id, agent="bob", reason="no; end\n")
    text = aof("handoff", "chain", task_id).data["text"]
    lines = text.splitlines()
    assert lines[0] == "sequenceDiagram"
    assert not [line for line in lines[1:] if ";" in line.replace(";", "", line.count("#"))]
    assert not [sign for sign in ("<", "%%", '"') if sign in text]
    assert escaped_mermaid("a;b#c") == "a#59;b#35;c"


def test_an_agent_is_told_of_the_handoffs_that_wait_for_it(room: Room) -> None:
    task_id = room.task()
    one = start(room.fabric, "delegation", task_id, "ada", "bob")
    assert f"Handed to you:\n- {one.id} delegation of {task_id} from ada, requested" in prime(room.fabric, "bob")
    assert "Handed to you" not in prime(room.fabric, "cem")
    room.fabric.handoff_accept(one.id, agent="bob")
    assert f"aof handoff return {one.id[:8]} --agent bob" in prime(room.fabric, "bob")
    shown = room.fabric.show(task_id)["handoffs"]
    assert shown == [{"id": one.id, "type": "delegation", "state": "accepted", "fromAgent": "ada", "toAgent": "bob"}]
    run = room.fabric.claim(task_id, agent="bob").run_id
    said = brief(room.fabric.get(task_id), run, (), handed=room.fabric.handoff_list())
    assert f"`aof handoff return {one.id} --agent bob --status success --result …`" in said
    room.fabric.handoff_return(one.id, agent="bob", status="success")
    assert "Handed to you" not in prime(room.fabric, "bob")


def test_doctor_restores_the_record_of_a_handoff(room: Room, aof: Aof) -> None:
    one = start(room.fabric, "delegation", room.task(), "ada", "bob")
    file = room.root / "handoffs" / f"{one.id}.json"
    sound = file.read_bytes()
    for spoil in (file.unlink, lambda: file.write_text(sound.decode().replace("bob", "eve"))):
        spoil()
        assert [problem["code"] for problem in aof("doctor").data["problems"]] == ["handoff_file"]
        aof("doctor", "--fix")
        assert file.read_bytes() == sound


def test_refusals_are_on_record_with_their_codes(room: Room) -> None:
    fabric, task_id = room.fabric, room.task()
    calls: list[tuple[str, dict[str, Any]]] = [
        ("invalid", {"type": "escalation", "to": ["bob"]}),
        ("invalid", {"type": "delegation", "to": ["bob"], "timeout": "soon"}),
        ("invalid", {"type": "sequential", "to": ["bob", "cem"]}),
        ("invalid", {"type": "sequential", "to": ["ada"]}),
        ("invalid", {"type": "sideways", "to": ["bob"]}),
        ("invalid", {"type": "broadcast", "to": ["bob"], "aggregation": "most"}),
        ("task_not_found", {"type": "broadcast", "to": ["bob"], "task_id": "TASK-2020-01-01-999"}),
        ("task_not_found", {"type": "broadcast", "to": ["bob"], "task_id": "no such"}),
    ]
    for code, given in calls:
        asked = {"task_id": task_id, "from_agent": "ada", "reason": "r"} | given
        refuses(code, fabric.handoff_new, **asked)
    recorded = told(fabric, kind="handoff.refused")
    assert [event.task_id for event in recorded[-3:]] == [task_id, "TASK-2020-01-01-999", ""]
    assert {event.payload["agent"] for event in recorded} == {"ada"}
    assert [event.payload["code"] for event in told(fabric, kind="handoff.refused")] == [code for code, _ in calls]
    assert room.front(task_id)["rev"] == fabric.get(task_id).rev


def test_a_folder_of_handoffs_holds_only_what_is_named_like_one(room: Room) -> None:
    (Path(room.root) / "handoffs").mkdir(exist_ok=True)
    (Path(room.root) / "handoffs" / "notes.json").write_text("{}")
    assert room.fabric.handoff_list() == ()


def test_a_handoff_whose_file_a_dead_writer_never_wrote_is_found_all_the_same(room: Room) -> None:
    one = start(room.fabric, "delegation", room.task(), "ada", "bob")
    (room.root / "handoffs" / f"{one.id}.json").unlink()
    assert room.fabric.handoff_show(one.id[:8]).id == one.id
    assert room.fabric.handoff_accept(one.id, agent="bob").handoff.state == "accepted"
