"""What the fields of filters are completed from: the names that there are. Must not know which view asks."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from aof.adapters.http.board.calls import Asker

_AGENTS: Final = 500
_TAGS: Final = 100


def agents(ask: Asker) -> list[str]:
    """The agents; none for somebody who may not ask for them."""
    return [one["id"] for one in ask("agents", limit=_AGENTS)["agents"]] if ask.may("agents") else []


def tags(tasks: Iterable[Mapping[str, Any]]) -> list[str]:
    """The tags of what is shown."""
    return sorted({tag for task in tasks for tag in task.get("tags", ())})[:_TAGS]
