"""What verbs and options are called, what is guessed, and what is generated of the operations."""

from __future__ import annotations

import ast
import io
import re
import shlex
from pathlib import Path
from typing import Any

import pytest

from aof.api.signatures import operation_of
from aof.errors import Call
from aof.kernel.operation import operation
from aof.kernel.results import Moved
from aof.surfaces.cli import aliases
from aof.surfaces.cli.generate import FILE, HANDLERS, generated, verb_of
from aof.surfaces.cli.grammar import GLOBAL, Verb
from aof.surfaces.cli.help import help_text
from aof.surfaces.cli.hints import in_text, spell
from aof.surfaces.cli.operations import VERBS as GENERATED
from aof.surfaces.cli.verbs import VERBS
from tests.support.command_line import Aof, Said

# --- what people and models type without having read anything


NAMES = {verb.name for verb in VERBS}
CALLED = {name for verb in VERBS for name in (verb.name, *verb.aliases)}
OPTIONS = {option.name for verb in VERBS for option in (*verb.options, *GLOBAL)}


def test_every_guess_leads_to_something_that_there_is() -> None:
    assert set(aliases.VERBS.values()) <= CALLED
    assert {option for meant in aliases.OPTIONS.values() for option in meant} <= OPTIONS
    for instead in aliases.INSTEAD.values():
        if instead.startswith("aof "):
            assert instead.split()[1] in NAMES


def test_no_guess_stands_in_the_way_of_a_verb_or_of_another_guess() -> None:
    assert not aliases.VERBS.keys() & (CALLED | aliases.INSTEAD.keys())
    assert not aliases.INSTEAD.keys() & CALLED


@pytest.mark.parametrize(
    ("start", "finish"),
    [("start", "close"), ("take", "done"), ("begin", "finish"), ("pick", "resolve"), ("Claim", "complete")],
)
def test_a_task_is_begun_and_finished_by_whatever_name(aof: Aof, start: str, finish: str) -> None:
    aof("new", "first", "--no-review")
    assert aof(start, "001", "--as", "ada").code == 0
    assert aof(finish, "001", "--assignee", "ada", "--message", "all done", "--json").data["status"] == "done"


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (("ls",), 0),
        (("stats",), 0),
        (("info", "001"), 0),
        (("depends", "add", "002", "001"), 0),
        (("create", "x", "--description", "y", "--depends-on", "001", "--label", "api", "--prio", "high"), 0),
        (("list", "--state", "ready", "--max", "1"), 0),
        (("edit", "001", "--owner", "ada"), 0),
        (("edit", "001", "--body", "text"), 0),
        (("check",), 0),
        (("show", "#001"), 0),
        (("--version",), 0),
        (("-V",), 0),
        (("-v",), 0),
        (("list", "--s", "ready"), 2),
        (("no_such_verb",), 2),
    ],
)
def test_what_is_guessed_works_where_it_is_plain_what_is_meant(aof: Aof, words: tuple[str, ...], expected: int) -> None:
    aof("create", "first")
    aof("create", "second")
    assert aof(*words).code == expected


def test_a_lower_case_id_and_that_of_a_run_stand_for_the_task(aof: Aof) -> None:
    task_id = aof("create", "first", "--json").data["taskId"]
    run = aof("claim", "001", "--agent", "ada", "--json").data["runId"]
    assert aof("show", task_id.lower(), "--json").data["id"] == task_id
    assert aof("show", run, "--json").data["id"] == task_id


@pytest.mark.parametrize(
    ("word", "shown"),
    [
        ("rm", "aof cancel ID, then aof archive ID"),
        ("delete", "nothing is ever deleted"),
        ("mv", "aof update ID --status S"),
        ("tree", "aof list --tree"),
        ("note", "aof comment ID"),
    ],
)
def test_what_there_is_no_verb_for_is_answered_with_the_call_that_does_it(aof: Aof, word: str, shown: str) -> None:
    said = aof(word, "001", "--json")
    assert (said.code, said.error["code"]) == (2, "usage")
    assert shown in said.error["hint"]


def test_what_there_is_to_say_comes_after_the_id_or_behind_text_on_every_verb(aof: Aof) -> None:
    aof("create", "one", "--text", "All of it.")
    aof("edit", "001", "--text", "More of it.")
    assert "More of it." in aof("show", "001", "--json").data["body"]
    aof("claim", "001", "--agent", "ada")
    for words in (("half",), ("--text", "half"), ("--text=--half",)):
        assert aof("progress", "001", *words, "--percent", "60", "--agent", "ada").code == 0
        assert aof("update", "001", *words, "--agent", "ada").code == 0
        assert aof("comment", "001", *words).code == 0
    assert aof("complete", "001", "12 tests passing", "--agent", "ada", "--json").data["status"] == "review"
    assert aof("reject", "001", "--reason", "no docs", "--json").data["status"] == "ready"
    assert aof("block", "001", "--reason", "no key", "--json").data["status"] == "blocked"
    assert "12 tests passing" in aof("show", "001").out


@pytest.mark.parametrize("spelling", ["--brief", "--description", "--body"])
def test_the_text_of_a_task_goes_by_its_earlier_names_too(aof: Aof, spelling: str) -> None:
    said = aof("create", "one", spelling, "All of it.")
    assert (said.code, said.err) == (0, "")
    assert "All of it." in aof("show", "001", "--json").data["body"]


def test_an_earlier_name_of_an_option_works_without_a_word(aof: Aof) -> None:
    aof("create", "one")
    aof("claim", "001", "--agent", "ada")
    done = aof("complete", "001", "--agent", "ada", "--summary", "done")
    rejected = aof("reject", "001", "--blocker", "no docs")
    assert (done.code, done.err, rejected.code, rejected.err) == (0, "", 0, "")


def test_a_word_too_many_is_answered_with_the_call_that_was_meant(aof: Aof) -> None:
    for _ in range(2):
        aof("create", "one")
    assert "aof block 001 --reason 'no key yet'" in aof("block", "001", "no", "key", "yet").err
    assert "one call for each task" in aof("complete", "001", "002").err
    assert "aof bulk cancel 001 002" in aof("cancel", "001", "002").err
    assert "put quotes around text" in aof("comment", "001", "it", "works").err
    assert "--text was given twice" in aof("comment", "001", "it", "--text", "works").err
    assert "aof show 001" in aof("001").err


def test_text_that_begins_with_a_dash_goes_behind_two(aof: Aof) -> None:
    assert "-- -x" in aof("create", "-x").err
    assert aof("create", "--", "-x, and more").code == 0
    assert aof("create", "y", "--brief=-x").code == 0


@pytest.mark.parametrize("typed", ["TASK-{day}-0002", "TASK-2019-01-31-002", "00000002", "task-{day}-0O2", "parser"])
def test_a_mistyped_id_or_a_title_is_answered_with_the_task_that_was_meant(aof: Aof, typed: str) -> None:
    aof("create", "write the docs")
    made = aof("create", "mend the parser", "--json").data["taskId"]
    asked = typed.format(day=made[len("TASK-") : -len("-002")])
    for words in (("show", asked), ("claim", asked, "--agent", "ada"), ("create", "third", "--dep", asked)):
        said = aof(*words, "--json")
        assert said.code == 3
        assert said.error["code"] == "task_not_found"
        assert said.error["hint"] == f"did you mean {made} (mend the parser)? List what there is: aof list"


def test_a_number_needs_no_zeros(aof: Aof) -> None:
    aof("create", "one")
    made = aof("create", "two", "--json").data["taskId"]
    for asked in ("2", "#2", "02"):
        assert aof("show", asked, "--json").data["id"] == made
    assert "there is no task '3'" in aof("show", "3").err


def test_what_is_like_no_task_is_answered_with_the_list(aof: Aof) -> None:
    aof("create", "one")
    for asked in ("999", "nonsense", "TASK-2019-01-31-777"):
        assert aof("show", asked).err.endswith("→ list what there is: aof list\n")


def test_a_status_may_be_written_as_in_other_tools(aof: Aof) -> None:
    aof("create", "one")
    aof("claim", "001", "--agent", "ada")
    assert aof("list", "--status", "IN_PROGRESS", "--json").data["total"] == 1


@pytest.mark.parametrize(
    "words",
    [
        ("create", "two", "--priority", "HIGH", "--visibility", "Background"),
        ("edit", "001", "--priority", "Critical"),
        ("edit", "001", "--clear", "Owner"),
        ("list", "--priority", "High", "--sort", "ID"),
        ("inbox", "--kind", "Gate"),
        ("block", "001", "--reason", "why", "--kind", "Waiting-Input"),
        ("mail", "send", "--to", "bob", "--subject", "x", "--priority", "p1", "--type", "Decision_Required"),
        ("job", "add", "daily", "--cron", "@daily", "--title", "x", "--missed", "SKIP"),
    ],
    ids=lambda words: words[0],
)
def test_a_word_of_a_few_may_be_written_in_any_case(aof: Aof, words: tuple[str, ...]) -> None:
    aof("create", "one")
    said = aof(*words)
    assert said.code == 0, said.err


def test_a_word_that_is_none_of_a_few_is_answered_with_them_as_it_was_given(aof: Aof) -> None:
    said = aof("create", "one", "--priority", "URGENT")
    assert "'priority' cannot be 'URGENT'" in said.err
    assert "priority: one of critical, high, normal, low" in said.err


def test_stop_asks_which_end_of_work_is_meant(aof: Aof) -> None:
    aof("create", "one")
    said = aof("stop", "001")
    assert said.code == 2
    assert all(f"aof {verb} ID" in said.err for verb in ("pause", "release", "cancel"))
    assert aof("show", "001", "--json").data["status"] == "ready"


def test_who_approves_under_a_name_is_told_the_option_for_it(aof: Aof) -> None:
    aof("create", "one")
    said = aof("approve", "001", "--agent", "ada")
    assert (said.code, "--actor NAME" in said.err) == (2, True)


def test_a_rejection_says_that_it_needs_a_reason(aof: Aof) -> None:
    aof("create", "one")
    said = aof("reject", "001")
    assert "a rejection needs a reason" in said.err
    assert "--reason" in said.err
    assert "reject ID --reason T…" in aof("reject", "--help").out


# --- A hint of the command line works when it is pasted: it keeps the data directory, the caller and the acting agent


def _pasted(aof: Aof, said: Said) -> Said:
    """Run the command that the hint ends with."""
    command = said.err.strip().rpartition(": ")[2]
    assert command.startswith("aof "), said.err
    return aof(*shlex.split(command)[1:])


def test_a_run_that_must_be_named_is_named_in_the_same_command(
    aof: Aof, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    elsewhere = tmp_path / "far away"
    elsewhere.mkdir()
    there = ("--data-dir", str(tmp_path / ".aof"), "--actor", "pm")
    monkeypatch.chdir(elsewhere)
    assert aof(*there, "create", "Do it").code == 0
    for verb in ("claim", "release", "claim"):
        assert aof(*there, verb, "001", "--agent", "ada").code == 0
    refused = aof(*there, "complete", "001", "--agent", "ada", "--summary", "it's done: all of it")
    assert "[run_required]" in refused.err
    words = shlex.split(refused.err.strip().partition(": aof ")[2])
    assert words[:5] == [*there, "complete"]
    assert {"--run", "--agent", "it's done: all of it"} <= {*words}
    done = aof(*words)
    assert (done.code, done.err) == (0, "")


def test_the_agent_is_kept_where_it_acts_and_not_where_it_would_filter(aof: Aof) -> None:
    aof("create", "Do it")
    aof("claim", "001", "--agent", "ada")
    taken = aof("claim", "001", "--agent", "bob")
    assert "aof claim --agent bob" in taken.err
    missing = aof("claim", "009", "--agent", "bob")
    assert missing.err.strip().endswith("aof list")
    assert _pasted(aof, missing).code == 0


def test_commands_in_the_words_of_a_hint_keep_the_data_directory_too() -> None:
    assert (
        in_text("run 'aof doctor --fix'", {"data_dir": "a b/.aof"}) == "run 'aof --data-dir \"a b/.aof\" doctor --fix'"
    )
    assert in_text("run 'aof doctor'", {"json": True}) == "run 'aof doctor'"


def test_a_call_is_spelled_as_it_was_where_nothing_was_given() -> None:
    assert spell(Call("show", {"task_id": "001"})) == "aof show 001"
    assert (
        spell(Call("heartbeat", {"task_id": "001", "run": "R"}), {}, "ada") == "aof heartbeat 001 --run R --agent ada"
    )


# --- help on verbs that have several actions: each action by itself, with what it needs


FAMILIES = [verb for verb in VERBS if verb.actions]


def test_a_verb_with_actions_lists_them_on_lines_of_their_own(aof: Aof) -> None:
    told = aof("handoff", "--help").out
    assert "usage: aof handoff ACTION [ID] [OPTIONS]" in told
    assert "  accept      take a handoff on" in told
    assert "--rationale" not in told
    assert max(map(len, told.splitlines())) <= 120


@pytest.mark.parametrize("verb", FAMILIES, ids=lambda verb: verb.name)
def test_the_actions_together_have_every_option_of_the_verb(verb: Verb, aof: Aof) -> None:
    told = {one.name: aof(verb.name, one.name, "--help").out for one in verb.actions}
    assert len({one.partition(":")[0] for one in told.values()}) == len(verb.actions)
    for option in verb.options:
        having = [name for name, text in told.items() if f"  {option.name} " in text]
        assert having == list(option.actions or told)
    for one in verb.actions:
        assert f"usage: {one.usage}" in told[one.name]
        assert one.example in told[one.name]


def test_the_usage_of_an_action_has_what_it_needs(aof: Aof) -> None:
    assert "usage: aof handoff new --type T --task ID --reason T [OPTIONS]" in aof("handoff", "new", "-h").out
    assert "usage: aof mail ack ID --reason T [OPTIONS]" in aof("help", "mail", "ack").out
    assert aof("handoff", "nonsense", "--help").out == aof("handoff", "--help").out


# --- the committed table of the operations' verbs is what the catalogue says


ARCHITECTURE = Path(__file__).parents[2] / "ARCHITECTURE.md"


def test_the_committed_table_is_the_one_that_the_catalogue_gives() -> None:
    assert FILE.read_text(encoding="utf-8") == generated(), "run: python -m aof.surfaces.cli.generate"


def test_the_table_imports_nothing_but_its_grammar() -> None:
    imported = [
        node
        for node in ast.walk(ast.parse(FILE.read_text(encoding="utf-8")))
        if isinstance(node, ast.Import | ast.ImportFrom)
    ]
    assert {getattr(node, "module", None) for node in imported} == {"__future__", "aof.surfaces.cli.grammar"}


def test_a_function_of_its_own_belongs_to_a_verb_that_there_is() -> None:
    assert set(HANDLERS) <= {verb.name for verb in GENERATED}


def test_the_function_that_the_architecture_page_shows_becomes_a_verb_with_help() -> None:
    (shown,) = re.findall(r"```python\n(.*?)```", ARCHITECTURE.read_text(encoding="utf-8"), flags=re.DOTALL)
    names: dict[str, Any] = {"operation": operation, "Moved": Moved}
    exec(compile(f"from __future__ import annotations\n{shown}", "page", "exec"), names)
    verb = verb_of("retag", [operation_of("retag", names["retag"])])
    assert verb.usage == "aof retag ID TAG --to T"
    assert verb.operation == "retag"
    assert "aof retag: rename a tag of a task" in help_text(verb)
    assert "new name" in help_text(verb)


# --- every field of a task and of a report can be given on the command line, in every form that the help names


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


def test_a_report_carries_deliverables_tests_notes_and_acceptance(aof: Aof, monkeypatch: pytest.MonkeyPatch) -> None:
    aof("create", "first")
    aof("claim", "001", "--agent", "ada")
    words = (
        "complete", "001", "--agent", "ada", "--summary", "done", "--summary-ref", "outputs/summary.md",
        "--deliverable", "outputs/a.txt", "--deliverable", "outputs/b.txt", "--test", "total=3", "--test", "passed=3",
        "--notes", "-", "--acceptance", "tests pass", "--json",
    )  # fmt: skip
    monkeypatch.setattr("sys.stdin", io.StringIO("look at b first\n"))
    assert aof(*words).data["status"] == "review"
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
    monkeypatch.setattr("aof.surfaces.cli.parser._LARGEST", 1_000)
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
