"""The verbs that send messages and mail."""

from __future__ import annotations

import io
import json
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.support.command_line import Aof, Said
from tests.support.messages import Fields, prefixed, report, request, update
from tests.support.requirements import requirement

# --- `aof send`, `aof session-end` and `aof handoff`


Answer = tuple[int, Any, str]


class Shell:
    """A folder with a data directory, and the command in it, which reads what is given."""

    def __init__(self, folder: Path, aof: Aof, monkeypatch: pytest.MonkeyPatch) -> None:
        self.folder = folder
        self.aof = aof
        self.monkeypatch = monkeypatch

    def raw(self, *words: str, given: str | bytes = "") -> Said:
        """Run the command."""
        data = given.encode() if isinstance(given, str) else given
        self.monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(data), "utf-8"))
        return self.aof(*words)

    def __call__(self, *words: str, given: str | bytes = "") -> Answer:
        said = self.raw(*words, "--json", given=given)
        return said.code, said.answer, said.err

    def task(self, *words: str) -> str:
        """A new task."""
        return str(self("create", "A task", *words)[1]["data"]["taskId"])

    def refusals(self) -> list[str]:
        """The reasons of all refusals in the log."""
        events = self("log", "--type", "protocol.message.rejected")[1]["data"]["events"]
        return [event["payload"]["reason"] for event in events]


@pytest.fixture
def shell(tmp_path: Path, aof: Aof, monkeypatch: pytest.MonkeyPatch) -> Shell:
    """A new data directory."""
    return Shell(tmp_path, aof, monkeypatch)


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
    assert done.code == 1
    assert [line.split()[0] for line in done.out.splitlines()] == [
        "accepted",
        "ignored",
        "unknown",
        "rejected",
    ]
    assert "not JSON" in done.err
    assert "no message" in shell.raw("send", given="").out


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
    shell.monkeypatch.setenv("AOF_RUN_ID", second)
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
    assert "nothing was reported" in shell.raw("session-end").out


def test_handoffs_are_listed_and_shown(shell: Shell) -> None:
    parent, child = shell.task(), shell.task()
    shell("claim", parent, "--agent", "ada")
    shell("send", given=json.dumps(request(child, parent, acceptanceCriteria=["it works"])))
    (row,) = shell("handoff", "list", "--from", "ada", "--to", "bob")[1]["data"]["handoffs"]
    assert shell("handoff", "list", "--to", "cem")[1]["data"] == {"total": 0, "handoffs": []}
    assert row["id"][:8] in shell.raw("handoff", "list").out
    assert "it works" in shell.raw("handoff", "show", row["id"]).out
    for words in (("show",), ("list", "x"), ("burn", "x")):
        assert shell("handoff", *words)[0] == 2


# --- `aof mail` as scripts use it: data, exit codes, and files that only a check has read


def _sent(aof: Aof, *words: str) -> str:
    said = aof("mail", "send", "--from", "ada", "--to", "bob", "--subject", "Which port?", *words, "--json")
    assert said.code == 0, said.out
    return str(said.data["messageId"])


@requirement("comms.lifecycle.acknowledge", "comms.mailbox.no-private")
def test_a_message_from_its_sending_to_its_end(aof: Aof) -> None:
    sent = _sent(aof, "--type", "request", "--priority", "P1", "--body", "Please.")
    inbox = aof("mail", "inbox", "--agent", "bob", "--json").data
    assert (inbox["unread"], [one["messageId"] for one in inbox["messages"]]) == (1, [sent])
    assert aof("mail", "ack", sent, "--agent", "ada", "--reason", "x", "--json").error["code"] == "not_receiver"
    assert aof("mail", "ack", sent, "--agent", "ada", "--reason", "x").code == 1
    assert aof("mail", "ack", sent, "--agent", "bob", "--json").error["code"] == "invalid"
    assert aof("mail", "ack", sent, "--agent", "bob", "--reason", "read", "--json").data["status"] == "acknowledged"
    assert aof("mail", "block", sent, "--agent", "bob", "--reason", "waits", "--json").data["status"] == "blocked"
    assert aof("mail", "action", sent, "--agent", "bob", "--reason", "done", "--json").data["status"] == "actioned"
    listed = aof("mail", "list", "--from", "ada", "--json").data
    assert (listed["total"], listed["messages"][0]["body"]) == (1, "Please.")
    missing = aof("mail", "close", sent, "--agent", "ada", "--reason", "thanks", "--json")
    assert (missing.code, missing.error["code"]) == (2, "invalid")
    closed = aof("mail", "close", sent, "--agent", "ada", "--disposition", "resolved", "--reason", "thanks", "--json")
    assert (closed.data["status"], closed.data["disposition"]) == ("closed", "resolved")
    assert aof("mail", "show", "MSG-19990101-001", "--json").code == 3
    assert aof("mail", "inbox", "--agent", "bob").out == "bob has nothing unread\n"
    assert aof("mail", "archive", "--days", "0", "--json").data["total"] == 0


@requirement("comms.validate.report", "comms.validate.turn-end")
def test_a_check_only_reads_and_says_by_its_exit_what_it_found(aof: Aof, tmp_path: Path) -> None:
    sent = _sent(aof)
    mailbox = tmp_path / ".aof/MAILBOX.md"
    before = mailbox.read_bytes()
    good = aof("mail", "check", "--json")
    assert (good.code, good.data) == (0, {"ok": True, "problems": []})
    left = aof("mail", "check", "--turn-end", "--agent", "bob", "--json")
    assert (left.code, [one["code"] for one in left.data["problems"]]) == (1, ["turn_unread"])
    assert sent in left.data["problems"][0]["detail"]
    assert aof("mail", "check", "--turn-end", "--agent", "ada").code == 0
    assert mailbox.read_bytes() == before
    copy = tmp_path / "copy.md"
    copy.write_bytes(before.replace(b"| bob | 1 |", b"| bob | 0 |"))
    bad = aof("mail", "check", str(copy), "--json")
    assert (bad.code, bad.data["ok"]) == (1, False)
    assert bad.data["problems"][0]["line"] == before[: before.index(b"| bob |")].count(b"\n") + 1
    for name, data in (("none.md", None), ("binary.md", b"\xff\xfe\x00"), ("folder", b"")):
        path = tmp_path / name
        if name == "folder":
            path.mkdir()
        elif data is not None:
            path.write_bytes(data)
        said = aof("mail", "check", str(path), "--json")
        assert (said.code, said.data["problems"][0]["code"]) == (2, "unreadable")
    warned = tmp_path / "warned.md"
    warned.write_bytes(before.replace(b"Which port?\n**Cl", b"Which port?\n**Cl") + b"\n```\n")
    assert aof("mail", "check", str(warned)).code == 0


@requirement("comms.validate.report")
@pytest.mark.parametrize("data", [b"", b"# Mailbox", b"## Active Messages (Newest First)\n### MSG-", b"\r\n|\t|\r\n"])
def test_a_damaged_file_gives_findings(aof: Aof, tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "damaged.md"
    path.write_bytes(data)
    said = aof("mail", "check", str(path), "--json")
    assert said.code == 1
    assert all({"line", "code", "detail"} <= one.keys() for one in said.data["problems"])
    assert path.read_bytes() == data


@requirement("comms.validate.turn-end", "comms.mailbox.turn-trigger")
def test_a_session_begins_with_its_mail_and_ends_with_what_is_left(aof: Aof) -> None:
    sent = _sent(aof, "--body", "Tell me.")
    text = aof("prime", "--agent", "bob", "--json").data["text"]
    assert sent in text
    assert "Tell me." in text
    ended = aof("session-end", "--agent", "bob", "--json").data
    assert ended["mail"] == {"unread": [sent], "toClose": []}
    assert aof("mail", "show", sent, "--json").data["status"] == "unread"


@pytest.mark.parametrize(
    "words",
    [
        ("mail",),
        ("mail", "read"),
        ("mail", "ack"),
        ("mail", "inbox", "MSG-20260221-001"),
        ("mail", "send", "--to", "bob", "--subject", "x", "--type", "chat"),
        ("mail", "send", "--subject", "x"),
    ],
)
def test_a_wrong_call_says_which_one_works(aof: Aof, words: tuple[str, ...]) -> None:
    said = aof(*words)
    assert said.code in (1, 2)
    assert "→" in said.err
    assert "Traceback" not in said.err


def test_a_message_of_five_megabytes_is_refused(aof: Aof, tmp_path: Path) -> None:
    said = aof("mail", "send", "--to", "bob", "--subject", "x", "--body", "x" * 100_000, "--json")
    assert (said.code, said.error["code"]) == (2, "payload_too_large")
    assert not (tmp_path / ".aof/MAILBOX.md").exists()
