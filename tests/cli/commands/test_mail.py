"""`aof mail` as scripts use it: data, exit codes, and files that only a check has read."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.command_line import Aof
from tests.support.requirements import requirement


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
