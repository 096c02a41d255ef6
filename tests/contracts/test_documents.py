"""Documents follow the log, on every store."""

from __future__ import annotations

from aof.kernel.events import Draft
from aof.store.port import Scope, Store
from tests.support.documents import PATH, Notes, say, text


def test_what_was_committed_stands_in_the_document_once(store: Store) -> None:
    notes = Notes()
    for number in range(5):
        say(store, f"note {number}", notes)
    assert text(store, notes) == "# Notes\n" + "".join(f"- note {number}\n" for number in range(5))
    assert text(store, notes).count("note 3") == 1


def test_a_document_that_only_grows_is_read_once(store: Store) -> None:
    notes = Notes()
    for number in range(5):
        say(store, f"note {number}", notes)
    assert notes.read == 1


def test_a_change_in_the_middle_keeps_the_rest(store: Store) -> None:
    notes = Notes()
    say(store, "first", notes)
    say(store, "Ideas", notes, kind="document.titled")
    say(store, "second", notes)
    assert text(store, notes) == "# Ideas\n- first\n- second\n"


def test_an_event_that_nobody_wrote_down_is_written_by_the_next_reader(store: Store) -> None:
    notes = Notes()
    say(store, "first", notes)
    with store.unit(Scope()) as unit:
        draft = Draft(type="document.noted", task_id="", payload={"text": "second"})
        unit.commit((draft,), actor="ada", agent=None, now=2_000)
    assert text(store, notes) == "# Notes\n- first\n- second\n"


def test_a_document_that_nothing_was_said_in_is_not_made(store: Store) -> None:
    assert text(store, Notes()) == ""
    with store.unit(Scope()) as unit:
        assert unit.document(PATH) == ""
