"""What would be published, as those have it who install it: built, checked, and used in fresh environments."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tarfile
import urllib.request
import venv
import zipfile
from pathlib import Path

import pytest

from tests.support.repository import ROOT

VERSIONS = ("3.11", "3.12", "3.13", "3.14")
HERE = f"{sys.version_info.major}.{sys.version_info.minor}"
DAY = (
    ("init",),
    ("create", "Add refresh endpoint", "--no-review"),
    ("create", "Document it", "--dep", "001"),
    ("claim", "--agent", "ada"),
    ("complete", "001", "--agent", "ada", "--summary", "12 tests passing"),
    ("ready",),
    ("log",),
    ("doctor",),
)


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the wheel and the sdist."""
    folder = tmp_path_factory.mktemp("dist")
    _assert_runs(sys.executable, "-m", "hatchling", "build", "-d", str(folder), cwd=ROOT)
    return folder


def _assert_runs(*words: str, cwd: Path) -> str:
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("AOF_", "PYTHON"))}
    done = subprocess.run(words, cwd=cwd, env=kept, capture_output=True, text=True, check=False, timeout=280)
    assert done.returncode == 0, (words, done.stdout[-3000:], done.stderr[-3000:])
    return done.stdout


def _interpreter(version: str) -> str | None:
    """A Python of that version, wherever one is; what is in the way may only stand for others."""
    managed = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv"), "versions")
    candidates = [shutil.which(f"python{version}"), *map(str, managed.glob(f"{version}.*/bin/python{version}"))]
    for candidate in filter(None, candidates):
        if subprocess.run([candidate, "-c", ""], capture_output=True, check=False, timeout=60).returncode == 0:
            return candidate
    return None


def _installed(python: str, folder: Path, what: str) -> Path:
    """The commands of a fresh environment with nothing but what is installed."""
    if python == sys.executable:
        venv.create(folder / "env", with_pip=True)
    else:
        _assert_runs(python, "-m", "venv", str(folder / "env"), cwd=folder)
    bin_ = folder / "env" / "bin"
    _assert_runs(str(bin_ / "python"), "-m", "pip", "install", "-qq", "--disable-pip-version-check", what, cwd=folder)
    _assert_runs(str(bin_ / "python"), "-m", "pip", "check", cwd=folder)
    return bin_


def _assert_a_day_works_with(bin_: Path, folder: Path) -> None:
    project = folder / "project"
    project.mkdir()
    for words in DAY:
        _assert_runs(str(bin_ / "aof"), *words, cwd=project)
    tasks = json.loads(_assert_runs(str(bin_ / "python"), "-m", "aof", "list", "--json", cwd=project))["data"]["tasks"]
    assert {task["status"] for task in tasks} == {"done", "ready"}
    _assert_runs(str(bin_ / "python"), "-c", "import aof; aof.open('.aof').close()", cwd=project)


def test_an_index_would_take_both_files_and_show_the_readme(built: Path) -> None:
    files = sorted(map(str, built.iterdir()))
    assert [Path(name).suffix for name in files] == [".whl", ".gz"]
    assert _assert_runs(sys.executable, "-m", "twine", "check", "--strict", *files, cwd=built).count("PASSED") == 2


def test_the_wheel_holds_the_package_and_its_licence_and_nothing_else(built: Path) -> None:
    with zipfile.ZipFile(next(built.glob("*.whl"))) as wheel:
        names = wheel.namelist()
    assert {name.partition("/")[0].partition("-")[0] for name in names} == {"aof", "aof_fabric"}
    assert "aof/py.typed" in names
    assert [name for name in names if name.endswith("licenses/LICENSE")] != []
    board = ROOT / "src/aof/surfaces/board"
    files = [path for folder in ("templates", "static") for path in (board / folder).rglob("*") if path.is_file()]
    assert {str(path.relative_to(ROOT / "src")) for path in files} <= set(names)


def test_the_sdist_holds_what_it_takes_to_test_it_and_nothing_of_this_machine(built: Path) -> None:
    with tarfile.open(next(built.glob("*.tar.gz"))) as sdist:
        names = {name.partition("/")[2] for name in sdist.getnames()}
    assert {"LICENSE", "README.md", "Makefile", "pyproject.toml", "tests/conftest.py", "docs/reference/cli.md"} <= names
    assert {name.partition("/")[0] for name in names} & {".venv", "build", "dist", ".aof", ".git"} == set()


def test_a_wheel_that_is_all_there_is_lets_a_team_work_with_agents_over_mcp_and_people_at_the_board(
    built: Path, tmp_path: Path
) -> None:
    bin_ = _installed(sys.executable, tmp_path, str(next(built.glob("*.whl"))))
    _assert_a_day_works_with(bin_, tmp_path)
    project = tmp_path / "project"
    _assert_runs(str(bin_ / "aof"), "init", "--agent", "claude", cwd=project)
    _shakes_hands(bin_, project)
    _shows_the_board(bin_, project)


def _shakes_hands(bin_: Path, project: Path) -> None:
    """An MCP client starts what `aof init` has written down for it, and is told who answers."""
    entry = json.loads((project / ".mcp.json").read_text("utf-8"))["mcpServers"]["aof"]
    about = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}
    hello = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": about}
    done = subprocess.run(
        [entry["command"], *entry["args"]],
        cwd=project, env={"PATH": f"{bin_}:/usr/bin:/bin", "HOME": str(project), **entry["env"]},
        input=json.dumps(hello) + "\n", capture_output=True, text=True, check=False, timeout=60,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout.splitlines()[0])["result"]["serverInfo"]["name"] == "aof"


def _shows_the_board(bin_: Path, project: Path) -> None:
    """The link that the command prints lets its reader in."""
    serving = subprocess.Popen(
        [bin_ / "aof", "board", "--web", "--no-open", "--port", "0"],
        cwd=project, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
    )  # fmt: skip
    try:
        assert serving.stdout is not None
        link = serving.stdout.readline().strip()
        assert link.startswith("http://127.0.0.1:"), link
        with urllib.request.urlopen(link, timeout=60) as page:
            assert (page.status, b"<title>" in page.read()) == (200, True)
    finally:
        serving.terminate()
        serving.communicate(timeout=60)


@pytest.mark.full
def test_the_sdist_builds_where_nothing_else_is(built: Path, tmp_path: Path) -> None:
    _assert_a_day_works_with(_installed(sys.executable, tmp_path, str(next(built.glob("*.tar.gz")))), tmp_path)


@pytest.mark.full
@pytest.mark.parametrize("version", [version for version in VERSIONS if version != HERE])
def test_every_python_that_is_here_runs_wheel_and_sdist(built: Path, tmp_path: Path, version: str) -> None:
    python = _interpreter(version)
    if python is None:
        pytest.skip(f"there is no Python {version} here")
    for number, file in enumerate(built.iterdir()):
        folder = tmp_path / str(number)
        folder.mkdir()
        _assert_a_day_works_with(_installed(python, folder, str(file)), folder)


@pytest.mark.full
@pytest.mark.parametrize("version", VERSIONS)
def test_with_every_extra_each_surface_loads(built: Path, tmp_path: Path, version: str) -> None:
    python = sys.executable if version == HERE else _interpreter(version)
    if python is None:
        pytest.skip(f"there is no Python {version} here")
    bin_ = _installed(python, tmp_path, f"{next(built.glob('*.whl'))}[all]")
    surfaces = ("aof.surfaces.mcp.stdio", "aof.surfaces.http.app", "aof.surfaces.a2a.endpoint", "apprise", "a2a")
    _assert_runs(str(bin_ / "python"), "-c", f"import {', '.join(surfaces)}", cwd=tmp_path)
    project = tmp_path / "project"
    project.mkdir()
    _assert_runs(str(bin_ / "aof"), "init", "--agent", "claude", cwd=project)
    _assert_runs(str(bin_ / "aof"), "up", "--once", "--http", "0", cwd=project)


def test_only_versions_that_can_be_tried_are_promised() -> None:
    text = (ROOT / "pyproject.toml").read_text("utf-8")
    promised = [version for version in VERSIONS if f"Programming Language :: Python :: {version}" in text]
    assert promised != []
    assert f'requires-python = ">={promised[0]}"' in text
