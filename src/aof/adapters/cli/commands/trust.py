"""`aof trust`: which commands of a data directory may be started on this machine."""

from __future__ import annotations

import sys
from typing import Any

from aof.adapters.cli.output import Answer, Context
from aof.adapters.cli.spec.parser import UsageError
from aof.adapters.cli.terminal.screen import Screen
from aof.core.validation.secret_names import looks_secret
from aof.ports.trust import CommandLine

_HIDDEN = "(hidden)"


def trust(context: Context, values: dict[str, Any]) -> Answer:
    """`aof trust`, `aof trust list` and `aof trust revoke`."""
    where, action = context.options.get("data_dir"), values.get("action")
    if action not in (None, "list", "revoke"):
        raise UsageError(f"'aof trust' knows list and revoke, not '{action}'", "for example: aof trust")
    if action is not None and "yes" in values:
        raise UsageError(f"'aof trust {action}' allows nothing", f"for example: aof trust {action}")
    root: str = context.bootstrap("find_data_dir")(where)
    if action == "revoke":
        was = context.bootstrap("trusted")().revoke_trust(root)
        said = "no command is trusted any more" if was else "no command was trusted"
        return Answer({"dataDir": root, "revoked": was}, lambda screen: screen.line(said))
    commands: tuple[CommandLine, ...] = context.bootstrap("trusted")().declared_commands(root)
    if action is None and any(not one["trusted"] for one in _shown(context, root, commands)):
        if not values.get("yes"):
            _confirm(context, _shown(context, root, commands))
        context.bootstrap("trusted")().trust_data_dir(
            root, commands
        )  # those that were shown, whatever the files say by now
    shown = _shown(context, root, commands)
    data = {"dataDir": root, "trusted": all(one["trusted"] for one in shown), "commands": shown}
    return Answer(data, lambda screen: _lines(screen, shown))


def _shown(context: Context, root: str, commands: tuple[CommandLine, ...]) -> list[dict[str, Any]]:
    file = context.bootstrap("trusted")().trust_file(root)
    return [
        {
            "source": command.source,
            "kind": command.kind,
            "command": list(command.command),
            "env": {name: _HIDDEN if looks_secret(name) else value for name, value in command.env.items()},
            "inheritEnv": command.inherit_env if command.inherit_env == "all" else list(command.inherit_env),
            "folder": file.started_in(command),
            "trusted": file.covers(command),
        }
        for command in commands
    ]


def _lines(screen: Screen, shown: list[dict[str, Any]]) -> None:
    for one in shown:
        word, colour = ("trusted", "good") if one["trusted"] else ("not trusted", "error")
        screen.say(f"{one['source']}: ", (word, colour), cut_off=False)
        if one["kind"] == "file":
            screen.say(f"  notifications are appended to {_word(one['command'][0])}", cut_off=False)
            continue
        if one["kind"] == "channel":
            screen.say(f"  news about tasks is sent to {_word(one['command'][0])}", cut_off=False)
            continue
        screen.say(f"  {' '.join(map(_word, one['command']))}", cut_off=False)
        screen.say(f"  in {_word(one['folder'])}", cut_off=False)
        for name, value in one["env"].items():
            screen.say(f"  {_word(name)}={value if value == _HIDDEN else _word(value)}", cut_off=False)
        if one["inheritEnv"]:
            names = one["inheritEnv"] if one["inheritEnv"] == "all" else ", ".join(map(_word, one["inheritEnv"]))
            screen.say(f"  with our own variables: {names}", cut_off=False)
    if not shown:
        screen.line("this data directory names no command to start")


def _word(text: str) -> str:
    """One word as it can be told from its neighbours; whatever is not printable is spelled out."""
    plain = text.isprintable() and text.isascii() and text and not set(text) & set(" '\"\\")
    return text if plain else ascii(text)


def _confirm(context: Context, shown: list[dict[str, Any]]) -> None:
    """Ask a person; raises UsageError where nobody can be asked, or has not agreed."""
    if context.options.get("json") or not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise UsageError(
            "nobody can be asked whether these commands are trusted",
            "see them with 'aof trust list', then allow them with 'aof trust --yes'",
        )
    _lines(Screen(), shown)
    sys.stdout.write("Let AOF start these commands on this machine? [y/N] ")
    sys.stdout.flush()
    if sys.stdin.readline().strip().lower() not in ("y", "yes"):
        raise UsageError("nothing was trusted", "see the commands: aof trust list")
