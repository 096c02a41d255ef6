"""Verbs that change a task and need more than the operation's result."""

from __future__ import annotations

from typing import Any

from aof.adapters.cli.commands.operation import perform
from aof.adapters.cli.output import Answer, Context
from aof.adapters.cli.spec.parser import UsageError
from aof.adapters.cli.terminal.screen import Screen


def claim(context: Context, values: dict[str, Any]) -> Answer:
    """`aof claim`."""
    given = {"agent": context.fabric.actor} | values
    claimed = context.fabric.claim(**given)

    def text(screen: Screen) -> None:
        screen.line(f"{claimed.task_id}  claimed by {given['agent']} as {claimed.run_id}, until {claimed.expires_at}")
        if context.fabric.needs_secret and isinstance(claimed.secret, str):
            screen.line(f"AOF_RUN_SECRET={claimed.secret}")

    return Answer(claimed, text)


def dep(context: Context, values: dict[str, Any]) -> Answer:
    """`aof dep add` and `aof dep rm`."""
    given = dict(values)
    action = given.pop("action", "add")
    if action not in ("add", "rm", "remove"):
        raise UsageError(f"'aof dep' knows add and rm, not '{action}'", "for example: aof dep add 002 001")
    return perform(context, "dep_add" if action == "add" else "dep_remove", given)


def bulk(context: Context, values: dict[str, Any]) -> Answer:
    """`aof bulk`."""
    report = context.fabric.bulk(**values)

    def text(screen: Screen) -> None:
        rows = [
            (one.task_id, one.outcome, one.status, one.title if one.error is None else one.error.message)
            for one in report.items
        ]
        if rows:
            screen.table(("TASK", "OUTCOME", "STATUS", ""), rows, whole=True)
        also = sum(len(one.also) for one in report.items)
        said = f"{report.changed} {'would change' if report.dry_run else 'changed'}, {report.unchanged} unchanged"
        more = f"; with them {also} other {'task' if also == 1 else 'tasks'}" if also else ""
        screen.line(f"{said}, {report.refused} refused{more}")

    return Answer(report, text, 1 if report.refused else 0)
