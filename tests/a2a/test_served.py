"""A peer gives us tasks over A2A: the official client sends, follows, answers, lists and cancels."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import anyio
import anyio.to_thread
import httpx
import pytest
from a2a.compat.v0_3.types import AgentCard as OldCard
from a2a.types import (
    AgentCard,
    CancelTaskRequest,
    GetTaskRequest,
    ListTasksRequest,
    Part,
    SubscribeToTaskRequest,
    Task,
    TaskState,
)
from a2a.utils.errors import A2AError, InvalidParamsError, TaskNotCancelableError, TaskNotFoundError
from google.protobuf import json_format

from aof.api.call import Caller
from aof.api.fabric import Fabric
from aof.errors import NotReady
from aof.service import serve
from aof.service.bootstrap import init_data_dir, open_fabric
from aof.surfaces.a2a import peer_tasks
from tests.support import peers
from tests.support.requirements import requirement

BINDINGS = ("JSONRPC", "HTTP+JSON")


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return Path(init_data_dir(tmp_path / ".aof")[0])


@pytest.fixture
def fabric(root: Path) -> Iterator[Fabric]:
    with open_fabric(root, actor="ada") as opened:
        yield opened


def finish(fabric: Fabric, root: Path, task_id: str) -> None:
    """Do the work: a file, a result, an approval."""
    run = fabric.claim(task_id, agent="ada")
    fabric.progress(task_id, run=run.run_id, text="half of it")
    folder = root / fabric.store.path_of(fabric.get(task_id)).removesuffix(".md") / "outputs"
    folder.mkdir(parents=True)
    (folder / "report.txt").write_text("all fine")
    fabric.complete(task_id, run=run.run_id, summary="it works", deliverables=["outputs/report.txt"])
    if fabric.get(task_id).status == "review":
        fabric.as_actor("max").approve(task_id)


@requirement("task.a2a.inbound")
@pytest.mark.parametrize("binding", BINDINGS)
def test_a_peers_message_becomes_a_task_that_it_follows_to_its_end(root: Path, fabric: Fabric, binding: str) -> None:
    told: list[str] = []
    found: list[Task] = []

    async def talk(address: str, token: str) -> None:
        async with peers.client(address, token, binding) as peer, anyio.create_task_group() as group:
            async for answer in peer.send_message(peers.request("Check the login\n\nAll of it.", at_once=False)):
                told.append(peers.update(answer))
                if answer.HasField("task"):
                    work = partial(finish, fabric, root, answer.task.id)
                    group.start_soon(anyio.to_thread.run_sync, work)
            found.append(await peer.get_task(GetTaskRequest(id=fabric.tasks()[0].id)))

    with peers.served(root) as (address, token):
        card = httpx.get(f"{address}/.well-known/agent-card.json").json()
        assert {one["protocolBinding"] for one in card["supportedInterfaces"]} == set(BINDINGS)
        anyio.run(talk, address, token)
    assert told[0] == "task submitted"
    assert told[-1] == "completed: it works"
    assert "artifact report.txt" in told
    (task,) = found
    kept = fabric.get(task.id)
    assert (kept.title, kept.created_by, kept.status) == ("Check the login", "mia", "done")
    assert [message.parts[0].text for message in task.history] == [
        "Check the login\n\nAll of it.",
        "half of it",
        "it works",
    ]
    assert {one.name: one.parts[0].text for one in task.artifacts} == {"summary": "it works", "report.txt": "all fine"}
    snapshot = fabric.snapshot()
    assert snapshot["tasks"][0]["requestedBy"]["id"] == "mia"


@requirement("task.a2a.inbound")
@pytest.mark.parametrize("binding", BINDINGS)
def test_a_peers_cancel_request_becomes_our_cancel(root: Path, fabric: Fabric, binding: str) -> None:
    async def talk(address: str, token: str) -> None:
        async with peers.client(address, token, binding, streaming=False) as peer:
            task = await peers.sent(peer, peers.request("Not needed after all"))
            cancelled = await peer.cancel_task(CancelTaskRequest(id=task.id))
            assert cancelled.status.state == TaskState.TASK_STATE_CANCELED
            assert fabric.get(task.id).cancel is not None
            again = await peer.cancel_task(CancelTaskRequest(id=task.id))
            assert again.status.state == TaskState.TASK_STATE_CANCELED
            done = await peers.sent(peer, peers.request("Needed", "m-2"))
            await anyio.to_thread.run_sync(finish, fabric, root, done.id)
            with pytest.raises(TaskNotCancelableError):
                await peer.cancel_task(CancelTaskRequest(id=done.id))

    with peers.served(root) as (address, token):
        anyio.run(talk, address, token)


def test_a_question_to_the_peer_is_answered_by_its_next_message(root: Path, fabric: Fabric) -> None:
    async def talk(address: str, token: str) -> None:
        async with peers.client(address, token) as peer:
            task = await peers.sent(peer, peers.request("Move the data", context_id="c-1"))
            fabric.claim(task.id, agent="ada")
            fabric.block(task.id, reason="Which database?", kind="waiting_input")
            asked = await peer.get_task(GetTaskRequest(id=task.id))
            assert asked.status.state == TaskState.TASK_STATE_INPUT_REQUIRED
            assert asked.status.message.parts[0].text == "Which database?"
            answer = peers.request("The blue one", "m-2", task_id=task.id, context_id="c-1")
            for _ in range(2):  # the answer to the first may have been lost
                assert (await peers.sent(peer, answer)).id == task.id
            with pytest.raises(InvalidParamsError):
                await peers.sent(peer, peers.request("x", "m-3", task_id=task.id, context_id="c-2"))
            kept = fabric.get(task.id)
            assert kept.status == "ready"
            assert kept.body.count("The blue one") == 1
            followed = await peer.get_task(GetTaskRequest(id=task.id))
            said = [one.parts[0].text for one in followed.history]
            assert said == ["Move the data", "Which database?", "The blue one"]

    with peers.served(root) as (address, token):
        anyio.run(talk, address, token)


@requirement("task.record.context-ids", "task.events.created")
def test_a_task_belongs_to_the_context_that_its_peer_named_and_otherwise_to_none(root: Path, fabric: Fabric) -> None:
    async def talk(address: str, token: str) -> None:
        async with peers.client(address, token) as peer:
            for number, context in enumerate(("c-1", "c-1", "")):
                await peers.sent(peer, peers.request("Work", f"m-{number}", context_id=context))

    with peers.served(root) as (address, token):
        anyio.run(talk, address, token)
    tasks = fabric.snapshot()["tasks"]
    assert [one["sessionId"] for one in tasks] == ["c-1", "c-1", "unknown"]
    for task in tasks:
        first, *others = fabric.portable_log(task["taskId"])["events"]
        assert first["type"] == "task.created"
        assert "task.created" not in [line["type"] for line in others]


def test_the_same_message_twice_is_one_task_also_after_a_restart(root: Path, fabric: Fabric) -> None:
    async def talk(address: str, token: str) -> str:
        async with peers.client(address, token) as peer:
            return (await peers.sent(peer, peers.request("Once"))).id

    made = set()
    for _ in range(2):
        with peers.served(root) as (address, token):
            made |= {anyio.run(talk, address, token) for _ in range(2)}
    assert len(made) == len(fabric.tasks()) == 1


def test_a_peer_lists_and_reaches_its_own_tasks_and_no_others(root: Path, fabric: Fabric) -> None:
    fabric.create("Ours", tags=["a2a"])

    async def talk(address: str, token: str, other: str) -> None:
        async with peers.client(address, token) as mia, peers.client(address, other, "HTTP+JSON") as bob:
            ids = [
                (await peers.sent(mia, peers.request(f"T{n}", f"m-{n}", context_id=f"c-{n % 2}"))).id for n in range(3)
            ]
            theirs = (await peers.sent(bob, peers.request("Bob's"))).id
            page = await mia.list_tasks(ListTasksRequest(page_size=2))
            rest = await mia.list_tasks(ListTasksRequest(page_size=2, page_token=page.next_page_token))
            assert {one.id for one in (*page.tasks, *rest.tasks)} == set(ids)
            assert (page.total_size, len(page.tasks), rest.next_page_token) == (3, 2, "")
            narrow = await mia.list_tasks(ListTasksRequest(context_id="c-1"))
            assert [one.id for one in narrow.tasks] == [ids[1]]
            working = await mia.list_tasks(ListTasksRequest(status=TaskState.TASK_STATE_WORKING))
            assert not working.tasks
            for hidden in (theirs, "TASK-2020-01-01-001", "../../etc/passwd"):
                with pytest.raises(TaskNotFoundError):
                    await mia.get_task(GetTaskRequest(id=hidden))
            with pytest.raises(TaskNotFoundError):
                await mia.cancel_task(CancelTaskRequest(id=theirs))

    with peers.served(root) as (address, token):
        anyio.run(talk, address, token, serve.create_token(str(root), "bob", None).token)


def test_a_subscription_tells_the_rest_and_a_finished_task_has_none(root: Path, fabric: Fabric) -> None:
    async def talk(address: str, token: str) -> None:
        async with peers.client(address, token) as peer, anyio.create_task_group() as group:
            task = await peers.sent(peer, peers.request("Follow me"))
            told: list[str] = []
            async for answer in peer.subscribe(SubscribeToTaskRequest(id=task.id)):
                if not told:
                    group.start_soon(anyio.to_thread.run_sync, partial(finish, fabric, root, task.id))
                told.append(peers.update(answer))
            assert told[0] == "task submitted"
            assert told[-1] == "completed: it works"
            with pytest.raises(A2AError):
                async for _ in peer.subscribe(SubscribeToTaskRequest(id=task.id)):
                    pass

    with peers.served(root) as (address, token):
        anyio.run(talk, address, token)


def test_a_peer_of_revision_0_3_sends_gets_and_cancels(root: Path, fabric: Fabric) -> None:
    with peers.served(root) as (address, token), httpx.Client(headers={"Authorization": f"Bearer {token}"}) as http:

        def call(method: str, params: dict[str, object]) -> dict[str, object]:
            body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
            said: dict[str, object] = http.post(f"{address}/a2a/rpc", json=body).json()["result"]
            return said

        parts = [{"kind": "text", "text": "From an older peer"}]
        message = {"kind": "message", "messageId": "old-1", "role": "user", "parts": parts}
        made = call("message/send", {"message": message, "configuration": {"blocking": False}})
        assert made["kind"] == "task"
        assert made["status"]["state"] == "submitted"  # type: ignore[index]
        assert call("tasks/get", {"id": made["id"]})["id"] == made["id"]
        assert call("tasks/cancel", {"id": made["id"]})["status"]["state"] == "canceled"  # type: ignore[index]
        card = OldCard.model_validate(http.get(f"{address}/.well-known/agent.json").json())
        assert (card.protocol_version, card.preferred_transport) == ("0.3", "JSONRPC")
        assert card.url == f"{address}/a2a/rpc"
        assert card.security == [{"token": []}]
        assert fabric.get(str(made["id"])).title == "From an older peer"


def test_the_card_of_revision_1_0_has_nothing_of_another_revision(root: Path) -> None:
    with peers.served(root) as (address, _):
        said = httpx.get(f"{address}/.well-known/agent-card.json").json()
    card = json_format.ParseDict(said, AgentCard())  # which refuses what it does not know
    assert json_format.MessageToDict(card) == said
    assert {one.protocol_version for one in card.supported_interfaces} == {"1.0"}


@pytest.mark.parametrize("name", ["agent-card.json", "agent.json"])
def test_a_peer_may_keep_the_card_and_learns_that_it_has_changed(root: Path, fabric: Fabric, name: str) -> None:
    with peers.served(root) as (address, _), httpx.Client(base_url=f"{address}/.well-known/") as http:
        first = http.get(name)
        assert "max-age=" in first.headers["cache-control"]
        tag, since = first.headers["etag"], first.headers["last-modified"]
        for known in ({"If-None-Match": tag}, {"If-None-Match": f'"x", W/{tag}'}, {"If-Modified-Since": since}):
            again = http.get(name, headers=known)
            assert (again.status_code, again.content, again.headers["etag"]) == (304, b"", tag)
        for other in ({"If-None-Match": '"x"', "If-Modified-Since": since}, {"If-Modified-Since": "yesterday"}):
            assert http.get(name, headers=other).status_code == 200
        (root / "org").mkdir(exist_ok=True)
        (root / "org" / "org-chart.yaml").write_text(
            "schemaVersion: 1\nagents: [{id: ada, name: Ada, team: eng, capabilities: [python]}]\nteams: [{id: eng}]\n"
        )
        changed = http.get(name, headers={"If-None-Match": tag})
    assert changed.status_code == 200
    assert changed.headers["etag"] != tag
    assert [skill["id"] for skill in changed.json()["skills"]] == ["task", "python"]


def test_a_peer_that_ends_the_address_with_a_slash_is_answered(root: Path) -> None:
    with peers.served(root) as (address, token):
        headers = {"Authorization": f"Bearer {token}", "A2A-Version": "1.0"}
        asked = {"jsonrpc": "2.0", "id": 1, "method": "ListTasks", "params": {}}
        said = [httpx.post(f"{address}/a2a/rpc{end}", json=asked, headers=headers).json() for end in ("", "/")]
        assert said[0] == said[1]
        assert said[0]["result"]["totalSize"] == 0


def test_without_a_token_only_the_card_is_shown(root: Path) -> None:
    with peers.served(root) as (address, _):
        for card in ("agent-card.json", "agent.json"):
            assert httpx.get(f"{address}/.well-known/{card}").status_code == 200
        assert httpx.get(f"{address}/a2a/tasks", headers={"A2A-Version": "1.0"}).status_code == 401
        assert httpx.post(f"{address}/a2a/rpc", json={}).status_code == 401


def test_what_cannot_be_a_task_is_refused_and_leaves_nothing_behind(root: Path, fabric: Fabric) -> None:
    async def talk(address: str, token: str, reader: str) -> None:
        async with peers.client(address, token) as peer, peers.client(address, reader) as looker:
            empty = peers.request("   ")
            blank = peers.request("x")
            blank.message.parts.append(Part())
            large = peers.request("x")
            large.message.parts.append(Part(raw=bytes(8_000_000), filename="x.bin"))
            large.message.parts.append(Part(raw=b"x", filename="y.bin"))
            many = peers.request("x")
            many.message.parts.extend(Part(raw=b"x", filename=f"{n}") for n in range(21))
            nul = peers.request("a\x00b")
            greedy = peers.request("x")
            greedy.message.metadata.update({"aof": {"status": "done"}})
            for asked in (empty, blank, large, many, nul, greedy):
                with pytest.raises(A2AError):
                    await peers.sent(peer, asked)
            with pytest.raises(A2AError):
                await peers.sent(looker, peers.request("by a reader"))

    with peers.served(root) as (address, token):
        anyio.run(talk, address, token, serve.create_token(str(root), "eve", None, scope="read").token)
    assert not fabric.tasks()


def test_a_deliverable_outside_of_the_task_or_behind_a_link_is_not_shown(root: Path, fabric: Fabric) -> None:
    (root.parent / "secret.txt").write_text("secret")

    async def talk(address: str, token: str) -> None:
        async with peers.client(address, token) as peer:
            task = await peers.sent(peer, peers.request("Leak"))
            run = fabric.claim(task.id, agent="ada")
            folder = root / fabric.store.path_of(fabric.get(task.id)).removesuffix(".md") / "outputs"
            folder.mkdir(parents=True)
            (folder / "link.txt").symlink_to(root.parent / "secret.txt")
            fabric.complete(task.id, run=run.run_id, summary="s", deliverables=["outputs/link.txt"])
            fabric.as_actor("max").approve(task.id)
            found = await peer.get_task(GetTaskRequest(id=task.id))
            (link,) = [one for one in found.artifacts if one.name == "link.txt"]
            assert not link.parts[0].text
            assert "missing" in link.parts[0].metadata

    with peers.served(root) as (address, token):
        anyio.run(talk, address, token)


@pytest.mark.parametrize("binding", BINDINGS)
def test_files_in_a_message_become_inputs_of_the_task_with_their_digests(
    root: Path, fabric: Fabric, binding: str
) -> None:
    data = b"\x00\x01\x02"
    digest = hashlib.sha256(data).hexdigest()

    async def talk(address: str, token: str) -> None:
        async with peers.client(address, token, binding) as peer:
            asked = peers.request("Look at this")
            asked.message.parts.append(Part(raw=data, filename="../../../escaped", media_type="image/png"))
            asked.message.parts.append(Part(url="https://example.org/big.bin", filename="big.bin"))
            for _ in range(2):  # the answer to the first may have been lost
                task = await peers.sent(peer, asked)
            fabric.claim(task.id, agent="ada")
            fabric.block(task.id, reason="Show me more", kind="waiting_input")
            more = peers.request("Here", "m-2", task_id=task.id)
            more.message.parts.append(Part(raw=b"more", filename="more.txt"))
            await peers.sent(peer, more)

    with peers.served(root) as (address, token):
        anyio.run(talk, address, token)
    (task,) = fabric.tasks()
    folder = root / fabric.store.path_of(task).removesuffix(".md")
    kept = {path.name: path.read_bytes() for path in (folder / "inputs/peer").iterdir()}
    assert sorted(kept.values()) == [data, b"more"]
    assert not [path for path in root.parent.rglob("*escaped*") if path.parent != folder / "inputs/peer"]
    links = {one.target_id: one.sha256 for one in fabric.get(task.id).links if one.kind == "consumed_artifact"}
    assert set(links) == {f"inputs/peer/{name}" for name in kept}
    assert set(links.values()) == {digest, hashlib.sha256(b"more").hexdigest()}
    body = fabric.get(task.id).body
    assert digest in body
    assert "See https://example.org/big.bin" in body


def test_a_message_may_be_a_file_alone_and_a_chart_does_not_keep_peers_from_sending_one(
    root: Path, fabric: Fabric
) -> None:
    (root / "org").mkdir(exist_ok=True)
    (root / "org/org-chart.yaml").write_text('{"schemaVersion": 1, "agents": [{"id": "ada"}]}', encoding="utf-8")

    async def talk(address: str, token: str) -> None:
        async with peers.client(address, token) as peer:
            asked = peers.request("x")
            del asked.message.parts[:]
            asked.message.parts.append(Part(raw=b"all", filename="order.txt"))
            await peers.sent(peer, asked)

    with peers.served(root) as (address, token):
        anyio.run(talk, address, token)
    with open_fabric(root, actor="ada") as again:
        (task,) = again.tasks()
        assert task.title == "See the attached files."
        assert [one.kind for one in again.get(task.id).links] == ["consumed_artifact"]


def test_nobody_begins_a_task_whose_files_are_not_there_yet(
    root: Path, fabric: Fabric, monkeypatch: pytest.MonkeyPatch
) -> None:
    caller, asked = Caller("peer", proven=True, scope="work"), peers.request("Look at this")
    asked.message.parts.append(Part(raw=b"all", filename="order.txt"))

    def dies(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as crash:
        crash.setattr("aof.surfaces.a2a.content.save_files", dies)
        with pytest.raises(KeyboardInterrupt):
            peer_tasks.PeerInbox(fabric).receive(asked.message, caller)
    (half,) = fabric.tasks()
    assert fabric.ready().total == 0
    fabric.tick()
    with pytest.raises(NotReady):
        fabric.claim(half.id, agent="ada")
    for _ in range(2):
        assert peer_tasks.PeerInbox(fabric).receive(asked.message, caller) == half.id
        assert [row.id for row in fabric.ready().tasks] == [half.id]
    folder = root / fabric.store.path_of(fabric.get(half.id)).removesuffix(".md")
    assert [path.read_bytes() for path in (folder / "inputs/peer").iterdir()] == [b"all"]
    assert len(fabric.get(half.id).links) == 1


def test_the_files_of_an_answer_are_there_before_the_task_goes_on(
    fabric: Fabric, monkeypatch: pytest.MonkeyPatch
) -> None:
    caller, receive = Caller("peer", proven=True, scope="work"), peer_tasks.PeerInbox(fabric).receive
    task_id = receive(peers.request("Do it").message, caller)
    fabric.claim(task_id, agent="ada")
    fabric.block(task_id, reason="Show me more", kind="waiting_input")
    more = peers.request("Here", "m-2", task_id=task_id)
    more.message.parts.append(Part(raw=b"more", filename="more.txt"))

    def full(*_: object) -> None:
        raise OSError("no space left")

    with monkeypatch.context() as crash:
        crash.setattr("aof.surfaces.a2a.content.save_files", full)
        with pytest.raises(OSError, match="no space"):
            receive(more.message, caller)
    assert fabric.get(task_id).status == "blocked"
    receive(more.message, caller)
    assert fabric.get(task_id).status == "ready"
    assert [one.kind for one in fabric.get(task_id).links] == ["consumed_artifact"]
