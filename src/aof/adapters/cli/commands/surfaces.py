"""Verbs about who connects and how."""

from __future__ import annotations

import os
import sys
from typing import Any, Protocol

from aof.adapters.cli.output import Answer, Context
from aof.adapters.cli.spec.parser import UsageError
from aof.adapters.cli.terminal.screen import Screen
from aof.app.commands.own_run import refuse_in_run
from aof.app.queries import primer
from aof.core.validation import limits


class WrittenFile(Protocol):
    """A file that connecting an agent writes."""

    path: str
    action: str
    added: str


def init(context: Context, values: dict[str, Any]) -> Answer:
    """`aof init`."""
    refuse_in_run("set up a data directory or its agents", os.environ)
    dry, remove = values.get("dry_run", False), values.get("remove", False)
    where = context.options.get("data_dir")
    root, fresh = context.bootstrap("plan_data_dir")(where)
    agents = tuple(values["agents"]) if "agents" in values else None
    surfaces = context.bootstrap("surfaces")()
    if not dry and not remove:
        surfaces.wire_agents(root, agents, dry_run=True)  # whoever mistypes an agent gets no data directory either
        context.bootstrap("init_data_dir")(where, actor=context.options.get("actor"), shared=values.get("shared"))
    changes: list[WrittenFile] = surfaces.wire_agents(
        root, agents, remove=remove, dry_run=dry, sure=None if context.options.get("json") else _sure
    )
    made = fresh and not dry and not remove
    wired = [{"path": change.path, "action": change.action} for change in changes]
    data = {"dataDir": root, "created": made, "dryRun": dry, "agents": wired}

    def text(screen: Screen) -> None:
        word = "made" if made else "would be made" if fresh and not remove else "is there already"
        if not remove:
            screen.line(f"{root} {word}")
        for change in changes:
            screen.line(f"{change.path}: {'would ' if dry else ''}{change.action}{'' if dry else 'd'}")
            if dry:
                screen.block(change.added)

    return Answer(data, text)


def _sure(changes: list[WrittenFile]) -> bool:
    """Ask a person; whoever cannot be asked has not agreed."""
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        return False
    for change in changes:
        sys.stdout.write(f"{change.path} ({change.action})\n{change.added}\n\n")
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
    """`aof token create`, `list` and `revoke`."""
    refuse_in_run("use tokens", os.environ)
    serving, data_dir = context.bootstrap("surfaces")(), context.options.get("data_dir")
    action, which = values["action"], values.get("which")
    if action == "create":
        holder = values.get("holder") or which
        if which not in (None, holder):
            raise UsageError(f"the token is for '{which}' or for '{holder}'", f"for example: aof token create {which}")
        made = serving.create_token(
            data_dir,
            holder or context.options.get("actor"),
            values.get("role"),
            scope=values.get("scope"),
            expires=values.get("expires"),
        )
        until = f" until {made.expires_at}" if made.expires_at else ""
        said = f"{made.token}\nThis is shown once. It lets {made.actor} call with the scope {made.scope}{until}."
        return Answer(made, lambda screen: screen.block(said))
    if action == "list":
        known = serving.list_tokens(data_dir)

        def text(screen: Screen) -> None:
            rows = [
                (one.id, one.actor, one.role, one.scope, one.created_at, _expiry(one.expires_at, over=one.expired))
                for one in known
            ]
            if rows:
                screen.table(("ID", "ACTOR", "ROLE", "SCOPE", "CREATED", "EXPIRES"), rows)
            else:
                screen.line("there are no tokens; make one: aof token create NAME")

        return Answer({"tokens": known}, text)
    if action == "revoke" and which:
        serving.revoke_token(data_dir, which)
        return Answer({"id": which, "revoked": True}, lambda screen: screen.line(f"{which} is no longer valid"))
    if action == "revoke":
        raise UsageError("'aof token revoke' needs the token's ID", "see the tokens: aof token list")
    raise UsageError(f"'aof token' knows create, list and revoke, not '{action}'", "for example: aof token create ada")


def _expiry(at: str | None, *, over: bool) -> str:
    return "never" if at is None else f"{at} (expired)" if over else at
