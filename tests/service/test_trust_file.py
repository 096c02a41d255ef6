"""What is trusted: exactly the commands that were shown, for this data directory, by this user, on this machine."""

from __future__ import annotations

import json
import os
import shutil
import stat
from pathlib import Path
from typing import Any

import msgspec
import pytest

from aof.errors import SettingsUnusable, StorageFailed
from aof.kernel.ports import CommandLine
from aof.service.trust import TrustFile, state_folder

NOW = "2026-02-21T00:00:00.000Z"
RUNS = CommandLine(
    source="agent ada", kind="runner", command=("python", "agent.py"), env={"MODE": "fast"}, cwd="agents"
)


def kept(folder: Path, root: Path | None = None) -> TrustFile:
    root = root or folder / "project/.aof"
    root.mkdir(parents=True, exist_ok=True)
    return TrustFile(str(root), {"XDG_STATE_HOME": str(folder / "state")})


@pytest.fixture
def trust(tmp_path: Path) -> TrustFile:
    """What is kept where `RUNS` is trusted."""
    made = kept(tmp_path)
    made.save([RUNS], NOW)
    return made


def file_of(folder: Path) -> Path:
    (found,) = (folder / "state/aof/trust").iterdir()
    return found


def test_a_command_is_trusted_from_when_it_is_saved(tmp_path: Path) -> None:
    trust = kept(tmp_path)
    assert not trust.covers(RUNS)
    trust.save([RUNS], NOW)
    assert trust.covers(RUNS)
    assert kept(tmp_path).covers(RUNS)


@pytest.mark.parametrize(
    "change",
    [
        {"command": ("python", "other.py")},
        {"command": ("python agent.py",)},
        {"command": ("python", "agent.py", "")},
        {"env": {}},
        {"env": {"MODE": "slow"}},
        {"env": {"MODE": "fast", "LD_PRELOAD": "x.so"}},
        {"inherit_env": ("API_KEY",)},
        {"inherit_env": "all"},
        {"cwd": None},
        {"cwd": "agents/deeper"},
        {"kind": "notify"},
    ],
)
def test_whatever_changes_in_a_command_ends_its_trust(trust: TrustFile, change: dict[str, Any]) -> None:
    assert not trust.covers(msgspec.structs.replace(RUNS, **change))


def test_who_declares_a_command_is_no_part_of_it(trust: TrustFile) -> None:
    assert trust.covers(msgspec.structs.replace(RUNS, source="agent bert"))


def test_saving_again_ends_the_trust_in_what_is_no_longer_there(trust: TrustFile) -> None:
    trust.save([], NOW)
    assert not trust.covers(RUNS)


def test_a_link_to_the_data_directory_is_that_directory_where_commands_start_in_the_same_folder(tmp_path: Path) -> None:
    trust = kept(tmp_path)
    trust.save([RUNS], NOW)
    (tmp_path / "also").symlink_to(tmp_path / "project")
    assert kept(tmp_path, tmp_path / "also/.aof").covers(RUNS), "the folder above is the same one"
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere/.aof").symlink_to(tmp_path / "project/.aof")
    assert not kept(tmp_path, tmp_path / "elsewhere/.aof").covers(RUNS), "its commands would start elsewhere"


def test_a_copied_or_moved_data_directory_is_another_one(tmp_path: Path) -> None:
    trust = kept(tmp_path)
    trust.save([RUNS], NOW)
    shutil.copytree(tmp_path / "project", tmp_path / "copy")
    assert not kept(tmp_path, tmp_path / "copy/.aof").covers(RUNS)
    (tmp_path / "project").rename(tmp_path / "moved")
    assert not kept(tmp_path, tmp_path / "moved/.aof").covers(RUNS)


def test_a_file_under_the_name_of_another_data_directory_does_not_count(tmp_path: Path) -> None:
    trust, other = kept(tmp_path), kept(tmp_path, tmp_path / "other/.aof")
    trust.save([RUNS], NOW)
    mine = file_of(tmp_path)
    other.save([RUNS], NOW)
    (theirs,) = set((tmp_path / "state/aof/trust").iterdir()) - {mine}
    shutil.copy(mine, theirs)
    assert not other.covers(RUNS)


def test_the_file_is_for_its_owner_only_and_holds_no_values(tmp_path: Path) -> None:
    secret = msgspec.structs.replace(RUNS, env={"API_KEY": "sk-very-secret"})
    trust = kept(tmp_path)
    trust.save([secret], NOW)
    file = file_of(tmp_path)
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert stat.S_IMODE(file.parent.stat().st_mode) == 0o700
    text = file.read_text()
    assert "sk-very-secret" not in text
    assert "agent.py" not in text
    assert set(json.loads(text)) == {"schemaVersion", "dataDir", "trustedAt", "commands"}
    assert list(file.parent.iterdir()) == [file], "nothing is left of writing it"


@pytest.mark.parametrize("mode", [0o620, 0o602, 0o666])
def test_a_file_that_others_can_write_does_not_count(trust: TrustFile, tmp_path: Path, mode: int) -> None:
    file_of(tmp_path).chmod(mode)
    assert not trust.covers(RUNS)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file away")
def test_a_file_of_another_user_does_not_count(trust: TrustFile, tmp_path: Path) -> None:
    os.chown(file_of(tmp_path), 12345, 12345)
    assert not trust.covers(RUNS)


@pytest.mark.parametrize("text", ["", "{", "[]", '{"schemaVersion":1}', "\x00\xff"])
def test_a_damaged_file_trusts_nothing(trust: TrustFile, tmp_path: Path, text: str) -> None:
    file_of(tmp_path).write_text(text, encoding="latin-1")
    assert not trust.covers(RUNS)


@pytest.mark.parametrize("kind", ["link", "pipe", "folder"])
def test_what_is_no_regular_file_is_neither_followed_nor_waited_for(
    trust: TrustFile, tmp_path: Path, kind: str
) -> None:
    file = file_of(tmp_path)
    file.rename(tmp_path / "aside")
    match kind:
        case "link":
            file.symlink_to(tmp_path / "aside")
        case "pipe":
            os.mkfifo(file, 0o600)
        case _:
            file.mkdir()
    assert not trust.covers(RUNS)


def test_revoking_ends_all_trust(tmp_path: Path) -> None:
    trust = kept(tmp_path)
    assert not trust.revoke()
    trust.save([RUNS], NOW)
    assert trust.revoke()
    assert not trust.covers(RUNS)


def test_a_data_directory_cannot_hold_the_trust_in_itself(tmp_path: Path) -> None:
    root = tmp_path / ".aof"
    root.mkdir()
    with pytest.raises(SettingsUnusable, match="could then trust itself"):
        TrustFile(str(root), {"XDG_STATE_HOME": str(root / "state")}).save([RUNS], NOW)


def test_a_state_folder_that_cannot_be_written_is_said(tmp_path: Path) -> None:
    (tmp_path / "state").write_text("in the way")
    with pytest.raises(StorageFailed):
        kept(tmp_path).save([RUNS], NOW)


@pytest.mark.parametrize(
    ("environment", "folder"),
    [
        ({"XDG_STATE_HOME": "/s", "HOME": "/h"}, "/s/aof"),
        ({"XDG_STATE_HOME": "relative", "HOME": "/h"}, "/h/.local/state/aof"),
        ({"XDG_STATE_HOME": "", "HOME": "/h/"}, "/h/.local/state/aof"),
        ({"HOME": "/h"}, "/h/.local/state/aof"),
    ],
)
def test_the_state_folder_is_the_users(environment: dict[str, str], folder: str) -> None:
    assert state_folder(environment) == folder


def test_a_path_that_is_no_text_has_trust_of_its_own(tmp_path: Path) -> None:
    root = Path(os.fsdecode(os.fsencode(tmp_path) + b"/odd\xff/.aof"))
    trust = kept(tmp_path, root)
    trust.save([RUNS], NOW)
    assert trust.covers(RUNS)
