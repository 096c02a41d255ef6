"""How work flows: statuses by day, throughput, how long tasks take, how runs end. Must not count anything itself."""

from __future__ import annotations

from typing import Any

from aof.adapters.http.board.calls import Asker, PageAddress
from aof.adapters.http.board.views.spec import PageView
from aof.core.model.lifecycle import STATUSES

_SPANS = (7, 14, 30, 90, 365)
_BOTTOM_UP = ("done", "cancelled", "deadletter", "review", "in-progress", "blocked", "ready", "backlog")


def flow(ask: Asker, asked: PageAddress) -> dict[str, Any]:
    """The flow of some days."""
    days = asked.number("days", 30, least=1, most=366)
    found = ask("flow", days=days)
    shown = [one for one in _BOTTOM_UP if any(day["byStatus"].get(one) for day in found["days"])]
    chart = {
        "days": [day["day"] for day in found["days"]],
        "statuses": shown,
        "counts": [[day["byStatus"].get(status, 0) for day in found["days"]] for status in shown],
        "created": [day["created"] for day in found["days"]],
        "done": [day["done"] for day in found["days"]],
    }
    return {"flow": found, "chart": chart, "days": days, "spans": _SPANS, "statuses": STATUSES}


VIEW = PageView(name="flow", path="/flow", template="flow.html", title="Flow", key="f", context=flow)
