"""Views for people who supervise agents, on a terminal. Must not know where the data comes from."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from aof.surfaces.cli.operations import WORDS
from aof.surfaces.cli.screen import Screen

_LONG = 60  # characters of a value
_NAMED = ("agent", "lease")  # kinds whose reason names the agent
_MINUTE, _HOUR, _DAY = 60, 3_600, 86_400


def inbox(screen: Screen, page: Any) -> None:
    """What needs a person, with the verbs that go on with each."""
    if not page.items:
        screen.line("nothing needs a person")
        return
    rows = [
        (one.task_id or one.message_id or one.agent, _kind(one), lasted(one.age), _verbs(one), _said(one))
        for one in page.items
    ]
    screen.table(("WHAT", "NEEDS", "FOR", "NEXT", "WHY"), rows)
    _rest(screen, page, len(page.items))


def _kind(one: Any) -> str:
    """What it is, in the word that people use."""
    return "review" if one.kind == "gate" else str(one.kind)


def _verbs(one: Any) -> str:
    """The verbs to use next; `show` only where there is no other."""
    return (
        ", ".join(WORDS.get(call.operation, call.operation) for call in one.next if call.operation != "show") or "show"
    )


def _said(one: Any) -> str:
    words = " ".join(one.reason.split())
    named = f"{one.question} " if one.question else f"{one.hop}: " if one.hop else ""
    who = f" ({one.agent})" if one.agent and one.kind not in _NAMED else ""
    return f"{named}{words}{choices_of(one.choices or ())}{who}" + (f"  · {one.title}" if one.title else "")


def choices_of(choices: Sequence[str]) -> str:
    """The answers that a question offers, to stand after its text."""
    return f" [{' | '.join(choices)}]" if choices else ""


def _rest(screen: Screen, page: Any, shown: int) -> None:
    if page.total > shown:
        screen.say((f"… {page.total - shown} more", "dim"))


def agents(screen: Screen, page: Any) -> None:
    """Who is at work, and on what."""
    if not page.agents:
        screen.line("no agents")
        return
    rows = []
    for one in page.agents:
        state = "silent" if not one.available else "inactive" if not one.active else "busy" if one.load else "idle"
        load = f"{one.load}/{one.capacity}" if isinstance(one.capacity, int) else str(one.load)
        rows.append((one.id, state, load, (one.last_seen or "-")[:19], _holds(one)))
    screen.table(("AGENT", "STATE", "LOAD", "LAST SEEN", "HOLDS"), rows)
    _rest(screen, page, len(page.agents))


def _holds(one: Any) -> str:
    held = [f"{work.task_id} ({'expired' if work.expired else lasted(work.left) + ' left'})" for work in one.holds]
    return ", ".join(held) or (one.reason or "-")


def moves(screen: Screen, found: Any) -> None:
    """What may be done with a task now."""
    screen.line(f"{found.task_id}  {screen.paint(found.status, found.status)}")
    rows = [(one.operation, one.to or "-", ", ".join(one.asks) or "-") for one in found.actions]
    screen.table(("ACTION", "TO", "NEEDS"), rows)


def timeline(screen: Screen, page: Any) -> None:
    """Runs, the last one first."""
    if not page.rows:
        screen.line("nothing was run")
        return
    rows = [
        (one.task_id, one.agent, one.started_at[:19], one.status, lasted(one.working), lasted(one.waiting), one.title)
        for one in page.rows
    ]
    screen.table(("ID", "AGENT", "STARTED", "RUN", "WORKED", "WAITED", "TITLE"), rows)
    _rest(screen, page, len(page.rows))


def neighbourhood(screen: Screen, found: Any) -> None:
    """The tasks around one."""
    rows = [(one.id, one.status, str(one.depth), one.title) for one in found.nodes]
    screen.table(("ID", "STATUS", "DISTANCE", "TITLE"), rows, colour_by=(1,))
    for edge in found.edges:
        screen.line(f"{edge.source} {edge.kind} {edge.target}")
    if found.left_out:
        screen.say((f"… {found.left_out} more", "dim"))


def flow(screen: Screen, found: Any) -> None:
    """How work flows."""
    moved = [day for day in found.days if day.by_status]
    rows = [
        (
            day.day,
            str(day.created),
            str(day.done),
            ", ".join(f"{count} {name}" for name, count in day.by_status.items()),
        )
        for day in moved
    ]
    screen.table(("DAY", "CREATED", "DONE", "AT END OF DAY"), rows or [("-", "0", "0", "no tasks yet")])
    for name, times in (("lead time", found.lead_time), ("cycle time", found.cycle_time)):
        shown = ", ".join(f"{share} % within {lasted(getattr(times, f'p{share}'))}" for share in (50, 75, 90, 95))
        screen.line(
            f"{name} of {times.count} finished task{'' if times.count == 1 else 's'}: {shown}"
            if times.count
            else f"{name}: no task finished"
        )
    ended = [
        (one.agent, str(one.attempts), str(one.completed), str(one.failed), str(one.expired)) for one in found.agents
    ]
    if ended:
        screen.table(("AGENT", "RUNS", "COMPLETED", "FAILED", "EXPIRED"), ended)


def moment(screen: Screen, found: Any) -> None:
    """One task after one event, and what that changed."""
    event = found.event
    screen.line(f"{found.task_id}  event {found.seq} ({found.number} of {found.events}): {event['type']}")
    if not found.changed:
        screen.line("this event changed no field")
        return
    from aof.queries.history import excerpts  # which only this view needs

    rows = [(one.field, *excerpts(one.before, one.after, _LONG)) for one in found.changed]
    screen.table(("FIELD", "BEFORE", "AFTER"), rows, whole=True)


def lasted(seconds: int) -> str:
    """A length of time in one unit."""
    size, unit = next(((size, unit) for size, unit in _UNITS if abs(seconds) >= size), (1, "s"))
    return f"{seconds // size if seconds >= 0 else -(-seconds // size)}{unit}"


_UNITS: Sequence[tuple[int, str]] = ((_DAY, "d"), (_HOUR, "h"), (_MINUTE, "m"))


_SOURCES = {
    "given": "--actor",
    "environment": "$AOF_ACTOR",
    "run": "the secret of its run",
    "token": "a token",
    "session": "the session",
    "user": "the user of this machine",
}
_FOUND = {"given": "--data-dir", "environment": "$AOF_DATA_DIR", "folder": "the current folder"}


def whoami(screen: Screen, who: Any) -> None:
    """`aof whoami`."""
    rights = ["maintainer"] if who.maintainer else []
    rights += [who.kind] if who.kind is not None and who.kind not in rights else []
    rights += [f"roles {', '.join(who.roles)}"] if who.roles else []
    rights += ["may act for others"] if who.acts_for_others else ["acts as itself only"]
    rows = [("actor", f"{who.actor} (from {_SOURCES[who.source]})"), ("rights", ", ".join(rights))]
    rows += [("run", who.run_id)] if who.run_id is not None else []
    rows += [("scope", who.scope)] if who.scope is not None else []
    if who.data_dir is not None and who.found_by is not None:
        rows.append(("data", f"{who.data_dir} (from {_FOUND[who.found_by]})"))
    rows += [("lane", who.lane)] if who.lane not in (None, "root") else []
    rows.append(("version", f"aof {who.version}, Python {who.python}, format {who.format}"))
    for name, said in rows:
        screen.say((f"{name:<9}", "dim"), str(said), cut_off=False)
