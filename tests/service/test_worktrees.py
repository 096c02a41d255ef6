"""One data directory per git repository: where a command in a worktree finds it, and what `aof init` chooses."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.support.clones import Clone
from tests.support.terminal import Ended
from tests.support.terminal import aof as command

pytestmark = pytest.mark.skipif(shutil.which("git") is None, reason="there is no git here")


def _git(folder: Path, *words: str) -> None:
    Clone(folder).git(*words)


def _aof(folder: Path, *words: str, **more: str) -> Ended:
    return command(*words, "--json", cwd=folder, **more)


def _titles(folder: Path, **more: str) -> list[str]:
    done = _aof(folder, "list", **more)
    assert done.code == 0, done.out + done.err
    return sorted(row["title"] for row in done.data["tasks"])


def _create(folder: Path, title: str) -> None:
    done = _aof(folder, "create", title)
    assert done.code == 0, done.out + done.err


@pytest.fixture
def bare(tmp_path: Path) -> Path:
    """A bare repository with two worktrees, one of them with a committed data directory, which both have then."""
    _git(tmp_path, "init", "-q", "--bare", "-b", "main", "shared.git")
    seed = tmp_path / "seed"
    _git(tmp_path, "clone", "-q", "shared.git", "seed")
    command("init", cwd=seed)
    _create(seed, "from the seed")
    _git(seed, "add", "-A")
    _git(seed, "commit", "-qm", "begin")
    _git(seed, "push", "-q", "origin", "HEAD:main")
    for name in ("one", "two"):
        _git(tmp_path / "shared.git", "worktree", "add", "-q", f"../{name}", "-b", name, "main")
    return tmp_path


def test_worktrees_of_a_bare_repository_do_not_fork_and_init_says_which_is_used(bare: Path) -> None:
    one, two = bare / "one", bare / "two"
    for folder in (one, two):
        refused = _aof(folder, "create", "lost")
        assert (refused.code, refused.error["code"]) == (3, "no_data_directory")
        assert "aof init" in refused.error["hint"]
        assert not list((folder / ".aof/events").glob("*.*.jsonl")), "nothing was written"
    assert _aof(one, "init").data["dataDir"] == str(one / ".aof")
    _create(two, "from two")
    _create(one, "from one")
    for folder in (one, two):
        assert _titles(folder) == ["from one", "from the seed", "from two"]
    assert _aof(two, "init").data["dataDir"] == str(one / ".aof"), "it is the repository's by now"
    shutil.rmtree(one)
    gone = _aof(two, "list")
    assert gone.error["code"] == "no_data_directory"
    assert str(one) in gone.error["message"]
    assert _aof(two, "init").data["dataDir"] == str(two / ".aof")
    assert _titles(two) == ["from the seed"]


def test_a_bare_repository_in_a_folder_of_its_own_has_the_directory_beside_it(tmp_path: Path) -> None:
    project = tmp_path / "project"
    project.mkdir()
    _git(tmp_path, "init", "-q", "-b", "main", "seed")
    _git(tmp_path / "seed", "commit", "-q", "--allow-empty", "-m", "begin")
    _git(tmp_path, "clone", "-q", "--bare", "seed", "project/.bare")
    _git(project / ".bare", "worktree", "add", "-q", "../trunk", "main")
    assert _aof(project / "trunk", "init").data["dataDir"] == str(project / ".aof")
    _create(project / "trunk", "from the trunk")
    assert _titles(project) == ["from the trunk"]
    moved = project.rename(tmp_path / "moved")
    assert _titles(moved) == ["from the trunk"]


def test_a_worktree_of_a_repository_whose_main_worktree_has_none_is_refused_until_init(tmp_path: Path) -> None:
    repo, linked = tmp_path / "repo", tmp_path / "linked"
    repo.mkdir()
    _git(repo, "init", "-q", "-b", "main")
    _git(repo, "commit", "-q", "--allow-empty", "-m", "begin")
    _git(repo, "switch", "-qc", "with-tasks")
    command("init", cwd=repo)
    _create(repo, "committed")
    _git(repo, "add", "-A")
    _git(repo, "commit", "-qm", "tasks")
    _git(repo, "switch", "-q", "main")
    _git(repo, "worktree", "add", "-q", "../linked", "with-tasks")
    shutil.rmtree(repo / ".aof", ignore_errors=True)
    assert _aof(linked, "create", "lost").error["code"] == "no_data_directory"
    command("init", cwd=linked)
    _create(linked, "from the worktree")
    assert _titles(repo) == _titles(linked) == ["committed", "from the worktree"]
    _git(repo, "merge", "-q", "with-tasks")
    assert (repo / ".aof/events").is_dir(), "a copy"
    assert _titles(repo) == ["committed", "from the worktree"], "what init chose is used, also where there is a copy"


def test_init_in_a_worktree_makes_the_main_worktrees(tmp_path: Path) -> None:
    repo, linked = tmp_path / "repo", tmp_path / "linked"
    repo.mkdir()
    _git(repo, "init", "-q", "-b", "main")
    _git(repo, "commit", "-q", "--allow-empty", "-m", "begin")
    _git(repo, "worktree", "add", "-q", "../linked", "-b", "linked")
    assert _aof(linked, "init").data["dataDir"] == str(repo / ".aof")
    _create(linked, "from the worktree")
    assert _titles(repo) == ["from the worktree"]
    elsewhere = tmp_path / "elsewhere"
    command("--data-dir", str(elsewhere), "init", cwd=linked)
    assert _titles(linked, AOF_DATA_DIR=str(elsewhere)) == []


def test_a_data_directory_in_a_subfolder_is_shared_by_all_worktrees(tmp_path: Path) -> None:
    repo = tmp_path / "repo"
    below = repo / "packages/api"
    below.mkdir(parents=True)
    _git(repo, "init", "-q", "-b", "main")
    command("init", cwd=below)
    _create(below, "for the api")
    _git(repo, "add", "-A")
    _git(repo, "commit", "-qm", "begin")
    _git(repo, "worktree", "add", "-q", "../linked", "-b", "linked")
    _create(tmp_path / "linked/packages/api", "from the worktree")
    assert _titles(below) == ["for the api", "from the worktree"]


def test_submodules_and_nested_repositories_have_their_own_or_that_above(tmp_path: Path) -> None:
    outer, inner = tmp_path / "outer", tmp_path / "inner"
    for folder in (outer, inner):
        folder.mkdir()
        _git(folder, "init", "-q", "-b", "main")
        _git(folder, "commit", "-q", "--allow-empty", "-m", "begin")
    command("init", cwd=outer)
    _git(outer, "submodule", "-q", "add", str(inner), "sub")
    nested = outer / "nested"
    nested.mkdir()
    _git(nested, "init", "-q")
    _create(outer / "sub", "from the submodule")
    _create(nested, "from the nested one")
    assert _titles(outer) == ["from the nested one", "from the submodule"]
    assert _aof(outer / "sub", "init").data["dataDir"] == str(outer / "sub/.aof")
    assert _titles(outer / "sub") == []
    _git(outer / "sub", "worktree", "add", "-q", str(tmp_path / "of-sub"), "-b", "more")
    _create(tmp_path / "of-sub", "from its worktree")
    assert _titles(outer / "sub") == ["from its worktree"]
