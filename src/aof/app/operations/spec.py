"""What one row of the catalogue says about an operation, and the form of its parameters.

Must not know any surface: a surface reads the rows and decides how to spell them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any, Literal

import msgspec
from msgspec import UNSET, Meta, UnsetType

Effect = Literal["read", "append", "write", "destructive"]
Tier = Literal["core", "handoff", "all"]
Scope = Literal["read", "work", "lead", "admin"]
SCOPES: tuple[Scope, ...] = ("read", "work", "lead", "admin")  # each may do what those before it may
_SCOPE_OF: dict[Effect, Scope] = {"read": "read", "append": "work", "write": "work", "destructive": "lead"}

TaskId = Annotated[str, Meta(description="ID or unique part of it")]
Actor = Annotated[str, Meta(description="who calls")] | UnsetType
Run = Annotated[str, Meta(description="run to act for")] | UnsetType
Text = str | UnsetType
Count = Annotated[int, Meta(ge=0)] | UnsetType


class Params(msgspec.Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """Parameters of an operation. What is not given stays unset, so that it is not passed on either."""

    actor: Actor = UNSET

    def given(self) -> dict[str, Any]:
        """The values that the caller gave or that have a default, by their Python names."""
        values = {name: getattr(self, name) for name in self.__struct_fields__ if name != "actor"}
        return {name: value for name, value in values.items() if value is not UNSET}


class OnTask(Params, frozen=True, kw_only=True):
    """Parameters of an operation on one task."""

    task_id: TaskId


class Taught(msgspec.Struct, frozen=True):
    """What the values of a parameter do, and parameters of a call that works."""

    parameter: str
    meaning: str
    example: tuple[tuple[str, str], ...]


class Operation(msgspec.Struct, frozen=True, kw_only=True):
    """One thing that can be asked of AOF.

    `name` is the fabric's method unless `ask` says how to call it. `acts` names the parameter that says who acts.
    As a tool it shows the parameters in `tool_shows` (all, when empty) and needs those in `tool_requires` as well.
    `taught` says, for a parameter that is often given wrong, what its values do. `needs` is the scope that a token must
    have to call it, where the effect alone does not tell; `needs_more` says so of single values of a parameter.
    """

    name: str
    parameters: type[Params]
    result: Any
    help: str
    effect: Effect
    tool: str
    verb: str
    tier: Tier = "all"
    acts: str | None = None
    tool_shows: tuple[str, ...] = ()
    tool_requires: tuple[str, ...] = ()
    ask: Callable[..., Any] | None = None
    taught: tuple[Taught, ...] = ()
    needs: Scope | None = None
    needs_more: tuple[tuple[str, object, Scope], ...] = ()

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
