"""Which file system a folder lies on: of all mounts that could hold it, the one that is seen."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from aof.store.files.disk import file_system, is_remote

FOLDER = "/no/such place/data"


def table(folder: Path, *mounts: tuple[str, str]) -> str:
    """A table of mounts as the kernel writes one, in the order in which they were made."""
    path = folder / "mountinfo"
    lines = [
        f"{number} 1 0:{900 + number} / {place} rw,relatime shared:{number} - {kind} source-{number} rw\n"
        for number, (place, kind) in enumerate(mounts, 30)
    ]
    path.write_text("".join(lines), encoding="utf-8")
    return os.fspath(path)


@pytest.mark.parametrize(
    ("mounts", "kind"),
    [
        ([("/", "ext4"), ("/no", "nfs4")], "nfs4"),
        ([("/no", "nfs4"), ("/", "ext4")], "nfs4"),
        ([("/no", "ext4"), ("/no", "nfs4")], "nfs4"),
        ([("/no", "nfs4"), ("/no", "xfs")], "xfs"),
        ([("/", "ext4"), ("/no/such\\040place", "cifs")], "cifs"),
        ([("/", "ext4"), ("/no/such", "cifs")], "ext4"),
        ([("/", "ext4"), ("/no/such\\134040place", "cifs")], "ext4"),
        ([], "unknown"),
    ],
)
def test_the_longest_and_of_several_the_last_mount_is_the_one(
    tmp_path: Path, mounts: list[tuple[str, str]], kind: str
) -> None:
    assert file_system(FOLDER, table(tmp_path, *mounts))[0] == kind


def test_a_mount_that_hides_others_below_it_is_known_by_its_device(tmp_path: Path) -> None:
    number = tmp_path.stat().st_dev
    path = tmp_path / "mountinfo"
    path.write_text(
        f"30 1 0:999 / {tmp_path} rw - ext4 hidden rw\n"
        f"31 1 {os.major(number)}:{os.minor(number)} / {tmp_path.parent} rw - nfs4 server rw\n"
    )

    assert file_system(str(tmp_path), str(path)) == ("nfs4", "server")


def test_lines_that_make_no_sense_are_passed_over(tmp_path: Path) -> None:
    path = tmp_path / "mountinfo"
    path.write_bytes(b"\n - \n30 1 0:1 / /\xff\\9 rw - ext4\n30 1 0:1 / / rw - xfs here rw\n")

    assert file_system(FOLDER, str(path)) == ("xfs", "here")
    assert file_system(FOLDER, str(tmp_path / "none")) == ("unknown", "unknown")


@pytest.mark.parametrize(
    "kind",
    ["nfs", "nfs4", "nfsd", "cifs", "smb3", "smbfs", "9p", "virtiofs", "vboxsf", "fuse.sshfs", "fuse.rclone",
     "fuse.s3fs", "fuse.glusterfs", "fuse.vmhgfs-fuse", "fuse.", "ceph", "lustre"],
)  # fmt: skip
def test_what_is_shared_between_machines_is_refused(kind: str) -> None:
    assert is_remote(kind)


@pytest.mark.parametrize(
    "kind",
    ["ext4", "xfs", "btrfs", "zfs", "tmpfs", "overlay", "fuseblk", "fuse.gocryptfs", "fuse.mergerfs", "fuse.ntfs-3g",
     "fuse.fuse-overlayfs", "f2fs", "apfs", "unknown"],
)  # fmt: skip
def test_what_is_on_a_disk_of_this_machine_is_allowed(kind: str) -> None:
    assert not is_remote(kind)
