"""Verbs about who connects and how."""

from __future__ import annotations

import os
import sys
from typing import Any, Protocol

from aof._support.printable import clean
from aof.adapters.cli.output import Answer, Context
from aof.adapters.cli.spec.parser import UsageError
from aof.adapters.cli.terminal.screen import Screen
from aof.app.commands.identity import refuse_in_run
from aof.app.queries import primer
from aof.core.validation import limits

_USES = {"link": "(link to the board)", "session": "(board session)"}


class WrittenFile(Protocol):
    """A file that connecting an agent writes."""

    path: str
    action: str
    added: str
    edited: bool


def init(context: Context, values: dict[str, Any]) -> Answer:
    """`aof init`."""
    refuse_in_run("set up a data directory or its agents", os.environ)
    dry, http = values.get("dry_run", False), values.get("http")
    where = context.options.get("data_dir")
    root, fresh = context.bootstrap("plan_data_dir")(where)
    agents = tuple(values["agents"]) if "agents" in values else None
    settings = context.bootstrap("agent_settings")()
    if values.get("remove", False):
        if http is not None:
            raise UsageError("'aof init --remove' takes no --http", "it removes both forms: aof init --remove")
        return _removed(root, settings.unwire_agents(root, agents, dry_run=dry).changes, dry=dry)
    made, driver = fresh and http is None, False
    if not dry:
        settings.wire_agents(root, agents, http=http, dry_run=True)  # with an error here nothing is made at all
        if http is None:
            context.bootstrap("init_data_dir")(
                where,
                actor=context.options.get("actor"),
                shared=values.get("shared"),
                solo=values.get("solo", False),
            )
            driver = context.bootstrap("add_merge_driver")(root)
    changes, steps = settings.wire_agents(
        root, agents, http=http, dry_run=dry, sure=None if context.options.get("json") else _sure
    )
    data = {"dataDir": root, "created": made and not dry, "dryRun": dry, "agents": _shown(changes), "next": steps}

    def text(screen: Screen) -> None:
        if http is None:
            screen.line(f"{root} {('would be created' if dry else 'created') if made else 'already exists'}")
            if values.get("solo", False):
                screen.line(f"who ran a task {'could' if dry else 'may'} approve it: selfReview = true in aof.toml")
        if driver:
            screen.line(".git/config: merge driver 'aof' added, for 'git pull' and 'aof merge'")
        _list(screen, changes, dry=dry)
        for step in steps:
            screen.line(f"next: {step}")

    return Answer(data, text)


def _removed(root: str, changes: list[WrittenFile], *, dry: bool) -> Answer:
    data = {"dataDir": root, "created": False, "dryRun": dry, "agents": _shown(changes), "next": []}

    def text(screen: Screen) -> None:
        _list(screen, changes, dry=dry)
        if not changes:
            screen.line("nothing that was written for agents is here")

    return Answer(data, text)


def _shown(changes: list[WrittenFile]) -> list[dict[str, Any]]:
    """The changes as data; what somebody had edited is shown in full."""
    return [
        {"path": one.path, "action": one.action} | ({"edited": True, "lines": one.added} if one.edited else {})
        for one in changes
    ]


def _list(screen: Screen, changes: list[WrittenFile], *, dry: bool) -> None:
    for change in changes:
        edited = ", although somebody had edited it:" if change.edited else ""
        screen.line(f"{change.path}: {'would ' if dry else ''}{change.action}{'' if dry else 'd'}{edited}")
        if dry or change.edited:
            screen.block(change.added)


def _sure(changes: list[WrittenFile]) -> bool:
    """Ask a person; whoever cannot be asked has not agreed."""
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        return False
    for change in changes:
        sys.stdout.write(clean(f"{change.path} ({change.action})\n{change.added}\n\n", lines=True))
    sys.stdout.write("Write this, so that your agents find AOF? [y/N] ")
    sys.stdout.flush()
    return sys.stdin.readline().strip().lower() in ("y", "yes")


def mcp(context: Context, values: dict[str, Any]) -> Answer:
    """`aof mcp`."""
    options = context.options
    serve_mcp = context.bootstrap("surfaces")().serve_mcp
    serve_mcp(options.get("data_dir"), options.get("actor"), values.get("tools"), keep=bool(values.get("keep")))
    return Answer(None, lambda _screen: None)


def prime(context: Context, values: dict[str, Any]) -> Answer:
    """`aof prime`."""
    if problem := limits.name("agent", values.get("agent", context.fabric.actor)):
        raise problem
    text = primer.prime(context.fabric, values.get("agent", context.fabric.actor))
    return Answer({"text": text}, lambda screen: screen.block(text.rstrip()))


def token(context: Context, values: dict[str, Any]) -> Answer:
    """`aof admin token create`, `list` and `revoke`."""
    refuse_in_run("use tokens", os.environ)
    serving, data_dir = context.bootstrap("surfaces")(), context.options.get("data_dir")
    action, which = values["action"], values.get("which")
    if action == "create":
        holder = values.get("holder") or which
        if which not in (None, holder):
            raise UsageError(
                f"the token is for '{which}' or for '{holder}'", f"for example: aof admin token create {which}"
            )
        made = serving.create_token(
            data_dir,
            holder or context.options.get("actor"),
            values.get("role"),
            scope=values.get("scope"),
            expires=values.get("expires"),
            tools=values.get("tools"),
        )
        until = f" until {made.expires_at}" if made.expires_at else ""
        said = f"{made.token}\nThis is shown once. It lets {made.actor} call with the scope {made.scope}{until}."
        return Answer(made, lambda screen: screen.block(said))
    if action == "list":
        known = serving.list_tokens(data_dir)

        def text(screen: Screen) -> None:
            rows = [
                (
                    one.id,
                    one.actor,
                    one.role,
                    one.scope,
                    _USES.get(one.use or "", one.tools or ""),
                    one.created_at,
                    _expiry(one.expires_at, over=one.expired),
                )
                for one in known
            ]
            if rows:
                screen.table(("ID", "ACTOR", "ROLE", "SCOPE", "TOOLS", "CREATED", "EXPIRES"), rows)
            else:
                screen.line("there are no tokens; make one: aof admin token create NAME")

        return Answer({"tokens": known}, text)
    if action == "revoke" and which:
        serving.revoke_token(data_dir, which)
        return Answer({"id": which, "revoked": True}, lambda screen: screen.line(f"{which} is no longer valid"))
    if action == "revoke":
        raise UsageError("'aof admin token revoke' needs the token's ID", "see the tokens: aof admin token list")
    raise UsageError(
        f"'aof admin token' knows create, list and revoke, not '{action}'", "for example: aof admin token create ada"
    )


def _expiry(at: str | None, *, over: bool) -> str:
    return "never" if at is None else f"{at} (expired)" if over else at
