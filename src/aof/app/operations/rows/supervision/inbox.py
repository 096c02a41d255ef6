"""The operation that says what needs a person. Must not know any surface."""

from __future__ import annotations

from typing import Annotated

from msgspec import UNSET, UnsetType

from aof.app.operations.rows.fields import Cursor
from aof.app.operations.spec import Cli, Operation, Params, Spelling, param
from aof.app.supervision.results import MOST_ROWS, InboxPage
from aof.core.runs.attention import Need

Limit = Annotated[int, param("at most this many", Spelling(note="(default 50)"), ge=0, le=MOST_ROWS)]


class InboxParams(Params, frozen=True, kw_only=True):
    """Which kinds, and for whom."""

    kind: Annotated[list[Need], param("only this kind")] | UnsetType = UNSET
    person: Annotated[str, param("only what waits for this person or for nobody in particular")] | UnsetType = UNSET
    limit: Limit | UnsetType = UNSET
    cursor: Cursor = UNSET


ROWS: tuple[Operation, ...] = (
    Operation(
        name="inbox",
        parameters=InboxParams,
        result=InboxPage,
        help="What needs a person: questions first, then reviews by priority, what is overdue, and all that is stuck.",
        effect="read",
        tool="aof_inbox",
        verb="inbox",
        cli=Cli(
            section="see",
            order=5,
            summary="what needs a person, most urgent first",
            aliases=("attention", "todo"),
            notes="'--kind review' is the same as '--kind gate'.",
            example="aof inbox --kind question --kind review",
        ),
    ),
)
