"""What scripts may rely on: data, errors and exit codes of the verbs."""

from __future__ import annotations

import io
import json
import os
import pwd
import shutil
import subprocess
import time
from pathlib import Path

import pytest

from aof.bench import commits
from aof.bench.suite import BenchPlan
from aof.kernel.model import is_agent_name, iso
from aof.service.bootstrap import default_actor, open_fabric
from aof.surfaces.cli.verbs import VERBS
from tests.support.command_line import Aof
from tests.support.terminal import AOF, DEADLINE, environment
from tests.support.waiting import eventually


def test_a_task_goes_from_created_to_done(aof: Aof) -> None:
    made = aof("create", "Add refresh endpoint", "--priority", "high", "--json").data
    assert made["status"] == "ready"
    assert Path(".aof", made["filePath"]).is_file()
    claimed = aof("claim", "--agent", "ada", "--json").data
    assert {"taskId", "runId", "epoch", "attempt", "expiresAt", "filePath", "secret"} == set(claimed)
    assert claimed["taskId"] == made["taskId"]
    assert aof("progress", "001", "--agent", "ada", "--percent", "60", "--json").data["progress"]["percent"] == 60
    assert aof("complete", "001", "--agent", "ada", "--summary", "ok", "--json").data["status"] == "review"
    assert aof("approve", "001", "--json").data == {"taskId": made["taskId"], "status": "done"}


def test_lists_answer_rows_and_a_total(aof: Aof) -> None:
    for number in range(3):
        aof("create", f"task {number}", "--agent", "ada")
    listed = aof("list", "--limit", "2", "--json").data
    assert listed["total"] == 3
    assert [set(row) for row in listed["tasks"]] == [{"id", "title", "status", "priority", "agent"}] * 2
    assert aof("ready", "--agent", "bert", "--json").data["total"] == 0
    assert aof("list", "--search", "task 1", "--json").data["total"] == 1


def test_a_search_calls_ready_only_what_can_be_claimed(aof: Aof) -> None:
    aof("create", "Write the page")
    aof("create", "Print the page", "--dep", "001")
    said = aof("search", "page").out.splitlines()
    assert [line.split()[1] for line in said] == ["waiting", "ready"]


def test_show_answers_the_whole_task(aof: Aof) -> None:
    aof("create", "first")
    aof("create", "second", "--dep", "001", "--brief", "some text", "--meta", "estimate=3", "--tag", "api")
    shown = aof("show", "002", "--json").data
    assert shown["body"] == "some text\n"
    assert shown["metadata"] == {"estimate": 3}
    assert shown["routing"] == {"tags": ["api"]}
    assert shown["normalizedStatus"] == "queued"
    assert shown["relationships"] == [{"kind": "blocked_by", "targetId": shown["dependsOn"][0]}]
    assert shown["attempts"] == []


def test_blocked_says_why(aof: Aof) -> None:
    aof("create", "first")
    aof("block", "001", "--reason", "waiting for credentials")
    assert aof("blocked", "--json").data["tasks"][0]["reason"] == "waiting for credentials"
    assert "waiting for credentials" in aof("blocked").out


def test_the_log_tells_what_happened(aof: Aof) -> None:
    made = aof("create", "first", "--json").data
    events = aof("log", "--json").data["events"]
    assert [event["type"] for event in events] == ["task.created", "task.accepted", "task.queued"]
    assert {"seq", "type", "timestamp", "actor", "taskId", "payload"} <= set(events[0])
    assert events[0]["actor"] == "tester"
    assert aof("log", made["taskId"], "--after", "2", "--json").data["events"][0]["seq"] == 3
    assert aof("log", "--type", "task.queued", "--json").data["events"][0]["type"] == "task.queued"


def test_an_event_of_no_task_stands_in_the_same_columns(aof: Aof) -> None:
    aof("create", "first")
    aof("job", "add", "nightly", "--cron", "@daily", "--title", "Check")
    of_task, *_, of_job = aof("log", "--types").out.splitlines()
    assert of_task.index("task.created") == of_job.index("document.job")
    of_task, of_job = aof("log").out.splitlines()
    assert of_task.index("tester created 'first'") == of_job.index("tester scheduled nightly")


def test_the_log_tells_in_words_what_somebody_did_and_with_types_every_event(aof: Aof) -> None:
    aof("create", "first")
    aof("claim", "001", "--agent", "ada")
    aof("complete", "001", "12 tests passing", "--agent", "ada")
    aof("reject", "001", "--reason", "no docs")
    told = [line.partition("-001  ")[2] for line in aof("log", "001").out.splitlines()]
    assert told == [
        "tester created 'first'",
        "ada claimed it (called by tester)",
        "ada finished it: 12 tests passing → review (called by tester)",
        "tester sent it back: no docs",
    ]
    every = aof("log", "001", "--types").out.splitlines()
    assert len(every) == len(aof("log", "001", "--json").data["events"])
    assert "task.created" in every[0]
    assert "task.queued" in aof("log", "--type", "queued").out


def test_a_finished_task_shows_no_percent_and_one_that_was_given_up_says_so(aof: Aof) -> None:
    for verb in ("complete", "fail"):
        aof("create", "first", "--no-review", "--key", verb)
        number = "001" if verb == "complete" else "002"
        aof("claim", number, "--agent", "ada")
        aof("progress", number, "half", "--percent", "50", "--agent", "ada")
        more = ("--no-retry",) if verb == "fail" else ()
        aof(verb, number, "--text", "so far", "--agent", "ada", *more)
    shown = aof("show", "001").out
    assert "%" not in shown
    assert "  status      done\n" in shown
    assert "  status      deadletter: gave up after 1 attempt (failed)\n" in aof("show", "002").out


def test_a_brief_can_come_from_standard_input(aof: Aof, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO("# Goal\n- [ ] one\n"))
    aof("create", "from a pipe", "--brief", "-")
    assert aof("show", "001", "--json").data["body"] == "# Goal\n- [ ] one\n"


@pytest.mark.parametrize(
    ("words", "code", "exit_code"),
    [
        (("show", "009"), "task_not_found", 3),
        (("log", "TASK-1999-01-01-001"), "task_not_found", 3),
        (("claim", "--agent", "ada"), "nothing_ready", 3),
        (("approve", "001"), "invalid_transition", 1),
        (("create", "x", "--priority", "urgent"), "invalid", 2),
        (("create", "   "), "invalid", 2),
        (("complete", "001", "--agent", "bert"), "not_lease_holder", 4),
        (("heartbeat", "001", "--run", "RUN-2020-01-01-001-1"), "stale_lease", 4),
        (("clam",), "usage", 2),
        (("list", "--statsu", "done"), "usage", 2),
        (("show",), "usage", 2),
        (("list", "--limit", "many"), "usage", 2),
        (("bench", "--sizes", "many"), "usage", 2),
        (("list", "--status", "open"), "invalid", 2),
        (("dep", "push", "001", "001"), "usage", 2),
        (("dep", "add", "001"), "usage", 2),
        (("claim", "--agent", "bert", "--wait", "nan"), "invalid", 2),
        (("claim", "--agent", "bert", "--wait", "-1"), "invalid", 2),
        (("log", "--limit", "-3"), "usage", 2),
        (("show", "001", "--at", "9999"), "invalid", 2),
        (("prime", "--agent", ""), "invalid", 2),
        (("export", "."), "usage", 2),
        (("export", "nowhere/b.tar.gz"), "not_found", 3),
        (("token", "revoke"), "usage", 2),
        (("up", "--once", "--http", "99999999"), "unavailable", 1),
        (("list", "--data-dir", ".aof/tasks", "--limit", "1"), "no_data_directory", 3),
    ],
)
def test_every_refusal_is_json_with_a_hint_and_its_exit_code(
    aof: Aof, words: tuple[str, ...], code: str, exit_code: int
) -> None:
    aof("create", "first")
    aof("claim", "001", "--agent", "ada")
    said = aof(*words, "--json")
    assert (said.error["code"], said.code) == (code, exit_code)
    assert said.error["message"]
    assert said.error["hint"]
    assert said.err == ""


def test_a_hint_can_be_followed_to_the_letter(aof: Aof) -> None:
    aof("create", "first")
    aof("create", "second", "--dep", "001")
    hint = aof("claim", "002", "--agent", "ada", "--json").error["hint"]
    words = hint.split(": aof ", 1)[1].split()
    assert aof(*words).code == 0
    assert aof("claim", "002", "--agent", "ada").code == 0


def test_options_of_every_verb_stand_before_or_after_it(aof: Aof, tmp_path: Path) -> None:
    elsewhere = str(tmp_path / "elsewhere")
    assert aof("--data-dir", elsewhere, "init", "--json").data["created"] is True
    assert aof("create", "there", f"--data-dir={elsewhere}", "--actor", "zoe", "--json").code == 0
    assert aof("--json", "--data-dir", elsewhere, "show", "001").data["createdBy"] == "zoe"
    assert aof("list", "--json").data["total"] == 0


def test_show_tells_people_when_a_task_is_due_whose_it_is_and_what_it_must_meet(aof: Aof) -> None:
    aof("create", "Late", "--due", "2020-01-01", "--owner", "ada", "--acceptance", "fast", "--acceptance", '{"a": 1}')
    said = [" ".join(line.split()) for line in aof("show", "001").out.splitlines()]
    assert {"due 2020-01-01, overdue", "owner ada", "acceptance fast", '{"a":1}'} <= set(said)
    aof("cancel", "001")
    assert "overdue" not in aof("show", "001").out


def test_init_can_be_repeated_and_only_shown(aof: Aof, tmp_path: Path) -> None:
    assert aof("init", "--json").data["created"] is False
    planned = aof("--data-dir", str(tmp_path / "new"), "init", "--dry-run", "--json").data
    assert planned["dryRun"] is True
    assert not (tmp_path / "new").exists()


def test_help_has_an_example_for_every_verb(aof: Aof) -> None:
    overview = aof("help", "--all").out
    for verb in VERBS:
        words = verb.name.split()
        shown = overview if len(words) == 1 else aof(words[0], "--help").out
        assert f"  {verb.name if len(words) == 1 else f'aof {verb.name}'} " in shown
        assert verb.example in aof(*words, "--help").out


def test_the_first_screen_of_help_fits_a_small_terminal_and_leads_to_the_rest(aof: Aof) -> None:
    shown = aof("--help").out
    lines = shown.splitlines()
    assert len(lines) <= 24
    assert max(map(len, lines)) <= 80
    assert shown == aof().out == aof("help").out
    assert "aof help --all" in shown


def test_the_name_that_a_verb_had_still_works_with_a_note_for_people_only(aof: Aof) -> None:
    aof("create", "first")
    for verb in VERBS:
        for former in verb.former:
            assert aof(former, "--help").out == aof(*verb.name.split(), "--help").out
    said = aof("near", "001")
    assert (said.code, said.err) == (0, "aof: aof near is now: aof graph near\n")
    assert aof("graph", "near", "001").out == said.out
    told = aof("near", "001", "--json")
    assert (told.data["root"], told.err) == (aof("show", "001", "--json").data["id"], "")


def test_a_group_of_verbs_lists_them_and_knows_the_one_that_was_meant(aof: Aof) -> None:
    shown = aof("admin")
    assert (shown.code, "  aof admin verify " in shown.out) == (0, True)
    assert shown.out == aof("admin", "--help").out == aof("help", "admin").out
    assert "did you mean 'aof admin verify'?" in aof("admin", "verfy").err
    assert aof("help", "admin", "token").out == aof("admin", "token", "--help").out


def test_whoami_says_who_calls_what_says_so_and_where_the_data_is(
    aof: Aof, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("AOF_ACTOR", raising=False)
    monkeypatch.setenv("USER", "mia")
    mine = aof("whoami", "--json").data
    assert (mine["actor"], mine["source"], mine["foundBy"]) == ("mia", "user", "folder")
    assert (mine["dataDir"], mine["lane"], mine["format"]) == (str(tmp_path / ".aof"), "root", 1)
    assert aof("whoami", "--actor", "bob", "--json").data["source"] == "given"
    monkeypatch.setenv("AOF_ACTOR", "eve")
    shown = aof("whoami").out
    assert "actor    eve (from $AOF_ACTOR)\n" in shown
    assert max(map(len, shown.splitlines())) <= 80 + len(str(tmp_path))


def test_whoami_names_the_clone_where_it_is_not_the_first_one(aof: Aof, tmp_path: Path) -> None:
    aof("create", "first")
    assert "clone " not in aof("whoami").out
    other = tmp_path / "other" / ".aof"
    shutil.copytree(tmp_path / ".aof", other, ignore=lambda _, names: {"locks", "index.sqlite"} & {*names})
    assert aof("--data-dir", str(other), "create", "second").code == 0
    name = aof("--data-dir", str(other), "whoami", "--json").data["lane"]
    assert f"clone    {name}\n" in aof("--data-dir", str(other), "whoami").out


def test_whoami_of_a_run_names_the_run_and_shows_no_secret(
    aof: Aof, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / ".aof" / "aof.toml").write_text("schemaVersion = 1\n[identity]\nrequireSecret = true\n")
    aof("create", "first")
    claimed = aof("claim", "001", "--agent", "ada", "--json").data
    monkeypatch.setenv("AOF_RUN_SECRET", claimed["secret"])
    monkeypatch.setenv("AOF_DATA_DIR", str(tmp_path / ".aof"))
    said = aof("whoami", "--json")
    assert (said.data["actor"], said.data["source"], said.data["runId"]) == ("ada", "run", claimed["runId"])
    assert (said.data["maintainer"], said.data["actsForOthers"], said.data["foundBy"]) == (False, False, "environment")
    assert claimed["secret"].rpartition(":")[2] not in said.out


def test_the_data_directory_is_found_from_a_folder_below(aof: Aof, monkeypatch: pytest.MonkeyPatch) -> None:
    aof("create", "first")
    Path("deep/down").mkdir(parents=True)
    monkeypatch.chdir("deep/down")
    assert aof("list", "--json").data["total"] == 1


def test_compact_answers_have_neither_head_nor_padding(aof: Aof) -> None:
    task_id = aof("create", "first", "--json").data["taskId"]
    assert aof("list", "--compact").out == f"{task_id} ready normal first\n"
    assert aof("status", "--compact").out == "ready:1\n"
    full, short = aof("status", "--json").data, aof("status", "--compact", "--json").data
    assert (short["total"], short["byStatus"], short["tasks"]) == (full["total"], full["byStatus"], [])


def test_people_see_tables_without_colours_in_a_pipe(aof: Aof) -> None:
    aof("create", "first")
    said = aof("list")
    assert said.out.splitlines()[0].split() == ["ID", "STATUS", "PRIORITY", "AGENT", "TITLE"]
    assert "\x1b" not in said.out


def test_ready_offers_the_most_urgent_and_says_how_many_there_are(aof: Aof) -> None:
    with open_fabric(".aof", actor="tester") as fabric:
        for number in range(52):
            fabric.create(f"task {number}")
        fabric.create("most urgent", priority="critical")
    offered = aof("ready", "--json").data
    assert (offered["total"], len(offered["tasks"])) == (53, 50)
    assert offered["tasks"][0]["title"] == "most urgent"
    assert "50 of 53" in aof("ready").out
    assert len(aof("ready", "--limit", "1000", "--json").data["tasks"]) == 53


def test_a_measurement_gives_ratios_and_leaves_nothing_behind(aof: Aof, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(commits, "LINES", 200)
    monkeypatch.setattr(BenchPlan, "quick", lambda: BenchPlan(rounds=1, seconds=0.01, commits=1, calls=1))
    before = sorted(Path(".aof").rglob("*"))
    found = aof("bench", "--quick", "--sizes", "0", "--dir", "disk", "--json").data
    assert {"date", "file system", "machine", "python", "aof"} <= found["machine"].keys()
    ratios = {row["name"]: row["ratio"]["value"] for row in found["rows"] if row["ratio"]}
    assert ratios.keys() == {
        "commits, 1 process",
        "commits, 8 processes",
        "8 processes beside 1",
        "8 threads beside 1",
        "CPU a commit, 1 process",
        "CPU a commit, 8 processes",
        "entries, 1 process",
        "entries, 8 processes",
        "an entry in a WORKLOG of 200 lines",
        "steps of mail, 1 process",
        "steps of mail, 8 processes",
    }
    assert all(ratio > 0 for ratio in ratios.values())
    assert list(Path("disk").iterdir()) == []
    assert sorted(Path(".aof").rglob("*")) == before


def test_help_and_a_call_without_a_verb_are_json_where_json_is_asked_for(aof: Aof) -> None:
    assert aof("--help", "--json").data["help"].startswith("AOF")
    assert "example: aof show 001" in aof("show", "--help", "--json").data["help"]
    assert aof("--json").error["code"] == "usage"
    assert aof("--json").code == 2
    assert aof("show", "--js").error["code"] == "usage"


def test_a_person_is_told_the_code_of_an_error_too(aof: Aof) -> None:
    assert aof("show", "999").err.splitlines()[0] == "aof: there is no task '999' [task_not_found]"
    assert aof("shwo").err.splitlines()[0] == "aof: there is no verb 'shwo' [usage]"


def test_a_dependency_may_be_named_without_saying_add(aof: Aof) -> None:
    for title in ("first", "second"):
        aof("create", title)
    assert aof("depends", "002", "001").code == 0
    assert len(aof("show", "002", "--json").data["dependsOn"]) == 1


def test_the_folder_of_a_project_stands_for_its_data_directory(aof: Aof) -> None:
    aof("create", "seen")
    assert "seen" in aof("--data-dir", ".", "list").out


def test_a_claim_of_one_task_waits_until_it_can_be_had(aof: Aof, tmp_path: Path) -> None:
    aof("create", "first", "--no-review")
    aof("create", "second", "--dep", "001")
    words = (*AOF, "claim", "002", "--agent", "ada", "--wait", "50", "--json")
    with subprocess.Popen(words, cwd=tmp_path, env=environment(), stdout=subprocess.PIPE, text=True) as waiting:
        assert aof("complete", "001", "--agent", "bert").code == 0
        out, _ = waiting.communicate(timeout=DEADLINE)
    assert json.loads(out)["data"]["taskId"].endswith("-002")


def test_nobody_waits_for_what_is_over(aof: Aof) -> None:
    aof("create", "first")
    aof("cancel", "001")
    assert aof("claim", "001", "--agent", "ada", "--wait", "500", "--json").error["code"] == "not_ready"


def test_who_acts_by_default_is_the_user_of_the_operating_system() -> None:
    assert default_actor({"AOF_ACTOR": "ada", "USER": "bert"}) == "ada"
    assert default_actor({"USER": "bert"}) == "bert"
    named = pwd.getpwuid(os.getuid()).pw_name
    assert default_actor({}) == (named if is_agent_name(named) else f"uid-{os.getuid()}")


def test_what_is_not_there_is_said_and_no_empty_table_is_drawn(aof: Aof) -> None:
    assert aof("token", "list").out == "there are no tokens; make one: aof admin token create NAME\n"
    assert aof("replay", "--at", "0").out == "there were no tasks yet\n"


def test_a_refused_edit_by_hand_is_answered_with_a_way_out(aof: Aof) -> None:
    made = aof("create", "first", "--json").data
    file = Path(".aof", made["filePath"])
    file.rename(Path(".aof/tasks/done", file.name))
    said = aof("claim", "001", "--agent", "ada")
    assert said.code == 5
    assert "move the file back" in said.err
    assert "'aof doctor --fix'" in said.err
    assert "move the file back" in aof("show", "001").out
    assert aof("doctor", "--fix").code == 0
    assert aof("show", "001").code == 0


def test_a_cursor_of_the_native_log_is_refused_for_the_portable_one(aof: Aof) -> None:
    for title in ("first", "second"):
        aof("create", title)
    cursor = aof("log", "--limit", "1", "--json").data["nextCursor"]
    refused = aof("log", "--format", "agentruntime", "--cursor", cursor, "--json")
    assert (refused.code, refused.error["hint"]) == (2, "read this one forwards: --after SEQ")


def test_the_inbox_names_what_to_do_about_each_item(aof: Aof) -> None:
    aof("create", "Deploy", "--agent", "ada")
    aof("claim", "001", "--agent", "ada")
    aof("ask", "001", "Which region?", "--agent", "ada")
    assert aof("inbox").out.splitlines()[0].split() == ["WHAT", "NEEDS", "FOR", "NEXT", "WHY"]
    assert "answer" in aof("inbox").out.splitlines()[1].split()


def test_flow_says_so_where_nothing_was_finished(aof: Aof) -> None:
    aof("create", "first")
    assert "lead time: no task finished" in aof("flow").out


def test_a_complete_that_approves_says_so_and_an_assignment_names_the_agent(aof: Aof) -> None:
    task_id = aof("create", "Add refresh endpoint", "--json").data["taskId"]
    assert aof("complete", "001", "--agent", "bob").out == f"{task_id}  review\n"
    assert aof("complete", "001").out == f"approved: {task_id}  done\n"
    other = aof("create", "Document it", "--agent", "bob", "--json").data["taskId"]
    assert aof("assign", "002", "ada").out == f"{other}  reserved for ada\n"
    assert aof("assign", "002", "--nobody").out == f"{other}  reserved for nobody\n"
    assert aof("assign", "002", "--json").error["code"] == "invalid"


def test_ready_names_what_a_claim_can_take_from_a_worker_that_has_vanished(aof: Aof) -> None:
    aof("create", "Left behind")
    claimed = aof("claim", "001", "--agent", "hal", "--ttl", "0.001", "--json").data
    eventually(lambda: iso(round(time.time() * 1000)) > claimed["expiresAt"])
    said = aof("ready").out
    assert f"{claimed['taskId']}: the lease of hal ended just now; aof claim {claimed['taskId']} recovers it" in said
    why = aof("ready", "--explain").out
    assert "is held by hal, whose lease ended at" in why
    assert "a claim of it recovers the run" in why
    refused = aof("claim", "001", "--agent", "bob")
    assert "is retried at" in refused.err
    assert "end the wait: aof retry 001" in refused.err.replace(claimed["taskId"], "001")
    assert "ended" not in aof("ready").out


def test_who_approves_or_completes_what_is_done_is_told_so(aof: Aof) -> None:
    task_id = aof("create", "Add it", "--json").data["taskId"]
    aof("complete", "001", "--agent", "ada")
    assert aof("approve", "001").out == f"{task_id}  done\n"
    for again in (("approve", "001"), ("complete", "001", "--agent", "zed"), ("complete", "001", "--agent", "ada")):
        assert aof(*again).out == f"{task_id}  already done\n"


def test_a_failure_says_when_the_task_can_be_claimed_again_and_takes_its_reason_in_place(aof: Aof) -> None:
    made = aof("create", "one", "--json").data["taskId"]
    aof("claim", "001", "--agent", "ada")
    said = aof("fail", "001", "it broke", "--agent", "ada")
    assert said.out.startswith(f"{made}  waiting  can be claimed again at 2")
    shown = aof("show", "001", "--json").data
    assert said.out.split()[-1] == shown["retry"]["notBefore"]
    assert shown["lastError"]["message"] == "it broke"


def test_a_failure_of_the_last_attempt_says_where_the_task_is(aof: Aof) -> None:
    made = aof("create", "one", "--max-attempts", "1", "--json").data["taskId"]
    aof("claim", "001", "--agent", "ada")
    said = aof("fail", "001", "--reason", "it broke", "--agent", "ada", "--json").data
    assert said == {"taskId": made, "status": "deadletter"}


def test_a_list_of_what_waits_is_named_to_who_asks_for_it_by_status(aof: Aof) -> None:
    said = aof("list", "--status", "waiting").err
    assert "aof list --waiting" in said
    assert aof("list", "--waiting").code == 0


def test_an_undo_says_in_words_what_goes_back_and_an_approval_names_reopen(aof: Aof) -> None:
    aof("create", "one")
    aof("edit", "001", "--agent", "bob", "--tag", "x")
    assert "routing agent bob → nothing; routing tags x → nothing" in aof("undo", "--dry-run").out
    aof("edit", "001", "--clear", "agent")
    aof("claim", "001", "--agent", "ada")
    aof("complete", "001", "--agent", "ada", "--outcome", "needs_review")
    aof("approve", "001", "--actor", "boss")
    said = aof("undo", "--actor", "boss").err
    assert "does not go back from done to review" in said
    assert "aof --actor boss reopen TASK-" in said
    assert "aof undo --seq N" in aof("redo").err
