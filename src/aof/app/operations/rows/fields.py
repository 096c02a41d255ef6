"""Parameters that several operations have, each with its type, limits, meaning and spelling.

Must not know any single operation.
"""

from __future__ import annotations

from typing import Annotated, Any

from msgspec import UNSET, Meta, UnsetType

from aof.app.operations.spec import SOME, Extra, Spelling, TaskParams, param
from aof.core.model.kinds import Visibility

Run = Annotated[str, param("run to act for", Spelling(note="(else $AOF_RUN_ID)"))] | UnsetType
Reason = Annotated[str, param("why", Spelling(metavar="T", note="(it is recorded)"))]
Blockers = Annotated[list[str], param("what is in the way", Spelling(option="--blocker", metavar="T"))]
NeededBlockers = Annotated[
    list[str],
    param("what has to change", Spelling(option="--reason", metavar="T", also=("--blocker",)), says=SOME),
]
TASK_TEXT = Spelling(
    option="--text", metavar="T", stdin=True, also=("--brief", "--description", "--body")
)  # of a task's description
OpenChildren = Annotated[bool, param("complete it though tasks below it are open")] | UnsetType
Hop = Annotated[str, param("hop of the workflow")] | UnsetType
EVENT = Spelling(metavar="SEQ|HASH", note="(digits alone are a number where there is such an event)")
EventName = Annotated[int, Meta(ge=0)] | str
At = Annotated[EventName, param("as it was after this event: its number, or 8 or more digits of its hash", EVENT)]
Object = dict[str, Any]
BY_KEY = "K=JSON"
_CAPABILITIES = Extra(
    option="--capability",
    help="required capability, as NAME or NAME:0.8 for a minimum proficiency",
    metavar="C",
    many=True,
    key="requiredCapabilities",
)
Tags = Annotated[list[str], param("tag", Spelling(option="--tag"))]
Metadata = Annotated[Object, param("metadata value", Spelling(option="--meta", metavar=BY_KEY))]
Acceptance = Annotated[
    list[str | Object], param("acceptance criterion", Spelling(option="--acceptance", note="(text or a JSON object)"))
]
Constraints = Annotated[Object, param("limit on the work", Spelling(option="--constraint", metavar=BY_KEY))]
Profile = Annotated[
    Object, param("what the work requires of an agent", Spelling(metavar=BY_KEY, extra=(_CAPABILITIES,)))
]
Resource = Annotated[str, param("resource that a limited number of tasks may use at once")]
Visible = Annotated[Visibility, param("where the task is shown")]
Due = Annotated[
    str, param("when it should be done", Spelling(metavar="WHEN", note="(a day, a moment, tomorrow, or +3d)"))
]
Parent = Annotated[str, param("parent task", Spelling(option="--parent", metavar="ID"))]
Owner = Annotated[str, param("person or agent responsible for the task")]
TargetAgent = Annotated[str, param("agent that it is reserved for")]
TargetRole = Annotated[str, param("target role")]
TargetTeam = Annotated[str, param("target team")]
LeaseTime = Annotated[
    float,
    param(
        "length of the lease in seconds",
        Spelling(metavar="S", seconds=True),
        says={"minimum": 0.001},
    ),
]
IdempotencyKey = Annotated[str, param("idempotency key", Spelling(note="(a repeated call gives the same answer)"))]
Cursor = Annotated[str, param("next page: 'nextCursor' of the page before", Spelling(metavar="C"))] | UnsetType
ExpectedRev = Annotated[int, param("change the task only if it still has this revision", Spelling(metavar="N"))]


class ChangeParams(TaskParams, frozen=True, kw_only=True):
    """Parameters of an operation that changes one task."""

    key: IdempotencyKey | UnsetType = UNSET
    expect_rev: ExpectedRev | UnsetType = UNSET
