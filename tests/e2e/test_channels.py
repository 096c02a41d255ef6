"""Notification channels with a real service, real Apprise and a real receiver on the loopback."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from aof.service.bootstrap import init_data_dir, open_fabric
from aof.service.upkeep import trust_data_dir
from tests.support.receiver import Receiver, receiver
from tests.support.served import aof
from tests.support.service import Up
from tests.support.waiting import eventually

SECRET = "s3cr3t"


@pytest.fixture
def service() -> Iterator[Receiver]:
    with receiver() as made:
        yield made


def data_directory(folder: Path, *channels: str) -> Path:
    root = Path(init_data_dir(folder / ".aof", actor="pm")[0])
    tables = "".join(f"[[notify.channels]]\n{channel}\n" for channel in channels)
    (root / "aof.toml").write_text(f'schemaVersion = 1\nmaintainers = ["pm"]\n{tables}', encoding="utf-8")
    return root


def block(root: Path, title: str = "Add refresh", **given: Any) -> str:
    with open_fabric(root, actor="pm") as fabric:
        task_id = fabric.create(title, **given).task_id
        fabric.block(task_id, reason="no key")
    return task_id


def test_a_person_hears_of_a_blocked_task_through_a_channel(tmp_path: Path, service: Receiver) -> None:
    root = data_directory(tmp_path, f'name = "team"\nurl = "{service.url(SECRET)}"\nbatch = 0')
    trust_data_dir(root)
    with Up(root) as up:
        up.wait("up")
        eventually(lambda: list((root / "locks").glob("delivery*.json")), "a channel that is served")
        task_id = block(root)
        (message,) = service.wait(1)
        assert up.end() == 0
    assert message["title"].endswith(f"{task_id} is now in blocked")
    assert "no key" in message["message"]
    assert SECRET not in json.dumps(up.lines)
    shown = aof(root, "notify", "--json").stdout
    (channel,) = json.loads(shown)["data"]["channels"]
    assert (channel["trusted"], channel["sent"]) == (True, 1)
    assert SECRET not in shown


def test_a_cloned_data_directory_sends_nothing_before_somebody_trusts_it(tmp_path: Path, service: Receiver) -> None:
    origin = data_directory(tmp_path / "origin", f'name = "out"\nurl = "{service.url(SECRET)}"\nbatch = 0')
    trust_data_dir(origin)
    root = tmp_path / "clone/.aof"
    shutil.copytree(origin, root)
    with Up(root) as up:
        said = up.wait("untrusted")
        block(root)
        up.end()
    assert said["reason"].endswith("is not trusted; see it and allow it: aof trust")
    assert SECRET not in json.dumps(up.lines)
    assert aof(root, "notify", "test", "out").returncode == 1
    assert aof(root, "notify", "send").returncode == 0
    assert service.received == []
    listed = aof(root, "trust", "list", "--json").stdout
    (command,) = json.loads(listed)["data"]["commands"]
    assert (command["kind"], command["trusted"]) == ("channel", False)
    assert SECRET not in listed + aof(root, "trust", "list").stdout
    assert "channel_untrusted" in aof(root, "doctor", "--json").stdout
    assert aof(root, "trust", "--yes").returncode == 0
    assert aof(root, "notify", "test", "out").returncode == 0
    assert [one["title"] for one in service.received] == ["A test of the channel out"]
    settings = (root / "aof.toml").read_text()
    (root / "aof.toml").write_text(settings.replace(SECRET, "elsewhere"))
    assert aof(root, "notify", "test", "out").returncode == 1, "another address has to be trusted again"


def test_a_channel_that_hangs_or_fails_holds_up_neither_the_fabric_nor_another_channel(
    tmp_path: Path, service: Receiver
) -> None:
    with receiver() as hanging, receiver() as failing:
        hanging.held.clear()
        failing.status = 500
        addresses = {"hangs": hanging, "fails": failing, "works": service}
        channels = [f'name = "{name}"\nurl = "{one.url(SECRET)}"\nbatch = 0' for name, one in addresses.items()]
        root = data_directory(tmp_path, *channels)
        trust_data_dir(root)
        with Up(root) as up:
            up.wait("up")
            eventually(lambda: len(list((root / "locks").glob("delivery*.json"))) == 3, "channels that are served")
            block(root)
            hanging.wait(1)
            service.wait(1)
            second = block(root, "Another one, while one channel hangs")
            assert second in service.wait(2)[1]["title"]
            trouble = up.wait("trouble")
            assert trouble["reason"].startswith("channel fails: the service cannot be reached")
            assert "(HTTP 500)" in trouble["reason"]
            assert up.end() == 0, "a hanging channel does not keep the service from ending"
        assert SECRET not in json.dumps(up.lines)
        told = aof(root, "doctor", "--json").stdout
        assert "channel_failing" in told
        assert SECRET not in told


def test_without_a_service_what_waits_is_sent_on_demand_with_an_address_from_the_environment(
    tmp_path: Path, service: Receiver
) -> None:
    root = data_directory(tmp_path, 'name = "team"\nurlEnv = "TEAM_CHAT"\nstatus = ["blocked"]\npriority = ["high"]')
    trust_data_dir(root)
    env = {"TEAM_CHAT": service.url(SECRET)}
    assert aof(root, "notify", "send", **env).returncode == 0
    block(root, "of no interest")
    task_id = block(root, "urgent", priority="high")
    assert aof(root, "notify", "send").returncode == 1
    sent = aof(root, "notify", "send", **env)
    assert sent.returncode == 0
    (message,) = service.received
    assert task_id in message["title"]
    assert SECRET not in sent.stdout + sent.stderr
    assert aof(root, "notify", "test", "team", AOF_RUN_SECRET="r/a/x", **env).returncode == 1


@pytest.mark.parametrize(
    "channel",
    [
        'url = "json://host"',
        'name = "../x"\nurl = "json://host"',
        'name = "a"',
        'name = "a"\nurl = "json://host"\nurlEnv = "X"',
        'name = "a"\nurl = "json://host"\nbatch = -1',
        'name = "a"\nurl = "json://host"\nstatus = ["nowhere"]',
    ],
)
def test_a_channel_that_cannot_be_used_is_named_and_stops_no_other_command(tmp_path: Path, channel: str) -> None:
    root = data_directory(tmp_path, channel)
    told = aof(root, "notify", "--json")
    assert told.returncode != 0
    assert json.loads(told.stdout)["error"]["code"] == "settings_unusable"
