"""The verbs of the service, and of the channels that it serves."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from typing import Any, TextIO

import msgspec

from aof._support.printable import clean
from aof.adapters.cli.output import Answer, Context, deliver
from aof.adapters.cli.spec.parser import UsageError
from aof.adapters.cli.terminal.screen import Screen
from aof.app.commands.identity import refuse_in_run
from aof.core.errors.base import Unavailable

_PORT, _ANY_PORT = 8420, 0


def up(context: Context, values: dict[str, Any]) -> Answer:
    """`aof up`."""
    refuse_in_run("start the service", os.environ)
    code: int = context.bootstrap("serve")(context.fabric, **values)
    return Answer({"stopped": True}, lambda _screen: None, code)


def notify(context: Context, values: dict[str, Any]) -> Answer:
    """`aof admin notify`, `aof admin notify test CHANNEL` and `aof admin notify send`."""
    action, channel = values.get("action") or "list", values.get("channel")
    if action not in ("list", "test", "send"):
        raise UsageError(
            f"'aof admin notify' knows list, test and send, not '{action}'", "for example: aof admin notify"
        )
    if (channel is not None) != (action == "test"):
        raise UsageError(
            "'aof admin notify test' takes one channel, and no other action does", "aof admin notify test team"
        )
    root = context.bootstrap("find_data_dir")(context.options.get("data_dir"))
    delivery, trust = context.bootstrap("deliveries")(), context.bootstrap("trusted")().trust_file(root)
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
    pages, data_dir = context.bootstrap("surfaces")().pages(), context.options.get("data_dir")
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
    pages = context.bootstrap("surfaces")().pages()

    def ready(addresses: tuple[str, ...]) -> TextIO:
        let_on()
        url = linked(pages.browsable(addresses))
        deliver(context, Answer({"url": url, "opened": False}, lambda screen: _say(screen, url)))
        if opens:
            pages.open_browser(url)
        return sys.stderr

    serve = context.bootstrap("serve")
    try:
        code: int = serve(context.fabric, watches=True, http=values.get("port", _PORT), ready=ready)
    except Unavailable:
        if "port" in values:
            raise
        code = serve(context.fabric, watches=True, http=_ANY_PORT, ready=ready)
    return Answer(None, lambda _screen: None, code, said=True)


def _say(screen: Screen, url: str) -> None:
    screen.say(url, cut_off=False)
    screen.say(("works once, within a minute; for another one: aof board --web", "dim"), cut_off=False)
