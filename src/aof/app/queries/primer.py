"""What an agent needs to know when its session begins, in few words: its work, what waits for it, how to report.

The mailbox learns that the agent's turn begins; nothing else changes.
"""

from __future__ import annotations

from aof.app.documents.charter import brief
from aof.app.documents.mailbox import mail_brief
from aof.app.fabric import Fabric
from aof.ports.lists import Row

_EACH = 5
_TITLE = 80


def prime(fabric: Fabric, agent: str) -> str:
    """The text for one agent, whose turn begins with it."""
    mail = fabric.turn_began(agent, "prime").messages
    counts = fabric.status(compact=True).by_status
    held = [Row.of(task, None) for task in fabric.running() if task.lease and task.lease.agent == agent]
    waiting = fabric.ready(agent=agent, limit=_EACH)
    lines = [
        f"# AOF: you are {agent}",
        "",
        "Tasks live in a shared fabric. A claim has one winner and a lease; report when you are done.",
        "Tasks: " + (", ".join(f"{count} {status}" for status, count in counts.items()) or "none yet"),
    ]
    lines += _section("You hold", held, len(held))
    lines += _section("Ready for you", list(waiting.tasks), waiting.total)
    if charter := list(brief.charter_brief(fabric, agent)):
        lines += ["", *charter]
    for part in mail_brief.mail_brief(mail):
        lines += ["", part]
    lines += [
        "",
        "How to work:",
        f"- take: aof_task_claim (CLI: aof claim --agent {agent}); read it: aof_task_show (aof show ID)",
        "- while working: aof_task_update with a work log in the body, or aof progress ID --text …",
        "- finish: aof_task_complete with a summary (aof complete ID --summary …); stuck: aof_task_block with a reason",
        "- new work for others: aof_dispatch (aof create TITLE --brief … --agent A)",
        "- an error names the call that works; follow it",
    ]
    return "\n".join(lines) + "\n"


def _section(title: str, rows: list[Row], total: int) -> list[str]:
    if not rows:
        return ["", f"{title}: nothing"]
    shown = [f"- {row.id} ({row.priority}, {row.status}) {row.title[:_TITLE]}" for row in rows[:_EACH]]
    more = [f"- and {total - len(shown)} more"] if total > len(shown) else []
    return ["", f"{title}:", *shown, *more]
