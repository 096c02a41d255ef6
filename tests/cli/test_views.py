"""What verbs print for people: views, what to do next, changes of many tasks."""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

from aof.surfaces.cli.help import reference
from aof.surfaces.cli.parser import UsageError, parse
from aof.surfaces.cli.verbs import VERBS
from tests.support.command_line import Aof
from tests.support.repository import ROOT
from tests.support.terminal import AOF, DEADLINE

# --- what the command line draws, packs and generates


@pytest.fixture
def plan(aof: Aof) -> Aof:
    """A parent with two children, the second of which waits for the first."""
    aof("create", 'A "quoted" <parent>')
    aof("create", "first child", "--parent", "001")
    aof("create", "second child", "--parent", "001", "--dep", "002")
    return aof


def test_the_graph_is_a_tree_that_names_what_each_task_waits_for(plan: Aof) -> None:
    lines = plan("graph").out.splitlines()
    assert lines[0].startswith("TASK-")
    assert lines[1].startswith("├─ ")
    assert lines[2].startswith("└─ ")
    assert lines[2].split("← ")[1] == lines[1].split()[1]


@pytest.mark.parametrize(("form", "arrow"), [("mermaid", "-->"), ("dot", "->")])
def test_the_graph_can_be_had_for_other_tools(plan: Aof, form: str, arrow: str) -> None:
    data = plan("graph", "--format", form, "--json").data
    assert data["graph"].count(arrow) >= 1
    assert len(data["edges"]) == 3


def test_the_drawing_is_well_formed_and_holds_every_task(plan: Aof) -> None:
    drawing = ET.fromstring(plan("graph", "--format", "svg").out)
    assert sum(1 for _ in drawing.iter("{http://www.w3.org/2000/svg}rect")) == 3


def test_the_graph_of_one_task_shows_only_what_is_connected(plan: Aof) -> None:
    plan("create", "alone")
    assert "alone" not in plan("graph", "003").out
    assert "alone" in plan("graph", "004").out


def test_an_unknown_form_is_refused_with_the_known_ones(plan: Aof) -> None:
    said = plan("graph", "--format", "png", "--json")
    assert (said.code, said.error["code"]) == (2, "invalid")
    assert "mermaid" in said.error["hint"]


def test_ready_explains_what_each_other_task_waits_for(plan: Aof) -> None:
    held = plan("ready", "--explain", "--json").data["notReady"]
    assert [row["id"][-3:] for row in held] == ["003"]
    assert "waits for" in held[0]["reason"]
    assert "waits for" in plan("ready", "--explain").out


def test_the_past_can_be_looked_at(plan: Aof) -> None:
    plan("edit", "001", "--title", "renamed")
    assert plan("show", "001", "--json").data["title"] == "renamed"
    assert plan("show", "001", "--at", "3", "--json").data["title"] == 'A "quoted" <parent>'
    past = plan("replay", "--at", "4", "--json").data
    assert past["seq"] == 4
    assert [task["id"][-3:] for task in past["tasks"]] == ["001", "002"]
    assert plan("replay", "--at", "99", "--json").error["code"] == "invalid"
    assert plan("show", "003", "--at", "1", "--json").code == 3


def test_board_and_watch_draw_once_into_a_pipe(plan: Aof) -> None:
    plan("claim", "002", "--agent", "ada")
    board = plan("board").out
    assert "in-progress (1)" in board
    assert "first child" in board
    watched = plan("watch").out
    assert "ada" in watched
    assert "ada claimed it" in watched


def test_every_list_tells_what_can_be_claimed_from_what_waits(plan: Aof) -> None:
    first, waiting = (row["id"] for row in plan("list", "--json").data["tasks"][1:])
    board = plan("board").out.splitlines()
    assert board[0].startswith("ready (2), 1 waiting")
    assert [line.split()[0] for line in board[1:4]] == [first[-6:], first[-6:-1] + "1", waiting[-6:]]
    assert f"after {first[-6:]}: second child" in board[3]
    assert plan("watch").out.startswith("ready 2  waiting 1")
    assert [line.split() for line in plan("status").out.splitlines()[:2]] == [["2", "ready"], ["1", "waiting"]]
    (line,) = [line for line in plan("list").out.splitlines() if waiting in line]
    assert line.split()[1] == "waiting"
    assert line.endswith(f"second child: waits for {first}, which is ready")
    assert [row.get("waits") for row in plan("list", "--json").data["tasks"]][:2] == [None, None]
    assert f"waiting: waits for {first}" in plan("show", waiting).out


def test_a_new_task_says_what_it_waits_for(plan: Aof) -> None:
    made = plan("create", "third child", "--dep", "002")
    assert "waits for TASK-" in made.out
    assert "-002, which is ready" in made.out
    assert "waits for" in plan("create", "fourth", "--dep", "002", "--json").data["waits"]
    assert "waits" not in plan("create", "free", "--json").data


def test_board_and_watch_name_those_who_hold_hops(aof: Aof, tmp_path: Path) -> None:
    hops = "name: pair\nhops:\n  - {id: build, role: dev}\n  - {id: docs, role: dev}\n"
    (tmp_path / ".aof" / "workflows").mkdir(exist_ok=True)
    (tmp_path / ".aof" / "workflows" / "pair.yaml").write_text(hops)
    aof("create", "Both at once", "--workflow", "pair")
    aof("claim", "001", "--agent", "ada", "--hop", "build")
    aof("claim", "001", "--agent", "bob", "--hop", "docs")
    board = aof("board").out
    assert "ada at build, bob at docs: B" in board
    watched = aof("watch").out
    assert [line.split()[1] for line in watched.splitlines()[2:4]] == ["ada", "bob"]
    assert "Both at once at docs" in watched


def test_a_claim_waits_for_work_and_gives_up_in_time(aof: Aof) -> None:
    assert aof("claim", "--agent", "ada", "--wait", "0.05", "--json").error["code"] == "nothing_ready"
    aof("create", "something")
    assert aof("claim", "--agent", "ada", "--wait", "5").code == 0


def test_a_data_directory_travels_as_one_file(plan: Aof, tmp_path: Path) -> None:
    packed, copy = str(tmp_path / "all.tar.gz"), str(tmp_path / "copy" / ".aof")
    assert plan("export", packed, "--json").data["files"] > 3
    assert plan("--data-dir", copy, "import", packed).code == 0
    assert plan("--data-dir", copy, "list", "--json").data == plan("list", "--json").data
    assert plan("--data-dir", copy, "log", "--json").data == plan("log", "--json").data
    assert plan("--data-dir", copy, "doctor", "--json").data["ok"] is True
    known = {row["id"] for row in plan("list", "--json").data["tasks"]}
    assert plan("--data-dir", copy, "create", "goes on", "--json").data["taskId"] not in known


def test_an_import_never_touches_an_existing_directory(plan: Aof, tmp_path: Path) -> None:
    packed = str(tmp_path / "all.tar.gz")
    plan("export", packed)
    assert plan("import", packed, "--json").error["code"] == "conflict"
    (tmp_path / "junk").write_bytes(b"not an archive")
    said = plan("--data-dir", str(tmp_path / "x"), "import", str(tmp_path / "junk"), "--json")
    assert said.error["code"] == "invalid"
    assert not (tmp_path / "x").exists()


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_knows_every_verb(aof: Aof, shell: str) -> None:
    script = aof("completion", shell).out
    for verb in VERBS:
        assert verb.name in script if shell != "fish" else f"-a {verb.name.rpartition(' ')[2]} " in script


def test_bash_completes_verbs_and_options(aof: Aof, tmp_path: Path) -> None:
    (tmp_path / "aof.bash").write_text(aof("completion", "bash").out, encoding="utf-8")
    ask = 'source ./aof.bash; COMP_WORDS=(aof {words}); COMP_CWORD={place}; _aof; echo "${{COMPREPLY[@]}}"'
    for words, place, expected in (
        ("cla", 1, "claim"),
        ("claim --ag", 2, "--agent"),
        ("admin rei", 2, "reindex"),
        ("insights flow --day", 3, "--days"),
    ):
        done = subprocess.run(
            ["bash", "-c", ask.format(words=words, place=place)], capture_output=True, text=True, check=True, timeout=20
        )
        assert done.stdout.split() == [expected]


def test_the_reference_is_what_the_tables_say() -> None:
    written = (ROOT / "docs" / "reference" / "cli.md").read_text(encoding="utf-8")
    assert written == reference(), "write it anew: python -m aof.surfaces.cli.help > docs/reference/cli.md"


@pytest.mark.parametrize(
    ("typed", "offered"),
    [
        ("clo", "close"),
        ("--data-dir .aof li", "list link"),
        ("org ", "show check route"),
        ("depends r", "rm"),
        ("show TASK", "{first}"),
        ("dep add ", "{first}"),
        ("create --prio", "--priority"),
    ],
)
def test_bash_completes_what_can_come_next(aof: Aof, typed: str, offered: str) -> None:
    bash = shutil.which("bash")
    if bash is None:
        pytest.skip("there is no bash here")
    first = aof("create", "first", "--json").data["taskId"]
    words = ["aof", *typed.split(" ")]
    calls = f"""aof() {{ {shlex.join(AOF)} "$@"; }}
{aof("completion", "bash").out}
COMP_WORDS=({shlex.join(words)}); COMP_CWORD={len(words) - 1}; _aof; echo "${{COMPREPLY[*]}}"
"""
    done = subprocess.run([bash, "-c", calls], capture_output=True, text=True, timeout=DEADLINE, check=True)
    assert done.stdout.strip() == offered.format(first=first)


def test_a_list_explains_what_is_stale_or_unknown_and_sync_tells_by_its_exit_code(plan: Aof, tmp_path: Path) -> None:
    ready = tmp_path / ".aof" / "tasks" / "ready"
    moved, broken, _ = sorted(ready.glob("*.md"))
    moved.rename(ready.parent / "done" / moved.name)
    broken.write_text("---\nbroken: [\n---\n")
    listed = plan("list").out
    assert "ready (edited)" in listed
    assert "edited: its file was changed by hand" in listed
    assert "ready (unreadable)" in listed
    assert "unreadable: its file cannot be read" in listed
    for said in (plan("inbox").out, plan("inbox", "--kind", "edit").out):
        assert f"tasks/done/{moved.name}  the change made by hand" in said
        assert f"tasks/ready/{broken.name}  the file of" in said
    assert "by hand" not in plan("inbox", "--kind", "review").out
    assert f"file        tasks/done/{moved.name}" in plan("show", moved.stem).out
    for name in (moved.stem, broken.stem):
        shown = plan("show", name)
        assert (shown.code, shown.out.count("aof doctor --fix")) == (0, 1)
    synced = plan("sync")
    assert (synced.code, synced.out.count("refused  TASK-")) == (1, 2)
    assert plan("sync", "--json").code == 1
    (ready.parent / "done" / moved.name).rename(moved)
    broken.unlink()
    assert plan("sync").code == 0


def test_doctor_says_what_became_of_a_move_and_of_a_file_that_are_refused(plan: Aof, tmp_path: Path) -> None:
    ready = tmp_path / ".aof" / "tasks" / "ready"
    moved, broken, _ = sorted(ready.glob("*.md"))
    moved.rename(ready.parent / "done" / moved.name)
    broken.write_text("---\nbroken: [\n---\n")
    said = plan("doctor", "--fix").out
    assert f"the log's version is in tasks/ready/{moved.name} again\n" in said
    assert "the log's version is there again, and yours was kept beside it" in said
    assert broken.with_name(f"{broken.name}.conflict").is_file()
    assert moved.is_file()


def test_a_deleted_file_that_a_command_restores_is_told_once(plan: Aof, tmp_path: Path) -> None:
    first = min((tmp_path / ".aof" / "tasks" / "ready").glob("*.md"))
    first.unlink()
    assert f"the file of {first.stem} was missing and has been restored from the log" in plan("show", first.stem).err
    assert first.is_file()
    assert plan("show", first.stem).err == ""


# --- what the command line says of work that goes on: who is next, what was sent back and why, and what came of parts


REVIEW = """\
name: review
hops:
  - {id: implement, role: developer}
  - {id: code-review, role: reviewer, dependsOn: [implement], canReject: true}
"""


def _review(tmp_path: Path) -> None:
    (tmp_path / ".aof/workflows").mkdir(exist_ok=True)
    (tmp_path / ".aof/workflows/review.yaml").write_text(REVIEW)


@pytest.fixture
def gated(aof: Aof, tmp_path: Path) -> str:
    """A task whose first hop ada has completed, and what that call printed."""
    _review(tmp_path)
    aof("create", "Add refresh", "--workflow", "review", "--actor", "boss")
    aof("claim", "001", "--agent", "ada")
    aof("progress", "001", "half of it", "--agent", "ada")
    return aof("complete", "001", "it works", "--agent", "ada").out


def _sent_back(aof: Aof, reason: str = "no test\nfor expiry") -> str:
    aof("claim", "001", "--agent", "rita")
    return aof("complete", "001", "--agent", "rita", "--outcome", "needs_review", "--blocker", reason).out


def test_complete_says_who_is_next_and_what_was_sent_back(aof: Aof, gated: str) -> None:
    assert gated.split("  ", 1)[1] == "ready  next: code-review (reviewer)\n"
    assert _sent_back(aof).split("  ", 1)[1] == "ready  sent back to implement\n"


def test_prime_marks_what_was_sent_back_until_it_is_done_again(aof: Aof, gated: str) -> None:
    mark = "; sent back by rita: no test for expiry\n"
    assert gated
    assert "sent back by" not in aof("prime", "--agent", "ada").out
    _sent_back(aof)
    assert mark in aof("prime", "--agent", "ada").out
    run = aof("claim", "001", "--agent", "ada", "--json").data["runId"]
    assert mark in aof("prime", "--agent", "ada").out
    aof("complete", "001", "with a test", "--agent", "ada", "--run", run)
    assert "sent back by" not in aof("prime", "--agent", "rita").out


def test_prime_marks_a_task_that_a_person_rejected(aof: Aof) -> None:
    aof("create", "Add refresh", "--actor", "boss")
    aof("claim", "001", "--agent", "ada")
    aof("complete", "001", "it works", "--agent", "ada")
    aof("reject", "001", "--reason", "no test", "--actor", "boss")
    assert "; sent back by boss: no test\n" in aof("prime", "--agent", "ada").out


def test_prime_shows_commands_that_work_for_this_agent_and_no_line_that_says_nothing(aof: Aof, gated: str) -> None:
    assert gated
    said = aof("prime", "--agent", "rita").out
    assert "Maintainer Focus" not in said
    assert ": idle" not in said
    for call in ("progress ID", "complete ID", "release ID --wait-for-children", "ask ID …"):
        assert f"aof {call} --agent rita --run RUN" in said, call


def test_show_says_who_sent_it_back_and_who_reported_what(aof: Aof, gated: str) -> None:
    assert gated
    _sent_back(aof)
    said = aof("show", "001").out
    assert re.search(r"run 1 +ada completed, ended", said)
    assert re.search(r"run 2 +rita sent it back, ended", said)
    assert re.search(r"- \S+Z ada: Progress: half of it\n", said)
    assert re.search(r"status +ready\n", said), "one word for one state"


def test_show_lists_parts_with_what_came_of_them(aof: Aof) -> None:
    aof("create", "Add refresh")
    aof("create", "Write the tests", "--parent", "001", "--no-review", "--agent", "bob")
    aof("create", "Document it", "--parent", "001")
    aof("complete", "002", "12 cases pass\nin 3 files", "--agent", "bob")
    lines = aof("show", "001").out.splitlines()
    assert [line.split("  ")[-1] for line in lines if "─ " in line] == ["Write the tests: 12 cases pass", "Document it"]


def test_show_says_who_withdrew_a_handoff_and_why(aof: Aof) -> None:
    aof("create", "Add refresh")
    aof("claim", "001", "--agent", "ada")
    how = ("--type", "delegation", "--from", "ada", "--to", "writer", "--task", "001", "--reason", "needs words")
    made = aof("handoff", "new", *how, "--json").data
    assert made["warnings"] == ["writer has not been seen yet, and has to accept"]
    aof("handoff", "withdraw", made["handoffId"], "--agent", "ada", "--reason", "no writer here")
    said = aof("show", "001").out
    assert "delegation rejected: ada → writer, withdrawn: no writer here (ada)" in said
    (shown,) = aof("show", "001", "--json").data["handoffs"]
    assert (shown["reason"], shown["by"]) == ("withdrawn: no writer here", "ada")


def test_a_receiver_that_was_seen_is_handed_work_without_a_warning(aof: Aof) -> None:
    aof("create", "Add refresh")
    aof("create", "Document it")
    aof("claim", "002", "--agent", "writer")
    aof("claim", "001", "--agent", "ada")
    how = ("--type", "delegation", "--from", "ada", "--to", "writer", "--task", "001", "--reason", "needs words")
    assert "warnings" not in aof("handoff", "new", *how, "--json").data


@pytest.mark.parametrize(("text", "none_of"), [("EU", None), ("asia", ["eu", "us"])])
def test_an_answer_that_is_none_of_the_choices_counts_and_says_so(aof: Aof, text: str, none_of: object) -> None:
    aof("create", "Deploy")
    aof("claim", "001", "--agent", "ada")
    aof("ask", "001", "Which region?", "--choice", "eu", "--choice", "us", "--agent", "ada")
    assert aof("answer", "001", text, "--json").data.get("noneOf") == none_of
    aof("ask", "001", "And then?", "--choice", "eu", "--choice", "us", "--agent", "ada")
    said = aof("answer", "001", text).out
    assert ("the answer is none of the choices: eu, us" in said) == (none_of is not None)


def test_a_task_waits_for_another_in_the_word_that_lists_use(aof: Aof) -> None:
    aof("create", "First")
    assert "which is ready" in aof("create", "Second", "--dep", "001").out
    assert "which is not claimed yet" in aof("create", "Third", "--dep", "002").out


def _unnamed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Agents run under a user of their own, and nobody says who calls."""
    monkeypatch.delenv("AOF_ACTOR")
    monkeypatch.setenv("USER", "root")


def test_agents_under_one_user_of_the_system_judge_each_others_work(
    aof: Aof, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _unnamed(monkeypatch)
    _review(tmp_path)
    aof("create", "Add refresh", "--workflow", "review", "--actor", "boss")
    aof("create", "Plain", "--actor", "boss")
    for task in ("001", "002"):
        aof("claim", task, "--agent", "ada")
        aof("complete", task, "it works", "--agent", "ada")
    own = aof("claim", "001", "--agent", "ADA", "--json")
    assert (own.error["code"], own.error["message"].split(" of ")[0]) == (
        "own_work",
        "ADA has worked on hop 'implement'",
    )
    assert aof("claim", "--agent", "bob").code == 0
    assert aof("complete", "001", "good", "--agent", "bob").out.endswith("done\n")
    assert "  done" in aof("complete", "002", "good", "--agent", "bob").out


def test_the_user_of_the_system_does_not_judge_what_it_has_called_and_is_told_whose_run_it_was(
    aof: Aof, monkeypatch: pytest.MonkeyPatch
) -> None:
    _unnamed(monkeypatch)
    aof("create", "Plain", "--actor", "boss")
    aof("claim", "001", "--agent", "ada")
    aof("complete", "001", "it works", "--agent", "ada")
    said = aof("approve", "001").err
    assert "root also called ada's run of TASK-" in said
    assert "--solo" not in said


def test_a_caller_that_was_named_stands_behind_the_names_it_gives_and_learns_how_to_call(
    aof: Aof, tmp_path: Path
) -> None:
    _review(tmp_path)
    aof("create", "Add refresh", "--workflow", "review")
    aof("claim", "001", "--agent", "ada", "--actor", "host")
    aof("complete", "001", "it works", "--agent", "ada", "--actor", "host")
    said = aof("claim", "001", "--agent", "bob", "--actor", "host").err
    assert "host, who calls as bob, also called ada's run of hop 'implement'" in said
    assert "--actor bob" in said
    assert aof("claim", "001", "--agent", "bob", "--actor", "bob").code == 0


def test_only_a_person_is_told_how_to_allow_own_work(aof: Aof) -> None:
    for name, told in (("ada", False), ("tester", True)):
        task = aof("create", "Plain", "--actor", "boss", "--json").data["taskId"]
        aof("complete", task, "it works", "--agent", name, "--actor", name)
        assert ("--solo" in aof("approve", task, "--actor", name).err) is told


def test_who_did_the_work_is_not_offered_its_review_and_reads_why(aof: Aof, gated: str) -> None:
    assert gated
    aof("create", "Another", "--actor", "boss", "--priority", "low")
    assert "Add refresh" not in aof("ready", "--agent", "ada").out
    assert "ada has worked on hop 'implement'" in aof("ready", "--explain", "--agent", "ada").out
    assert "Next: aof_task_claim TASK-" in (primed := aof("prime", "--agent", "ada").out)
    assert "Add refresh" not in primed
    assert aof("claim", "--agent", "ada", "--json").data["taskId"].endswith("002")
    refused = aof("claim", "--agent", "ada")
    assert (refused.code, "aof ready --explain --agent ada" in refused.err) == (3, True)


def test_a_review_is_offered_as_one(aof: Aof, gated: str) -> None:
    assert gated
    offered = "Add refresh: code-review (reviewer) of ada's work"
    for words in (("ready",), ("ready", "--agent", "bob"), ("prime", "--agent", "bob")):
        assert offered in aof(*words).out
    (row,) = aof("ready", "--agent", "bob", "--json").data["tasks"]
    assert (row["hop"], row["role"], row["reviews"]) == ("code-review", "reviewer", ["ada"])
    page = aof("ready", "--agent", "ada", "--json").data
    assert (page["total"], page["tasks"]) == (0, [])


def test_a_question_says_how_its_answer_is_got_and_when_it_has_ended_the_run(aof: Aof) -> None:
    aof("create", "Work")
    aof("claim", "001", "--agent", "ada")
    assert "question Q1 and wait" in aof("ask", "001", "Which?", "--agent", "ada", "--json").data["note"]
    said = aof("ask", "001", "And this?", "--leave", "--agent", "ada").out
    assert "Q2 is open: the run has ended; the answer makes the task ready again" in said


def test_a_worker_that_lost_its_run_finds_it_in_show_and_in_prime(aof: Aof, gated: str) -> None:
    assert gated
    run = aof("claim", "001", "--agent", "bob", "--json").data["runId"]
    assert f"code-review [reviewer] running by bob as {run}" in aof("show", "001").out
    assert f"Add refresh; as {run}" in aof("prime", "--agent", "bob").out


# --- `aof bulk` and `aof undo` as people type them


def test_many_ids_stand_one_after_the_other() -> None:
    assert parse(["bulk", "cancel", "001", "002", "--reason", "no", "003"]).values == {
        "command": "cancel",
        "task_ids": ["001", "002", "003"],
        "reason": "no",
    }
    assert "task_ids" not in parse(["bulk", "archive", "--status", "done"]).values
    with pytest.raises(UsageError, match="COMMAND"):
        parse(["bulk"])


@pytest.mark.parametrize("verb", ["cancel", "archive", "retry", "edit"])
def test_a_verb_for_one_task_shows_the_one_for_many(verb: str) -> None:
    with pytest.raises(UsageError) as refused:
        parse([verb, "001", "002"])
    assert refused.value.hint == f"for several tasks: aof bulk {verb} 001 002"


def test_the_exit_code_says_that_some_were_refused(aof: Aof) -> None:
    first, second = (str(aof("--json", "create", title).data["taskId"]) for title in ("One", "Two"))
    assert aof("--json", "bulk", "archive", first, second, "--dry-run").code == 1
    assert aof("--json", "bulk", "cancel", first, second).code == 0
    said = aof(
        "--json",
        "bulk",
        "edit",
        "--status",
        "cancelled",
        "--set-priority",
        "high",
        "--set-tag",
        "a",
        "--set-owner",
        "bo",
    )
    assert (said.code, said.data["changed"]) == (0, 2)
    task = aof("--json", "show", first).data
    assert (task["priority"], task["routing"]["tags"], task["owner"]) == ("high", ["a"], "bo")
    assert aof("--json", "bulk", "edit", first, "--set-owner", "").data["changed"] == 1
    assert "owner" not in aof("--json", "show", first).data
    assert aof("--json", "bulk", "cancel").code == 2


def test_a_report_counts_one_task_that_follows_as_one(aof: Aof) -> None:
    aof("create", "Blocker")
    aof("create", "Waits", "--dep", "001")
    assert aof("bulk", "cancel", "001").out.endswith("1 changed, 0 unchanged, 0 refused; with them 1 other task\n")


@pytest.mark.parametrize("asked", [("ready",), ("list", "--status", "ready")])
def test_an_empty_list_says_what_was_moved_to_where_it_looked(aof: Aof, tmp_path: Path, asked: tuple[str, ...]) -> None:
    made = aof("create", "one", "--backlog", "--json").data["taskId"]
    assert "by hand" not in aof(*asked).out
    tasks = tmp_path / ".aof/tasks"
    (tasks / f"backlog/{made}.md").rename(tasks / f"ready/{made}.md")
    assert f"{made} was moved to ready/ by hand; 'aof sync' imports that" in aof(*asked).out
    aof("sync")
    assert "by hand" not in aof(*asked).out
