"""Push notifications: a peer names an address, and it is told what happens to its task, whatever happens meanwhile."""

from __future__ import annotations

import stat
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import httpx
import pytest
from a2a.client import Client
from a2a.types import (
    AuthenticationInfo,
    DeleteTaskPushNotificationConfigRequest,
    GetTaskPushNotificationConfigRequest,
    ListTaskPushNotificationConfigsRequest,
    TaskPushNotificationConfig,
)
from a2a.utils.errors import A2AError, PushNotificationNotSupportedError, TaskNotFoundError

from aof.api.async_bridge import Follower
from aof.api.fabric import Fabric
from aof.errors import SettingsUnusable
from aof.kernel.events import Event
from aof.kernel.ports import PushTarget
from aof.service import serve
from aof.service.bootstrap import init_data_dir, open_fabric
from aof.service.clock import SystemClock
from aof.store.files.archive import travels
from aof.store.files.service_files import PushTargetFiles
from aof.surfaces.a2a.push import PushHosts, PushSender, Retries
from tests.support import peers
from tests.support.receiver import Receiver, receiver
from tests.support.waiting import eventually

BINDINGS = ("JSONRPC", "HTTP+JSON")
Talk = Callable[[Client], Awaitable[None]]


@pytest.fixture
def root(tmp_path: Path) -> Path:
    made = Path(init_data_dir(tmp_path / ".aof")[0])
    (made / "aof.toml").write_text('schemaVersion = 1\n[a2a]\npushHosts = ["127.0.0.1"]\n', encoding="utf-8")
    return made


@pytest.fixture
def fabric(root: Path) -> Iterator[Fabric]:
    with open_fabric(root, actor="ada") as opened:
        yield opened


@pytest.fixture
def hook() -> Iterator[Receiver]:
    with receiver() as made:
        yield made


@contextmanager
def talking(root: Path) -> Iterator[Callable[..., None]]:
    """A server, and how to talk to it as the peer `mia` (one token over all restarts)."""
    with peers.served(root) as (address, token):

        def talk(said: Talk, binding: str = "JSONRPC", other: str | None = None) -> None:
            async def connected() -> None:
                async with peers.client(address, other or token, binding) as peer:
                    await said(peer)

            anyio.run(connected)

        yield talk


def config(hook: Receiver, task_id: str = "", **more: Any) -> TaskPushNotificationConfig:
    return TaskPushNotificationConfig(task_id=task_id, url=hook.hook(), **more)


def sent_with(root: Path, hook: Receiver, binding: str = "JSONRPC", **more: Any) -> Talk:
    """Send a task and name the address in the same message."""

    async def talk(peer: Client) -> None:
        asked = peers.request("Tell me")
        asked.configuration.task_push_notification_config.CopyFrom(config(hook, **more))
        await peers.sent(peer, asked)

    return talk


def done(fabric: Fabric, task_id: str) -> None:
    run = fabric.claim(task_id, agent="ada")
    fabric.progress(task_id, run=run.run_id, text="half of it")
    fabric.complete(task_id, run=run.run_id, summary="it works")
    fabric.as_actor("max").approve(task_id)


def told(hook: Receiver) -> list[str]:
    """What the address was told, each piece once."""
    known: dict[str, str] = {}
    for body in hook.received:
        update = body.get("statusUpdate") or body["artifactUpdate"]
        status = update.get("status", {})
        text = status.get("message", {}).get("parts", [{}])[0].get("text", "")
        state = status.get("state", "artifact").removeprefix("TASK_STATE_").lower()
        known.setdefault(update["metadata"]["eventId"], f"{state} {text}".strip())
    return list(known.values())


def dropped(fabric: Fabric) -> list[Event]:
    return [event for event in fabric.events() if event.type == "a2a.push.dropped"]


@pytest.mark.parametrize("binding", BINDINGS)
def test_an_address_that_comes_with_the_message_is_told_everything_to_the_end(
    root: Path, fabric: Fabric, hook: Receiver, binding: str
) -> None:
    login = AuthenticationInfo(scheme="Bearer", credentials="c-1")
    with talking(root) as talk:
        talk(sent_with(root, hook, token="t-1", authentication=login), binding)
        (task,) = fabric.tasks()
        run = fabric.claim(task.id, agent="ada")
        fabric.progress(task.id, run=run.run_id, text="half of it")
        eventually(lambda: "working half of it" in told(hook), "news of the work")
        fabric.complete(task.id, run=run.run_id, summary="it works")
        fabric.as_actor("max").approve(task.id)
        eventually(lambda: told(hook)[-1:] == ["completed it works"], "end of the task")
        eventually(lambda: not list((root / "push").glob("*.json")), "nothing is left of a task that has ended")
    assert "artifact" in told(hook)
    for headers, body in zip(hook.headers, hook.received, strict=True):
        assert headers["x-a2a-notification-token"] == "t-1"
        assert headers["authorization"] == "Bearer c-1"
        update = body.get("statusUpdate") or body["artifactUpdate"]
        assert headers["x-a2a-event-id"] == update["metadata"]["eventId"]
        assert update["taskId"] == task.id
    names = [headers["x-a2a-event-id"] for headers in hook.headers]
    assert len(set(names)) == len(names), "nothing is told twice while all goes well"
    secrets = [path for path in root.rglob("*") if path.is_file() and b"t-1" in path.read_bytes()]
    assert not secrets, "the peer's token is in no file that stays"


@pytest.mark.parametrize("binding", BINDINGS)
def test_a_peer_sets_sees_and_deletes_configurations_of_its_own_tasks_only(
    root: Path, fabric: Fabric, hook: Receiver, binding: str
) -> None:
    bob = serve.create_token(str(root), "bob", None).token

    async def set_three(peer: Client) -> None:
        task = await peers.sent(peer, peers.request("Mine"))
        for name in ("one", "two", "three"):
            made = await peer.create_task_push_notification_config(config(hook, task.id, id=name, token=name))
            assert (made.id, made.task_id, made.url) == (name, task.id, hook.hook())
        listed = await peer.list_task_push_notification_configs(ListTaskPushNotificationConfigsRequest(task_id=task.id))
        assert [one.id for one in listed.configs] == ["one", "two", "three"]
        asked = GetTaskPushNotificationConfigRequest(task_id=task.id, id="two")
        assert (await peer.get_task_push_notification_config(asked)).token == "two"
        gone = DeleteTaskPushNotificationConfigRequest(task_id=task.id, id="two")
        for _ in range(2):
            await peer.delete_task_push_notification_config(gone)
        with pytest.raises(TaskNotFoundError):
            await peer.get_task_push_notification_config(asked)

    async def look(peer: Client) -> None:
        (task,) = fabric.tasks()
        with pytest.raises(TaskNotFoundError):
            await peer.list_task_push_notification_configs(ListTaskPushNotificationConfigsRequest(task_id=task.id))
        with pytest.raises(TaskNotFoundError):
            await peer.create_task_push_notification_config(config(hook, task.id))
        with pytest.raises(TaskNotFoundError):
            await peer.delete_task_push_notification_config(
                DeleteTaskPushNotificationConfigRequest(task_id=task.id, id="one")
            )

    with talking(root) as talk:
        talk(set_three, binding)
        talk(look, binding, bob)
        (task,) = fabric.tasks()
        kept = root / "push" / f"{task.id}.json"
        assert stat.S_IMODE(kept.stat().st_mode) == 0o600
        fabric.claim(task.id, agent="ada")
        hook.wait(2)
    assert {headers["x-a2a-notification-token"] for headers in hook.headers} == {"one", "three"}


def test_what_happens_while_no_server_runs_is_told_after_the_restart(
    root: Path, fabric: Fabric, hook: Receiver
) -> None:
    with talking(root) as talk:
        talk(sent_with(root, hook))
    (task,) = fabric.tasks()
    assert list((root / "push").glob("*.json"))
    done(fabric, task.id)
    with talking(root):
        eventually(lambda: told(hook)[-1:] == ["completed it works"], "the rest")


def test_an_address_that_fails_is_told_later_and_with_the_same_ids(root: Path, fabric: Fabric, hook: Receiver) -> None:
    hook.status = 503
    with talking(root) as talk:
        talk(sent_with(root, hook))
        (task,) = fabric.tasks()
        fabric.claim(task.id, agent="ada")
        hook.wait(2)
        hook.status = 200
        hook.wait(3)
    names = [headers["x-a2a-event-id"] for headers in hook.headers]
    assert len(set(names)) == 1
    assert told(hook) == ["working"]


def test_an_address_that_redirects_is_not_followed(root: Path, fabric: Fabric, hook: Receiver) -> None:
    with receiver() as other, talking(root) as talk:
        hook.status, hook.location = 307, other.hook()
        talk(sent_with(root, hook))
        (task,) = fabric.tasks()
        fabric.claim(task.id, agent="ada")
        hook.wait(2)
        assert not other.received


def test_an_address_that_is_gone_is_dropped_and_the_log_says_why(root: Path, fabric: Fabric, hook: Receiver) -> None:
    hook.status = 410
    with talking(root) as talk:
        talk(sent_with(root, hook))
        (task,) = fabric.tasks()
        fabric.claim(task.id, agent="ada")
        eventually(lambda: dropped(fabric), "the target is dropped")
        eventually(lambda: not list((root / "push").glob("*.json")), "it is gone")
    (event,) = dropped(fabric)
    assert (event.task_id, event.payload["host"], event.payload["reason"]) == (task.id, "127.0.0.1", "it answers 410")
    assert "s3cr3t" not in str(list(fabric.events()))


def test_a_peer_whose_tokens_are_revoked_is_told_nothing_more(root: Path, fabric: Fabric, hook: Receiver) -> None:
    with talking(root) as talk:
        talk(sent_with(root, hook))
        (task,) = fabric.tasks()
        for known in serve.list_tokens(str(root)):
            serve.revoke_token(str(root), known.id)
        fabric.claim(task.id, agent="ada")
        eventually(lambda: dropped(fabric), "the target is dropped")
    assert not hook.received
    assert "mia has no valid token" in dropped(fabric)[0].payload["reason"]


def test_a_peer_of_revision_0_3_gets_the_whole_task(root: Path, fabric: Fabric, hook: Receiver) -> None:
    with peers.served(root) as (address, token), httpx.Client(headers={"Authorization": f"Bearer {token}"}) as http:

        def call(method: str, params: dict[str, Any]) -> Any:
            body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
            return http.post(f"{address}/a2a/rpc", json=body).json()["result"]

        message = {"kind": "message", "messageId": "old-1", "role": "user", "parts": [{"kind": "text", "text": "Old"}]}
        made = call("message/send", {"message": message, "configuration": {"blocking": False}})
        wanted = {"taskId": made["id"], "pushNotificationConfig": {"url": hook.hook(), "token": "t-3"}}
        kept = call("tasks/pushNotificationConfig/set", wanted)
        assert kept["pushNotificationConfig"]["url"] == hook.hook()
        assert call("tasks/pushNotificationConfig/get", {"id": made["id"]})["taskId"] == made["id"]
        assert len(call("tasks/pushNotificationConfig/list", {"id": made["id"]})) == 1
        done(fabric, made["id"])
        eventually(lambda: hook.received and hook.received[-1]["status"]["state"] == "completed", "end of the task")
        assert hook.received[-1]["id"] == made["id"]
        assert hook.received[-1]["kind"] == "task"
        assert hook.headers[-1]["x-a2a-notification-token"] == "t-3"


def test_without_a_list_of_hosts_push_notifications_are_off_and_the_card_says_so(root: Path, hook: Receiver) -> None:
    def card() -> dict[str, Any]:
        with peers.served(root) as (address, _):
            found: dict[str, Any] = httpx.get(f"{address}/.well-known/agent-card.json").json()
            return found

    assert card()["capabilities"]["pushNotifications"] is True
    (root / "aof.toml").write_text("schemaVersion = 1\n", encoding="utf-8")
    assert not card()["capabilities"].get("pushNotifications", False)

    async def refused(peer: Client) -> None:
        with pytest.raises(PushNotificationNotSupportedError, match="pushHosts"):
            await sent_with(root, hook)(peer)

    with talking(root) as talk:
        talk(refused)
    with open_fabric(root, actor="ada") as fabric:
        assert not fabric.tasks(), "a refused message leaves no task behind"


def test_a_reader_may_have_nothing_sent_and_bad_configurations_are_refused(root: Path, hook: Receiver) -> None:
    async def refused(peer: Client) -> None:
        task = await peers.sent(peer, peers.request("Mine"))
        for wrong in (
            {"url": "https://elsewhere.example.org/x"},
            {"url": "ftp://127.0.0.1/x"},
            {"url": "http://user:pw@127.0.0.1/x"},
            {"url": ""},
            {"url": hook.hook(), "token": "a\nb"},
            {"url": hook.hook(), "token": "x" * 5_000},
            {"url": hook.hook(), "id": "x" * 300},
            {"url": hook.hook(), "authentication": AuthenticationInfo(scheme="Bearer")},
        ):
            with pytest.raises(A2AError):
                await peer.create_task_push_notification_config(TaskPushNotificationConfig(task_id=task.id, **wrong))
        for number in range(10):
            await peer.create_task_push_notification_config(config(hook, task.id, id=f"{number}"))
        with pytest.raises(A2AError, match="at most 10"):
            await peer.create_task_push_notification_config(config(hook, task.id, id="10"))

    async def read(peer: Client) -> None:
        with open_fabric(root, actor="ada") as fabric:
            (task,) = fabric.tasks()
        with pytest.raises(A2AError, match="scope work"):
            await peer.create_task_push_notification_config(config(hook, task.id))

    with talking(root) as talk:
        talk(refused)
        talk(read, "JSONRPC", serve.create_token(str(root), "mia", None, scope="read").token)


@pytest.mark.parametrize(
    ("listed", "url", "allowed"),
    [
        ("hooks.example.org", "https://hooks.example.org/x", True),
        ("hooks.example.org", "https://HOOKS.example.org:8443/x", True),
        ("hooks.example.org:8443", "https://hooks.example.org:8443/x", True),
        ("hooks.example.org:8443", "https://hooks.example.org/x", False),
        ("hooks.example.org", "http://hooks.example.org/x", False),
        ("hooks.example.org", "https://hooks.example.org.evil.net/x", False),
        ("hooks.example.org", "https://evil.net/hooks.example.org", False),
        ("hooks.example.org", "https://evil.net#hooks.example.org", False),
        ("hooks.example.org", "https://hooks.example.org@evil.net/", False),
        ("hooks.example.org", "http://127.0.0.1/x", False),
        ("127.0.0.1", "http://127.0.0.1:9/x", True),
        ("localhost:9", "http://localhost:9/x", True),
        ("[::1]:9", "http://[::1]:9/x", True),
        ("192.0.2.7", "http://192.0.2.7/x", False),
        ("127.0.0.1", "http://2130706433/x", False),
    ],
)
def test_only_listed_hosts_are_told_encrypted_or_on_this_machine(listed: str, url: str, *, allowed: bool) -> None:
    assert (PushHosts((listed,)).refusal(url) is None) == allowed


@pytest.mark.parametrize("entry", ["*.example.org", "https://example.org", "example.org/x", ""])
def test_an_entry_that_is_no_host_is_an_error_of_the_settings(root: Path, entry: str) -> None:
    (root / "aof.toml").write_text(f'schemaVersion = 1\n[a2a]\npushHosts = ["{entry}"]\n', encoding="utf-8")
    with pytest.raises(SettingsUnusable, match="pushHosts"), peers.served(root):
        pass


def test_a_target_that_always_fails_is_dropped_after_a_bounded_number_of_tries(
    root: Path, fabric: Fabric, hook: Receiver
) -> None:
    hook.status = 500
    task_id = fabric.create("Tell it").task_id
    targets = PushTargetFiles(str(root), SystemClock())
    target = PushTarget(
        task_id=task_id, id="x", actor="mia", url=hook.hook(), made_at="2026-01-01T00:00:00.000Z", seq=0, state=0
    )
    targets.change(task_id, lambda _: (target,))
    said: list[str] = []

    async def work() -> None:
        follower = Follower(fabric)
        sender = PushSender(
            follower,
            PushHosts(("127.0.0.1",)),
            targets,
            is_known=lambda _: True,
            tell=lambda _action, text: said.append(text),
            retries=Retries(tries=3, first=0.01, longest=0.02),
        )
        async with follower.running(), anyio.create_task_group() as group:
            group.start_soon(sender.run)
            await anyio.to_thread.run_sync(partial(eventually, lambda: said, "the target is dropped"))
            group.cancel_scope.cancel()

    anyio.run(work)
    assert len(hook.received) == 3
    assert dropped(fabric)[0].payload["reason"] == "3 tries failed, the last with: it answers 500"
    assert not targets.of(task_id)


def test_a_file_of_targets_that_others_can_reach_is_not_used(root: Path, fabric: Fabric, hook: Receiver) -> None:
    task_id = fabric.create("Tell it").task_id
    targets = PushTargetFiles(str(root), SystemClock())
    target = PushTarget(task_id=task_id, id="x", actor="mia", url=hook.hook(), made_at="", seq=0, state=0)
    targets.change(task_id, lambda _: (target,))
    assert targets.of(task_id) == (target,)
    (root / "push" / f"{task_id}.json").chmod(0o644)
    assert targets.of(task_id) == ()
    assert (root / "push" / ".gitignore").read_text() == "*\n"
    assert not travels(f"push/{task_id}.json"), "an export leaves it here"
    assert fabric.doctor().ok
