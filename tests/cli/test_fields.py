"""Every field of a task and of a report can be given on the command line, in every form that the help names."""

from __future__ import annotations

import io
import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.support.command_line import Aof
from tests.support.terminal import AOF, DEADLINE, environment


def _shown(aof: Aof, *names: str) -> dict[str, Any]:
    shown = aof("show", "001", "--json").data
    return {name: shown.get(name) for name in names}


def test_create_takes_every_field_of_a_task(aof: Aof) -> None:
    Path("profile.json").write_text('{"risk": "low"}')
    said = aof(
        "create", "first", "--acceptance", "tests pass", "--acceptance", '{"id": "a1", "text": "docs"}',
        "--constraint", "maxCost=5", "--constraint", '{"network": false}', "--profile", "@profile.json",
        "--capability", "python:0.8", "--visibility", "background", "--owner", "ada", "--resource", "gpu",
        "--max-attempts", "2", "--meta", "note=plain text", "--no-review",
    )  # fmt: skip
    assert said.code == 0, said.err
    assert _shown(aof, "acceptance", "constraints", "profile", "visibility", "owner", "resource", "retry") == {
        "acceptance": ["tests pass", {"id": "a1", "text": "docs"}],
        "constraints": {"maxCost": 5, "network": False},
        "profile": {"risk": "low", "requiredCapabilities": ["python:0.8"]},
        "visibility": "background",
        "owner": "ada",
        "resource": "gpu",
        "retry": {"maxAttempts": 2},
    }
    assert _shown(aof, "metadata") == {"metadata": {"note": "plain text", "reviewRequired": False}}


def test_edit_takes_every_field_of_a_task(aof: Aof) -> None:
    aof("create", "first", "--agent", "bert")
    said = aof(
        "edit", "001", "--acceptance", "tests pass", "--constraint", "maxCost=7", "--profile", "risk=high",
        "--capability", "go", "--visibility", "internal", "--owner", "ada", "--resource", "gpu", "--team", "core",
        "--json",
    )  # fmt: skip
    expected = {"acceptance", "constraints", "profile", "visibility", "owner", "resource", "routing"}
    assert set(said.data["updatedFields"]) == expected
    assert _shown(aof, *expected) == {
        "acceptance": ["tests pass"],
        "constraints": {"maxCost": 7},
        "profile": {"risk": "high", "requiredCapabilities": ["go"]},
        "visibility": "internal",
        "owner": "ada",
        "resource": "gpu",
        "routing": {"agent": "bert", "team": "core"},
    }


def test_an_empty_text_takes_a_target_away(aof: Aof) -> None:
    aof("create", "first", "--agent", "bert", "--team", "core")
    assert aof("edit", "001", "--agent", "").code == 0
    assert _shown(aof, "routing") == {"routing": {"team": "core"}}


def test_a_report_carries_deliverables_tests_notes_and_acceptance(aof: Aof, tmp_path: Path) -> None:
    aof("create", "first")
    aof("claim", "001", "--agent", "ada")
    words = (
        "complete", "001", "--agent", "ada", "--summary", "done", "--summary-ref", "outputs/summary.md",
        "--deliverable", "outputs/a.txt", "--deliverable", "outputs/b.txt", "--test", "total=3", "--test", "passed=3",
        "--notes", "-", "--acceptance", "tests pass", "--json",
    )  # fmt: skip
    done = subprocess.run(
        (*AOF, *words),
        cwd=tmp_path,
        env=environment(),
        input="look at b first\n",
        capture_output=True,
        text=True,
        timeout=DEADLINE,
        check=False,
    )
    assert json.loads(done.stdout)["data"]["status"] == "review", done.stdout
    result = aof("show", "001", "--json").data["result"]
    assert {name: result[name] for name in ("summaryRef", "deliverables", "tests", "notes", "acceptance")} == {
        "summaryRef": "outputs/summary.md",
        "deliverables": ["outputs/a.txt", "outputs/b.txt"],
        "tests": {"total": 3, "passed": 3},
        "notes": "look at b first\n",
        "acceptance": ["tests pass"],
    }


def test_progress_records_facts_and_a_heartbeat_takes_a_lease_time(aof: Aof) -> None:
    aof("create", "first")
    first = aof("claim", "001", "--agent", "ada", "--ttl", "1h", "--json").data["expiresAt"]
    assert aof("heartbeat", "001", "--agent", "ada", "--ttl", "2h", "--json").data["expiresAt"] > first
    reported = aof("progress", "001", "--agent", "ada", "--fact", "files=3", "--json").data["progress"]
    assert reported["files"] == 3


def test_a_failure_says_how_the_run_ended_and_that_it_is_final(aof: Aof) -> None:
    aof("create", "first")
    aof("claim", "001", "--agent", "ada")
    failed = aof("fail", "001", "--agent", "ada", "--cause", "timed_out", "--no-retry", "--json").data
    assert failed["status"] == "deadletter"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("create", "x", "--meta", "novalue"), "--meta needs KEY=JSON, not 'novalue'"),
        (("create", "x", "--meta", "@missing.json"), "missing.json cannot be read"),
        (("create", "x", "--profile", "{broken"), "--profile needs a JSON object"),
        (("create", "x", "--constraint", "@list.json"), "--constraint needs a JSON object"),
        (("create", "x", "--acceptance", "{broken"), "--acceptance needs a JSON object"),
        (("claim", "--ttl", "5 minutes"), "--ttl needs seconds or a time such as 90s, 5m or 2h, not '5 minutes'"),
    ],
)
def test_a_value_that_cannot_be_read_is_refused_before_anything_is_done(
    aof: Aof, words: tuple[str, ...], said: str
) -> None:
    Path("list.json").write_text("[1]")
    refused = aof(*words, "--json")
    assert (refused.code, refused.error["code"]) == (2, "usage")
    assert said in refused.error["message"]
    assert aof("list", "--json").data["total"] == 0


def test_a_call_that_makes_no_sense_does_not_wait_for_standard_input(aof: Aof, monkeypatch: pytest.MonkeyPatch) -> None:
    waiting = io.StringIO("text")
    monkeypatch.setattr("sys.stdin", waiting)
    assert aof("create", "x", "--brief", "-", "--no-such-option").code == 2
    assert waiting.tell() == 0


def test_a_short_form_of_an_option_still_means_the_same_beside_new_ones(aof: Aof) -> None:
    aof("create", "first", "--pr", "high", "--ac", "zoe", "--no-review")
    assert _shown(aof, "priority", "createdBy") == {"priority": "high", "createdBy": "zoe"}
    aof("claim", "001", "--agent", "ada")
    assert aof("complete", "001", "--agent", "ada", "--summ", "all done").code == 0
    assert "all done" in aof("show", "001", "--json").data["body"]


def test_a_file_that_never_ends_is_not_read_to_its_end(aof: Aof, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("aof.surfaces.cli.values._LARGEST", 1_000)
    Path("large.jsonl").write_text("talk\n" * 300)
    endless = "/dev/zero"
    for words in (("send", "large.jsonl"), ("send", endless), ("job", "add", "x", "--file", endless)):
        refused = aof(*words, "--json")
        assert (refused.code, refused.error["code"]) == (2, "payload_too_large"), words
        assert "1,000 bytes" in refused.error["message"]
    monkeypatch.setattr("sys.stdin", io.StringIO("x" * 2_000))
    assert aof("create", "x", "--brief", "-", "--json").error["code"] == "payload_too_large"
    Path("small.jsonl").write_text("talk\n" * 3)
    assert aof("send", "small.jsonl", "--json").code == 0
    assert aof("list", "--json").data["total"] == 0
