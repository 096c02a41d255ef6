"""`aof send`, `aof session-end` and `aof handoff` as real processes."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.support.messages import Fields, prefixed, report, request, update
from tests.support.requirements import requirement
from tests.support.warm import warm

Answer = tuple[int, Any, str]


class Shell:
    """A folder with a data directory, and the command in it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        left_out = ("AOF_DATA_DIR", "AOF_RUN_ID")
        self.environment = {name: value for name, value in os.environ.items() if name not in left_out}
        self.environment["AOF_ACTOR"] = "tester"

    def raw(self, *words: str, given: str | bytes = "") -> subprocess.CompletedProcess[bytes]:
        """Run the command."""
        return subprocess.run(
            [*warm(), "aof", *words],
            cwd=self.folder,
            env=self.environment,
            input=given.encode() if isinstance(given, str) else given,
            capture_output=True,
            timeout=60,
            check=False,
        )

    def __call__(self, *words: str, given: str | bytes = "") -> Answer:
        done = self.raw(*words, "--json", given=given)
        return done.returncode, json.loads(done.stdout), done.stderr.decode()

    def task(self, *words: str) -> str:
        """A new task."""
        return str(self("create", "A task", *words)[1]["data"]["taskId"])

    def refusals(self) -> list[str]:
        """The reasons of all refusals in the log."""
        events = self("log", "--type", "protocol.message.rejected")[1]["data"]["events"]
        return [event["payload"]["reason"] for event in events]


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    """A new data directory."""
    made = Shell(tmp_path)
    assert made("init")[0] == 0
    return made


@requirement("aof1.detect.channel-cli")
def test_send_answers_for_each_message_and_fails_when_one_is_refused(shell: Shell) -> None:
    task_id = shell.task()
    shell("claim", task_id, "--agent", "ada")
    code, said, _ = shell("send", given=json.dumps(update(task_id, progress="p")))
    assert code == 0
    assert said == {
        "schema_version": 1,
        "data": {"results": [{"outcome": "accepted", "type": "status.update", "taskId": task_id, "reason": None}]},
    }
    three = "\n".join(
        prefixed(one) for one in (update(task_id, notes="n"), report(task_id, "bob"), report("TASK-2026-02-09-404"))
    )
    code, said, _ = shell("send", "-", given=three)
    assert code == 1
    assert [row["outcome"] for row in said["data"]["results"]] == ["accepted", "rejected", "rejected"]
    assert [row["reason"] for row in said["data"]["results"]] == [None, "not_lease_holder", "task_not_found"]
    assert said["error"]["code"] == "not_lease_holder"
    assert said["error"]["message"]
    assert said["error"]["hint"]
    assert shell.refusals() == ["not_lease_holder", "task_not_found"]


@requirement("aof1.detect.plain-text-ignored")
@pytest.mark.parametrize("indent", [None, 2])
def test_send_refuses_a_broken_message_without_the_prefix(shell: Shell, indent: int | None) -> None:
    task_id = shell.task()
    shell("claim", task_id, "--agent", "ada")
    broken = json.dumps(update(task_id, progress="p"), indent=indent)[:-1].rstrip()
    code, said, _ = shell("send", given=f"hello\n{broken}\n")
    assert (code, said["error"]["code"]) == (1, "invalid_json")
    assert [row["outcome"] for row in said["data"]["results"]] == ["ignored", "rejected"]
    assert shell.refusals() == ["invalid_json"]


def test_send_tells_a_person_what_became_of_each(shell: Shell) -> None:
    task_id = shell.task()
    shell("claim", task_id, "--agent", "ada")
    lines = [json.dumps(update(task_id, progress="p")), "hello", prefixed(report(task_id) | {"type": "x.y"}), "AOF/1 {"]
    done = shell.raw("send", given="\n".join(lines))
    assert done.returncode == 1
    assert [line.split()[0] for line in done.stdout.decode().splitlines()] == [
        "accepted",
        "ignored",
        "unknown",
        "rejected",
    ]
    assert b"not JSON" in done.stderr
    assert b"no message" in shell.raw("send", given="").stdout


@pytest.mark.parametrize("layout", ["file", "list", "pretty"])
def test_send_reads_a_file_in_any_layout(shell: Shell, layout: str) -> None:
    task_id = shell.task()
    shell("claim", task_id, "--agent", "ada")
    both: list[Fields] = [update(task_id, progress="p"), report(task_id)]
    text = (
        json.dumps(both)
        if layout == "list"
        else "\n".join(json.dumps(one, indent=2 if layout == "pretty" else None) for one in both)
    )
    (shell.folder / "messages.json").write_text(text)
    code, said, _ = shell("send", "messages.json")
    assert (code, [row["outcome"] for row in said["data"]["results"]]) == (0, ["accepted", "accepted"])


def test_a_file_that_is_not_there_is_wrong_usage(shell: Shell) -> None:
    code, said, _ = shell("send", "nothing.json")
    assert (code, said["error"]["code"]) == (2, "usage")


def test_bytes_that_are_no_text_harm_nobody(shell: Shell) -> None:
    code, said, _ = shell("send", given=b"\xff\xfe\nAOF/1 \xff\n")
    assert code == 1
    assert [row["outcome"] for row in said["data"]["results"]] == ["ignored", "rejected"]
    assert shell.refusals() == ["invalid_json"]


def test_a_message_of_more_than_ten_megabytes_is_refused_and_the_next_one_taken(shell: Shell) -> None:
    task_id = shell.task()
    shell("claim", task_id, "--agent", "ada")
    large = prefixed(report(task_id, more="x" * 10_000_000))
    code, said, _ = shell("send", given=f"{large}\n{prefixed(report(task_id))}\n")
    assert code == 1
    assert [row["reason"] for row in said["data"]["results"]] == ["payload_too_large", None]
    assert [row["outcome"] for row in said["data"]["results"]] == ["rejected", "accepted"]


def test_the_run_in_the_environment_is_the_run_that_speaks(shell: Shell) -> None:
    task_id = shell.task()
    first = shell("claim", task_id, "--agent", "ada")[1]["data"]["runId"]
    shell("release", task_id, "--run", first)
    second = shell("claim", task_id, "--agent", "ada")[1]["data"]["runId"]
    message = json.dumps(report(task_id))
    assert shell("send", given=message)[1]["error"]["code"] == "run_required"
    assert shell("send", "--run", first, given=message)[1]["error"]["code"] == "stale_lease"
    shell.environment["AOF_RUN_ID"] = second
    assert shell("send", given=message)[0] == 0


def test_the_end_of_a_session_says_where_each_task_went(shell: Shell) -> None:
    done, silent = shell.task(), shell.task()
    shell("claim", done, "--agent", "ada")
    run = shell("claim", silent, "--agent", "ada")[1]["data"]["runId"]
    shell("send", given=json.dumps(report(done)))
    moved = {"taskId": done, "from": "in-progress", "to": "review", "outcome": "done"}
    assert shell("session-end", "--agent", "ada")[1]["data"]["applied"] == [moved]
    failed = {"taskId": silent, "from": "in-progress", "to": "ready", "outcome": "no_completion_report"}
    assert shell("session-end", "--run", run)[1]["data"]["applied"] == [failed]
    assert shell("session-end")[1]["data"]["applied"] == []
    assert b"nothing was reported" in shell.raw("session-end").stdout


def test_handoffs_are_listed_and_shown(shell: Shell) -> None:
    parent, child = shell.task(), shell.task()
    shell("claim", parent, "--agent", "ada")
    shell("send", given=json.dumps(request(child, parent, acceptanceCriteria=["it works"])))
    (row,) = shell("handoff", "list", "--from", "ada", "--to", "bob")[1]["data"]["handoffs"]
    assert shell("handoff", "list", "--to", "cem")[1]["data"] == {"total": 0, "handoffs": []}
    assert row["id"][:8].encode() in shell.raw("handoff", "list").stdout
    assert b"it works" in shell.raw("handoff", "show", row["id"]).stdout
    for words in (("show",), ("list", "x"), ("burn", "x")):
        assert shell("handoff", *words)[0] == 2
