"""What happened, in sentences by day; worklog, mail and handoffs as agents wrote them. Must not word events itself."""

from __future__ import annotations

from itertools import groupby
from typing import Any, Final

import msgspec

from aof._support.typed import prepare_type
from aof.adapters.http.board.calls import Asker, PageAddress
from aof.adapters.http.board.views import completion, correspondence
from aof.adapters.http.board.views.spec import PageView
from aof.app.queries import cursors
from aof.app.queries.stories import Story, stories
from aof.core.errors.base import AofError
from aof.core.model.events import Event
from aof.core.model.times import iso

_EACH: Final = 60  # stories of a page
_PIECE, _FARTHEST = 300, 20  # events that are read at once, and how many times for one page
_DAY_MS: Final = 86_400_000
KINDS: Final = {"task": "Tasks", "worklog": "Worklog", "mail": "Mail", "handoff": "Handoffs"}
_OWN: Final = {
    "worklog": correspondence.worklog,
    "mail": correspondence.mailbox,
    "handoff": correspondence.handoffs,
}


def activity(ask: Asker, asked: PageAddress) -> dict[str, Any]:
    """The latest stories, or one kind of what agents write to each other."""
    kind = asked.text("kind") if asked.text("kind") in KINDS else None
    shared = {"kind": kind, "kinds": KINDS, "agents": completion.agents(ask)}
    if (own := _OWN.get(kind or "")) is not None:
        found = own(ask, asked)
        return (
            shared | found | {"titles": _titles(ask, {one["context"]["task_id"] for one in found.get("handoffs", ())})}
        )
    agent, task_id = asked.text("agent"), ask.task(asked.text("task"))
    told, before = _latest(ask, asked.number("before", 0), kind, agent, task_id)
    today = iso(ask.now())[:10]
    yesterday = iso(ask.now() - _DAY_MS)[:10]
    named = {today: "Today", yesterday: "Yesterday"}
    days = [
        {"day": day, "named": named.get(day, day), "stories": list(those)}
        for day, those in groupby(told, key=lambda one: one.event.timestamp[:10])
    ]
    return shared | {
        "days": days,
        "titles": _titles(ask, {one.about for one in told if one.about}),
        "agent": agent,
        "task_id": task_id,
        "before": before,
    }


def _latest(
    ask: Asker, before: int, kind: str | None, agent: str | None, task_id: str | None
) -> tuple[list[Story], int | None]:
    """Stories that match, newest first, and the number of the event before which the next page begins.

    What is rare is looked for so far back only; the next page goes on from there.
    """
    found: list[Story] = []
    for _ in range(_FARTHEST):
        cursor = cursors.place_in("log", str(before)) if before else None
        page = ask("log", task_id=task_id, limit=_PIECE, cursor=cursor)
        events = msgspec.convert(page["events"], prepare_type(list[Event]))
        if "nextCursor" in page:  # the first commit may have begun on the page before this one
            begun = next((place for place, one in enumerate(events) if one.begins == one.seq), 0)
            events = events[begun:]
        for story in reversed(list(stories(events))):
            if len(found) == _EACH:
                return found, found[-1].event.begins
            if (kind or story.kind) == story.kind and agent in (None, story.who, story.event.actor):
                found.append(story)
        if not events or "nextCursor" not in page:
            return found, None
        before = events[0].seq
    return found, before


def _titles(ask: Asker, task_ids: set[str]) -> dict[str, str]:
    titles: dict[str, str] = {}
    for one in task_ids:
        try:
            titles[one] = ask("show", task_id=one, full=False)["title"]
        except AofError:
            titles[one] = one  # it cannot be read; the sentence is shown all the same
    return titles


VIEW = PageView(
    name="activity", path="/activity", template="activity.html", title="Activity", key="v", context=activity
)
