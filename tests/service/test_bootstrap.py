"""Putting the parts together: where a data directory may lie."""

from __future__ import annotations

from pathlib import Path

import pytest

from aof.errors import UnsupportedFilesystem
from aof.service import bootstrap
from aof.store.files.disk import file_system


def test_a_network_file_system_is_refused_unless_the_settings_allow_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root, _ = bootstrap.init_data_dir(tmp_path / ".aof")
    kind, device = file_system(root)
    assert kind != "unknown"
    assert device
    monkeypatch.setattr(bootstrap, "is_remote", lambda found: found == kind)
    with pytest.raises(UnsupportedFilesystem, match=kind):
        bootstrap.open_fabric(root)
    Path(root, "aof.toml").write_text("[storage]\nallowNetworkFilesystem = true\n", encoding="utf-8")
    with bootstrap.open_fabric(root) as fabric:
        assert fabric.create("Here all the same").status == "ready"


def test_the_innermost_mount_says_which_file_system_it_is() -> None:
    assert file_system("/proc/self")[0] == "proc"
