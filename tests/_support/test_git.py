"""A repository may come from anybody: git is asked about it, and no program that it names runs."""

from __future__ import annotations

import ast
import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

import aof
from aof.support import git
from tests.support.terminal import aof as command

pytestmark = pytest.mark.skipif(shutil.which("git") is None, reason="there is no git here")
SOURCE = Path(aof.__file__).parent
_OWN = ("-c", "user.name=x", "-c", "user.email=x@example.org", "-c", "commit.gpgsign=false")
_HOOKS = ("post-index-change", "fsmonitor-watchman", "query-watchman", "reference-transaction", "post-checkout")
_MOST = 1_000_000


def _git(folder: Path, *words: str) -> str:
    environment = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    environment["GIT_CONFIG_GLOBAL"] = os.devnull
    done = subprocess.run(
        ["git", *_OWN, *words], cwd=folder, env=environment, capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def _config(folder: Path, text: str) -> None:
    with (folder / "config").open("a") as file:
        file.write(text)


class Victim:
    """A person's copy of a repository. `program` is what its settings name: it leaves a mark when it runs."""

    def __init__(self, tmp_path: Path) -> None:
        self.mark = tmp_path / "ran"
        self.program = tmp_path / "program"
        self.program.write_text(f'#!/bin/sh\necho "$0 $*" >> {self.mark}\nexit 1\n')
        self.program.chmod(0o755)
        self.project = tmp_path / "project"
        self.project.mkdir()
        _git(self.project, "init", "-q", "-b", "main")
        (self.project / "touched.txt").write_text("one\n")
        (self.project / "same.txt").write_text("same\n")
        _git(self.project, "add", "-A")
        _git(self.project, "commit", "-qm", "one")
        (self.project / "touched.txt").write_text("two\n")
        os.utime(self.project / "same.txt", (1, 1))  # git has to look at its content again
        (self.project / "new.txt").write_text("new\n")
        self.git = self.project / ".git"

    def attributes(self, text: str) -> None:
        (self.git / "info").mkdir(exist_ok=True)
        (self.git / "info/attributes").write_text(text)

    def settings(self, text: str) -> None:
        _config(self.git, text.replace("PROGRAM", str(self.program)))


def _filter(victim: Victim, kind: str) -> None:
    victim.attributes("* filter=x\n")
    victim.settings(f'[filter "x"]\n\t{kind} = PROGRAM\n\trequired = true\n')


def _included(victim: Victim) -> None:
    victim.attributes("* filter=x\n")
    (victim.project.parent / "more.config").write_text(f'[filter "x"]\n\tclean = {victim.program}\n')
    victim.settings("[include]\n\tpath = ../../more.config\n")


def _of_this_worktree(victim: Victim) -> None:
    victim.attributes("* filter=x\n")
    victim.settings("[core]\n\trepositoryformatversion = 1\n[extensions]\n\tworktreeConfig = true\n")
    (victim.git / "config.worktree").write_text(f'[filter "x"]\n\tclean = {victim.program}\n')


def _hooks(victim: Victim) -> None:
    for folder in (victim.git / "hooks", victim.project / "ours"):
        folder.mkdir(exist_ok=True)
        for name in _HOOKS:
            shutil.copy(victim.program, folder / name)
    victim.settings("[core]\n\thooksPath = ours\n\tfsmonitor = ours/fsmonitor-watchman\n")


def _textconv(victim: Victim) -> None:
    victim.attributes("* diff=x\n")
    victim.settings('[diff "x"]\n\ttextconv = PROGRAM\n\tcachetextconv = true\n')


def _external_diff(victim: Victim) -> None:
    victim.attributes("* diff=x\n")
    victim.settings('[diff]\n\texternal = PROGRAM\n[diff "x"]\n\tcommand = PROGRAM\n')


def _promised(victim: Victim, url: str) -> None:
    """Objects are missing, and a remote has promised them."""
    _git(victim.project, "commit", "-aqm", "two")
    for spec in ("HEAD~1:touched.txt", "HEAD:touched.txt"):
        name = _git(victim.project, "rev-parse", spec)
        (victim.git / "objects" / name[:2] / name[2:]).unlink()
    (victim.project / "touched.txt").write_text("three\n")
    victim.settings(
        "[core]\n\trepositoryformatversion = 1\n\tsshCommand = PROGRAM\n\tgitProxy = PROGRAM\n\taskPass = PROGRAM\n"
        '[extensions]\n\tpartialClone = origin\n[protocol]\n\tallow = always\n[protocol "ext"]\n\tallow = always\n'
        '[credential]\n\thelper = "!PROGRAM"\n'
        f'[remote "origin"]\n\turl = {url}\n\tpromisor = true\n\tuploadpack = PROGRAM\n'
    )


def _submodule(victim: Victim) -> None:
    """Another repository in a folder of this one, with settings of its own."""
    inner = victim.project / "inner"
    inner.mkdir()
    _git(inner, "init", "-q", "-b", "main")
    (inner / "file.txt").write_text("one\n")
    _git(inner, "add", "-A")
    _git(inner, "commit", "-qm", "one")
    _git(victim.project, "add", "inner")
    _git(victim.project, "commit", "-qm", "with a submodule")
    (inner / ".git/info/attributes").write_text("* filter=x\n")
    _config(inner / ".git", f'[core]\n\tfsmonitor = {victim.program}\n[filter "x"]\n\tclean = {victim.program}\n')
    (inner / "file.txt").write_text("two\n")


PLANTED: dict[str, Callable[[Victim], None]] = {
    "a clean filter": lambda victim: _filter(victim, "clean"),
    "a smudge filter": lambda victim: _filter(victim, "smudge"),
    "a process filter": lambda victim: _filter(victim, "process"),
    "a file that the settings include": _included,
    "settings of the worktree": _of_this_worktree,
    "fsmonitor": lambda victim: victim.settings("[core]\n\tfsmonitor = PROGRAM\n"),
    "hooks": _hooks,
    "textconv": _textconv,
    "an external diff": _external_diff,
    "a promisor by a program": lambda victim: _promised(victim, "ext::PROGRAM"),
    "a promisor by ssh": lambda victim: _promised(victim, "ssh://example.invalid/x"),
    "a promisor by the path of a program": lambda victim: _promised(victim, str(victim.project.parent)),
    "a promisor with a credential helper": lambda victim: _promised(victim, "http://127.0.0.1:9/x"),
    "aliases": lambda victim: victim.settings(
        '[alias]\n\tdiff = "!PROGRAM"\n\tcat-file = "!PROGRAM"\n\tls-files = "!PROGRAM"\n\trev-parse = "!PROGRAM"\n'
    ),
    "pagers and editors": lambda victim: victim.settings(
        "[core]\n\tpager = PROGRAM\n\teditor = PROGRAM\n[pager]\n\tdiff = PROGRAM\n\tcat-file = PROGRAM\n"
    ),
    "gpg": lambda victim: victim.settings("[gpg]\n\tprogram = PROGRAM\n[log]\n\tshowSignature = true\n"),
    "a submodule": _submodule,
}
ASKED: dict[str, Callable[[Victim], object]] = {
    "changed files": lambda victim: git.changed_files(str(victim.project), "HEAD", most=_MOST),
    "contents": lambda victim: git.contents(str(victim.project), "HEAD:touched.txt", most=_MOST),
}


@pytest.fixture
def victim(tmp_path: Path) -> Victim:
    return Victim(tmp_path)


@pytest.mark.parametrize("asked", ASKED)
@pytest.mark.parametrize("planted", PLANTED)
def test_no_program_that_a_repository_names_is_run(victim: Victim, planted: str, asked: str) -> None:
    PLANTED[planted](victim)
    ASKED[asked](victim)
    assert not victim.mark.exists(), victim.mark.read_text()


@pytest.mark.parametrize(
    ("planted", "words"),
    [
        ("a clean filter", ("diff", "--name-only")),
        ("a file that the settings include", ("diff", "--name-only")),
        ("settings of the worktree", ("diff", "--name-only")),
        ("fsmonitor", ("diff", "--name-only")),
        ("an external diff", ("diff",)),
        ("a promisor by a program", ("cat-file", "blob", "HEAD:touched.txt")),
        ("a promisor by ssh", ("cat-file", "blob", "HEAD:touched.txt")),
        ("a submodule", ("diff", "--name-only")),
    ],
)
def test_what_is_planted_here_would_run_if_git_were_asked_directly(
    victim: Victim, planted: str, words: tuple[str, ...]
) -> None:
    """The test above would prove nothing otherwise."""
    PLANTED[planted](victim)
    subprocess.run(["git", *words], cwd=victim.project, capture_output=True, timeout=60, check=False)
    assert victim.mark.exists()


@pytest.mark.parametrize("planted", ["a clean filter", "fsmonitor", "hooks", "a submodule", "aliases"])
def test_the_answers_are_right_all_the_same(victim: Victim, planted: str) -> None:
    PLANTED[planted](victim)
    changed = git.changed_files(str(victim.project), "HEAD", most=_MOST)
    assert changed is not None
    assert {"new.txt", "same.txt", "touched.txt"} & {*changed} == {"new.txt", "touched.txt"}
    assert git.contents(str(victim.project), "HEAD:touched.txt", most=_MOST) == b"one\n"
    before = (victim.git / "index").stat()
    git.changed_files(str(victim.project), "HEAD", most=_MOST)
    after = (victim.git / "index").stat()
    assert (before.st_ino, before.st_mtime_ns) == (after.st_ino, after.st_mtime_ns), "reading writes nothing"


def test_the_environment_leads_git_nowhere_else(
    victim: Victim, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _git(tmp_path, "init", "-q", "elsewhere")
    monkeypatch.setenv("GIT_DIR", str(tmp_path / "elsewhere/.git"))
    monkeypatch.setenv("GIT_WORK_TREE", str(tmp_path / "elsewhere"))
    monkeypatch.setenv("GIT_EXTERNAL_DIFF", str(victim.program))
    monkeypatch.setenv("GIT_CONFIG_COUNT", "1")
    monkeypatch.setenv("GIT_CONFIG_KEY_0", "core.fsmonitor")
    monkeypatch.setenv("GIT_CONFIG_VALUE_0", str(victim.program))
    assert git.changed_files(str(victim.project), "HEAD", most=_MOST) == ["new.txt", "touched.txt"]
    assert not victim.mark.exists()


def test_a_linked_worktree_and_a_folder_below_the_top_are_told_apart(victim: Victim, tmp_path: Path) -> None:
    _git(victim.project, "worktree", "add", "-q", str(tmp_path / "beside"))
    (tmp_path / "beside/sub").mkdir()
    (tmp_path / "beside/sub/more.txt").write_text("x")
    (tmp_path / "beside/same.txt").write_text("other")
    assert git.changed_files(str(tmp_path / "beside"), "main", most=_MOST) == ["same.txt", "sub/more.txt"]
    assert git.changed_files(str(tmp_path / "beside/sub"), "main", most=_MOST) == ["more.txt"]


def test_a_persons_own_settings_say_what_is_ignored(
    victim: Victim, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "ignored").write_text("new.txt\n")
    (tmp_path / "config").write_text(f'[core]\n\texcludesFile = "{tmp_path}/ignored"\n')
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / ".gitconfig").write_text((tmp_path / "config").read_text())
    assert git.changed_files(str(victim.project), "HEAD", most=_MOST) == ["touched.txt"]


def test_names_of_objects_may_be_sha256(tmp_path: Path) -> None:
    _git(tmp_path, "init", "-q", "--object-format=sha256")
    (tmp_path / "a.txt").write_text("one\n")
    _git(tmp_path, "add", "-A")
    _git(tmp_path, "commit", "-qm", "one")
    assert git.contents(str(tmp_path), "HEAD:a.txt", most=_MOST) == b"one\n"
    assert git.changed_files(str(tmp_path), "HEAD", most=_MOST) == []


def test_an_answer_is_bounded(victim: Victim) -> None:
    assert git.contents(str(victim.project), "HEAD:touched.txt", most=4) == b"one\n"
    assert git.contents(str(victim.project), "HEAD:touched.txt", most=3) is None
    assert git.changed_files(str(victim.project), "HEAD", most=3) is None


def _bare(folder: Path, program: Path) -> None:
    """What a hostile clone may bring as ordinary files: a folder that git takes for a repository."""
    _git(folder.parent, "init", "-q", "--bare", folder.name)
    _config(folder, f"[core]\n\tbare = false\n\tworktree = .\n\tfsmonitor = {program}\n")
    _config(folder, f'[filter "x"]\n\tclean = {program}\n')
    (folder / "info").mkdir(exist_ok=True)
    (folder / "info/attributes").write_text("* filter=x\n")


def test_a_folder_that_is_an_embedded_bare_repository_is_none(tmp_path: Path) -> None:
    victim = Victim(tmp_path)
    folder = tmp_path / "embedded"
    _bare(folder, victim.program)
    (folder / "file.txt").write_text("one\n")
    _git(folder, "-c", "core.fsmonitor=false", "-c", "filter.x.clean=cat", "add", "file.txt")
    _git(folder, "-c", "core.fsmonitor=false", "-c", "filter.x.clean=cat", "commit", "-qm", "one")
    (folder / "file.txt").write_text("two\n")
    assert command("init", cwd=folder).code == 0
    assert command("charter", "init", "--milestone", "M", "--risk", "Low", cwd=folder).code == 0
    told = command("charter", "check", "--git", "HEAD", "--json", cwd=folder)
    assert "git cannot tell" in told.error["message"]
    assert not victim.mark.exists()
    # The control: git by itself would have run it.
    subprocess.run(["git", "diff", "--name-only"], cwd=folder, capture_output=True, timeout=60, check=False)
    assert victim.mark.exists()


@pytest.fixture
def conflicted(victim: Victim) -> Victim:
    """A data directory with a task that git has not merged, and every program planted."""
    project = victim.project
    assert command("init", cwd=project).code == 0
    made = command("create", "one", "--json", cwd=project).data
    path = project / ".aof" / f"tasks/ready/{made['taskId']}.md"
    _git(project, "add", "-A")
    _git(project, "commit", "-qm", "base")
    text = path.read_text()
    _git(project, "checkout", "-qb", "other")
    path.write_text(text.replace('"one"', '"theirs"'))
    _git(project, "commit", "-aqm", "theirs")
    _git(project, "checkout", "-q", "main")
    path.write_text(text.replace('"one"', '"ours"'))
    _git(project, "commit", "-aqm", "ours")
    environment = os.environ | {"GIT_CONFIG_GLOBAL": os.devnull}
    subprocess.run(["git", *_OWN, "merge", "other"], cwd=project, env=environment, capture_output=True, check=False)
    assert "<<<<<<<" in path.read_text()
    for name in _git(project, "ls-files", "--unmerged", "--format=%(objectname)").split():
        (victim.git / "objects" / name[:2] / name[2:]).unlink()
    victim.attributes("* filter=x diff=x\n")
    victim.settings(
        "[core]\n\trepositoryformatversion = 1\n\tfsmonitor = PROGRAM\n\tsshCommand = PROGRAM\n"
        '[extensions]\n\tpartialClone = origin\n[protocol "ext"]\n\tallow = always\n'
        '[remote "origin"]\n\turl = ext::PROGRAM\n\tpromisor = true\n'
        '[filter "x"]\n\tclean = PROGRAM\n\tsmudge = PROGRAM\n[diff "x"]\n\ttextconv = PROGRAM\n\tcommand = PROGRAM\n'
    )
    return victim


@pytest.mark.parametrize(
    "words",
    [
        ("show", "001"),
        ("list",),
        ("doctor",),
        ("sync",),
        ("edit", "001", "--title", "mine"),
        ("charter", "check", "--git", "HEAD"),
        ("merge",),
        ("prime",),
    ],
    ids=" ".join,
)
def test_no_verb_runs_a_program_of_a_repository(conflicted: Victim, words: tuple[str, ...]) -> None:
    ended = command(*words, cwd=conflicted.project)
    assert "Traceback" not in ended.err
    assert not conflicted.mark.exists(), conflicted.mark.read_text()


_STARTERS = (
    "subprocess",
    "Popen",
    "run_process",
    "open_process",
    "create_subprocess",
    "posix_spawn",
    "execl",
    "execv",
    "system",
)


def test_git_is_started_in_one_place() -> None:
    """Of the modules that start programs, no other one has the word git among its strings, but for its docstrings."""
    found = set()
    for path in SOURCE.rglob("*.py"):
        nodes = list(ast.walk(ast.parse(path.read_text("utf-8"))))
        names = {node.id for node in nodes if isinstance(node, ast.Name)}
        names |= {node.attr for node in nodes if isinstance(node, ast.Attribute)}
        texts = [node.value for node in nodes if isinstance(node, ast.Constant) and isinstance(node.value, str)]
        if any(name.startswith(_STARTERS) for name in names) and any(
            text.split(" ")[0].rpartition("/")[2] in ("git", "git.exe") for text in texts
        ):
            found.add(path.relative_to(SOURCE).as_posix())
    assert found == {"support/git.py"}


def test_settings_are_added_once_and_stay_as_somebody_has_changed_them(tmp_path: Path) -> None:
    _git(tmp_path, "init", "-q")
    _git(tmp_path, "config", "core.editor", "mine")
    assert git.has_settings(str(tmp_path), "merge", "aof") is False
    assert git.add_settings(str(tmp_path), "merge", "aof", {"driver": "sh -c 'a; \"b\"' %A", "name": "x"})
    assert _git(tmp_path, "config", "merge.aof.driver") == "sh -c 'a; \"b\"' %A"
    assert _git(tmp_path, "config", "core.editor") == "mine"
    _git(tmp_path, "config", "merge.aof.driver", "false")
    assert not git.add_settings(str(tmp_path), "merge", "aof", {"driver": "true"})
    assert _git(tmp_path, "config", "merge.aof.driver") == "false"


def test_all_worktrees_share_the_settings_that_one_of_them_adds(tmp_path: Path) -> None:
    main, linked = tmp_path / "main", tmp_path / "linked"
    _git(tmp_path, "init", "-q", str(main))
    _git(main, "commit", "-q", "--allow-empty", "-m", "one")
    _git(main, "worktree", "add", "-q", str(linked))
    assert git.add_settings(str(linked), "merge", "aof", {"driver": "true"})
    assert _git(main, "config", "merge.aof.driver") == "true"
    assert git.has_settings(str(main), "merge", "aof")


def test_no_settings_are_added_where_there_is_no_repository_or_they_lie_elsewhere(tmp_path: Path) -> None:
    assert not git.add_settings(str(tmp_path), "merge", "aof", {"driver": "true"})
    assert git.has_settings(str(tmp_path), "merge", "aof") is None
    _git(tmp_path, "init", "-q")
    (tmp_path / ".git/config").rename(tmp_path / "elsewhere")
    before = (tmp_path / "elsewhere").read_bytes()
    (tmp_path / ".git/config").symlink_to(tmp_path / "elsewhere")
    assert not git.add_settings(str(tmp_path), "merge", "aof", {"driver": "true"})
    assert (tmp_path / "elsewhere").read_bytes() == before
    (tmp_path / ".git/config").unlink()
    os.mkfifo(tmp_path / ".git/config")
    assert not git.add_settings(str(tmp_path), "merge", "aof", {"driver": "true"})


def test_no_program_of_a_repository_runs_while_settings_are_added(tmp_path: Path) -> None:
    victim = Victim(tmp_path)
    _hooks(victim)
    victim.settings("[include]\n\tpath = more\n[core]\n\teditor = PROGRAM\n\tpager = PROGRAM\n")
    assert git.add_settings(str(victim.project), "merge", "aof", {"driver": "true"})
    assert not victim.mark.exists()
