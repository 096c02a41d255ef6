"""Verbs about who connects and how."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from aof.adapters.cli.answer import Answer, Context
from aof.adapters.cli.parsing import UsageError

if TYPE_CHECKING:
    from aof.adapters.cli.screen import Screen


def mcp(context: Context, values: dict[str, Any]) -> Answer:
    """`aof mcp`."""
    options = context.options
    context.bootstrap("surfaces")().serve_mcp(options.get("data_dir"), options.get("actor"), values.get("tools"))
    return Answer(None, lambda _screen: None)


def prime(context: Context, values: dict[str, Any]) -> Answer:
    """`aof prime`."""
    from aof.app.priming import prime as primed

    text = primed(context.fabric, values.get("agent", context.fabric.actor))
    return Answer({"text": text}, lambda screen: screen.line(text.rstrip()))


def token(context: Context, values: dict[str, Any]) -> Answer:
    """`aof token create`, `list` and `revoke`."""
    serving, data_dir = context.bootstrap("surfaces")(), context.options.get("data_dir")
    action, token_id = values["action"], values.get("token_id")
    if action == "create":
        made = serving.create_token(data_dir, values.get("holder") or context.options.get("actor"), values.get("role"))
        return Answer(made, lambda screen: screen.line(f"{made.token}\nThis is shown once. It lets {made.actor} call."))
    if action == "list":
        known = serving.list_tokens(data_dir)

        def text(screen: Screen) -> None:
            rows = [(one.id, one.actor, one.role, one.created_at) for one in known]
            screen.table(("ID", "ACTOR", "ROLE", "CREATED"), rows)

        return Answer({"tokens": known}, text)
    if action == "revoke" and token_id:
        serving.revoke_token(data_dir, token_id)
        return Answer({"id": token_id, "revoked": True}, lambda screen: screen.line(f"{token_id} is no longer valid"))
    raise UsageError("'aof token' knows create, list and revoke ID", "for example: aof token create --for ada")
