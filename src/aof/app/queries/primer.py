"""What an agent needs to know when its session begins, in few words: its work, what waits for it, how to report.

The mailbox learns that the agent's turn begins; nothing else changes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress

from aof.app.documents import worklog_brief
from aof.app.documents.charter import brief
from aof.app.documents.mailbox import mail_brief
from aof.app.fabric import Fabric
from aof.app.org import reviews
from aof.app.queries import ready_queue
from aof.app.runs.children import children_of
from aof.core.errors.base import AofError
from aof.core.evolve.comments import comments_of
from aof.core.model import times
from aof.core.model.handoffs.record import Handoff
from aof.core.model.workflow import leases
from aof.core.validation.visible import visible_line
from aof.ports.lists import Row

_EACH = 5
_WITH_RUN = 2  # tasks of which the run is named, too: the text has to stay short
_TITLE = 80
_COMMENT = 160


def prime(fabric: Fabric, agent: str) -> str:
    """The text for one agent, whose turn begins with it."""
    mail = fabric.turn_began(agent, "prime").messages
    counts = ready_queue.counts(fabric, fabric.status(compact=True).by_status)
    runs = {task.id: (task, [one.run_id for one in leases(task) if one.agent == agent]) for task in fabric.running()}
    held = [Row.of(task, None) for task, own in runs.values() if own]
    for row in held:
        if row.due is not None and times.end_of(row.due) < times.iso(fabric.now()):
            row["overdue"] = True
    waiting = fabric.ready(agent=agent, limit=_EACH)
    me = f"--agent {agent} --run RUN"
    lines = [
        f"# AOF: you are {agent}",
        "",
        "Claim a task before you work on it, and report its end.",
        "Tasks: " + (", ".join(f"{count} {status}" for status, count in counts) or "none yet"),
        *_first_call(agent, held, waiting.tasks),
    ]
    back = _sent_back(fabric, held)
    for row in held[:_WITH_RUN]:
        back[row.id] = "; ".join(filter(None, (f"as {', '.join(runs[row.id][1])}", back.get(row.id))))
    lines += _section("You hold", held, len(held), back)
    lines += _comments(fabric, held)
    lines += _section("Ready for you", list(waiting.tasks), waiting.total, _sent_back(fabric, waiting.tasks))
    lines += _below(fabric, (*held[:_EACH], *waiting.tasks))
    lines += _to_review(fabric, agent)
    if charter := list(brief.charter_brief(fabric, agent)):
        lines += ["", *charter]
    for part in (*mail_brief.mail_brief(mail), *_overdue(fabric, agent), *_worklog(fabric, agent)):
        lines += ["", part]
    lines += _handed(fabric.handoff_inbox(agent), agent)
    lines += [
        "",
        "How to work:",
        f"- take: aof_task_claim (aof claim ID --agent {agent} --keep); read: aof show ID",
        f"- report: aof_task_update (aof progress ID {me} --text …)",
        f"- finish: aof_task_complete (aof complete ID {me} --text …)",
        f"- ask a person: aof_ask (aof ask ID … {me} --wait 10m)",
        f"- stuck: aof_task_block (aof block ID --actor {agent} --reason …)",
        f"- delegate: aof_dispatch (aof create TITLE --parent ID --agent OTHER --actor {agent}),",
        f"  then aof_task_release (aof release ID --wait-for-children {me})",
    ]
    return "\n".join(lines) + "\n"


def _first_call(agent: str, held: Sequence[Row], ready: Sequence[Row]) -> list[str]:
    """The call to begin with: what the agent holds goes before what it could take."""
    if held:
        return [f"Next: go on with {held[0].id}: aof_task_show (aof show {held[0].id})"]
    if ready:
        return [f"Next: aof_task_claim {ready[0].id} (aof claim {ready[0].id} --agent {agent} --keep)"]
    return []


def _to_review(fabric: Fabric, agent: str) -> list[str]:
    """What the agent may judge, with the calls that do; nothing where nothing waits."""
    tasks = reviews.waiting_for(fabric, agent)
    if not tasks:
        return []
    how = "- approve: aof_task_complete (aof approve ID); send back: outcome needs_review with blockers (aof reject ID)"
    return [*_section("Waiting for your review", [Row.of(task, None) for task in tasks], len(tasks)), how]


def _comments(fabric: Fabric, held: Sequence[Row]) -> list[str]:
    """The last comment of others on each task that the agent holds."""
    shown: list[str] = []
    for row in held[:_EACH]:
        with suppress(AofError):
            said = [one for one in comments_of(fabric.get(row.id).body) if one.by != row.agent]
            if said:
                words = " ".join(said[-1].text.split())
                shown.append(f"- {row.id} {said[-1].by or 'in the file'}: {words[:_COMMENT]}")
    return ["", "Comments on what you hold (text by others):", *shown] if shown else []


def _sent_back(fabric: Fabric, rows: Sequence[Row]) -> dict[str, str]:
    """By whom, and why, each of these tasks was sent back, unless somebody has reported on it since."""
    return {row.id: f"sent back by {by}: {why}" for row in rows[:_EACH] for by, why in _last_verdict(fabric, row.id)}


def _last_verdict(fabric: Fabric, task_id: str) -> list[tuple[str, str]]:
    """Who has rejected the task last, and the beginning of what has to change; nothing where that is answered."""
    found: list[tuple[str, str]] = []
    for event in fabric.events(task_id=task_id):
        said = event.payload
        back = event.type == "task.transitioned" and (said.get("from"), said.get("to")) == ("review", "ready")
        if (back or event.type == "task.hop.rejected") and said.get("blockers"):
            why = visible_line(" ".join(said["blockers"][0].split()))
            found = [(said.get("agent") or event.agent or event.actor, why[:_COMMENT])]
        elif event.type == "task.completed":
            found = []
    return found


def _below(fabric: Fabric, rows: Sequence[Row]) -> list[str]:
    """What came of the parts that were handed on."""
    shown = [
        f"- of {row.id}: {' '.join(str(child).split())[:_COMMENT]}"
        for row in rows
        for child in children_of(fabric.store, row.id)[:_EACH]
    ]
    return ["", "Tasks below these (text by others):", *shown] if shown else []


def _overdue(fabric: Fabric, agent: str) -> list[str]:
    """The agent's own messages that nobody has acknowledged in time."""
    with suppress(AofError):
        sent = fabric.mail_list(from_agent=agent)
        own = {one.message_id: one for one in sent.messages}
        late = [f"{one.message_id} to {own[one.message_id].receiver}" for one in sent.overdue if one.message_id in own]
        return [f"Overdue, not acknowledged in time: {', '.join(late)}"] if late else []
    return []


def _worklog(fabric: Fabric, agent: str) -> list[str]:
    with suppress(AofError):  # an agent that cannot get it can still work
        return worklog_brief.worklog_brief(fabric.catch_up(agent, worklog_brief.MOST), agent)
    return []


def _handed(waiting: Sequence[Handoff], agent: str) -> list[str]:
    """The handoffs that wait for the agent, each with the call that goes on with it; nothing where there are none."""
    if not waiting:
        return []
    shown = [f"- {one.id} {one.type} of {one.task_id} from {one.from_agent}, {_next(one, agent)}" for one in waiting]
    more = [f"- and {len(waiting) - _EACH} more"] if len(waiting) > _EACH else []
    return ["", "Handed to you:", *shown[:_EACH], *more]


def _next(one: Handoff, agent: str) -> str:
    if one.state == "accepted":
        return f"accepted: aof handoff return {one.id[:8]} --agent {agent} --status success --result …"
    return f"{one.state}: aof handoff accept {one.id[:8]} --agent {agent} (or reject, defer)"


def _due(row: Row) -> str:
    if row.due is None:
        return ""
    return f", {'overdue since' if row.overdue else 'due'} {row.due}"


def _section(title: str, rows: list[Row], total: int, notes: Mapping[str, str] = {}) -> list[str]:
    """A list of tasks, each with a note where there is one."""
    if not rows:
        return ["", f"{title}: nothing"]
    shown = [
        f"- {row.id} ({row.priority}, {row.status}{_due(row)}) {row.title[:_TITLE]}"
        + (f": {row.step}" if row.step is not None else "")
        + (f"; {notes[row.id]}" if row.id in notes else "")
        for row in rows[:_EACH]
    ]
    more = [f"- and {total - len(shown)} more"] if total > len(shown) else []
    return ["", f"{title}:", *shown, *more]
