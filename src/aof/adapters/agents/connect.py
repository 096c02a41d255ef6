"""Plans the changes that connect a project's agents, or take the connection away again.

A plan is made from what is on the disk and shown before anything is written. Must not know who asked for it.
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Callable
from typing import Any

import msgspec

from aof._support.hashing import hexdigest
from aof.adapters.agents import hooks, notes, servers, skill
from aof.adapters.agents.clients import KINDS, ClientSettings, Kind, kind_named, readers_of
from aof.adapters.agents.entries import (
    ACTOR,
    BY_CLIENT,
    Server,
    environment_of,
    is_ours,
    is_untouched,
    with_token_of,
    words_of,
)
from aof.adapters.agents.files import Drafts, FileChange
from aof.core.errors.base import InvalidInput
from aof.core.validation.limits import choices

_SLUG = 20  # characters of a project's name in a server's


class Workplace(msgspec.Struct, frozen=True):
    """What is connected: a project's folder, the home of its person, and the data directory.

    `start` is how AOF is started on this machine.
    """

    project: str
    home: str
    root: str
    start: tuple[str, ...] = ("aof",)


def found(project: str) -> dict[str, str]:
    """The kinds of agents that a project has, by what shows it: a file of theirs, or a command that is installed."""
    shown = {}
    for kind in KINDS:
        sign = next((sign for sign in kind.signs if os.path.lexists(f"{project}/{sign}")), None)
        if sign is not None:
            shown[kind.name] = f"{kind.title}: {sign} is here"
        elif kind.command is not None and shutil.which(kind.command):
            shown[kind.name] = f"{kind.title}: the command {kind.command} is installed"
    return shown


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


def plan(place: Workplace, names: tuple[str, ...], server: Server) -> list[FileChange]:
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
                self._each(self._path(kind.settings), self._add_server, kind, server)
            if kind.hooks is not None and server.url is None:
                self._each(kind.hooks, self._add_hook, kind, server)
            self._each(kind.notes, self._add_notes, kind)
        if server.url is None:  # the command works on the files that are here
            self._place_skills({kind.name for kind in kinds})
        return self._drafts.changes()

    def disconnect(self, kinds: tuple[Kind, ...]) -> list[FileChange]:
        connected = {kind.name for kind in KINDS if kind not in kinds and self._is_connected(kind)}
        for kind in kinds:
            for path in filter(self._drafts.is_within, kind.settings.paths if kind.settings is not None else ()):
                self._each(path, self._remove_server, kind)
            if kind.hooks is not None and self._drafts.is_within(kind.hooks):
                self._each(kind.hooks, self._remove_hook)
            if self._drafts.is_within(kind.notes):
                self._each(kind.notes, self._remove_notes, kind, connected)
        self._place_skills(connected, add=False)
        return self._drafts.changes()

    def _each(self, path: str, step: Callable[..., None], *given: Any) -> None:
        """Take a step on a file; what is refused names the file."""
        try:
            step(path, *given)
        except InvalidInput as error:
            told = error.message if path in error.message else f"{path}: {error.message}"
            raise InvalidInput(told, error.hint) from None

    def _path(self, settings: ClientSettings) -> str:
        """The file that the client reads."""
        return next((path for path in settings.paths if self._drafts.text(path) is not None), settings.new)

    def _add_server(self, path: str, kind: Kind, server: Server) -> None:
        settings, text = _first(path), self._drafts.text(path)
        name, entry = self._entry(path, settings)
        if entry is not None and not is_untouched(entry, settings.form):
            return
        command = server.command
        if path.startswith("~/") and command:  # nobody else reads it, so it may say where things are on this machine
            command = (*self._place.start, "--data-dir", self._place.root, *command[command.index("mcp") :])
        actors = {kind.name, *_actors(path, entry), *self._overruled(path)}
        new = settings.form.entry(name, Server(command, server.url), _environment(path, actors))
        new = with_token_of(new, entry) if settings.form.gap else new
        self._drafts.put(path, servers.with_server(settings, text, name, new))

    def _remove_server(self, path: str, kind: Kind) -> None:
        settings, text = _first(path), self._drafts.text(path)
        name, entry = self._entry(path, settings)
        if text is None or entry is None or not is_ours(entry, settings.form):
            return
        actors = _actors(path, entry)
        if kind.name not in (actors or {readers_of(path)[0].name}):
            return
        left, edited = actors - {kind.name}, not is_untouched(entry, settings.form)
        if left:
            new = _with_environment(entry, _environment(path, left))
            self._drafts.put(path, servers.with_server(settings, text, name, new), edited=edited)
        else:
            self._drafts.put(path, servers.without_server(settings, text, name, entry), edited=edited)

    def _entry(self, path: str, settings: ClientSettings) -> tuple[str, Any]:
        """The name of our server in a file, and what it holds under it; None for nothing.

        What is for all projects of a person needs a name for each: two projects may share theirs.
        """
        text, names = self._drafts.text(path), self._names(path)
        entries = {name: servers.server_in(settings, text, name) if text and name in text else None for name in names}
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

    def _overruled(self, path: str) -> set[str]:
        """The kinds that will read this file instead of the one that connects them now."""
        found = set()
        for kind in readers_of(path):
            paths = kind.settings.paths if kind.settings is not None else ()
            for other in paths[paths.index(path) + 1 :]:
                found |= {kind.name} & _actors(other, self._entry(other, _first(other))[1])
        return found

    def _is_connected(self, kind: Kind) -> bool:
        """Whether a file connects a kind; one that nobody understands connects none."""
        for path in kind.settings.paths if kind.settings is not None else ():
            settings = _first(path)
            try:
                _, entry = self._entry(path, settings)
            except InvalidInput:
                continue
            if is_ours(entry, settings.form) and kind.name in (_actors(path, entry) or {kind.name}):
                return True
        return False

    def _add_hook(self, path: str, kind: Kind, server: Server) -> None:
        start = server.command[: server.command.index("mcp")]
        command = hooks.command_for((*start, "prime", "--hook", "--agent", kind.name))
        self._drafts.put(path, hooks.with_hook(self._drafts.text(path), command))

    def _remove_hook(self, path: str) -> None:
        text = self._drafts.text(path)
        if text and "prime" in text:
            self._drafts.put(path, hooks.without_hook(text))

    def _place_skills(self, connected: set[str], *, add: bool = True) -> None:
        """Let each connected kind find the skill, and none of them twice if that can be.

        A kind that reads several folders gets none of its own where another one's will do. Removing adds none.
        """
        kinds = [kind for kind in KINDS if kind.name in connected | self._noted()]
        needed: set[str] = set()
        for kind in sorted(kinds, key=lambda kind: len(kind.skills)):
            needed |= set() if needed & {*kind.skills} else {kind.skills[0]}
        for folder in {folder: None for kind in KINDS for folder in kind.skills}:
            path = f"{folder}/aof/SKILL.md"
            if not self._drafts.is_within(path):
                continue
            text = self._drafts.text(path)
            if folder in needed and (add if text is None else skill.is_untouched(text)):
                self._drafts.put(path, skill.skill())
            elif folder not in needed and text is not None and skill.is_untouched(text):
                self._drafts.put(path, None)
            elif folder not in needed and text is not None and not add:
                self._drafts.keep(path)

    def _noted(self) -> set[str]:
        """The kinds that the notes are for: whoever is connected."""
        paths = filter(self._drafts.is_within, {kind.notes for kind in KINDS})
        return {name for path in paths for name in notes.readers(self._drafts.text(path)) or ()}

    def _add_notes(self, path: str, kind: Kind) -> None:
        text = self._drafts.text(path)
        there = {*(notes.readers(text) or ()), kind.name}
        self._drafts.put(path, notes.with_notes(text, tuple(known.name for known in KINDS if known.name in there)))

    def _remove_notes(self, path: str, kind: Kind, connected: set[str]) -> None:
        text = self._drafts.text(path)
        there = notes.readers(text)
        if text is None or there is None:
            return
        sharing = {other.name for other in KINDS if other.notes == path}
        left = ({*there} or connected & sharing) - {kind.name}
        if left:
            self._drafts.put(path, notes.with_notes(text, tuple(one.name for one in KINDS if one.name in left)))
        else:
            self._drafts.put(path, notes.without_notes(text), edited=not notes.is_untouched(text))


def _first(path: str) -> ClientSettings:
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


def _with_environment(entry: dict[str, Any], environment: dict[str, str]) -> dict[str, Any]:
    kept = {key: value for key, value in entry["env"].items() if key not in (ACTOR, BY_CLIENT)}
    return {**entry, "env": {**environment, **kept}}
