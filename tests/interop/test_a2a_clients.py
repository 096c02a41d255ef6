"""The official client of A2A for JavaScript against a server of ours: send, get, list, stream, cancel and push."""

from __future__ import annotations

import json
import shutil
import threading
from pathlib import Path
from typing import Any

import pytest

from aof.service.bootstrap import init_data_dir, open_fabric
from tests.interop.node import installed, run
from tests.support import peers
from tests.support.receiver import receiver
from tests.support.waiting import eventually

SDK = "@a2a-js/sdk@1.3.0"


def _done_when_followed(root: Path, following: Path) -> None:
    """Do the task that is followed, once the client follows it."""
    with open_fabric(root, actor="ada") as fabric:
        eventually(following.exists, "client that follows")
        task_id = fabric.tasks(search="Follow me")[0].id
        claimed = fabric.claim(task_id, agent="ada")
        fabric.complete(task_id, run=claimed.run_id, summary="it works")
        fabric.as_actor("max").approve(task_id)


@pytest.mark.parametrize("binding", ["JSONRPC", "HTTP+JSON"])
def test_the_javascript_client_sends_gets_lists_streams_cancels_and_has_a_hook_told(
    tmp_path: Path, binding: str
) -> None:
    packages = installed(SDK)
    script = packages / "a2a_client.mjs"
    shutil.copy(Path(__file__).with_name("a2a_client.mjs"), script)
    root = Path(init_data_dir(tmp_path / ".aof")[0])
    (root / "aof.toml").write_text('schemaVersion = 1\n[a2a]\npushHosts = ["127.0.0.1"]\n', encoding="utf-8")
    following = tmp_path / "following"
    worker = threading.Thread(target=_done_when_followed, args=(root, following))
    worker.start()
    with receiver() as hook, peers.served(root) as (address, token):
        words = (address, token, binding, str(following), hook.hook())
        said: dict[str, Any] = json.loads(run(str(script), *words, cwd=packages).stdout)
        (update,) = hook.wait(1)
        assert update["statusUpdate"]["status"]["state"] == "TASK_STATE_CANCELED"
        assert hook.headers[0]["x-a2a-notification-token"] == "token-two"
    assert (said["kept"]["id"], said["kept"]["token"]) == ("two", "token-two")
    assert [one["id"] for one in said["hooks"]["configs"]] == ["two"]
    worker.join()
    assert said["sent"]["id"] == said["found"]["id"] == said["cancelled"]["id"]
    assert [one["id"] for one in said["listed"]["tasks"]] == [said["sent"]["id"]]
    with open_fabric(root, actor="ada") as fabric:
        kept = fabric.get(said["sent"]["id"])
        assert (kept.title, kept.status, kept.created_by) == ("From JavaScript", "cancelled", "mia")
    kinds = [one["payload"]["$case"] for one in said["streamed"]]
    assert kinds[0] == "task"
    assert kinds[-1] == "statusUpdate"
    assert "artifactUpdate" in kinds
