"""Export and import: everything comes back, secrets stay behind, and a hostile archive leaves nothing."""

from __future__ import annotations

import gzip
import io
import os
import tarfile
from collections.abc import Callable
from pathlib import Path

import pytest

from aof.errors import AofError, Conflict, InvalidInput, PayloadTooLarge
from aof.service.bootstrap import init_data_dir, open_fabric
from aof.service.upkeep import export_data_dir, import_data_dir
from aof.store.files import archive
from aof.store.files.archive import unpack
from aof.store.files.disk import Disk


class Killed(BaseException):
    """Stands for the end of the process."""


def packed(path: Path, *members: tuple[str, str | bytes], mode: str = "w:gz") -> str:
    """An archive of folders (a name that ends with /), files (with their bytes), and whatever a kind stands for."""
    with tarfile.open(path, mode) as made:  # type: ignore[call-overload]
        for name, given in [(".aof/", ""), (".aof/events/", ""), *members]:
            made.addfile(*member(name, given))
    return os.fspath(path)


def member(name: str, given: str | bytes) -> tuple[tarfile.TarInfo, io.BytesIO | None]:
    """One of them."""
    info = tarfile.TarInfo(name.rstrip("/") if len(name) > 1 else name)
    if isinstance(given, bytes):
        info.size = len(given)
        return info, io.BytesIO(given)
    kinds = {"hard": tarfile.LNKTYPE, "sym": tarfile.SYMTYPE, "char": tarfile.CHRTYPE, "block": tarfile.BLKTYPE}
    info.type = kinds.get(given, tarfile.FIFOTYPE if given == "fifo" else tarfile.DIRTYPE)
    info.linkname = "/etc/passwd" if given in ("hard", "sym") else ""
    return info, None


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A folder of its own to import into."""
    folder = tmp_path / "place"
    folder.mkdir()
    return folder


def imported(place: Path, source: str) -> Path:
    """The new data directory."""
    return Path(import_data_dir(place / ".aof", source)[0])


def assert_refused(place: Path, source: str) -> AofError:
    """The refusal; nothing at all is left in the place."""
    with pytest.raises((InvalidInput, PayloadTooLarge)) as caught:
        imported(place, source)
    assert list(place.iterdir()) == []
    assert caught.value.hint
    assert caught.value.message.isprintable()
    return caught.value


def test_everything_comes_back_but_what_belongs_to_the_machine_or_is_secret(tmp_path: Path, place: Path) -> None:
    root = Path(init_data_dir(tmp_path / ".aof")[0])
    with open_fabric(root, actor="pm") as fabric:
        task_id = fabric.create("Write", brief="All of it").task_id
    for name in ("tokens.json", "tokens.json.bak", "trust.json", "secrets.json", "server.key"):
        (root / name).write_text("private")
    (root / "tasks" / "link.md").symlink_to("/etc/passwd")
    (root / "notes.txt").write_text("kept")

    export_data_dir(root, str(tmp_path / "backup.tar.gz"))
    with tarfile.open(tmp_path / "backup.tar.gz") as made:
        names = made.getnames()
    copy = imported(place, str(tmp_path / "backup.tar.gz"))

    assert not any(word in name for name in names for word in ("token", "trust", "secret", "locks", "index", ".key"))
    assert not (copy / "tokens.json").exists()
    assert not (copy / "tasks" / "link.md").is_symlink()
    assert (copy / "notes.txt").read_text() == "kept"
    with open_fabric(copy) as fabric:
        assert fabric.get(task_id).body == "All of it\n"
        assert fabric.doctor().ok
    assert [one.name for one in place.iterdir()] == [".aof"]


def test_tokens_secrets_and_trust_of_an_archive_are_dropped(tmp_path: Path, place: Path) -> None:
    names = ("tokens.json", "TOKENS.JSON", "trust/commands.json", "secrets.toml", "locks/log", "index.sqlite", "a.sock")
    source = packed(tmp_path / "a.tar.gz", *((f".aof/{name}", b"forged") for name in names), (".aof/aof.toml", b""))

    copy = imported(place, source)

    assert (copy / "aof.toml").exists()
    assert [one for one in copy.rglob("*") if one.is_file() and one.read_bytes() == b"forged"] == []


@pytest.mark.parametrize(
    ("name", "given"),
    [
        (".aof/tasks/ready/x.md", "hard"),
        (".aof/tasks/ready/x.md", "sym"),
        (".aof/tasks", "sym"),
        (".aof/dev", "char"),
        (".aof/dev", "block"),
        (".aof/pipe", "fifo"),
        (".aof/../escaped", b"out"),
        ("../escaped", b"out"),
        ("/escaped", b"out"),
        (".aof//escaped", b"out"),
        (".aof/./escaped", b"out"),
        ("escaped", b"out"),
        (".AOF/escaped", b"out"),
        (".aof/tasks/\x1b]52;c;aGk=\x07.md", b"out"),
        (".aof/tasks/a\nb.md", b"out"),
        (".aof/tasks/\u202eb.md", b"out"),
        (".aof/a\\b", b"out"),
        (f".aof/{'d/' * 80}x", b"out"),
        (f".aof/{'long' * 2_000}", b"out"),
    ],
)
def test_what_is_no_file_or_folder_of_a_data_directory_is_refused(
    tmp_path: Path, place: Path, name: str, given: str | bytes
) -> None:
    source = packed(tmp_path / "hostile.tar.gz", (".aof/tasks/", ""), (".aof/first.txt", b"good"), (name, given))

    assert_refused(place, source)

    assert not (place.parent / "escaped").exists()


@pytest.mark.parametrize(
    "members",
    [
        [(".aof/a", b"one"), (".aof/a", b"two")],
        [(".aof/a", b"one"), (".aof/a/b", b"two")],
        [(".aof/a/b", b"one"), (".aof/a", b"two")],
        [(".aof/a", b"one"), (".aof/a/", "")],
        [(".aof", b"a file")],
    ],
)
def test_a_name_that_is_there_twice_is_refused(
    tmp_path: Path, place: Path, members: list[tuple[str, str | bytes]]
) -> None:
    assert_refused(place, packed(tmp_path / "hostile.tar.gz", *members))


def test_names_that_differ_in_case_only_are_files_of_their_own_or_refused(tmp_path: Path, place: Path) -> None:
    source = packed(tmp_path / "a.tar.gz", (".aof/a", b"small"), (".aof/A", b"capital"))
    (tmp_path / "Probe").touch()
    if (tmp_path / "probe").exists():
        assert_refused(place, source)
    else:
        copy = imported(place, source)
        assert ((copy / "a").read_bytes(), (copy / "A").read_bytes()) == (b"small", b"capital")


def test_a_bomb_is_refused_before_it_is_unpacked(tmp_path: Path, place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(archive, "_FREE", 1 << 20)
    source = packed(tmp_path / "bomb.tar.gz", (".aof/zeros", bytes(32 << 20)))
    assert Path(source).stat().st_size < 64 << 10

    assert "times its size" in assert_refused(place, source).message


@pytest.mark.parametrize(("limit", "words"), [("_MOST_BYTES", "more than"), ("_LARGEST_FILE", "has 300,000 bytes")])
def test_more_than_a_backup_can_hold_is_refused(
    tmp_path: Path, place: Path, monkeypatch: pytest.MonkeyPatch, limit: str, words: str
) -> None:
    monkeypatch.setattr(archive, limit, 200_000)
    source = packed(tmp_path / "large.tar", (".aof/large", os.urandom(300_000)), mode="w")

    assert words in assert_refused(place, source).message


def test_too_many_entries_are_refused(tmp_path: Path, place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(archive, "_MOST_ENTRIES", 20)
    source = packed(tmp_path / "many.tar.gz", *((f".aof/{number}", b"") for number in range(30)))

    assert "more than 20 entries" in assert_refused(place, source).message


def test_a_size_that_is_not_there_and_a_sparse_file_are_refused(tmp_path: Path, place: Path) -> None:
    source = packed(tmp_path / "claims.tar", mode="w")
    with tarfile.open(source, "a") as made:
        info = tarfile.TarInfo(".aof/huge")
        info.size = 1 << 40
        made.fileobj.write(info.tobuf(tarfile.GNU_FORMAT))
    assert "has 1,099,511,627,776 bytes" in assert_refused(place, source).message

    source = packed(tmp_path / "sparse.tar", mode="w")
    with tarfile.open(source, "a", format=tarfile.PAX_FORMAT) as made:
        info = tarfile.TarInfo(".aof/sparse")
        info.pax_headers = {"GNU.sparse.size": str(1 << 40), "GNU.sparse.numblocks": "0", "GNU.sparse.map": "0,0"}
        made.addfile(info, io.BytesIO())
    assert "neither a file nor a folder" in assert_refused(place, source).message


def test_a_description_that_never_ends_is_refused(tmp_path: Path, place: Path) -> None:
    source = packed(tmp_path / "names.tar", mode="w")
    with tarfile.open(source, "a", format=tarfile.PAX_FORMAT) as made:
        info = tarfile.TarInfo(".aof/x")
        info.pax_headers = {"comment": "x" * (4 << 20)}
        made.addfile(info, io.BytesIO())

    assert "more than a mebibyte" in assert_refused(place, source).message


@pytest.mark.parametrize("mode", ["w:gz", "w", "w:bz2", "w:xz"])
def test_an_archive_that_was_cut_off_anywhere_is_refused(tmp_path: Path, place: Path, mode: str) -> None:
    source = Path(packed(tmp_path / "whole", (".aof/events/a", os.urandom(3_000)), (".aof/b", b"last"), mode=mode))
    whole = source.read_bytes()
    end = len(whole) if mode != "w" else len(whole.rstrip(b"\0")) + 512
    for size in sorted({0, 1, 300, 511, 512, 1_024, 1_536, end // 2, end - 200, end - 1}):
        source.write_bytes(whole[: min(size, end - 1)])
        assert_refused(place, str(source))

    source.write_bytes(b"no archive at all" * 100)
    assert_refused(place, str(source))
    source.write_bytes(gzip.compress(b"no archive at all" * 100))
    assert_refused(place, str(source))


def test_an_archive_without_a_log_is_refused(tmp_path: Path, place: Path) -> None:
    with tarfile.open(tmp_path / "other.tar", "w") as made:
        made.addfile(*member(".aof/", ""))
    assert "no exported data directory" in assert_refused(place, str(tmp_path / "other.tar")).message


@pytest.mark.parametrize("there", ["data", "file", "full", "link"])
def test_what_is_there_already_is_never_touched(tmp_path: Path, place: Path, there: str) -> None:
    source = packed(tmp_path / "a.tar.gz", (".aof/aof.toml", b""))
    root = place / ".aof"
    if there == "data":
        init_data_dir(root)
    elif there == "file":
        root.write_text("mine")
    elif there == "full":
        root.mkdir()
        (root / "mine").touch()
    else:
        (place / "elsewhere").mkdir()
        root.symlink_to(place / "elsewhere")
    before = sorted(place.rglob("*"))

    with pytest.raises(Conflict):
        unpack(source, str(root))

    assert sorted(place.rglob("*")) == before


class StoppingDisk(Disk):
    """Ends at one of its steps."""

    def __init__(self, steps: int) -> None:
        super().__init__()
        self._left = steps

    def _step(self) -> None:
        self._left -= 1
        if self._left < 0:
            raise Killed

    def __getattribute__(self, name: str) -> object:
        found = super().__getattribute__(name)
        if name in ("create", "append", "make_dir", "rename", "sync_all", "write_new", "write_durable", "sync_dir"):
            step: Callable[[], None] = super().__getattribute__("_step")
            step()
        return found


def test_an_import_that_ends_at_any_step_leaves_no_half_data_directory(tmp_path: Path, place: Path) -> None:
    source = packed(tmp_path / "a.tar.gz", (".aof/events/x", b"1"), (".aof/tasks/ready/", ""), (".aof/aof.toml", b""))
    root = place / ".aof"
    for steps in range(200):
        try:
            unpack(source, str(root), disk=StoppingDisk(steps))
        except Killed:
            if root.exists():  # it has its name: then all of it is there
                assert (root / "aof.toml").exists()
                assert (root / "locks").is_dir()
                break
            assert list(place.iterdir()) == []
        else:
            break
    assert steps > 10
    assert (root / "events" / "x").read_bytes() == b"1"


def test_what_a_killed_import_left_is_removed_by_the_next_one(tmp_path: Path, place: Path) -> None:
    left = place / "..aof.import-abc"
    left.mkdir()
    (left / "half").touch()
    kept = place / ".aof.import-mine"
    kept.mkdir()

    imported(place, packed(tmp_path / "a.tar.gz", (".aof/aof.toml", b"")))

    assert sorted(one.name for one in place.iterdir()) == [".aof", ".aof.import-mine"]


def test_a_name_that_no_import_would_take_is_told_at_the_export(tmp_path: Path) -> None:
    root = Path(init_data_dir(tmp_path / ".aof")[0])
    (root / "a\x1b[2Jb").touch()

    with pytest.raises(InvalidInput, match="has a name that no import would take"):
        export_data_dir(root, str(tmp_path / "backup.tar.gz"))

    assert [one.name for one in tmp_path.iterdir()] == [".aof"]
