"""Runs over time, by task or by agent: what they worked apart from what they waited. Must not know the log."""

from __future__ import annotations

from typing import Any, Final

from aof.adapters.http.board.calls import Asker, PageAddress
from aof.adapters.http.board.views.spec import PageView
from aof.core.model.times import iso, millis

_EACH, _MOST = 60, 500
_HOURS: Final = {"1h": 1, "6h": 6, "1d": 24, "7d": 168, "30d": 720}
_ROW: Final = 26  # units of the drawing that a lane is high
_TICKS: Final = 6
_WIDE: Final = 1_000
_NARROWEST: Final = 2
_MINUTE: Final = 60_000
_DAY: Final = 24 * 60 * _MINUTE


def timeline(ask: Asker, asked: PageAddress) -> dict[str, Any]:
    """The runs of a span of time, in lanes."""
    span = asked.text("span") if asked.text("span") in _HOURS else "1d"
    by = "agent" if asked.text("by") == "agent" else "task"
    now, limit = ask.now(), asked.number("n", _EACH, least=1, most=_MOST)
    since = now - _HOURS[str(span)] * 3_600_000
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
        "span": span,
        "spans": _HOURS,
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
    said = f"{row['agent']} · {row['title']} · {row['status']}"
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
    name="timeline", path="/timeline", template="timeline.html", title="Timeline", key="t", context=timeline
)
