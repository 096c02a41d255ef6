"""The merge driver as git calls it: each version comes back byte by byte, and whatever fails is a visible conflict."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from aof.documents.hand_edits import Side, is_marked, sides, whole_sides
from aof.store.files import git_files

pytestmark = pytest.mark.skipif(shutil.which("git") is None, reason="there is no git here")
_PIECES = (
    *(b"<<<<<<< aof merge: - - -", b"<<<<<<< aof merge: 1:a 1:b 1:c", b"||||||| aof merge: base"),
    *(b"======= aof merge: theirs", b">>>>>>> aof merge: end", b"<<<<<<< HEAD", b"=======", b">>>>>>> x"),
    *(b"\n", b"\r\n", b" ", b"\xff\xfe", b"$(touch ran)", b"`touch ran`", b"-n", b"\\c", b"text", b"\0"),
)
_BYTES = st.lists(st.sampled_from(_PIECES), max_size=8).map(b"".join)
# A version that begins like a file of the driver's own is taken for one.
_VERSION = _BYTES.filter(lambda data: not data.startswith(b"<<<<<<< aof merge: "))


@pytest.fixture(scope="module")
def command(tmp_path_factory: pytest.TempPathFactory) -> str:
    """What `aof init` has written, as git reads it."""
    folder = tmp_path_factory.mktemp("repository")
    _git(folder, "init", "-q")
    assert git_files.add_driver(str(folder))
    return _git(folder, "config", "merge.aof.driver")


def _git(folder: Path, *words: str) -> str:
    done = subprocess.run(["git", *words], cwd=folder, capture_output=True, text=True, timeout=60, check=True)
    return done.stdout.removesuffix("\n")


def _merged(command: str, folder: Path, base: bytes, ours: bytes, theirs: bytes) -> tuple[int, bytes]:
    """Run it as git does, in the top folder and with names of its own; how it ends, and what it leaves."""
    names = {"%O": ".merge_file_o", "%A": ".merge_file_a", "%B": ".merge_file_b"}
    for name, data in zip(names.values(), (base, ours, theirs), strict=True):
        (folder / name).write_bytes(data)
    for mark, name in names.items():
        command = command.replace(mark, name)
    done = subprocess.run(["sh", "-c", command], cwd=folder, capture_output=True, timeout=60, check=False)
    assert sorted(os.listdir(folder)) == sorted(names.values()), "nothing else runs, and nothing is left"
    return done.returncode, (folder / names["%A"]).read_bytes()


@settings(max_examples=60)
@given(base=_VERSION, ours=_VERSION, theirs=_VERSION)
@example(base=b"", ours=b"no end", theirs=b"\0<<<<<<< aof merge: - - -")
def test_every_version_comes_back_as_it_was(
    command: str, tmp_path_factory: pytest.TempPathFactory, base: bytes, ours: bytes, theirs: bytes
) -> None:
    code, data = _merged(command, tmp_path_factory.mktemp("top"), base, ours, theirs)
    assert code == 0
    assert whole_sides(data) == (Side(ours, base), Side(theirs, base))
    text = data.decode("utf-8", "surrogateescape")
    assert [side.encode("utf-8", "surrogateescape") for side in sides(text)] == [ours, theirs]
    assert is_marked(text)


def test_what_an_earlier_merge_has_left_goes_in_as_it_is(command: str, tmp_path: Path) -> None:
    _, first = _merged(command, tmp_path, b"0\n", b"a\n", b"b")
    _, second = _merged(command, tmp_path, b"b", first, b"c\n")
    assert whole_sides(second) == (Side(b"a\n", b"0\n"), Side(b"b", b"0\n"), Side(b"c\n", b"b"))
    _, third = _merged(command, tmp_path, first, b"d\n", second)
    assert whole_sides(third) == (*whole_sides(second), Side(b"d\n", None))
    _, both = _merged(command, tmp_path, b"0\n", first, second)
    assert whole_sides(both) == (*whole_sides(first), *whole_sides(second))


def test_a_file_that_only_looks_like_one_of_the_drivers_costs_nobody_a_byte(command: str, tmp_path: Path) -> None:
    fake = b"<<<<<<< aof merge: 9999:aa - 1:bb\n a\n||||||| aof merge: base\n"
    code, data = _merged(command, tmp_path, b"0\n", b"mine\n", fake)
    assert (code, whole_sides(data)) == (0, ()), "it stays as it is until a person looks at it"
    assert fake in data
    assert b"\n mine\n" in data


def test_a_version_that_was_changed_is_not_taken_for_the_one_that_git_had(command: str, tmp_path: Path) -> None:
    _, data = _merged(command, tmp_path, b"0\n", b"one\ntwo\n", b"three\n")
    assert len(whole_sides(data)) == 2
    for place in range(len(data)):
        other = bytes([data[place] ^ 1])
        found = whole_sides(data[:place] + other + data[place + 1 :])
        assert found in ((), whole_sides(data)), "a space before a line may be another byte only where it says nothing"
        assert whole_sides(data[:place]) == ()
    assert whole_sides(data + b"more\n") == ()


def test_a_file_that_is_too_large_is_a_usual_conflict(command: str, tmp_path: Path) -> None:
    code, data = _merged(command, tmp_path, b"0\n", b"a\n", b"b\n" * 4_000_001)
    assert code == 1
    assert data.startswith(b"<<<<<<< ours\na\n=======\n")


def test_of_a_conflict_around_such_a_file_every_side_is_found(command: str, tmp_path: Path) -> None:
    _, kept = _merged(command, tmp_path, b"0\n", b"a\n", b"b\n")
    text = f"<<<<<<< HEAD\n{kept.decode()}=======\nc\n>>>>>>> other\n"
    assert sides(text) == ("a\n", "b\n", "c\n")
