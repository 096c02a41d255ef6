"""Connects a project's agents to a data directory, or takes the connection away: plan, ask, and write the files."""

from __future__ import annotations

import os
import re
import shutil
import sys
import tempfile
from collections.abc import Callable
from contextlib import suppress
from importlib.util import find_spec
from typing import Any, Literal, NamedTuple
from urllib.parse import urlsplit

import msgspec

from aof.errors import InvalidInput, StorageFailed, Unavailable
from aof.kernel.limits import choices
from aof.service import bootstrap
from aof.service.agents import edits
from aof.service.agents.clients import (
    ACTOR,
    BY_CLIENT,
    GAP,
    KINDS,
    TOKEN,
    ClientSettings,
    Kind,
    Server,
    environment_of,
    is_our_entry,
    is_untouched_entry,
    kind_named,
    readers_of,
    with_token_of,
    words_of,
)
from aof.service.extras import install_hint
from aof.support.hashing import hexdigest

_SLUG = 20  # characters of a project's name in a server's
_TOKEN = re.compile(r"Bearer [^\s\"'$<{]+")  # the name of a variable, or a gap, is no secret
_LARGEST = 4 * 1024 * 1024  # bytes of somebody's settings
_LONGEST = 2048  # characters of an address
_LOOPBACK = ("localhost", "127.0.0.1", "::1")
_EXAMPLE = "for example: aof init --agent claude --http http://127.0.0.1:8420"
Action = Literal["create", "change", "delete", "keep"]


class FileChange(msgspec.Struct, frozen=True, kw_only=True):
    """One file that would become another; `after` is None when it would go.

    `edited` says that somebody has changed what is taken away, or is kept for that reason. `file` is the file itself.
    """

    path: str
    file: str
    action: Action
    added: str
    after: str | None
    edited: bool = False


Confirm = Callable[[list[str], list[FileChange]], bool]


class WiringResult(NamedTuple):
    """The changes, the steps that are left for the person, and how agents were found that nobody has named."""

    changes: list[FileChange]
    steps: list[str]
    found: list[str]


def wire_agents(
    root: str,
    names: tuple[str, ...] | None,
    *,
    http: str | None = None,
    dry_run: bool = False,
    sure: Confirm | None = None,
) -> WiringResult:
    """Connect agents to a data directory: those that are named, else those that are found once somebody is `sure`.

    With `http` they connect to that address, else they start `aof mcp`.
    """
    place = _workplace(root)
    server = Server(url=_checked_address(http)) if http is not None else Server(command=_command(place))
    found = clients_found(place.project) if names is None else {}
    kinds = kinds_of(tuple(found) if names is None else names)
    if names is not None:
        _check_installed(kinds, server)
    changes = plan_connection(place, tuple(kind.name for kind in kinds), server)
    if names is None and not dry_run:
        if not changes or sure is None or not sure([*found.values()], changes):
            return WiringResult([], [], [*found.values()])
        _check_installed(kinds, server)
    if not dry_run:
        make_changes(changes)
    changed = {change.path for change in changes}
    steps = [step for kind in kinds for step in _steps(kind, server, changed)]
    return WiringResult(changes, [*_first_steps(place, server, changed), *steps], [*found.values()])


def unwire_agents(root: str, names: tuple[str, ...] | None, *, dry_run: bool = False) -> WiringResult:
    """Take away what connects these agents, or everything that ever was written for one."""
    changes = plan_removal(_workplace(root), names)
    if not dry_run:
        make_changes(changes)
    return WiringResult(changes, [], [])


class Workplace(msgspec.Struct, frozen=True):
    """What is connected: a project's folder, the home of its person, and the data directory.

    `start` is how AOF is started on this machine.
    """

    project: str
    home: str
    root: str
    start: tuple[str, ...] = ("aof",)


def _workplace(root: str) -> Workplace:
    """The project is the folder with the data directory; in a git worktree that shares one, the worktree."""
    project = os.path.dirname(root) if os.path.basename(root) == ".aof" else os.getcwd()
    worktree = bootstrap.worktree_of(os.getcwd())
    if worktree is not None and bootstrap.default_data_dir(worktree) == root:
        project = worktree
    start = ("aof",) if shutil.which("aof") else (sys.executable, "-m", "aof")
    return Workplace(project, os.path.expanduser("~"), root, start)


def _command(place: Workplace) -> tuple[str, ...]:
    """How an agent starts AOF, in words that suit every clone of the project and every machine."""
    where = os.path.relpath(place.root, place.project)
    named = not _is_found(place) and not where.startswith("..")
    return ("aof", *(("--data-dir", where) if named else ()), "mcp", "--tools", "worker")


def _is_found(place: Workplace) -> bool:
    """Whether AOF finds the data directory from the project's folder, unless somebody has named another one."""
    return bootstrap.default_data_dir(place.project) == place.root


def _first_steps(place: Workplace, server: Server, changed: set[str]) -> list[str]:
    """What a person has to do on this machine; files that others get as well cannot do it."""
    if server.url is not None or not changed:
        return []
    steps = []
    if shutil.which("aof") is None:
        steps.append(f"aof is not on the PATH, by which clients find it: add {os.path.dirname(sys.executable)} to it")
    if not _is_found(place) and os.path.relpath(place.root, place.project).startswith(".."):
        steps.append(f"the data directory is outside the project: set AOF_DATA_DIR={place.root} where clients start")
    return steps


def _check_installed(kinds: tuple[Kind, ...], server: Server) -> None:
    if server.url is None and any(kind.settings for kind in kinds) and find_spec("mcp") is None:
        raise Unavailable("mcp is not installed, so no client could start 'aof mcp'", install_hint("mcp"))


def _steps(kind: Kind, server: Server, changed: set[str]) -> list[str]:
    """What a person has to know or do before a client works; nothing where its settings are as they were."""
    written = [path for path in kind.settings.paths if path in changed] if kind.settings is not None else []
    if not written or kind.settings is None:
        return []
    steps = [f"{kind.title} {kind.asks}"]
    if server.url is not None and kind.settings.form.gap:
        steps.append(
            f"{kind.title} reads no variables: replace {GAP} in {written[0]} by what "
            f"'aof admin token create {kind.name}' prints, and do not commit that file"
        )
    elif server.url is not None:
        steps.append(
            f"{kind.title} needs a token in {TOKEN}: the first line that 'aof admin token create {kind.name}' prints"
        )
    return steps


def clients_found(project: str) -> dict[str, str]:
    """The kinds of agents that a project has, each with its sign: a file of theirs, or a command that is installed."""
    found = {}
    for kind in KINDS:
        sign = next((sign for sign in kind.signs if os.path.lexists(f"{project}/{sign}")), None)
        if sign is not None:
            found[kind.name] = f"{kind.title}: {sign} is here"
        elif kind.command is not None and shutil.which(kind.command):
            found[kind.name] = f"{kind.title}: the command {kind.command} is installed"
    return found


def kinds_of(names: tuple[str, ...]) -> tuple[Kind, ...]:
    """The kinds that people mean, each once; raises InvalidInput for a name that is none."""
    for name in names:
        if kind_named(name) is None:
            there = choices("agent", [known.name for known in KINDS])
            raise InvalidInput(
                f"there is no kind of agent {name[:40]!r}",
                f"{there}; 'generic' suits every agent that reads AGENTS.md",
            )
    meant = {kind.name for kind in map(kind_named, names) if kind is not None}
    return tuple(kind for kind in KINDS if kind.name in meant)


def plan_connection(place: Workplace, names: tuple[str, ...], server: Server) -> list[FileChange]:
    """What has to change so that these agents are connected; nothing for what is as it should be."""
    return _Plan(place).connect(kinds_of(names), server)


def plan_removal(place: Workplace, names: tuple[str, ...] | None) -> list[FileChange]:
    """What has to change so that these agents are no longer connected, or none that ever was."""
    return _Plan(place).disconnect(KINDS if names is None else kinds_of(names))


class _Plan:
    """The files of one place, and what becomes of them."""

    def __init__(self, place: Workplace) -> None:
        self._place = place
        self._drafts = Drafts(place.project, place.home)

    def connect(self, kinds: tuple[Kind, ...], server: Server) -> list[FileChange]:
        for kind in kinds:
            if kind.settings is not None:
                self._edit(self._path(kind.settings), self._add_server, kind, server)
            if kind.hooks is not None and server.url is None:
                self._edit(kind.hooks, self._add_hook, kind, server)
            self._edit(kind.notes, self._add_notes, kind)
        if server.url is None:  # the command works on the files that are here
            self._place_skills({kind.name for kind in kinds})
        return self._drafts.changes()

    def disconnect(self, kinds: tuple[Kind, ...]) -> list[FileChange]:
        connected = {kind.name for kind in KINDS if kind not in kinds and self._is_connected(kind)}
        for kind in kinds:
            for path in filter(self._drafts.is_within, kind.settings.paths if kind.settings is not None else ()):
                self._edit(path, self._remove_server, kind)
            if kind.hooks is not None and self._drafts.is_within(kind.hooks):
                self._edit(kind.hooks, self._remove_hook)
            if self._drafts.is_within(kind.notes):
                self._edit(kind.notes, self._remove_notes, kind, connected)
        self._place_skills(connected, add=False)
        return self._drafts.changes()

    def _edit(self, path: str, step: Callable[..., None], *given: Any) -> None:
        """Take a step on a file; a refusal names the file."""
        try:
            step(path, *given)
        except InvalidInput as error:
            message = error.message if path in error.message else f"{path}: {error.message}"
            raise InvalidInput(message, error.hint) from None

    def _path(self, settings: ClientSettings) -> str:
        """The file that the client reads."""
        return next((path for path in settings.paths if self._drafts.text(path) is not None), settings.new)

    def _add_server(self, path: str, kind: Kind, server: Server) -> None:
        settings, text = _settings_in(path), self._drafts.text(path)
        name, entry = self._entry(path, settings)
        if entry is not None and not is_untouched_entry(entry, settings.form):
            return
        command = server.command
        if path.startswith("~/") and command:  # nobody else reads it, so it may say where things are on this machine
            command = (*self._place.start, "--data-dir", self._place.root, *command[command.index("mcp") :])
        actors = {kind.name, *_actors(path, entry), *self._moving_to(path)}
        new = settings.form.entry(name, Server(command, server.url), _environment(path, actors))
        new = with_token_of(new, entry) if settings.form.gap else new
        self._drafts.put(path, edits.with_server(settings, text, name, new))

    def _remove_server(self, path: str, kind: Kind) -> None:
        settings, text = _settings_in(path), self._drafts.text(path)
        name, entry = self._entry(path, settings)
        if text is None or entry is None or not is_our_entry(entry, settings.form):
            return
        actors = _actors(path, entry)
        if kind.name not in (actors or {readers_of(path)[0].name}):
            return
        left, edited = actors - {kind.name}, not is_untouched_entry(entry, settings.form)
        if left:
            kept = {name: value for name, value in entry["env"].items() if name not in (ACTOR, BY_CLIENT)}
            new = {**entry, "env": {**_environment(path, left), **kept}}
            self._drafts.put(path, edits.with_server(settings, text, name, new), edited=edited)
        else:
            self._drafts.put(path, edits.without_server(settings, text, name, entry), edited=edited)

    def _entry(self, path: str, settings: ClientSettings) -> tuple[str, Any]:
        """The name of our server in a file, and what it holds under it; None for nothing.

        What is for all projects of a person needs a name for each: two projects may share theirs.
        """
        text, names = self._drafts.text(path), self._names(path)
        entries = {name: edits.server_in(settings, text, name) if text and name in text else None for name in names}
        if path.startswith("~/"):
            own = [name for name in names if self._place.root in words_of(entries[name])]
            free = [name for name in names if "--data-dir" not in words_of(entries[name])]
            names = (*own, *free, names[-1])
        return names[0], entries[names[0]]

    def _names(self, path: str) -> tuple[str, ...]:
        if not path.startswith("~/"):
            return ("aof",)
        slug = re.sub(r"[^a-z0-9]+", "-", os.path.basename(self._place.project).lower()).strip("-")[:_SLUG]
        unique = hexdigest(self._place.root.encode())[:6]
        return (f"aof-{slug}", f"aof-{slug}-{unique}") if slug else (f"aof-{unique}",)

    def _moving_to(self, path: str) -> set[str]:
        """The kinds that will read this file instead of the one that connects them now."""
        found = set()
        for kind in readers_of(path):
            paths = kind.settings.paths if kind.settings is not None else ()
            for other in paths[paths.index(path) + 1 :]:
                found |= {kind.name} & _actors(other, self._entry(other, _settings_in(other))[1])
        return found

    def _is_connected(self, kind: Kind) -> bool:
        """Whether a file connects a kind; one that nobody understands connects none."""
        for path in kind.settings.paths if kind.settings is not None else ():
            settings = _settings_in(path)
            try:
                _, entry = self._entry(path, settings)
            except InvalidInput:
                continue
            if is_our_entry(entry, settings.form) and kind.name in (_actors(path, entry) or {kind.name}):
                return True
        return False

    def _add_hook(self, path: str, kind: Kind, server: Server) -> None:
        start = server.command[: server.command.index("mcp")]
        command = edits.hook_command((*start, "prime", "--hook", "--agent", kind.name))
        self._drafts.put(path, edits.with_hook(self._drafts.text(path), command))

    def _remove_hook(self, path: str) -> None:
        text = self._drafts.text(path)
        if text and "prime" in text:
            self._drafts.put(path, edits.without_hook(text))

    def _place_skills(self, connected: set[str], *, add: bool = True) -> None:
        """Let each connected kind find the skill, and none of them twice if that can be.

        A kind that reads several folders gets none of its own where another one's will do. Removing adds none.
        """
        notes_paths = filter(self._drafts.is_within, {kind.notes for kind in KINDS})
        noted = {name for path in notes_paths for name in edits.readers_of_notes(self._drafts.text(path)) or ()}
        kinds = [kind for kind in KINDS if kind.name in connected | noted]  # the notes are for whoever is connected
        needed: set[str] = set()
        for kind in sorted(kinds, key=lambda kind: len(kind.skills)):
            needed |= set() if needed & {*kind.skills} else {kind.skills[0]}
        for folder in {folder: None for kind in KINDS for folder in kind.skills}:
            path = f"{folder}/aof/SKILL.md"
            if not self._drafts.is_within(path):
                continue
            text = self._drafts.text(path)
            if folder in needed and (add if text is None else edits.is_untouched_skill(text)):
                self._drafts.put(path, edits.skill())
            elif folder not in needed and text is not None and edits.is_untouched_skill(text):
                self._drafts.put(path, None)
            elif folder not in needed and text is not None and not add:
                self._drafts.keep(path)

    def _add_notes(self, path: str, kind: Kind) -> None:
        text = self._drafts.text(path)
        there = {*(edits.readers_of_notes(text) or ()), kind.name}
        self._drafts.put(path, edits.with_notes(text, tuple(known.name for known in KINDS if known.name in there)))

    def _remove_notes(self, path: str, kind: Kind, connected: set[str]) -> None:
        text = self._drafts.text(path)
        there = edits.readers_of_notes(text)
        if text is None or there is None:
            return
        sharing = {other.name for other in KINDS if other.notes == path}
        left = ({*there} or connected & sharing) - {kind.name}
        if left:
            self._drafts.put(path, edits.with_notes(text, tuple(one.name for one in KINDS if one.name in left)))
        else:
            self._drafts.put(path, edits.without_notes(text), edited=not edits.are_untouched_notes(text))


def _settings_in(path: str) -> ClientSettings:
    """The settings whose words are used in a file that several kinds read."""
    settings = readers_of(path)[0].settings
    assert settings is not None
    return settings


def _actors(path: str, entry: object) -> set[str]:
    """The kinds that an entry names as actors, of those that read its file."""
    environment = environment_of(entry)
    by_client = str(environment.get(BY_CLIENT, ""))
    named = {str(environment.get(ACTOR, "")), *(part.partition("=")[2] for part in by_client.split(","))}
    return named & {kind.name for kind in readers_of(path)}


def _environment(path: str, actors: set[str]) -> dict[str, str]:
    """The variables for a file: who acts, and who does when another client says its name."""
    names = [kind.name for kind in readers_of(path) if kind.name in actors]
    others = ",".join(f"{name}={name}" for name in names[1:])
    return {ACTOR: names[0]} | ({BY_CLIENT: others} if others else {})


class Drafts:
    """The files of a project and its person: what they hold, and what they are to hold."""

    def __init__(self, project: str, home: str) -> None:
        self._roots = {False: os.path.realpath(project), True: os.path.realpath(home)}
        self._before: dict[str, str | None] = {}
        self._after: dict[str, str | None] = {}
        self._names: dict[str, str] = {}
        self._edited: set[str] = set()

    def is_within(self, path: str) -> bool:
        """Whether we may change the file; what is behind a link that leads out was never written by us."""
        try:
            self._file(path)
        except InvalidInput:
            return False
        return True

    def text(self, path: str) -> str | None:
        """What the file is to hold; None for no file."""
        file = self._file(path)
        if file not in self._after:
            self._before[file] = self._after[file] = _read(file, path)
        return self._after[file]

    def put(self, path: str, text: str | None, *, edited: bool = False) -> None:
        """Let the file hold this."""
        self.text(path)
        self._after[self._file(path)] = text
        self._edited |= {self._file(path)} if edited else set()

    def keep(self, path: str) -> None:
        """Leave a file that was ours to the person who has edited it, and say so."""
        self._edited.add(self._file(path))

    def changes(self) -> list[FileChange]:
        """What has to be done on the disk, and what is kept there."""
        return [
            _change(self._names[file], file, self._before[file], after, edited=file in self._edited)
            for file, after in self._after.items()
            if after != self._before[file] or file in self._edited
        ]

    def _file(self, path: str) -> str:
        """The file itself, if it is below the folder that it was named in."""
        root = self._roots[path.startswith("~/")]
        real = os.path.realpath(os.path.join(root, path.removeprefix("~/")))
        if os.path.commonpath((real, root)) != root:
            where = "your home directory" if path.startswith("~/") else "the project"
            raise InvalidInput(f"{path} is a link out of {where}", "change what it leads to by hand, or unlink it")
        self._names.setdefault(real, path)
        return real


def make_changes(changes: list[FileChange]) -> None:
    """Make the changes, each file at once."""
    for change in changes:
        if change.action == "keep":
            continue
        folder = os.path.dirname(change.file)
        try:
            if change.after is None:
                os.unlink(change.file)
                with suppress(OSError):  # a folder that others use as well is not empty
                    for _ in range(change.path.removeprefix("~/").count("/")):
                        os.rmdir(folder)
                        folder = os.path.dirname(folder)
                continue
            os.makedirs(folder, exist_ok=True)
            mode = os.stat(change.file).st_mode & 0o7777 if os.path.exists(change.file) else 0o644
            handle, new = tempfile.mkstemp(dir=folder, prefix=".aof-")
            with open(handle, "w", encoding="utf-8", newline="") as file:
                file.write(change.after)
            os.chmod(new, mode)
            os.replace(new, change.file)
        except OSError as error:
            raise StorageFailed(f"{change.path} cannot be written: {error.strerror}", "look at its rights") from None


def _read(file: str, path: str) -> str | None:
    try:
        with open(file, encoding="utf-8", newline="") as opened:
            text = opened.read(_LARGEST + 1)
    except FileNotFoundError:
        return None
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidInput(f"{path} cannot be read: {error}", "correct it, or leave this agent out") from None
    if len(text) > _LARGEST:
        raise InvalidInput(f"{path} is too large", "add the settings by hand, or leave this agent out")
    return text


def _change(path: str, file: str, before: str | None, after: str | None, *, edited: bool) -> FileChange:
    action: Action = (
        "keep" if after == before else "delete" if after is None else "create" if before is None else "change"
    )
    old, new = (before or "").splitlines(), (after or "").splitlines()
    shown = [f"+ {line}" for line in new if line not in old] + [f"- {line}" for line in old if line not in new]
    added = _TOKEN.sub("Bearer …", "\n".join(shown))
    return FileChange(path=path, file=file, action=action, added=added, after=after, edited=edited)


def _checked_address(given: str) -> str:
    """The address of the MCP endpoint; raises InvalidInput for one that would not do, or would show the token."""
    if len(given) > _LONGEST or not given.isascii() or not given.isprintable() or set(given) & set(" \"'<>\\`{}$"):
        raise InvalidInput("this is not an address", _EXAMPLE)
    try:
        parts = urlsplit(given)
        host, _ = parts.hostname, parts.port
    except ValueError:
        raise InvalidInput(f"{given[:80]} is not an address", _EXAMPLE) from None
    if parts.scheme not in ("http", "https") or not host or parts.username is not None or parts.fragment or parts.query:
        raise InvalidInput(f"{given[:80]} is not an address of the form http(s)://HOST:PORT", _EXAMPLE)
    if parts.scheme == "http" and host not in _LOOPBACK:
        raise InvalidInput("the token would be readable on the way", f"use https://{parts.netloc}")
    return given if parts.path.strip("/") else f"{parts.scheme}://{parts.netloc}/mcp"
