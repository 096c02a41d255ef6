"""The verbs of the service on this machine: up, the page, notification channels, trusted commands, the benchmark."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from typing import Any, TextIO

import msgspec

from aof.errors import Unavailable
from aof.kernel.identity import refuse_in_run
from aof.kernel.limits import looks_secret
from aof.kernel.ports import CommandLine
from aof.support.printable import clean
from aof.surfaces.cli.output import Answer, Context, deliver
from aof.surfaces.cli.parser import UsageError, chosen_action
from aof.surfaces.cli.screen import Screen

_PORT, _ANY_PORT = 8420, 0


def up(context: Context, values: dict[str, Any]) -> Answer:
    """`aof up`."""
    refuse_in_run("start the service", os.environ)
    code: int = context.service("bootstrap").serve(context.fabric, **values)
    return Answer({"stopped": True}, lambda _screen: None, code)


def notify(context: Context, values: dict[str, Any]) -> Answer:
    """`aof admin notify`, `aof admin notify test CHANNEL` and `aof admin notify send`."""
    known = ("list", "test", "send")
    action = chosen_action("admin notify", dict(values), known, "for example: aof admin notify", "list")
    channel = values.get("channel")
    if (channel is not None) != (action == "test"):
        raise UsageError(
            "'aof admin notify test' takes one channel, and no other action does", "aof admin notify test team"
        )
    root = context.service("bootstrap").find_data_dir(context.options.get("data_dir"))
    delivery, trust = context.service("channels"), context.service("trust").TrustFile(root)
    failed = 0
    if action == "test":
        refuse_in_run("send messages to people", os.environ)
        delivery.send_test(root, trust, channel)
    elif action == "send":
        refuse_in_run("send messages to people", os.environ)
        failed = delivery.send_pending(root, trust, lambda _action, text: print(clean(text), file=sys.stderr))
    channels = delivery.reports(root, trust)
    data = {"channels": [msgspec.to_builtins(one) for one in channels]}
    return Answer(data, lambda screen: _channels(screen, data["channels"], sent=channel), 1 if failed else 0)


def _channels(screen: Screen, channels: list[dict[str, Any]], sent: str | None) -> None:
    if sent is not None:
        return screen.line(f"a test message was sent to {sent}")
    for one in channels:
        word, colour = ("works", "good") if one["trusted"] else ("not trusted: aof trust", "error")
        if one.get("failures"):
            word, colour = f"fails since {one['failedSince']}: {one['error']}", "error"
        screen.say(f"{one['name']}: ", (word, colour), cut_off=False)
        last = f", the last at {one['sentAt']}" if one.get("sentAt") else ""
        screen.say(f"  {one['address']}; {one.get('sent', 0)} pieces of news sent{last}", cut_off=False)
    if not channels:
        screen.line("aof.toml declares no channel; docs/howto/get-notified.md says how")
    return None


def open_page(context: Context, values: dict[str, Any]) -> Answer:
    """Print a one-time link to the board, and open it; if no service runs, serve only the page until it is stopped."""
    refuse_in_run("open the page", os.environ)
    pages, data_dir = context.service("serve"), context.options.get("data_dir")
    scope, actor = values.get("scope", "admin"), context.fabric.actor
    opens = not values.get("no_open") and not context.options.get("json") and sys.stdout.isatty()

    def linked(address: str) -> str:
        url: str = pages.make_link(data_dir, actor, scope, address)
        return url

    with pages.starting(data_dir) as let_on:
        running = pages.served_at(data_dir, values.get("port"))
        if running is None:
            return _serve_page(context, values, linked, let_on, opens=opens)
    url = linked(running)
    opened = opens and pages.open_browser(url)
    return Answer({"url": url, "opened": opened}, lambda screen: _say(screen, url))


def _serve_page(
    context: Context, values: dict[str, Any], linked: Callable[[str], str], let_on: Callable[[], None], *, opens: bool
) -> Answer:
    """Serve only the page; who else wants to open it is let on once it is served."""
    pages = context.service("serve")

    def ready(addresses: tuple[str, ...]) -> TextIO:
        let_on()
        url = linked(pages.browsable_address(addresses))
        deliver(context, Answer({"url": url, "opened": False}, lambda screen: _say(screen, url)))
        if opens:
            pages.open_browser(url)
        return sys.stderr

    serve = context.service("bootstrap").serve
    try:
        code: int = serve(context.fabric, watches=True, http=values.get("port", _PORT), ready=ready)
    except Unavailable:
        if "port" in values:
            raise
        code = serve(context.fabric, watches=True, http=_ANY_PORT, ready=ready)
    return Answer(None, lambda _screen: None, code, printed=True)


def _say(screen: Screen, url: str) -> None:
    screen.say(url, cut_off=False)
    screen.say(("works once, within a minute; for another one: aof board --web", "dim"), cut_off=False)


_HIDDEN = "(hidden)"


def trust(context: Context, values: dict[str, Any]) -> Answer:
    """`aof trust`, `aof trust list` and `aof trust revoke`."""
    where, action = context.options.get("data_dir"), values.get("action")
    if action not in (None, "list", "revoke"):
        raise UsageError(f"'aof trust' knows list and revoke, not '{action}'", "for example: aof trust")
    if action is not None and "yes" in values:
        raise UsageError(f"'aof trust {action}' allows nothing", f"for example: aof trust {action}")
    root: str = context.service("bootstrap").find_data_dir(where)
    if action == "revoke":
        was = context.service("upkeep").revoke_trust(root)
        said = "no command is trusted any more" if was else "no command was trusted"
        return Answer({"dataDir": root, "revoked": was}, lambda screen: screen.line(said))
    commands: tuple[CommandLine, ...] = context.service("upkeep").declared_commands(root)
    if action is None and any(not one["trusted"] for one in _shown(context, root, commands)):
        if not values.get("yes"):
            _confirm(context, _shown(context, root, commands))
        context.service("upkeep").trust_data_dir(root, commands)  # those that were shown, whatever the files say by now
    shown = _shown(context, root, commands)
    data = {"dataDir": root, "trusted": all(one["trusted"] for one in shown), "commands": shown}
    return Answer(data, lambda screen: _lines(screen, shown))


def _shown(context: Context, root: str, commands: tuple[CommandLine, ...]) -> list[dict[str, Any]]:
    file = context.service("trust").TrustFile(root)
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


def bench(context: Context, values: dict[str, Any]) -> Answer:
    """`aof admin bench`."""
    sizes = _sizes(values["sizes"]) if "sizes" in values else None
    with context.progress("bench") as progress:
        found, table = context.service("bootstrap").benchmark(
            values.get("dir"), quick=values.get("quick", False), sizes=sizes, say=progress
        )
    return Answer(found, lambda screen: screen.block(table))


def _sizes(text: str) -> tuple[int, ...]:
    try:
        sizes = tuple(int(part) for part in text.split(","))
    except ValueError:
        sizes = (-1,)
    if any(size < 0 for size in sizes):
        raise UsageError(f"--sizes needs numbers of tasks, not {text!r}", "for example: --sizes 1000,10000")
    return tuple(sorted({size for size in sizes if size}))
