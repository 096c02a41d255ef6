"""Every view, in the order of the navigation, and where old addresses lead. A new view is a module and a line here."""

from __future__ import annotations

from typing import Final

from aof.adapters.http.board.views import activity, agents, board, graph, insights, needs, past, task, workflow
from aof.adapters.http.board.views.spec import PageView

VIEWS: Final[tuple[PageView, ...]] = (
    needs.VIEW,
    board.VIEW,
    agents.VIEW,
    graph.VIEW,
    activity.VIEW,
    insights.VIEW,
    workflow.CHOICE,
    task.VIEW,
    workflow.VIEW,
    graph.AROUND,
    past.VIEW,
)
MOVED: Final = {
    "/worklog": "/activity?kind=worklog",
    "/mailbox": "/activity?kind=mail",
    "/handoffs": "/activity?kind=handoff",
    "/timeline": "/insights",
    "/flow": "/insights",
}
