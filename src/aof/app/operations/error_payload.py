"""How an error and the call in its hint look in JSON. Each surface adds only how it spells a call.

Must not know any surface.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from aof.app.operations.catalogue import BY_NAME, Operation
from aof.core.errors.base import AofError, Call

Spell = Callable[[Operation, dict[str, Any]], str]


class Told(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """An error as a caller over the wire sees it."""

    code: str
    kind: str
    message: str
    hint: str
    details: dict[str, Any] = {}


def told(error: AofError, spell: Spell) -> Told:
    """The error, with its hint in the words of the surface that answers."""
    hint = error.hint
    if error.call is not None:
        spelled = spell(BY_NAME[error.call.operation], wire_names(error.call))
        hint = f"{hint}: {spelled}" if hint else spelled
    details = msgspec.to_builtins(error.details)
    return Told(code=error.code, kind=error.kind, message=error.message, hint=hint, details=details)


def wire_names(call: Call) -> dict[str, Any]:
    """The arguments of a call under the names that they have over the wire."""
    fields = msgspec.structs.fields(BY_NAME[call.operation].parameters)
    names = {field.name: field.encode_name for field in fields}
    return {names[name]: value for name, value in call.arguments.items()}
