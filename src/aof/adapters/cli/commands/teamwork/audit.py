"""`aof audit`: the audit records of handoffs, whether they are what was written, and what need not be kept."""

from __future__ import annotations

from typing import Any

from aof.adapters.cli.output import Answer, Context
from aof.adapters.cli.spec.parser import UsageError
from aof.adapters.cli.terminal.screen import Screen

_PROBLEMS = 1


def audit(context: Context, values: dict[str, Any]) -> Answer:
    """`aof audit [list]`, `aof audit verify` and `aof audit prune`."""
    actions = {"list": _list, "verify": _verify, "prune": _prune}
    given = dict(values)
    action = given.pop("action", "list")
    if action not in actions:
        raise UsageError(f"'aof audit' knows list, verify and prune, not '{action}'", "for example: aof audit verify")
    allowed = {"verify": set[str](), "prune": {"dry_run"}, "list": given.keys() - {"dry_run"}}[action]
    if wrong := sorted(given.keys() - allowed):
        name = f"--{wrong[0].removesuffix('_agent').replace('_', '-')}"
        raise UsageError(f"'aof audit {action}' does not take {name}", f"for example: aof audit {action}")
    return actions[action](context, given)


def _list(context: Context, given: dict[str, Any]) -> Answer:
    found = context.fabric.audit(**given)

    def text(screen: Screen) -> None:
        rows = [
            (
                one.timestamp,
                one.event_type if one.status is None else f"{one.event_type} ({one.status})",
                f"{one.from_agent} → {one.to_agent}",
                one.handoff_type,
                one.context_snapshot.task_id,
                one.handoff_id,
                one.reason,
            )
            for one in found.records
        ]
        if rows:
            screen.table(("WHEN", "STEP", "FROM → TO", "TYPE", "TASK", "HANDOFF", "REASON"), rows)
        else:
            screen.line("there are no such audit records")
        if found.more:
            screen.line(f"there are more: aof audit --after {found.records[-1].seq}")

    return Answer(found, text)


def _verify(context: Context, _given: dict[str, Any]) -> Answer:
    found = context.fabric.audit_verify()

    def text(screen: Screen) -> None:
        for problem in found.problems:
            screen.line(f"{problem.detail} [{problem.code}]")
        if found.ok:
            screen.line(f"{found.checked} audit records are what was written")

    return Answer(found, text, 0 if found.ok else _PROBLEMS)


def _prune(context: Context, given: dict[str, Any]) -> Answer:
    done = context.fabric.audit_prune(**given)

    def text(screen: Screen) -> None:
        verb = "would be removed" if done.dry_run else "removed"
        for one in done.removed:
            screen.line(f"{one.path}: {one.records} records {verb}")
        if not done.removed:
            screen.line("every record is still to be kept")

    return Answer(done, text)
