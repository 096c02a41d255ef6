"""How an error and the call in its hint look in JSON. Each surface adds only how it spells a call.

A hint names only what its reader can call. Where the reader is not told of the operation, another one may stand in for
it; else the hint says in words what it takes, or who explains it. Must not know any surface.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, Final

import msgspec

from aof.app.operations.call import Caller
from aof.app.operations.catalogue import BY_NAME, SCOPES, Operation, Scope, listed_in
from aof.core.errors.base import AofError, Call

Spell = Callable[[Operation, dict[str, Any]], str]
_COMMAND: Final = re.compile(r"\baof [a-z]")
_AT_THE_MACHINE: Final = "on the machine that holds the data"


class Told(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """An error as a caller over the wire sees it."""

    code: str
    kind: str
    message: str
    hint: str
    details: dict[str, Any] = {}


class HintReader(msgspec.Struct, frozen=True, kw_only=True):
    """What the reader of a hint can call: the tiers of operations that it is told of, and what its token allows.

    `actor` is the only one that it can act as; None: anybody.
    """

    tiers: tuple[str, ...] = ("all",)
    scope: Scope = "admin"
    actor: str | None = None

    def knows(self, operation: Operation) -> bool:
        """Whether the reader is told of the operation."""
        return operation in listed_in(self.tiers)

    def acts_for_another(self, call: Call) -> str | None:
        """The other one that the call acts for, where the reader cannot."""
        acts = BY_NAME[call.operation].acts
        acting = call.arguments.get(acts) if acts is not None else None
        return acting if isinstance(acting, str) and self.actor not in (None, acting) and acting != "…" else None

    def may(self, operation: Operation) -> bool:
        """Whether its token allows the operation."""
        return SCOPES.index(self.scope) >= SCOPES.index(operation.scope)


EVERYTHING: Final = HintReader()
HELP: Final = "aof_help"  # the tool that explains all others, to readers who are told of a few


def reader_of(caller: Caller, tiers: tuple[str, ...] = ("all",)) -> HintReader:
    """What a caller over the wire can call, of what a surface tells it about."""
    bound = caller.proven and caller.role != "admin"
    return HintReader(tiers=tiers, scope=caller.scope, actor=caller.actor if bound else None)


def told(error: AofError, spell: Spell, reader: HintReader = EVERYTHING) -> Told:
    """The error, with its hint in the words of the surface that answers, for this reader."""
    details = msgspec.to_builtins(error.details)
    hint = _hint(error, spell, reader)
    return Told(code=error.code, kind=error.kind, message=error.message, hint=hint, details=details)


def _hint(error: AofError, spell: Spell, reader: HintReader) -> str:
    hint = f"{error.hint}, {_AT_THE_MACHINE}" if _COMMAND.search(error.hint) else error.hint
    ways = [_way(hint, error.call, spell, reader)]
    if error.otherwise is not None:
        ways.append(_way(*error.otherwise, spell, reader))
    return "; or ".join(ways)


def _way(hint: str, meant: Call | None, spell: Spell, reader: HintReader) -> str:
    if meant is None:
        return hint
    operation = BY_NAME[meant.operation]
    call = offered(meant, reader)
    if call is not None:
        spelled = spell(BY_NAME[call.operation], wire_names(call))
        return f"{hint}: {spelled}" if hint else spelled
    hint = hint or operation.help[0].lower() + operation.help[1:].removesuffix(".")
    if (another := reader.acts_for_another(meant)) is not None:
        return f"{hint}; that is for {another[:80]} to do"
    if not reader.may(operation):
        return f"{hint}; that takes a token with the scope {operation.scope}"
    return f'{hint}; {HELP}({{"topic":"{operation.tool}"}}) shows how'


def offered(call: Call, reader: HintReader) -> Call | None:
    """The call as the reader can make it: itself, or with what stands in for it; None where neither is possible."""
    operation = BY_NAME[call.operation]
    if not reader.may(operation) or reader.acts_for_another(call) is not None:
        return None
    if reader.knows(operation):
        return call
    other = operation.stand_in
    if other is None or not reader.knows(BY_NAME[other.operation]):
        return None
    given = {name: value for name, value in call.arguments.items() if name in other.keeps} | dict(other.adds)
    needed = {field.name for field in msgspec.structs.fields(BY_NAME[other.operation].parameters) if field.required}
    return Call(other.operation, given) if needed <= given.keys() else None


def wire_names(call: Call) -> dict[str, Any]:
    """The arguments of a call under the names that they have over the wire."""
    fields = msgspec.structs.fields(BY_NAME[call.operation].parameters)
    names = {field.name: field.encode_name for field in fields}
    return {names[name]: value for name, value in call.arguments.items()}
