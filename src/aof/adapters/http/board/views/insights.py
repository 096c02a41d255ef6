"""How work goes: statuses by day, throughput, how long tasks take, and the runs, by task or by agent.

What runs worked stands apart from what they waited. Must not know the log, nor count anything itself.
"""

from __future__ import annotations

from typing import Any, Final

from aof.adapters.http.board.calls import Asker, PageAddress
from aof.adapters.http.board.rendering import words
from aof.adapters.http.board.views import completion
from aof.adapters.http.board.views.spec import PageView
from aof.core.model.lifecycle import STATUSES
from aof.core.model.times import iso, millis

_EACH, _MOST = 40, 500
_SPANS: Final = (1, 7, 14, 30, 90, 365)
_BOTTOM_UP: Final = ("done", "cancelled", "deadletter", "review", "in-progress", "blocked", "ready", "backlog")
_SHORTEST: Final = 7  # days of the charts: a single one shows no course
_ROW: Final = 26  # units of the drawing that a lane is high
_TICKS: Final = 6
_WIDE: Final = 1_000
_NARROWEST: Final = 2
_MINUTE: Final = 60_000
_DAY: Final = 24 * 60 * _MINUTE


def insights(ask: Asker, asked: PageAddress) -> dict[str, Any]:
    """The flow of some days, and the runs in them."""
    days = asked.number("days", 14, least=1, most=366)
    shared = {"days": days, "spans": _SPANS, "agents": completion.agents(ask)}
    return {**shared, **_flow(ask, max(days, _SHORTEST)), **_runs(ask, asked, days)}


def _flow(ask: Asker, days: int) -> dict[str, Any]:
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


def _runs(ask: Asker, asked: PageAddress, days: int) -> dict[str, Any]:
    """The runs, in lanes."""
    by = "task" if asked.text("by") == "task" else "agent"
    now, limit = ask.now(), asked.number("n", _EACH, least=1, most=_MOST)
    since = now - days * _DAY
    found = ask(
        "timeline", task_id=ask.task(asked.text("task")), agent=asked.text("agent"), since=iso(since), limit=limit
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
        {"x": _WIDE * number / _TICKS, "at": _said(start + (now - start) * number // _TICKS, now - start)}
        for number in range(_TICKS)
    ]
    return {
        "rows": found["rows"],
        "total": found["total"],
        "lanes": drawn,
        "ticks": ticks,
        "height": len(drawn) * _ROW,
        "by": by,
        "more": min(limit + _EACH, _MOST) if found["total"] > limit else None,
    }


def _tracks(rows: list[dict[str, Any]]) -> list[list[dict[str, Any]]]:
    """The runs of one lane, the last one first, in as many lines as it takes that none covers another."""
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


def _said(moment: int, span: int) -> str:
    """A moment as finely as the span needs it to tell the ticks apart."""
    text = iso(moment)
    return text[11:19] if span < _TICKS * _MINUTE else text[11:16] if span <= _DAY else f"{text[5:10]} {text[11:16]}"


def _bars(row: dict[str, Any], start: int, now: int) -> list[dict[str, Any]]:
    """A run as a bar, and over it the times in which it waited."""
    end = millis(row["endedAt"]) if "endedAt" in row else now
    said = f"{row['agent']} · {row['title']} · {words(row['status'])}"
    whole = _bar(start, now, millis(row["startedAt"]), end) | {"kind": row["status"], "said": said, "row": row}
    waits = [
        _bar(start, now, millis(wait["since"]), min(millis(wait["until"]) if "until" in wait else end, end))
        | {"kind": "waited", "said": f"{said}: waited for an answer", "row": row}
        for wait in row["waits"]
    ]
    return [whole, *waits]


def _bar(start: int, end: int, since: int, until: int) -> dict[str, Any]:
    width = max(end - start, 1)
    left = _WIDE * (max(since, start) - start) / width
    return {"x": round(left, 1), "width": round(max(_WIDE * (until - max(since, start)) / width, _NARROWEST), 1)}


VIEW = PageView(
    name="insights", path="/insights", template="insights.html", title="Insights", key="i", context=insights
)
