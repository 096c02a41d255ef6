"""The file of a document, which people write too: nothing of theirs and nothing of ours is lost."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from aof.errors import AofError
from aof.service.clock import SystemClock
from aof.store.files.disk import Disk
from aof.store.files.read_only import ReadOnlyStore
from aof.store.files.store import FilesystemStore
from tests.support.documents import PATH, Notes, say, text


@pytest.fixture
def root(tmp_path: Path) -> Path:
    FilesystemStore.create(str(tmp_path / ".aof"))
    return tmp_path / ".aof"


@pytest.fixture
def store(root: Path) -> Iterator[FilesystemStore]:
    made = FilesystemStore(str(root), SystemClock())
    yield made
    made.close()


def test_a_persons_line_stays_where_it_is(store: FilesystemStore, root: Path) -> None:
    notes = Notes()
    say(store, "ours", notes)
    with (root / PATH).open("a") as file:
        file.write("- by hand\n")
    say(store, "ours again", notes)
    assert (root / PATH).read_text() == "# Notes\n- ours\n- by hand\n- ours again\n"


def test_what_an_editor_with_an_old_copy_overwrote_is_written_again(store: FilesystemStore, root: Path) -> None:
    notes = Notes()
    say(store, "first", notes)
    old = (root / PATH).read_text()
    say(store, "second", notes)
    say(store, "third", notes)
    (root / PATH).write_text(old + "- by hand\n")
    assert text(store, notes) == "# Notes\n- first\n- by hand\n- second\n- third\n"


def test_a_note_in_the_lock_that_is_lost_costs_only_time(store: FilesystemStore, root: Path) -> None:
    notes = Notes()
    for number in range(3):
        say(store, f"note {number}", notes)
    before = (root / PATH).read_bytes()
    (lock,) = (root / "locks").glob("document*")
    lock.write_bytes(b"garbage")
    assert text(store, notes).encode() == before
    lock.unlink()
    assert text(store, notes).encode() == before


def test_under_another_boot_what_was_appended_is_looked_for_and_written_again(root: Path) -> None:
    notes = Notes()
    first = FilesystemStore(str(root), SystemClock(), boot_id=lambda: "one")
    say(first, "first", notes)
    kept = (root / PATH).read_bytes()
    say(first, "second", notes)
    first.close()
    (root / PATH).write_bytes(kept + b"\0\0\0")  # what a power cut may leave of an append
    second = FilesystemStore(str(root), SystemClock(), boot_id=lambda: "two")
    assert text(second, notes) == "# Notes\n- first\n- second\n"
    second.close()


def test_a_part_that_a_dead_writer_left_is_completed(store: FilesystemStore, root: Path) -> None:
    notes = Notes()
    say(store, "first", notes)
    (lock,) = (root / "locks").glob("document*")
    noted = lock.read_bytes()
    say(store, "second", notes)
    whole = (root / PATH).read_bytes()
    for end in range(len(whole) - len("- second\n") + 1, len(whole) + 1):
        os.truncate(root / PATH, end)
        lock.write_bytes(noted)  # as it was before the writer died
        assert text(store, notes).encode() == whole
    assert notes.read == 1


def test_a_save_between_reading_and_replacing_is_merged(root: Path) -> None:
    class Meddling(Disk):
        """Lets an editor save right before names are exchanged, once."""

        done = False

        def exchange(self, source: str, target: str) -> bool:
            if not self.done:
                self.done = True
                Path(target).write_text(Path(target).read_text() + "- by hand\n")
            return super().exchange(source, target)

    notes = Notes(whole=True)
    store = FilesystemStore(str(root), SystemClock(), disk=Meddling())
    say(store, "first", notes)
    say(store, "second", notes)
    assert (root / PATH).read_text() == "# Notes\n- first\n- by hand\n- second\n"
    assert not list((root / "tmp").iterdir())
    store.close()


def test_a_link_in_the_place_of_a_document_is_not_followed(store: FilesystemStore, root: Path, tmp_path: Path) -> None:
    outside = tmp_path / "outside.md"
    outside.write_text("mine\n")
    (root / PATH).symlink_to(outside)
    with pytest.raises(AofError):
        text(store, Notes())
    assert outside.read_text() == "mine\n"


def test_who_may_only_read_sees_what_the_file_lacks(store: FilesystemStore, root: Path) -> None:
    notes = Notes()
    say(store, "first", notes)
    kept = (root / PATH).read_bytes()
    say(store, "second", notes)
    (root / PATH).write_bytes(kept)
    reader = ReadOnlyStore(str(root), SystemClock())
    assert text(reader, notes) == "# Notes\n- first\n- second\n"
    assert (root / PATH).read_bytes() == kept
    reader.close()


def test_the_mode_of_a_document_stays_as_a_person_set_it(store: FilesystemStore, root: Path) -> None:
    notes = Notes(whole=True)
    say(store, "first", notes)
    (root / PATH).chmod(0o644)
    say(store, "second", notes)
    assert (root / PATH).stat().st_mode & 0o777 == 0o644
