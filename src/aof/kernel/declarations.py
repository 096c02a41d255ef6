"""An operation as surfaces see it, and the types that parameters of several operations have.

`aof.api.signatures` makes an `Operation` of the function that declares it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Annotated, Any, Final, Literal

import msgspec
from msgspec import UNSET, Meta, UnsetType

from aof.kernel.operation import Extra, Family, Spelling, StandIn

Effect = Literal["read", "append", "write", "destructive"]
Tier = Literal["core", "worker", "handoff", "mail", "all"]
Scope = Literal["read", "work", "lead", "admin"]
SCOPES: tuple[Scope, ...] = ("read", "work", "lead", "admin")  # each may do what those before it may
_SCOPE_OF: dict[Effect, Scope] = {"read": "read", "append": "work", "write": "work", "destructive": "lead"}


IN_PYTHON: Final = "only callers in Python"  # gives a parameter another type: `| Annotated[float, IN_PYTHON]`
FILLED: Final = {"minLength": 1}  # a text that must not be empty, also where it may be left out
SOME: Final = {"minItems": 1}  # a list that must not be empty
TEXTS_OR_OBJECTS: Final = {"items": {"anyOf": [{"type": "string"}, {"type": "object"}]}}
OBJECTS: Final = {"items": {"type": "object"}}


def one_of(words: Sequence[str]) -> dict[str, Any]:
    """What a schema says of a text that must be one of these words."""
    return {"enum": list(words)}


def param(
    description: str,
    spelling: Spelling | None = None,
    *,
    ge: float | None = None,
    le: float | None = None,
    says: dict[str, Any] | None = None,
) -> Meta:
    """What a parameter means, its limits, and its spelling: the metadata of its type.

    `says` is for the schema only: what the rules themselves refuse, in words that teach more than a schema does.
    """
    return Meta(
        description=description, ge=ge, le=le, extra_json_schema=says, extra={"cli": spelling} if spelling else None
    )


TaskId = Annotated[str, param("task ID or a unique part of it", Spelling(place="ID"))]


class Params(msgspec.Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """Parameters of an operation. What is not given stays unset, so that it is not passed on either."""

    actor: Annotated[str, param("your name", Spelling(hidden=True))] | UnsetType = UNSET  # the CLI's `--actor`

    def given(self) -> dict[str, Any]:
        """The values that the caller gave or that have a default, by their Python names; objects as plain data."""
        values = {name: getattr(self, name) for name in self.__struct_fields__ if name != "actor"}
        return {
            name: msgspec.to_builtins(value) if isinstance(value, msgspec.Struct) else value
            for name, value in values.items()
            if value is not UNSET
        }


class Cli(msgspec.Struct, frozen=True, kw_only=True):
    """The operation as a verb: where `aof help --all` lists it, an example, other names, and options that only it has.

    Its summary is the operation's help unless `summary` says it in fewer words. `notes` follow the usage in its help.
    `former` are names that still work, with a note. `spelled` changes the spelling of single parameters.
    """

    section: str
    order: int
    example: str
    summary: str = ""
    notes: str = ""
    aliases: tuple[str, ...] = ()
    former: tuple[str, ...] = ()
    spelled: tuple[tuple[str, Spelling], ...] = ()
    extra: tuple[Extra, ...] = ()
    family: Family | None = None


class Operation(msgspec.Struct, frozen=True, kw_only=True):
    """One thing that can be asked of AOF.

    `name` is the fabric's method unless `ask` says how to call it. `answer` makes the schema of the result where its
    type says little; it is too long for tools. `acts` names the parameter that says who acts.
    As a tool it takes every parameter, shows those in `tool_shows` (when empty, all that are not rare) and needs those
    in `tool_requires` as well; `tool_defaults` are the values of those that a model leaves out, where they differ from
    everybody else's, and `tool_caller` names the one that is the caller then. `example` has values for a call that
    shows more than what is required. With `worker`, the tools of a worker include it, too.
    `needs` is the scope that a token must have to call it, where the effect alone does not tell; `needs_more` says so
    of single values of a parameter. `verb` is the words that call it on the command line, `cli` what else is said of
    them there. `stand_in` is for hints. `about_caller`: a read that has to know what its caller has proven.
    """

    name: str
    parameters: type[Params]
    result: Any
    help: str
    effect: Effect
    tool: str
    verb: str
    cli: Cli | None = None
    tier: Tier = "all"
    worker: bool = False
    acts: str | None = None
    tool_shows: tuple[str, ...] = ()
    tool_requires: tuple[str, ...] = ()
    tool_defaults: tuple[tuple[str, object], ...] = ()
    tool_caller: str | None = None
    example: tuple[tuple[str, object], ...] = ()
    ask: Callable[..., Any] | None = None
    answer: Callable[[], dict[str, Any]] | None = None
    needs: Scope | None = None
    needs_more: tuple[tuple[str, object, Scope], ...] = ()
    about_caller: bool = False
    stand_in: StandIn | None = None

    @property
    def scope(self) -> Scope:
        """The least that a token must allow."""
        return self.needs or _SCOPE_OF[self.effect]

    def scope_of(self, params: Params) -> Scope:
        """The least that a token must allow for a call with these parameters."""
        more = (scope for name, value, scope in self.needs_more if getattr(params, name) == value)
        return max((self.scope, *more), key=SCOPES.index)

    @property
    def runs(self) -> bool:
        """Whether this is a worker's write, which acts for a run."""
        return "run" in self.parameters.__struct_fields__


Run = Annotated[str, param("run to act for", Spelling(note="(else $AOF_RUN_ID)"))]
ActingAgent = Annotated[str, param("agent that acts")]
Reason = Annotated[str, param("why", Spelling(metavar="T", note="(it is recorded)"))]
Blockers = Annotated[Sequence[str], param("what is in the way", Spelling(option="--blocker", metavar="T"))]
NeededBlockers = Annotated[
    Sequence[str],
    param("what has to change", Spelling(option="--reason", metavar="T", also=("--blocker",)), says=SOME),
]
TASK_TEXT = Spelling(
    option="--text", metavar="T", stdin=True, also=("--brief", "--description", "--body")
)  # of a task's description
OpenChildren = Annotated[bool, param("complete it though tasks below it are open")]
Hop = Annotated[str, param("hop of the workflow")]
EVENT = Spelling(metavar="SEQ|HASH", note="(digits alone are a number where there is such an event)")
EventName = Annotated[int, Meta(ge=0)] | str
At = Annotated[EventName, param("as it was after this event: its number, or 8 or more digits of its hash", EVENT)]
Object = dict[str, Any]
BY_KEY = "K=JSON"
# What jobs say of the tasks that they create, as the fields of tasks do.
Tags = Annotated[Sequence[str], param("tag", Spelling(option="--tag"))]
Resource = Annotated[str, param("resource that a limited number of tasks may use at once")]
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
Cursor = Annotated[str, param("next page: 'nextCursor' of the page before", Spelling(metavar="C"))]
ExpectedRev = Annotated[int, param("change the task only if it still has this revision", Spelling(metavar="N"))]
