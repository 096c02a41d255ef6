"""The one place that starts git. It asks for contents and changes of a repository, and nothing of the repository runs.

The one thing that it changes is the repository's own settings, to which it adds a section.

A repository may come from anybody, and its settings name programs: filters, hooks, fsmonitor, textconv, external diffs,
ssh, credential helpers, remotes that missing objects are fetched from. So git is given a mirror of the repository:
a temporary folder with links to its objects and references, a copy of its index, and settings of ours. Of the
repository's own settings the mirror takes over the few in `_KEPT`, which name no program.
Must not know why it is asked.
"""

from __future__ import annotations

import os
import re
import shutil
import stat
import subprocess
import tempfile
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

_SECONDS = 30.0
_LARGEST_INDEX = 512 * 1024 * 1024
_LARGEST_SETTINGS = 1024 * 1024
_SMALL = 4096
_SHARED = ("objects", "refs", "packed-refs", "reftable", "info", "logs", "shallow")
# How objects are named, and how files on this machine are compared with them.
_KEPT = frozenset({
    "extensions.objectformat", "extensions.refstorage",
    "core.autocrlf", "core.eol", "core.filemode", "core.ignorecase", "core.precomposeunicode", "core.symlinks",
})  # fmt: skip
_OPTIONS = (
    *("--no-pager", "--literal-pathspecs"),
    *("-c", "safe.bareRepository=explicit", "-c", "protocol.allow=never", "-c", "core.fsmonitor=false"),
    *("-c", "core.hooksPath=/dev/null", "-c", "credential.helper=", "-c", "submodule.recurse=false"),
)
_ENVIRONMENT = {
    "GIT_ALLOW_PROTOCOL": "",
    "GIT_ATTR_NOSYSTEM": "1",
    "GIT_EDITOR": "false",
    "GIT_NO_LAZY_FETCH": "1",
    "GIT_OPTIONAL_LOCKS": "0",
    "GIT_PAGER": "cat",
    "GIT_TERMINAL_PROMPT": "0",
    "LC_ALL": "C",
}
_NO_SETTINGS = {"GIT_CONFIG_NOSYSTEM": "1", "GIT_CONFIG_SYSTEM": os.devnull, "GIT_CONFIG_GLOBAL": os.devnull}


def repository(folder: str) -> tuple[str, str | None]:
    """The working tree that a folder lies in, and where git keeps what belongs to it. A bare repository is none."""
    here = folder
    while True:
        place = f"{here.rstrip('/')}/.git"
        if os.path.isdir(place):
            return here, place
        if os.path.isfile(place):
            with open(place, "rb") as file:
                text = file.read(_SMALL).decode("utf-8", "surrogateescape")
            if text.startswith("gitdir:"):
                return here, os.path.normpath(os.path.join(here, text[7:].strip()))
        above = os.path.dirname(here)
        if above == here:
            return here, None
        here = above


def contents(folder: str, name: str, *, most: int) -> bytes | None:
    """A version of a file by the name of the object, or `COMMIT:PATH`; None where git has none, or has too much."""
    try:
        with _mirror(folder) as ask:
            return ask("cat-file", "blob", "--end-of-options", name, most=most)
    except OSError:
        return None


def changed_files(folder: str, since: str, *, most: int) -> list[str] | None:
    """The files below a folder that differ from a revision, and new ones; None where git cannot tell.

    Raises OSError where git does not answer. A file that a filter would convert, as of git-lfs, counts as changed once
    it was touched.
    """
    if repository(os.path.realpath(folder))[1] is None:
        return None
    with _mirror(folder) as ask:
        commit = ask("rev-parse", "--verify", "--quiet", "--end-of-options", f"{since}^{{commit}}", most=_SMALL)
        if commit is None:
            return None
        plain = ("--no-ext-diff", "--no-textconv", "--no-renames", "--ignore-submodules=dirty", "--relative")
        differing = ask("diff", *plain, "--name-only", "-z", commit.decode().strip(), "--", most=most)
        new = ask("ls-files", "--others", "--exclude-standard", "-z", "--", ".", most=most)
        if differing is None or new is None:
            return None
        names = (differing + new).decode("utf-8", "surrogateescape").split("\0")
    return sorted({name for name in names if name})


def has_settings(folder: str, section: str, name: str) -> bool | None:
    """Whether a repository's own settings have that section, as `[merge "aof"]`; None where they cannot be read.

    No program is started.
    """
    own = repository(os.path.realpath(folder))[1]
    try:
        path = None if own is None else f"{_common(own)}/config"
        if path is None or os.path.islink(path) or not _is_file(path, _LARGEST_SETTINGS):
            return None
        with open(path, "rb") as file:
            text = file.read(_LARGEST_SETTINGS).decode("utf-8", "replace")
    except OSError:
        return None
    return re.search(rf'^\s*\[\s*{section}\s+"{name}"\s*\]', text, re.IGNORECASE | re.MULTILINE) is not None


def add_settings(folder: str, section: str, name: str, values: Mapping[str, str]) -> bool:
    """Add a section to a repository's own settings, which all of its worktrees share; whether it was added.

    One that is there stays as it is.
    """
    if has_settings(folder, section, name) is not False:
        return False
    try:
        with _mirror(folder) as ask:
            own = repository(os.path.realpath(folder))[1]
            assert own is not None
            words = ("config", "--file", os.path.realpath(f"{_common(own)}/config"))
            told = (ask(*words, f"{section}.{name}.{key}", value, most=_SMALL) for key, value in values.items())
            return all(one is not None for one in told)
    except OSError:
        return False


class _Git:
    """Asks about one mirror, from a folder of its working tree."""

    def __init__(self, mirror: str, top: str, folder: str) -> None:
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("GIT_", "AOF_RUN_"))}
        self._user = kept | _ENVIRONMENT | {"GIT_DIR": mirror}
        self._own = self._user | _NO_SETTINGS | {"GIT_WORK_TREE": top}
        self._folder = folder

    def __call__(self, *words: str, most: int) -> bytes | None:
        """What git prints; None where it fails, or prints more than that."""
        return _run(["-C", self._folder, *_OPTIONS, *words], self._own, most)

    def settings(self, *place: str) -> dict[str, str]:
        """The settings in a file, without those that it includes; with no file named, the user's own."""
        environment = self._own if place else self._user
        told = _run([*_OPTIONS, "config", *place, "--list", "-z"], environment, _LARGEST_SETTINGS) or b""
        pairs = (one.partition("\n") for one in told.decode("utf-8", "surrogateescape").split("\0"))
        return {name.lower(): value for name, _, value in pairs}


@contextmanager
def _mirror(folder: str) -> Iterator[_Git]:
    """Something to ask git by. Raises OSError where there is no repository that can be read."""
    real = os.path.realpath(folder)
    top, own = repository(real)
    if own is None:
        raise NotADirectoryError(folder)
    common = _common(own)
    with tempfile.TemporaryDirectory(prefix="aof-git-", ignore_cleanup_errors=True) as mirror:
        for name in _SHARED:
            if os.path.lexists(f"{common}/{name}"):
                os.symlink(os.path.realpath(f"{common}/{name}"), f"{mirror}/{name}")
        for name in os.listdir(own):
            if name.endswith("_HEAD") or name.startswith("sharedindex."):
                os.symlink(os.path.realpath(f"{own}/{name}"), f"{mirror}/{name}")
        _write(f"{mirror}/HEAD", _small(f"{own}/HEAD"))
        index = f"{own}/index"
        if _is_file(index, _LARGEST_INDEX):
            shutil.copy2(index, f"{mirror}/index")  # with its time, by which git knows what to look at again
        _write(f"{mirror}/config", "[core]\n\trepositoryformatversion = 0\n\tbare = false\n")
        git = _Git(mirror, top, real)
        _write(f"{mirror}/config", _settings(git, f"{common}/config"))
        yield git


def _common(own: str) -> str:
    """Where git keeps what all worktrees share."""
    if not os.path.isfile(f"{own}/commondir"):
        return own
    return os.path.normpath(os.path.join(own, _small(f"{own}/commondir").strip()))


def _settings(git: _Git, theirs: str) -> str:
    """The mirror's settings: the user's and the repository's, as far as they name no program."""
    user = git.settings()
    found = {name: value for name, value in user.items() if name in _KEPT and not name.startswith("extensions.")}
    if excluded := user.get("core.excludesfile"):
        found["core.excludesfile"] = excluded.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "")
    if _is_file(theirs, _LARGEST_SETTINGS):
        own = git.settings("--file", theirs, "--no-includes")
        found |= {name: value for name, value in own.items() if name in _KEPT and value.isalnum()}
    version = int(any(name.startswith("extensions.") for name in found))
    lines = [f"[core]\n\trepositoryformatversion = {version}\n\tbare = false\n"]
    lines += ['[{}]\n\t{} = "{}"\n'.format(*name.split(".", 1), value) for name, value in found.items()]
    return "".join(lines)


def _run(words: list[str], environment: dict[str, str], most: int) -> bytes | None:
    """What git prints. Raises OSError where it does not start, or takes too long."""
    late = threading.Event()
    with subprocess.Popen(  # noqa: S603 - an argument list of ours
        ["git", *words],  # noqa: S607 - git as the user has it
        cwd="/",  # a relative folder in PATH names none of the repository
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    ) as process:

        def end() -> None:
            late.set()
            process.kill()

        timer = threading.Timer(_SECONDS, end)
        timer.start()
        try:
            assert process.stdout is not None
            told = process.stdout.read(most + 1)
            if len(told) > most:
                process.kill()
        finally:
            timer.cancel()
        code = process.wait(_SECONDS)
    if late.is_set():
        raise TimeoutError(f"git took longer than {_SECONDS:g} s")
    return told if code == 0 and len(told) <= most else None


def _is_file(path: str, most: int) -> bool:
    """Whether it is an ordinary file of a bearable size: a pipe would never end."""
    try:
        found = os.stat(path)
    except OSError:
        return False
    return stat.S_ISREG(found.st_mode) and found.st_size <= most


def _small(path: str) -> str:
    if not _is_file(path, _SMALL):
        raise FileNotFoundError(path)
    with open(path, encoding="utf-8", errors="surrogateescape") as file:
        return file.read(_SMALL)


def _write(path: str, text: str) -> None:
    with open(path, "w", encoding="utf-8", errors="surrogateescape") as file:
        file.write(text)
