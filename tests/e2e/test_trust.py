"""Commands of a data directory run only after `aof trust`, on every way that would start one."""

from __future__ import annotations

import json
import os
import pty
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from aof.service.bootstrap import init_data_dir, open_fabric
from aof.service.upkeep import revoke_trust, trust_data_dir
from tests.support.served import aof, create, events, once, task
from tests.support.service import Up, chart, directory, scripted
from tests.support.waiting import BOUND

MARK = "import pathlib, sys; pathlib.Path(sys.argv[1]).touch()"


def data(root: Path, *words: str, **env: str) -> Any:
    return json.loads(aof(root, *words, "--json", **env).stdout)


def test_a_service_starts_nobody_it_was_not_told_to_and_goes_on_with_the_rest(tmp_path: Path) -> None:
    mark = tmp_path / "mark"
    both = {"ada": [sys.executable, "-c", MARK, str(mark)], "bert": scripted("report=done")}
    root = directory(tmp_path, {"bert": both["bert"]})
    (root / "org/org-chart.yaml").write_text(_charted(both))
    hostile, other, honest = create(root, "ada"), create(root, "ada"), create(root, "bert")
    lines = once(root)
    assert not mark.exists()
    assert task(root, hostile).status == task(root, other).status == "ready"
    assert not events(root, "task.attempt.started", hostile), "no run is spent on it"
    assert task(root, honest).status == "review"
    (said,) = [line for line in lines if line["action"] == "untrusted"]
    assert said["reason"] == "the command of agent ada is not trusted; see it and allow it: aof trust"


def test_a_dry_run_foresees_what_a_service_does(tmp_path: Path) -> None:
    both = {"ada": scripted("say=hello"), "bert": scripted("report=done")}
    root = directory(tmp_path, {"bert": both["bert"]})
    (root / "org/org-chart.yaml").write_text(_charted(both))
    untrusted, honest = create(root, "ada"), create(root, "bert")
    shown = data(root, "tick", "--dry-run")["data"]
    done = [line for line in once(root) if line["action"] in ("assign", "promote")]
    assert [(one["action"], one["taskId"]) for one in shown["actions"]] == [("assign", honest)]
    assert [(line["action"], line["taskId"]) for line in done] == [("assign", honest)]
    (left,) = [one for one in shown["left"] if one["taskId"] == untrusted]
    assert left["reason"] == "the command of agent ada is not trusted; see it and allow it: aof trust"


def test_a_running_service_takes_up_what_is_trusted_later(tmp_path: Path) -> None:
    root = directory(tmp_path, {"ada": scripted("report=done")})
    revoke_trust(root)
    with Up(root) as up:
        task_id = create(root, "ada")
        up.wait("untrusted")
        assert aof(root, "trust", "--yes").returncode == 0
        up.wait("session_end", task_id)
        up.end()


@pytest.mark.parametrize("changed", [{"command": scripted("say=other")}, {"env": {"A": "1"}}, {"cwd": "."}])
def test_a_changed_command_waits_until_it_is_trusted_again(tmp_path: Path, changed: dict[str, Any]) -> None:
    (tmp_path / "agents").mkdir()
    runner = {"kind": "process", "command": scripted("report=done"), "cwd": "agents"}
    root = directory(tmp_path, {"ada": {"runner": runner}})
    (root / "org/org-chart.yaml").write_text(_charted({"ada": {"runner": runner | changed}}))
    task_id = create(root, "ada", max_attempts=1)
    assert "untrusted" in [line["action"] for line in once(root)]
    assert task(root, task_id).status == "ready"
    trust_data_dir(root)
    once(root)
    assert events(root, "task.attempt.started", task_id)


def test_a_tick_says_that_a_command_is_not_trusted(tmp_path: Path) -> None:
    root = directory(tmp_path, {"ada": scripted("report=done")})
    revoke_trust(root)
    create(root, "ada")
    assert [one["reason"] for one in data(root, "tick")["data"]["left"]] == [
        "the command of agent ada is not trusted; see it and allow it: aof trust"
    ]
    trust_data_dir(root)
    assert [one["reason"] for one in data(root, "tick")["data"]["left"]] == ["ada is started by 'aof up'"]


def test_a_notification_command_is_not_run_before_it_is_trusted_and_the_change_is_made(tmp_path: Path) -> None:
    mark = tmp_path / "mark"
    root = Path(init_data_dir(tmp_path / ".aof")[0])
    command = json.dumps([sys.executable, "-c", MARK, str(mark)])
    (root / "aof.toml").write_text(f'schemaVersion = 1\n[notify]\ncommand = {command}\nfile = "told.jsonl"\n')
    task_id = create(root, "ada")
    with open_fabric(root, actor="ada") as fabric:
        fabric.claim(task_id, agent="ada")
    told = aof(root, "complete", task_id, "--agent", "ada", "--json")
    assert (told.returncode, json.loads(told.stdout)["data"]["status"]) == (0, "review")
    assert told.stderr.count("the command of notify is not trusted") == 1
    assert not mark.exists()
    assert (root / "told.jsonl").read_text().count("\n") == 1, "what needs no command goes on"
    trust_data_dir(root)
    assert aof(root, "approve", task_id).returncode == 0
    assert mark.exists()


def test_a_notification_command_never_gets_the_secret_of_a_run(tmp_path: Path) -> None:
    mark = tmp_path / "environment"
    dump = "import json, os, pathlib, sys; pathlib.Path(sys.argv[1]).write_text(json.dumps(dict(os.environ)))"
    root = Path(init_data_dir(tmp_path / ".aof")[0])
    command = json.dumps([sys.executable, "-c", dump, str(mark)])
    (root / "aof.toml").write_text(f"schemaVersion = 1\n[notify]\ncommand = {command}\n")
    trust_data_dir(root)
    task_id = create(root, "ada")
    with open_fabric(root, actor="ada") as fabric:
        secret = str(fabric.claim(task_id, agent="ada").secret)
    assert aof(root, "complete", task_id, AOF_RUN_SECRET=secret, AOF_DATA_DIR=str(root)).returncode == 0
    assert secret.rpartition("/")[2] not in mark.read_text()


def test_trust_shows_everything_and_asks_for_a_yes(tmp_path: Path) -> None:
    runner = {
        "kind": "process",
        "command": ["python3", "a b", "\x1b]52;c;aGk=\x07", "\u202ex"],
        "env": {"MODE": "fast", "API_KEY": "sk-12345678"},
        "inheritEnv": ["OTHER_KEY"],
    }
    root = Path(init_data_dir(tmp_path / ".aof")[0])
    (root / "org").mkdir(exist_ok=True)
    (root / "org/org-chart.yaml").write_text(_charted({"ada": {"runner": runner}}))
    refused = aof(root, "trust")
    assert refused.returncode == 2
    assert "aof trust --yes" in refused.stderr
    assert data(root, "trust")["error"]["code"]
    listed = aof(root, "trust", "list").stdout
    assert listed == (
        "agent ada: not trusted\n"
        f"  python3 'a b' '\\x1b]52;c;aGk=\\x07' '\\u202ex'\n  in {tmp_path}\n"
        "  MODE=fast\n  API_KEY=(hidden)\n  with our own variables: OTHER_KEY\n"
    )
    shown = data(root, "trust", "--yes")["data"]
    assert shown["trusted"]
    assert shown["commands"][0]["env"] == {"MODE": "fast", "API_KEY": "(hidden)"}
    assert data(root, "trust", "list")["data"]["trusted"]
    assert data(root, "trust", "revoke")["data"]["revoked"]
    assert not data(root, "trust", "list")["data"]["trusted"]


@pytest.mark.parametrize(("answer", "trusted"), [(b"y\n", True), (b"n\n", False), (b"\n", False), (b"\x04", False)])
def test_a_person_at_a_terminal_is_asked(tmp_path: Path, answer: bytes, *, trusted: bool) -> None:
    root = directory(tmp_path, {"ada": scripted("report=done")})
    revoke_trust(root)
    ours, theirs = pty.openpty()
    command = [sys.executable, "-m", "aof", "--data-dir", str(root), "trust"]
    with subprocess.Popen(command, stdin=theirs, stdout=theirs, stderr=theirs) as process:
        os.close(theirs)
        seen = b""
        while b"[y/N]" not in seen:
            seen += os.read(ours, 4096)
        assert b"agent ada: " in seen
        os.write(ours, answer)
        assert process.wait(BOUND) == (0 if trusted else 2)
    os.close(ours)
    assert data(root, "trust", "list")["data"]["trusted"] is trusted


@pytest.mark.parametrize("words", [("trust", "--yes"), ("trust", "revoke")])
def test_a_run_cannot_change_what_is_trusted(tmp_path: Path, words: tuple[str, ...]) -> None:
    root = directory(tmp_path, {"ada": scripted("report=done")})
    before = data(root, "trust", "list")["data"]["trusted"]
    if words[-1] == "--yes":
        revoke_trust(root)
        before = False
    for secret in ("RUN-2026-01-01-001-1/ada/abcdef", "anything"):
        refused = aof(root, *words, "--json", AOF_RUN_SECRET=secret)
        assert refused.returncode == 1
        assert json.loads(refused.stdout)["error"]["code"] == "not_allowed"
    assert data(root, "trust", "list")["data"]["trusted"] is before


def test_making_a_data_directory_trusts_nothing_that_was_there(tmp_path: Path) -> None:
    (tmp_path / ".aof/org").mkdir(parents=True)
    (tmp_path / ".aof/org/org-chart.yaml").write_text(_charted({"ada": ["touch", "hacked"]}))
    root = Path(init_data_dir(tmp_path / ".aof")[0])
    assert not data(root, "trust", "list")["data"]["trusted"]


def test_what_a_cloned_directory_says_of_trust_does_not_count(tmp_path: Path) -> None:
    root = directory(tmp_path / "a", {"ada": scripted("report=done")})
    state = Path(os.environ["XDG_STATE_HOME"])
    (root / "trust").mkdir()
    for file in (state / "aof/trust").iterdir():
        (root / "trust" / file.name).write_bytes(file.read_bytes())
    (tmp_path / "b").mkdir()
    root.rename(tmp_path / "b/.aof")
    assert not data(tmp_path / "b/.aof", "trust", "list")["data"]["trusted"]


def test_without_commands_there_is_nothing_to_trust(tmp_path: Path) -> None:
    root = Path(init_data_dir(tmp_path / ".aof")[0])
    assert data(root, "trust")["data"] == {"dataDir": str(root), "trusted": True, "commands": []}
    chart(root, {"ada": {}})
    assert data(root, "trust")["data"]["commands"] == []


def _charted(agents: dict[str, Any]) -> str:
    listed = [
        {"id": name} | (given if isinstance(given, dict) else {"runner": {"kind": "process", "command": given}})
        for name, given in agents.items()
    ]
    return json.dumps({"schemaVersion": 1, "agents": listed})
