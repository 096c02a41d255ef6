"""What one view declares: its address, its template, and what it asks for. Must not know any single view."""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from aof.adapters.http.board.calls import Asker, Context


class PageView(msgspec.Struct, frozen=True, kw_only=True):
    """One view. `path` is below `/board`; `context` gets what it shows, by asking operations.

    `key` goes to it after `g`, and puts it into the navigation where it is `wanted`; a view without one is reached by
    links. A context may
    set `live_task` (only events of this task refresh the page), `live` to False (the past does not change), and
    `title`.
    """

    name: str
    path: str
    template: str
    title: str
    context: Context
    key: str = ""
    wanted: Callable[[Asker], bool] = lambda _ask: True
