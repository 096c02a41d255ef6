"""What people and models type without having read anything."""

from __future__ import annotations

import pytest

from aof.surfaces.cli import aliases
from aof.surfaces.cli.grammar import GLOBAL
from aof.surfaces.cli.verbs import VERBS
from tests.support.command_line import Aof

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


@pytest.mark.parametrize("start", ["start", "take", "begin", "pick", "Claim"])
@pytest.mark.parametrize("finish", ["close", "done", "finish", "resolve", "complete"])
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
