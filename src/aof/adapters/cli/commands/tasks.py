"""Verbs that change a task."""

from __future__ import annotations

import sys
from typing import Any

import msgspec

from aof.adapters.cli.output import Answer, Context
from aof.adapters.cli.spec.parser import UsageError
from aof.adapters.cli.terminal.screen import Screen
from aof.adapters.cli.terminal.streams import complain

_ROUTING = ("agent", "role", "team", "tags")


def create(context: Context, values: dict[str, Any]) -> Answer:
    """`aof create`."""
    given = dict(values)
    given["review"] = not given.pop("no_review", False)
    if "brief" in given:
        given["brief"] = _text(given["brief"])
    if "metadata" in given:
        given["metadata"] = _metadata(given["metadata"])
    if "capabilities" in given:
        given["profile"] = {"requiredCapabilities": given.pop("capabilities")}
    made = context.fabric.create(**given)

    def text(screen: Screen) -> None:
        screen.line(f"{made.task_id}  {screen.paint(made.status, made.status)}  {made.file_path}")
        if made.warning is not None:
            complain(f"{made.warning.code}: {made.warning.message}", made.warning.hint)

    return Answer(made, text)


def claim(context: Context, values: dict[str, Any]) -> Answer:
    """`aof claim`."""
    given = dict(values)
    task_id = given.pop("task_id", None)
    given.setdefault("agent", context.fabric.actor)
    claimed = context.fabric.claim(task_id, **given)

    def text(screen: Screen) -> None:
        screen.line(f"{claimed.task_id}  claimed by {given['agent']} as {claimed.run_id}, until {claimed.expires_at}")
        if context.fabric.needs_secret and isinstance(claimed.secret, str):
            screen.line(f"AOF_RUN_SECRET={claimed.secret}")

    return Answer(claimed, text)


def heartbeat(context: Context, values: dict[str, Any]) -> Answer:
    """`aof heartbeat`."""
    beaten = context.fabric.heartbeat(**values)
    return Answer(beaten, lambda screen: screen.line(f"{beaten.task_id}  alive until {beaten.expires_at}"))


def progress(context: Context, values: dict[str, Any]) -> Answer:
    """`aof progress`."""
    reported = context.fabric.progress(**values)

    def text(screen: Screen) -> None:
        percent = reported.progress.get("percent")
        shown = " ".join(filter(None, (f"{percent:g} %" if percent is not None else "", reported.progress.get("text"))))
        screen.line(f"{reported.task_id}  {shown or 'noted'}")

    return Answer(reported, text)


def update(context: Context, values: dict[str, Any]) -> Answer:
    """`aof update`."""
    given = dict(values)
    if "body" in given:
        given["body"] = _text(given["body"])
    updated = context.fabric.update(**given)
    return Answer(
        updated, lambda screen: screen.line(f"{updated.task_id}  {screen.paint(updated.status, updated.status)}")
    )


def edit(context: Context, values: dict[str, Any]) -> Answer:
    """`aof edit`."""
    given = dict(values)
    task_id = given.pop("task_id")
    routing = {name: given.pop(name) for name in _ROUTING if name in given}
    if routing:
        given["routing"] = routing
    if "description" in given:
        given["description"] = _text(given["description"])
    if "metadata" in given:
        given["metadata"] = _metadata(given["metadata"])
    edited = context.fabric.edit(task_id, **given)
    what = ", ".join(edited.updated_fields) or "nothing changed"
    return Answer(edited, lambda screen: screen.line(f"{edited.task_id}  {what}"))


def complete(context: Context, values: dict[str, Any]) -> Answer:
    """`aof complete`."""
    return _moved(context, "complete", values)


def release(context: Context, values: dict[str, Any]) -> Answer:
    """`aof release`."""
    return _moved(context, "release", values)


def approve(context: Context, values: dict[str, Any]) -> Answer:
    """`aof approve`."""
    return _moved(context, "approve", values)


def reject(context: Context, values: dict[str, Any]) -> Answer:
    """`aof reject`."""
    return _moved(context, "reject", {"blockers": (), **values})


def fail(context: Context, values: dict[str, Any]) -> Answer:
    """`aof fail`."""
    given = dict(values)
    given["retryable"] = not given.pop("no_retry", False)
    return _moved(context, "fail", given)


def cancel(context: Context, values: dict[str, Any]) -> Answer:
    """`aof cancel`."""
    return _moved(context, "cancel", values)


def block(context: Context, values: dict[str, Any]) -> Answer:
    """`aof block`."""
    return _moved(context, "block", {"reason": "", **values})


def unblock(context: Context, values: dict[str, Any]) -> Answer:
    """`aof unblock`."""
    return _moved(context, "unblock", values)


def pause(context: Context, values: dict[str, Any]) -> Answer:
    """`aof pause`."""
    return _moved(context, "pause", values)


def resume(context: Context, values: dict[str, Any]) -> Answer:
    """`aof resume`."""
    return _moved(context, "resume", values)


def retry(context: Context, values: dict[str, Any]) -> Answer:
    """`aof retry`."""
    return _moved(context, "retry", {"reason": "", **values})


def archive(context: Context, values: dict[str, Any]) -> Answer:
    """`aof archive`."""
    return _moved(context, "archive", values)


def link(context: Context, values: dict[str, Any]) -> Answer:
    """`aof link`."""
    return _moved(context, "link", values)


def unlink(context: Context, values: dict[str, Any]) -> Answer:
    """`aof unlink`."""
    return _moved(context, "unlink", values)


def dep(context: Context, values: dict[str, Any]) -> Answer:
    """`aof dep add` and `aof dep rm`."""
    action = values.get("action", "add")
    if action not in ("add", "rm", "remove"):
        raise UsageError(f"'aof dep' knows add and rm, not '{action}'", "for example: aof dep add 002 001")
    operation = context.fabric.dep_add if action == "add" else context.fabric.dep_remove
    depends = operation(values["task_id"], values["blocker_id"])
    waits = ", ".join(depends.depends_on) or "nothing"
    return Answer(depends, lambda screen: screen.line(f"{depends.task_id}  waits for {waits}"))


def _moved(context: Context, operation: str, values: dict[str, Any]) -> Answer:
    moved = getattr(context.fabric, operation)(**values)
    return Answer(moved, lambda screen: screen.line(f"{moved.task_id}  {screen.paint(moved.status, moved.status)}"))


def _text(given: str) -> str:
    return sys.stdin.read() if given == "-" else given


def _metadata(pairs: list[str]) -> dict[str, Any]:
    values: dict[str, Any] = {}
    for pair in pairs:
        name, equals, text = pair.partition("=")
        if not equals or not name:
            raise UsageError(f"--meta needs KEY=JSON, not {pair!r}", "for example: --meta reviewRequired=false")
        try:
            values[name] = msgspec.json.decode(text)
        except msgspec.DecodeError:
            values[name] = text
    return values
