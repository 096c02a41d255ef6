"""Every view, in the order of the navigation. A new view is a module and a line here."""

from __future__ import annotations

from typing import Final

from aof.adapters.http.board.views import (
    activity,
    agents,
    board,
    correspondence,
    flow,
    graph,
    needs,
    past,
    task,
    timeline,
    workflow,
)
from aof.adapters.http.board.views.spec import PageView

VIEWS: Final[tuple[PageView, ...]] = (
    needs.VIEW,
    board.VIEW,
    agents.VIEW,
    workflow.CHOICE,
    timeline.VIEW,
    graph.CHOICE,
    correspondence.HANDOFFS,
    correspondence.MAILBOX,
    correspondence.WORKLOG,
    flow.VIEW,
    activity.VIEW,
    task.VIEW,
    workflow.VIEW,
    graph.VIEW,
    past.VIEW,
)
