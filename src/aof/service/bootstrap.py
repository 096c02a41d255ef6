"""Puts the parts together: finds the data directory, reads its settings, opens the store."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from contextlib import ExitStack, suppress

from aof.api.fabric import Fabric
from aof.config import Settings, default_text, load_settings, with_solo
from aof.errors import InvalidInput, NoDataDirectory, UnsupportedFilesystem
from aof.kernel.model import is_agent_name
from aof.service import notify, up
from aof.service import trust as service_trust
from aof.service.clock import SystemClock
from aof.service.runners import attempts
from aof.store.files import read_only
from aof.store.files.definitions import CharterGates, OrgFile, WorkflowFiles
from aof.store.files.disk import Disk, clearly, file_system, is_remote
from aof.store.files.store import FilesystemStore
from aof.support import lazy_imports
from aof.support.confined_folder import ConfinedFolder
from aof.support.printable import Say, silent

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Literal, TextIO

    from aof.kernel.ports import CommandLine
    from aof.store.port import Clock, Store


_CHOICE = "aof-data-dir"  # in the git directory of a repository: what `aof init` has chosen for all of its worktrees


def open_fabric(
    data_dir: str | os.PathLike[str] | None = None,
    *,
    actor: str | None = None,
    run: str | None = None,
    secret: str | None = None,
    clock: Clock | None = None,
    disk: Disk | None = None,
) -> Fabric:
    """Open a data directory: the one that is named, else `$AOF_DATA_DIR`, else the nearest `.aof/` upward.

    `secret` is that of the run that everything is done for; by default what the environment says, and empty for none.
    """
    root = find_data_dir(data_dir)
    secret = own_secret(root) if secret is None else secret
    settings = load_settings(root)
    clock = clock or SystemClock()
    store = opened_store(root, settings, clock, disk) if may_write(root) else read_only_store(root, settings, clock)
    trust = TrustedCommands(root)
    notifies = settings.notify.command or settings.notify.file is not None
    place = LocalWhereabouts(root, store, actor, secret, given=data_dir is not None)
    return Fabric(
        store,
        clock,
        settings.policy(_project(root)),
        place.actor,
        run or os.environ.get("AOF_RUN_ID"),
        org=OrgFile(root, disk),
        notifier=notify.SettingsNotifier(root, settings.notify, trust) if notifies else None,
        workflows=WorkflowFiles(root),
        secret=secret,
        orphans=OrphanedProcesses(root, clock),
        trust=trust,
        project=LocalProject(root),
        gates=CharterGates(root),
        place=place,
    )


class LocalWhereabouts:
    """Where the data directory was found, and who calls unless a call says otherwise."""

    def __init__(self, root: str, store: Store, actor: str | None, secret: str | None, *, given: bool) -> None:
        self._store = store
        self.data_dir = root
        self.found_by: Literal["given", "environment", "folder"]
        self.found_by = "given" if given else "environment" if os.environ.get("AOF_DATA_DIR") else "folder"
        self.actor, self.actor_from = _caller(actor, secret)

    @property
    def version(self) -> str:
        """Of AOF."""
        return version()

    @property
    def python(self) -> str:
        """The version of Python."""
        import platform

        return platform.python_version()

    def format(self) -> int:
        """The version of the data directory's format."""
        return load_settings(self.data_dir).schema_version

    def lane(self) -> str | None:
        """The lane that this clone appends to; nobody can tell who may not write there."""
        return self._store.log.owner() if isinstance(self._store, FilesystemStore) else None


class TrustedCommands:
    """What a person has allowed on this machine; loaded when a command is about to be started."""

    def __init__(self, root: str) -> None:
        self._root = root

    @property
    def folder(self) -> str:
        """Where a change of it can be seen."""
        return service_trust.TrustFile(self._root).folder

    def covers(self, command: CommandLine) -> bool:
        """Whether exactly this command is allowed."""
        return service_trust.TrustFile(self._root).covers(command)


class LocalProject:
    """The files of the project; follows no link out of its folder."""

    def __init__(self, root: str) -> None:
        above, _, name = root.rpartition("/")
        self._path = above if name.startswith(".") else root

    def has(self, path: str) -> bool:
        """Whether there is something at a path below the project's folder."""
        parts = [part for part in path.split("/") if part not in ("", ".")]
        if path.startswith("/") or ".." in parts or "\0" in path or not parts:
            return False
        folder = ConfinedFolder(self._path)
        folder.begin()
        try:
            return folder.has("/".join((self._path, *parts)))
        except OSError:
            return False


class OrphanedProcesses:
    """Ends what is left of runs; what that takes is loaded when a lease has ended, which is seldom."""

    def __init__(self, root: str, clock: Clock) -> None:
        self._root = root
        self._clock = clock

    def end(self, place: str, attempt: int, run_id: str) -> str | None:
        """End every process of the run; None when none is left, else why that is not so."""
        return attempts.ProcessOrphans(self._root, self._clock).end(place, attempt, run_id)


def _project(root: str) -> str:
    """What a project without a name goes by: the folder that its data directory lies in."""
    above, name = os.path.split(root)
    return (os.path.basename(above) if name.startswith(".") else name) or "unknown"


def own_secret(root: str, environment: Mapping[str, str] = os.environ) -> str | None:
    """The secret of the run that this process was started for, if that is one of this data directory."""
    secret, where = environment.get("AOF_RUN_SECRET"), environment.get("AOF_DATA_DIR")
    return secret if secret and (not where or os.path.realpath(where) == os.path.realpath(root)) else None


def _caller(actor: str | None, secret: str | None) -> tuple[str, Literal["given", "environment", "run", "user"]]:
    """Who calls, and what says so."""
    if actor:
        return actor, "given"
    if named := os.environ.get("AOF_ACTOR"):
        return named, "environment"
    parts = (secret or "").split("/")
    if len(parts) == 3 and is_agent_name(parts[1]):  # noqa: PLR2004 - RUN/AGENT/RANDOM
        return parts[1], "run"  # whether the secret is good is asked when something is done with it
    return default_actor(), "user"


def opened_store(
    root: str, settings: Settings, clock: Clock, disk: Disk | None, *, doctor: bool = False
) -> FilesystemStore:
    """The store of a data directory; for the `doctor` also of one that is damaged."""
    if not settings.storage.allow_network_filesystem:
        refuse_network(root)
    durable = settings.storage.durability == "full"
    return FilesystemStore(
        root,
        clock,
        durable=durable,
        lock_timeout=settings.storage.lock_timeout,
        disk=disk,
        doctor=doctor,
        shared=settings.shared == "group",
        away_ms=int(settings.lease.away_grace * 1000),
    )


def may_write(root: str) -> bool:
    """Whether this user may; what is missing is made when the directory is opened."""
    needed = (root, f"{root}/events", f"{root}/locks", f"{root}/locks/log")
    # In this order: somebody may make a file between the two looks, and then it is there.
    return all((path != root and not os.path.lexists(path)) or os.access(path, os.W_OK) for path in needed)


def read_only_store(root: str, settings: Settings, clock: Clock) -> read_only.ReadOnlyStore:
    """The store of a data directory for a user who may not write to it."""
    return read_only.ReadOnlyStore(root, clock, durable=settings.storage.durability == "full")


def writable(store: Store) -> FilesystemStore:
    """For what cannot be done otherwise; raises ReadOnly."""
    if isinstance(store, FilesystemStore):
        return store

    assert isinstance(store, read_only.ReadOnlyStore)
    raise store.refusal()


def serve(
    fabric: Fabric,
    *,
    once: bool = False,
    watches: bool = False,
    log_json: bool = False,
    http: int | None = None,
    ready: Callable[[tuple[str, ...]], TextIO] | None = None,
    **options: Any,
) -> int:
    """Run the service on an open fabric until it is told to stop; returns the exit code.

    One that only `watches` serves the page and does nothing by itself.
    With `http` on that port, with `socket` on that Unix socket; `options` are the other fields of `serve.ServeOptions`.
    `ready` is called with the addresses once they are served, and tells where the service says what it does.
    """
    lazy_imports.settle()
    store = writable(fabric.store)
    root = store.paths.root
    channels = not watches and bool(load_settings(root).notify.channels)
    if http is None and not options and not channels:
        return up.Service(fabric, once=once, log_json=log_json).run()
    notices = up.Notices()
    addresses: tuple[str, ...] = ()
    with ExitStack() as stack:
        stack.callback(notices.close)
        if channels:
            from aof.service import channels as service_channels

            stack.enter_context(service_channels.delivering(root, TrustedCommands(root), notices.put, once=once))
        if http is not None or options:
            from aof.service import serve as service_serve

            where = service_serve.ServeOptions(port=http, **options)
            addresses = stack.enter_context(service_serve.serving(root, where, notices.put))
            if text := service_serve.exposure_warning(where):
                notices.put("warning", text)
        out = ready(addresses) if ready is not None else None
        return up.Service(
            fabric, once=once, watches=watches, log_json=log_json, addresses=addresses, notices=notices, out=out
        ).run()


def init_data_dir(
    path: str | os.PathLike[str] | None = None,
    *,
    actor: str | None = None,
    shared: str | None = None,
    solo: bool = False,
) -> tuple[str, bool]:
    """Make a data directory, or complete one that is there. Tells its path and whether it is new.

    Who makes it is its maintainer, until the settings name another. Only its owner may read it, unless it is `shared`
    with a group, that of the parent folder or of the user. `solo` says that one person works here alone: their own work
    is theirs to approve.
    """
    root, new = plan_data_dir(path)
    if shared not in (None, "owner", "group"):
        raise InvalidInput(f"shared is 'owner' or 'group', not {shared[:40]!r}", "aof init --shared group")
    if not new and shared is not None and load_settings(root).shared != shared:
        hint = f"write shared = \"{shared}\" at the top of aof.toml, then run 'aof doctor --fix'"
        raise InvalidInput(f"{root} is a data directory already", hint)
    os.makedirs(os.path.dirname(root), exist_ok=True)
    disk = Disk()
    with clearly("make the data directory"):
        fresh = FilesystemStore.create(root, disk, shared=shared == "group")
        settings = f"{root}/aof.toml"
        if not os.path.lexists(settings):
            text = default_text(actor or default_actor(), _project(root), shared=shared == "group", solo=solo)
            disk.write_durable(settings, text.encode())
        elif solo and not load_settings(root).self_review:
            with open(settings, encoding="utf-8") as file:
                changed = with_solo(file.read())
            if changed is None:
                hint = "write 'selfReview = true' there yourself"
                raise InvalidInput("aof.toml says already whether own work may be approved", hint)
            disk.write_durable(settings, changed.encode())
    if path is None and "AOF_DATA_DIR" not in os.environ:
        _choose(root)
    return root, fresh


def add_merge_driver(root: str) -> bool:
    """Let git in this clone keep both versions of a task or document for `aof merge`; whether that is new."""
    from aof.store.files import git_files

    return git_files.add_driver(root)


def plan_data_dir(path: str | os.PathLike[str] | None = None) -> tuple[str, bool]:
    """Where `init_data_dir` would make a data directory, and whether there is none yet."""
    named = os.fspath(path) if path is not None else os.environ.get("AOF_DATA_DIR")
    root = os.path.abspath(named or _planned(os.getcwd()) or ".aof")
    return root, not os.path.isdir(f"{root}/events")


def default_data_dir(folder: str) -> str:
    """The data directory of a project's folder, where nobody names another one."""
    return os.path.abspath(_planned(folder) or f"{folder}/.aof")


def worktree_of(folder: str) -> str | None:
    """The linked git worktree that a folder is in."""
    while not os.path.exists(f"{folder}/.git"):
        folder, below = os.path.dirname(folder), folder
        if folder == below:
            return None
    git = _git(folder)[1]
    return folder if git is not None and _is_linked(git) else None


def _planned(folder: str) -> str | None:
    """In a linked git worktree: what its repository has, else its own copy, else beside the main worktree."""
    choice, git = _git(folder)
    if git is None or not _is_linked(git):
        return choice if choice is not None and os.path.isdir(f"{choice}/events") else None
    common = os.path.dirname(os.path.dirname(git))
    choice, main, own = _git(common, "")[0], _main_place(common), f"{folder}/.aof"
    there = next((one for one in (choice, main, own) if one is not None and os.path.isdir(f"{one}/events")), None)
    return there or main


def find_data_dir(given: str | os.PathLike[str] | None = None, *, needs: str = "events") -> str:
    """Where the data directory is; raises NoDataDirectory."""
    named = os.fspath(given) if given is not None else os.environ.get("AOF_DATA_DIR")
    if named:
        if _is_data_dir(named, needs):
            return os.path.abspath(named)
        if (found := _in_folder(os.path.abspath(named), needs)) is not None:
            return found  # a project's folder
        raise NoDataDirectory(f"{named} is not a data directory", f"make one with 'aof --data-dir {named} init'")
    here = os.getcwd()
    while True:
        if (found := _in_folder(here, needs)) is not None:
            return found
        above = os.path.dirname(here)
        if above == here:
            raise NoDataDirectory("there is no .aof directory here or above", "make one with 'aof init'")
        here = above


def _is_data_dir(folder: str, needs: str) -> bool:
    """Also where the log is gone, which the store tells."""
    return os.path.isdir(f"{folder}/{needs}") or os.path.isdir(f"{folder}/tasks/ready")


def _in_folder(folder: str, needs: str) -> str | None:
    """The data directory of a folder; None where there is none.

    Worktrees of a git repository share one, though git may give each its own files: two that went on with what lies
    in themselves would have two histories.
    """
    own = f"{folder}/.aof"
    there = _is_data_dir(own, needs)
    choice, git = _git(folder)
    below = folder
    while there and git is None and choice is None and not os.path.isdir(f"{folder}/.git"):
        above = os.path.dirname(folder)
        if above == folder:
            break
        folder = above
        choice, git = _git(folder)
    linked = git is not None and _is_linked(git)
    common = os.path.dirname(os.path.dirname(git)) if git is not None and linked else git
    if common is not None:
        choice = _git(common, "")[0]
    if choice is not None and below == folder:
        if _is_data_dir(choice, needs):
            return choice
        gone = f"the data directory of this git repository was {choice}, and it is not there"
        raise NoDataDirectory(gone, "put it back, or run 'aof init' in the worktree that should have it")
    if common is None or not linked:
        return own if there else None
    main = _main_place(common, os.path.relpath(below, folder))
    if main is not None and _is_data_dir(main, needs):
        return main
    if not there:
        return None
    if below != folder:
        hint = f"name the one that all of them use: --data-dir or AOF_DATA_DIR; this one is {own}"
    else:
        hint = "run 'aof init' here to let all of them use this one"
    raise NoDataDirectory(f"{own} is the copy of one git worktree, and the worktrees of {common} share none yet", hint)


def _git(folder: str, name: str = ".git") -> tuple[str | None, str | None]:
    """What `aof init` has chosen for the repository of a folder, or the git directory that a file there names.

    One attempt to open a file answers both for nearly everybody: in the main worktree it is not there.
    """
    place = os.path.join(folder, name)
    try:
        with open(os.path.join(place, _CHOICE), encoding="utf-8") as file:
            return os.path.normpath(os.path.join(place, file.read(4096).strip())), None
    except NotADirectoryError:
        with suppress(OSError, UnicodeDecodeError), open(place, encoding="utf-8") as file:
            text = file.read(4096)
            if text.startswith("gitdir:"):
                return None, os.path.normpath(os.path.join(folder, text[7:].strip()))
    except (OSError, UnicodeDecodeError):
        pass
    return None, None


def _is_linked(git: str) -> bool:
    """Whether it is the git directory of a linked worktree, and not of a submodule, say."""
    return os.path.basename(os.path.dirname(git)) == "worktrees"


def _main_place(common: str, below: str = ".") -> str | None:
    """The data directory beside the repository that worktrees share; None where that folder is not only its own."""
    above, name = os.path.split(common)
    return os.path.normpath(f"{above}/{below}/.aof") if name in (".git", ".bare") else None


def _choose(root: str) -> None:
    """Let all worktrees of a repository use a data directory that lies in one of them, or in a bare one's."""
    _, git = _git(os.path.dirname(root))
    if git is not None and os.path.basename(root) == ".aof":
        common = os.path.dirname(os.path.dirname(git)) if _is_linked(git) else git
        with suppress(OSError), open(f"{common}/{_CHOICE}", "w", encoding="utf-8") as file:
            file.write(f"{os.path.relpath(root, common)}\n")


def default_actor(environment: Mapping[str, str] = os.environ) -> str:
    """Who acts when nobody says so: `$AOF_ACTOR`, else the user of the operating system."""
    named = environment.get("AOF_ACTOR") or environment.get("USER") or environment.get("LOGNAME")
    if named:
        return named
    import pwd

    with suppress(KeyError):
        named = pwd.getpwuid(os.getuid()).pw_name
    return named if named and is_agent_name(named) else f"uid-{os.getuid()}"


def refuse_network(root: str) -> None:
    """Locks on network file systems cannot be relied on."""
    kind, _ = file_system(root)
    if is_remote(kind):
        raise UnsupportedFilesystem(
            f"{root} lies on a network file system ({kind}), whose locks cannot be relied on",
            "use a local disk, or set storage.allowNetworkFilesystem = true in aof.toml if you know better",
        )


def version() -> str:
    """Which AOF this is."""
    from aof import __version__

    return __version__


def benchmark(
    folder: str | None = None, *, quick: bool = False, sizes: tuple[int, ...] | None = None, say: Say = silent
) -> tuple[dict[str, object], str]:
    """Measure in a folder of its own, which is removed; the figures, and the table that shows them."""
    from aof.bench import report, suite

    lazy_imports.settle()
    plan = suite.BenchPlan.quick() if quick else suite.BenchPlan()
    with suite.scratch(folder) as place:
        run = suite.measure(plan if sizes is None else plan._replace(sizes=sizes), place, say=say)
        say("removing what was written")
    return run.as_json(), report.render_table(run.machine, run.parts)
