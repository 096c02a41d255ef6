"""Views over time: what happened, what agents hand over and write to each other, and how work goes."""

from __future__ import annotations

from itertools import groupby
from typing import Any, Final, get_args

import msgspec

from aof.errors import AofError
from aof.handoffs.model import HandoffState
from aof.kernel.events import Event
from aof.kernel.model import STATUSES, iso, millis
from aof.queries import read_models
from aof.queries.history import Story, stories
from aof.support.typed import prepare_type
from aof.surfaces.board import view
from aof.surfaces.board.view import Operations, PageAddress, PageView, words

_KINDS: Final = {"task": "Tasks", "worklog": "Worklog", "mail": "Mail", "handoff": "Handoffs"}
_HANDOFF_STATES: Final = ("open", *get_args(HandoffState), "all")
_MAIL_STATES: Final = ("unread", "acknowledged", "actioned", "blocked", "closed")
_STORIES: Final = 60  # of a page
_PIECE, _FARTHEST = 300, 20  # events that are read at once, and how many times for one page
_LISTED: Final = 50  # messages, handoffs, or entries of the worklog
_RUNS, _MOST_RUNS = 40, 500
_SPANS: Final = (1, 7, 14, 30, 90, 365)
_BOTTOM_UP: Final = ("done", "cancelled", "deadletter", "review", "in-progress", "blocked", "ready", "backlog")
_SHORTEST: Final = 7  # days of the charts: a single one shows no course
_ROW: Final = 26  # units of the drawing that a lane is high
_TICKS: Final = 6
_WIDE: Final = 1_000
_NARROWEST: Final = 2
_MINUTE: Final = 60_000
_DAY: Final = 24 * 60 * _MINUTE


def activity(ask: Operations, page: PageAddress) -> dict[str, Any]:
    """The latest stories, or one kind of what agents write to each other."""
    kind = page.text("kind") if page.text("kind") in _KINDS else None
    shared = {"kind": kind, "kinds": _KINDS, "agents": view.agent_names(ask)}
    match kind:
        case "worklog":
            return shared | {"titles": {}} | _worklog(ask, page)
        case "mail":
            return shared | {"titles": {}} | _mailbox(ask, page)
        case "handoff":
            own = _handoffs(ask, page)
            return shared | own | {"titles": _titles(ask, {one["context"]["task_id"] for one in own["handoffs"]})}
    agent, task_id = page.text("agent"), ask.task(page.text("task"))
    latest, before = _latest(ask, page.number("before", 0), kind, agent, task_id)
    names = {iso(ask.now())[:10]: "Today", iso(ask.now() - _DAY)[:10]: "Yesterday"}
    days = [
        {"day": day, "named": names.get(day, day), "stories": list(those)}
        for day, those in groupby(latest, key=lambda one: one.event.timestamp[:10])
    ]
    return shared | {
        "days": days,
        "titles": _titles(ask, {one.about for one in latest if one.about}),
        "agent": agent,
        "task_id": task_id,
        "before": before,
    }


def _handoffs(ask: Operations, page: PageAddress) -> dict[str, Any]:
    """Handoffs: the open ones unless the address names another state."""
    state = page.text("state") if page.text("state") in _HANDOFF_STATES else "open"
    found = ask(
        "handoff_list",
        task=ask.task(page.text("task")),
        from_agent=page.text("from"),
        to_agent=page.text("to"),
        state=None if state == "all" else state,
        limit=_LISTED,
        cursor=page.text("cursor"),
    )
    return {
        "handoffs": found["handoffs"],
        "total": found["total"],
        "state": state,
        "states": _HANDOFF_STATES,
        "next_cursor": found.get("nextCursor"),
    }


def _mailbox(ask: Operations, page: PageAddress) -> dict[str, Any]:
    """Messages, newest first."""
    status = page.text("status") if page.text("status") in _MAIL_STATES else None
    found = ask(
        "mail_list",
        agent=page.text("agent"),
        from_agent=page.text("from"),
        to=page.text("to"),
        status=status,
        limit=_LISTED,
        cursor=page.text("cursor"),
    )
    late = {one["messageId"] for one in found["overdue"]}
    return {
        "messages": [one | {"late": one["messageId"] in late} for one in found["messages"]],
        "total": found["total"],
        "chosen": status,
        "statuses": _MAIL_STATES,
        "next_cursor": found.get("nextCursor"),
    }


def _worklog(ask: Operations, page: PageAddress) -> dict[str, Any]:
    """The pinned lines, the decisions and the last entries."""
    limit = page.number("n", _LISTED, least=1, most=1_000)
    found = ask(
        "worklog_show",
        type=page.text("type"),
        agent=page.text("agent"),
        task=ask.task(page.text("task")),
        limit=limit,
    )
    return {
        "pinned": found["status"],
        "decisions": found["decisions"],
        "entries": found["entries"][::-1],
        "total": found["total"],
        "more": limit + _LISTED if found["total"] > len(found["entries"]) else None,
    }


def _latest(
    ask: Operations, before: int, kind: str | None, agent: str | None, task_id: str | None
) -> tuple[list[Story], int | None]:
    """Stories that match, newest first, and the number of the event before which the next page begins.

    What is rare is looked for so far back only; the next page goes on from there.
    """
    found: list[Story] = []
    for _ in range(_FARTHEST):
        cursor = read_models.place_in("log", str(before)) if before else None
        page = ask("log", task_id=task_id, limit=_PIECE, cursor=cursor)
        events = msgspec.convert(page["events"], prepare_type(list[Event]))
        if "nextCursor" in page:  # the first commit may have begun on the page before this one
            begun = next((place for place, one in enumerate(events) if one.begins == one.seq), 0)
            events = events[begun:]
        for story in reversed(list(stories(events))):
            if len(found) == _STORIES:
                return found, found[-1].event.begins
            if (kind or story.kind) == story.kind and agent in (None, story.who, story.event.actor):
                found.append(story)
        if not events or "nextCursor" not in page:
            return found, None
        before = events[0].seq
    return found, before


def _titles(ask: Operations, task_ids: set[str]) -> dict[str, str]:
    titles: dict[str, str] = {}
    for one in task_ids:
        try:
            titles[one] = ask("show", task_id=one, full=False)["title"]
        except AofError:
            titles[one] = one  # it cannot be read; the sentence is shown all the same
    return titles


def insights(ask: Operations, page: PageAddress) -> dict[str, Any]:
    """The flow of some days, and the runs in them."""
    days = page.number("days", 14, least=1, most=366)
    shared = {"days": days, "spans": _SPANS, "agents": view.agent_names(ask)}
    return {**shared, **_flow(ask, max(days, _SHORTEST)), **_runs(ask, page, days)}


def _flow(ask: Operations, days: int) -> dict[str, Any]:
    found = ask("flow", days=days)
    shown = [one for one in _BOTTOM_UP if any(day["byStatus"].get(one) for day in found["days"])]
    chart = {
        "days": [day["day"] for day in found["days"]],
        "statuses": shown,
        "words": [words(one) for one in shown],
        "counts": [[day["byStatus"].get(status, 0) for day in found["days"]] for status in shown],
        "created": [day["created"] for day in found["days"]],
        "done": [day["done"] for day in found["days"]],
    }
    return {"flow": found, "chart": chart, "statuses": STATUSES}


def _runs(ask: Operations, page: PageAddress, days: int) -> dict[str, Any]:
    """The runs, in lanes."""
    by = "task" if page.text("by") == "task" else "agent"
    now, limit = ask.now(), page.number("n", _RUNS, least=1, most=_MOST_RUNS)
    since = now - days * _DAY
    found = ask(
        "timeline", task_id=ask.task(page.text("task")), agent=page.text("agent"), since=iso(since), limit=limit
    )
    lanes: dict[str, list[dict[str, Any]]] = {}
    for row in found["rows"]:
        lanes.setdefault(row["agent"] if by == "agent" else row["taskId"], []).append(row)
    start = max(min((millis(row["startedAt"]) for row in found["rows"]), default=since), since)
    drawn = [
        {
            "name": name,
            "title": name if by == "agent" else rows[0]["title"],
            "y": place * _ROW,
            "bars": [bar for row in rows for bar in _bars(row, start, now)],
        }
        for place, (name, rows) in enumerate((name, track) for name, rows in lanes.items() for track in _tracks(rows))
    ]
    ticks = [
        {"x": _WIDE * number / _TICKS, "at": _tick_text(start + (now - start) * number // _TICKS, now - start)}
        for number in range(_TICKS)
    ]
    return {
        "rows": found["rows"],
        "total": found["total"],
        "lanes": drawn,
        "ticks": ticks,
        "height": len(drawn) * _ROW,
        "by": by,
        "more": min(limit + _RUNS, _MOST_RUNS) if found["total"] > limit else None,
    }


def _tracks(rows: list[dict[str, Any]]) -> list[list[dict[str, Any]]]:
    """The runs of one lane, the last one first, in as many lines as are needed so that none covers another."""
    tracks: list[list[dict[str, Any]]] = []
    for row in rows:
        ends = millis(row["endedAt"]) if "endedAt" in row else None
        free = (one for one in tracks if ends is not None and ends <= millis(one[-1]["startedAt"]))
        track = next(free, None)
        if track is None:
            tracks.append([row])
        else:
            track.append(row)
    return tracks


def _tick_text(moment: int, span: int) -> str:
    """A moment, as precise as the ticks of a chart over this span need it."""
    text = iso(moment)
    return text[11:19] if span < _TICKS * _MINUTE else text[11:16] if span <= _DAY else f"{text[5:10]} {text[11:16]}"


def _bars(row: dict[str, Any], start: int, now: int) -> list[dict[str, Any]]:
    """A run as a bar, and over it the times in which it waited."""
    end = millis(row["endedAt"]) if "endedAt" in row else now
    text = f"{row['agent']} · {row['title']} · {words(row['status'])}"
    whole = _bar(start, now, millis(row["startedAt"]), end) | {"kind": row["status"], "text": text, "row": row}
    waits = [
        _bar(start, now, millis(wait["since"]), min(millis(wait["until"]) if "until" in wait else end, end))
        | {"kind": "waited", "text": f"{text}: waited for an answer", "row": row}
        for wait in row["waits"]
    ]
    return [whole, *waits]


def _bar(start: int, end: int, since: int, until: int) -> dict[str, Any]:
    width = max(end - start, 1)
    left = _WIDE * (max(since, start) - start) / width
    return {"x": round(left, 1), "width": round(max(_WIDE * (until - max(since, start)) / width, _NARROWEST), 1)}


ACTIVITY = PageView(
    name="activity", path="/activity", template="activity.html", title="Activity", key="v", context=activity
)
INSIGHTS = PageView(
    name="insights", path="/insights", template="insights.html", title="Insights", key="i", context=insights
)
