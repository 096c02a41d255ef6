"""What happened: the history of a task, told in sentences."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from aof.api.fabric import Fabric
from aof.errors import InvalidInput
from aof.kernel.events import SUPERSEDED, Event
from aof.kernel.model import Policy
from aof.merge.model import RULES
from aof.queries.history import KINDS, kind_of, stories, story_of
from aof.store.files.read_only import ReadOnlyStore
from aof.store.fold import fold
from aof.store.memory import MemoryStore
from aof.store.port import HashedEvent
from aof.testing import memory_fabric
from tests.support.clock import ManualClock
from tests.support.sites import Site

# --- events of the past, named by their numbers or by their hashes, also by those that they had in another clone


@pytest.fixture
def site(tmp_path: Path) -> Site:
    """One clone, in which a task was renamed."""
    found = Site(tmp_path / "a")
    found.fabric.edit(found.create("before"), title="after")
    return found


def _lines(site: Site) -> list[tuple[str, dict[str, Any]]]:
    """Every event of every file, with the file's name."""
    read = [(name, json.loads(line)) for name, data in site.files().items() for line in data.splitlines()]
    return [(name, event) for name, event in read if "hash" in event]


def _titles(past: dict[str, Any]) -> list[str]:
    return sorted(task["title"] for task in past["tasks"])


def test_a_hash_or_its_first_digits_name_the_same_event_as_its_number(site: Site) -> None:
    fabric = site.fabric
    for event in fabric.events():
        past = fabric.replay(event.seq)
        view = fabric.snapshot(at=event.seq)
        shown, moment = fabric.show("001", at=event.seq), fabric.task_at("001", seq=event.seq)
        for name in (event.hash, event.hash[:8], event.hash[:20].upper(), str(event.seq)):
            assert fabric.replay(name) == past
            assert fabric.snapshot(at=name) == view
            assert fabric.show("001", at=name) == shown
            assert fabric.task_at("001", seq=name) == moment
    assert fabric.replay(0) == fabric.replay("0") == fabric.replay("00000000") == {"seq": 0, "tasks": []}


@pytest.mark.parametrize(
    "name",
    [
        "abc",
        "",
        "-1",
        "0x12345678",
        "g" * 64,
        "a" * 65,
        "1" * 65,
        "12345678 ",
        "99",
        "deadbeefdeadbeef",
        "\uff11\uff12",
    ],
)
def test_what_names_no_event_is_refused_with_a_hint(site: Site, name: str) -> None:
    for ask in (
        site.fabric.replay,
        lambda at: site.fabric.snapshot(at=at),
        lambda at: site.fabric.task_at("001", seq=at),
    ):
        with pytest.raises(InvalidInput) as refused:
            ask(name)
        assert refused.value.hint


def test_digits_are_a_number_where_there_is_such_an_event_and_else_a_hash(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []

    def events_by_hash(beginning: str) -> tuple[HashedEvent, ...]:
        asked.append(beginning)
        return (HashedEvent(beginning + "0" * 56, 1),)

    monkeypatch.setattr(site.store, "events_by_hash", events_by_hash)
    assert site.fabric.replay("00000002")["seq"] == 2
    assert asked == []
    assert site.fabric.replay("12345678")["seq"] == 1
    assert asked == ["12345678"]


def test_an_ambiguous_beginning_is_refused_with_the_hashes_that_it_could_mean(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    twins = tuple(HashedEvent("abcdef12" + digit * 56, 1) for digit in "34")
    monkeypatch.setattr(site.store, "events_by_hash", lambda _: twins)
    with pytest.raises(InvalidInput, match="2 events begin with abcdef12") as refused:
        site.fabric.replay("abcdef12")
    assert "abcdef1233333333" in refused.value.hint
    assert "abcdef1244444444" in refused.value.hint


def test_a_store_without_hashes_says_that_there_is_no_such_event() -> None:
    clock = ManualClock()
    fabric = Fabric(MemoryStore(clock), clock, Policy(), "tester")
    fabric.create("one")
    assert fabric.replay("1")["seq"] == 1
    with pytest.raises(InvalidInput, match="no event whose hash"):
        fabric.replay("deadbeef")


class TestAcrossClones:
    """Three clones that have worked, and whose histories came together in two steps."""

    @pytest.fixture
    def sites(self, tmp_path: Path) -> tuple[Site, Site, Site]:
        """The clone of the root lane, and two others; nobody has anything of the others yet."""
        first = Site(tmp_path / "a")
        one = first.create("one")
        second, third = first.clone("b"), first.clone("c")
        for number, site in enumerate((first, second, third)):
            site.clock.time += 10_000 * number
            site.create(f"of {site.root.name}")
            site.clock.time += 10_000
            site.fabric.edit(one, priority=("low", "high", "critical")[number])
        return first, second, third

    def test_every_original_is_found_as_the_event_that_a_merge_made_of_it(self, sites: tuple[Site, Site, Site]) -> None:
        first, second, third = sites
        first.fetch(second)
        first.store.working_copy.merge(dry_run=False)
        first.create("after the first merge")
        first.fetch(third)
        first.store.working_copy.merge(dry_run=False)
        path = {event.seq: event for event in first.fabric.events()}
        hashes = {event.hash for event in path.values()}
        beside = [event for _, event in _lines(first) if event["hash"] not in hashes]
        own = [event for event in beside if event["type"] == "task.merged"]
        assert own, "the first merge is not on the path any more"
        for event in beside:
            if event in own:
                continue
            made = path[first.fabric.replay(event["hash"][:16])["seq"]]
            assert (made.timestamp, made.actor, made.type) == (event["timestamp"], event["actor"], event["type"])
            assert made.payload.get("title") == event.get("payload", {}).get("title")
        for event in own:
            with pytest.raises(InvalidInput, match=r"is in events/.*\.m[0-9a-f]+\.jsonl, which is not part of"):
                first.fabric.replay(event["hash"])
        read_only = ReadOnlyStore(str(first.root), first.clock)
        assert read_only.events_by_hash(beside[0]["hash"]) == first.store.events_by_hash(beside[0]["hash"])

    def test_what_is_not_merged_yet_is_refused_with_the_file_it_is_in(self, sites: tuple[Site, Site, Site]) -> None:
        first, second, _ = sites
        first.fetch(second)
        (lane,) = first.lanes()
        theirs = next(event for name, event in _lines(first) if name == lane)
        with pytest.raises(InvalidInput) as refused:
            first.fabric.replay(theirs["hash"])
        read_only = ReadOnlyStore(str(first.root), first.clock).working_copy
        assert read_only is not None
        assert read_only.tips() == 2, "who may only read is warned, too"
        assert f"events/{lane}" in refused.value.message
        assert refused.value.call is not None
        assert refused.value.call.operation == "merge"
        assert "of b" not in _titles(first.fabric.replay(first.store.head()))
        first.store.working_copy.merge(dry_run=False)
        assert "of b" in _titles(first.fabric.replay(theirs["hash"]))


# --- events in words: every type has a sentence, a commit reads as what somebody did, and hostile text stays text


_HOPS = ("opened", "completed", "waiting_approval", "rejected", "failed", "blocked", "unblocked", "skipped", "reset")
_TASK = "TASK-2026-02-21-001"


def _event(kind: str, payload: dict[str, Any] | None = None, **more: Any) -> Event:
    given: dict[str, Any] = {"seq": 1, "timestamp": "2026-02-21T09:00:00.000Z", "actor": "ada", "commit": (1, 1)}
    return Event(type=kind, payload=payload or {}, **({"task_id": _TASK} | given | more))


def _told(events: Any, titles: dict[str, str]) -> list[str]:
    return [story.text(titles.get(story.about, "")) for story in stories(events)]


@pytest.mark.parametrize("kind", [*sorted(RULES.keys() - {SUPERSEDED}), *(f"task.hop.{step}" for step in _HOPS)])
def test_every_type_of_event_reads_as_a_sentence_also_with_nothing_in_it(kind: str) -> None:
    story = story_of(_event(kind))
    assert story.text("Add it").startswith("ada ")
    assert "." not in story.before.replace("?", ""), "a name of the log's, not a word"
    assert story.kind in KINDS


def test_a_type_that_nobody_has_worded_reads_as_its_name() -> None:
    assert story_of(_event("task.new_thing.begun")).text("Add it") == "ada new thing begun"


def test_work_from_its_creation_to_its_approval_reads_as_what_people_did() -> None:
    with memory_fabric(actor="pm") as fabric:
        first = fabric.create("Add it", agent="ada").task_id
        second = fabric.create("Document it", agent="ada", depends_on=[first]).task_id
        run = fabric.claim(first, agent="ada").run_id
        fabric.progress(first, text="half way", percent=50, run=run, agent="ada")
        fabric.complete(first, run=run, agent="ada", summary="12 tests pass")
        fabric.reject(first, blockers=["no docs"])
        run = fabric.claim(first, agent="ada").run_id
        fabric.fail(first, message="no disk", run=run, agent="ada")
        fabric.cancel(first, reason="not wanted")
        titles = {first: "Add it", second: "Document it"}
        assert _told(fabric.events(), titles)[:-1] == [
            "pm created 'Add it'",
            "pm created 'Document it'",
            "ada claimed 'Add it'",
            "ada is at 50 % of 'Add it': half way",
            "ada finished 'Add it': 12 tests pass",
            "pm sent 'Add it' back: no docs",
            "ada claimed 'Add it'",
            "ada failed at 'Add it': no disk",
            "pm cancelled 'Add it': not wanted",
        ]


def test_a_story_says_what_became_of_its_task() -> None:
    with memory_fabric(actor="pm") as fabric:
        task = fabric.create("Add it", agent="ada").task_id
        fabric.claim(task, agent="ada")
        fabric.complete(task, agent="ada", summary="done")
        fabric.approve(task)
        assert [story.becomes for story in stories(fabric.events())] == ["", "in-progress", "review", ""]


def test_a_story_says_for_whom_and_under_whose_name_something_was_done() -> None:
    acted = _event("task.attempt.started", actor="pm", agent="ada", called_by="eve")
    assert story_of(acted).text("Add it") == "ada claimed 'Add it'"
    assert story_of(acted).beside == "called by pm, signed in as eve"


def test_who_gives_back_a_run_of_somebody_else_is_named() -> None:
    with memory_fabric(actor="root") as fabric:
        task = fabric.create("Add it").task_id
        run = fabric.claim(task, agent="carl").run_id
        fabric.release(task, run=run)
        fabric.release(task, run=fabric.claim(task, agent="carl").run_id, agent="bob")
        fabric.release(task, run=fabric.claim(task, agent="carl").run_id, agent="carl")
        back = [one for one in stories(fabric.events()) if "back" in one.after]
        assert [(one.text("Add it"), one.beside) for one in back] == [
            ("root gave carl's run of 'Add it' back", ""),
            ("bob gave carl's run of 'Add it' back", "called by root"),
            ("carl gave 'Add it' back", "called by root"),
        ]


def test_a_task_that_is_completed_without_a_claim_was_claimed_and_finished() -> None:
    with memory_fabric(actor="pm") as fabric:
        task = fabric.create("Add it").task_id
        fabric.complete(task, "done", agent="zed")
        told_so = [(one.text("Add it"), one.becomes) for one in stories(fabric.events(after=3))]
        assert told_so == [("zed claimed 'Add it'", ""), ("zed finished 'Add it': done", "review")]


def test_a_report_beside_the_one_that_counts_is_not_called_late() -> None:
    with memory_fabric(actor="pm") as fabric:
        task = fabric.create("Add it").task_id
        fabric.complete(task, "done", agent="zed")
        fabric.complete(task, "well done", agent="zed")
        assert [*stories(fabric.events())][-1].text("Add it") == (
            "zed reported on 'Add it' again; the first report counts: well done"
        )


def test_work_that_a_hop_sends_back_is_told_once_with_the_reason() -> None:
    hops = [
        {"id": "build", "role": "developer"},
        {"id": "check", "role": "reviewer", "dependsOn": ["build"], "canReject": True},
    ]
    with memory_fabric(actor="pm", workflows=[{"name": "gated", "hops": hops}]) as fabric:
        task = fabric.create("Add it", workflow="gated").task_id
        fabric.claim(task, agent="ada").complete("built")
        fabric.claim(task, agent="rita").complete(outcome="needs_review", blockers=["no docs"])
        assert [one.text("Add it") for one in stories(fabric.events())][-1] == (
            "rita sent 'Add it' back at check: no docs"
        )


def test_work_that_its_worker_wants_reviewed_and_a_question_withdrawn_read_as_that() -> None:
    with memory_fabric(actor="pm") as fabric:
        task = fabric.create("Add it", review=False).task_id
        fabric.claim(task, agent="ada").complete("look at the edges", outcome="needs_review")
        assert [one.text("Add it") for one in stories(fabric.events())][-1] == (
            "ada put 'Add it' up for review: look at the edges"
        )
        fabric.reject(task, blockers=["no docs"])
        work = fabric.claim(task, agent="ada")
        work.ask("Which region?")
        work.complete("all of them", withdraw_questions=True)
        *_, last = stories(fabric.events())
        assert (last.text("Add it"), last.becomes) == ("ada finished 'Add it': all of them", "done")


def test_a_dependency_that_is_fulfilled_broken_or_reopened_reads_as_that() -> None:
    with memory_fabric(actor="pm") as fabric:
        first = fabric.create("First", review=False).task_id
        then = fabric.create("Then", depends_on=[first]).task_id
        fabric.complete(first, agent="ada")
        fabric.retry(first, reason="again")
        fabric.dep_remove(then, first)
        fabric.dep_add(then, first)
        said = [one.text("Then") for one in stories(fabric.events()) if one.about == then]
        assert said == [
            "pm created 'Then'",
            f"ada completed what 'Then' waited for: {first}",
            f"pm reopened a dependency of 'Then': it waits for {first} again",
            f"pm removed what 'Then' waited for: {first}",
            f"pm made 'Then' wait for {first}",
        ]


@pytest.mark.parametrize(
    ("kind", "payload", "said"),
    [
        ("task.updated", {"fields": ["title", "dependsOn"]}, "ada changed the title and dependencies of 'Add it'"),
        ("task.updated", {"fields": ["workLog"], "workLog": "ada: half way"}, "ada added a note to 'Add it': half way"),
        ("task.question.answered", {"question": "Q1", "withdrawn": True}, "ada withdrew Q1 of 'Add it'"),
        ("task.progress", {"text": "half way"}, "ada reported progress on 'Add it': half way"),
        (
            "http.authentication.failed",
            {"count": 1},
            "ada turned away an attempt to sign in: a wrong token, or a link that was used before or is too old",
        ),
    ],
)
def test_what_was_changed_reads_as_a_person_would_say_it(kind: str, payload: dict[str, Any], said: str) -> None:
    assert story_of(_event(kind, payload)).text("Add it") == said


def test_an_edit_of_the_files_reads_as_that() -> None:
    edited = _event("task.updated", {"fields": ["body"], "reason": "edited by hand"}, actor="hand")
    assert story_of(edited).text("Add it") == "an edit by hand changed the body of 'Add it'"


def test_what_a_merge_set_aside_reads_as_it_was_and_says_where() -> None:
    aside = _event(SUPERSEDED, {"was": "task.commented", "told": {"text": "mine"}})
    assert story_of(aside).text("Add it") == "ada commented on 'Add it' in another clone: mine"


def test_kinds_tell_handoffs_mail_and_worklog_from_work() -> None:
    kinds = ["handoff.accepted", "delegation.requested", "document.mail.sent", "document.worklog.entry", "task.created"]
    assert [kind_of(_event(kind)) for kind in kinds] == ["handoff", "handoff", "mail", "worklog", "task"]


def test_hostile_text_is_one_bounded_line_that_hides_nothing_and_fills_no_place() -> None:
    text = "{task} {0.__class__}\n# big\x1b[2J \u202e" + "long " * 200
    said = story_of(_event("task.commented", {"text": text})).text("a\u202e{task}\nb")
    assert "\n" not in said
    assert "\x1b" not in said
    assert "\u202e" not in said
    assert "{task} {0.__class__} big" in said
    assert len(said) < 400
    assert story_of(_event("handoff.reminded", {"toAgent": "{task}"})).about == _TASK


def test_a_fold_ends_with_the_event_that_it_is_asked_for() -> None:
    fabric = memory_fabric()
    task_id = fabric.create("One").task_id
    fabric.complete(task_id, run=fabric.claim(task_id, agent="ada").run_id)
    events = list(fabric.store.events())
    for until in range(len(events) + 1):
        told = {name: (one.task, one.runs) for name, one in fold(events, until=until).items()}
        assert told == {name: (one.task, one.runs) for name, one in fold(events[:until]).items()}
