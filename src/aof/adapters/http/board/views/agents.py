"""The agents: last sign of life, load against capacity, what each holds. Must not judge whether one is well."""

from __future__ import annotations

from typing import Any

from aof.adapters.http.board.calls import Asker, PageAddress
from aof.adapters.http.board.views.spec import PageView

_MOST = 500


def agents(ask: Asker, asked: PageAddress) -> dict[str, Any]:
    """All agents, or those whose name or team has this text."""
    found = ask("agents", limit=_MOST)
    text = (asked.text("q") or "").casefold()
    kept = [one for one in found["agents"] if text in f"{one['id']} {one.get('name')} {one.get('team')}".casefold()]
    return {"agents": kept, "total": found["total"], "text": asked.text("q") or ""}


VIEW = PageView(name="agents", path="/agents", template="agents.html", title="Agents", key="a", context=agents)
