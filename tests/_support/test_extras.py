"""What is missing is installed into the environment that lacks it, from where AOF itself came."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from aof.service.extras import install_hint

PIP = "{python} -m pip install "
FOLDER = '{"url": "file:///srv/a%20b", "dir_info": {}}'
EDITABLE = '{"url": "file:///srv/aof", "dir_info": {"editable": true}}'
WHEEL = '{"url": "file:///srv/aof_fabric-1.whl", "archive_info": {}}'
GIT = '{"url": "https://example.org/aof", "vcs_info": {"vcs": "git", "requested_revision": "v1"}}'


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """What an installer notes about the distribution."""
    about = tmp_path / "aof_fabric-1.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: aof-fabric\nVersion: 1\n")
    (about / "INSTALLER").write_text("pip\n")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(sys, "prefix", str(tmp_path))
    monkeypatch.setenv("PATH", str(tmp_path))
    return about


@pytest.mark.parametrize(
    ("origin", "command"),
    [
        ("", PIP + "'aof-fabric[notify]'"),
        (FOLDER, PIP + "'/srv/a b[notify]'"),
        (EDITABLE, PIP + "--editable '/srv/aof[notify]'"),
        (WHEEL, PIP + "'aof-fabric[notify] @ file:///srv/aof_fabric-1.whl'"),
        (GIT, PIP + "'aof-fabric[notify] @ git+https://example.org/aof@v1'"),
    ],
    ids=["index", "folder", "editable", "wheel", "git"],
)
def test_an_extra_comes_from_where_the_package_came_from(installed: Path, origin: str, command: str) -> None:
    if origin:
        (installed / "direct_url.json").write_text(origin)
    assert install_hint("notify") == f"install it with: {command.format(python=sys.executable)}"


def test_pip_is_called_by_its_name_where_that_is_the_one_of_this_environment(
    installed: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bin_ = installed.parent / "bin"
    bin_.mkdir()
    (bin_ / "pip").write_text("#!/bin/sh\n")
    (bin_ / "pip").chmod(0o755)
    monkeypatch.setenv("PATH", str(bin_))
    assert f"{sys.executable} -m pip" in install_hint("a2a")
    monkeypatch.setattr(sys, "executable", str(bin_ / "python"))
    assert install_hint("a2a", "notify") == "install it with: pip install 'aof-fabric[a2a,notify]'"


@pytest.mark.parametrize(
    ("note", "installer", "command"),
    [
        ("pipx_metadata.json", "pip", "pipx install --force 'aof-fabric[a2a]'"),
        ("uv-receipt.toml", "uv", "uv tool install 'aof-fabric[a2a]'"),
        ("pyvenv.cfg", "uv", "uv pip install --python {python} 'aof-fabric[a2a]'"),
    ],
)
def test_the_program_that_made_the_environment_is_the_one_to_call(
    installed: Path, note: str, installer: str, command: str
) -> None:
    (installed / "INSTALLER").write_text(installer)
    (installed.parent / note).write_text("")
    assert install_hint("a2a") == f"install it with: {command.format(python=sys.executable)}"
