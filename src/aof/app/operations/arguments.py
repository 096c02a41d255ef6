"""Arguments of operations are checked against their annotations, once and for all operations alike.

The core checks what a value may be; here only its type is, so that nobody sees a TypeError from somewhere inside.
Must not know any operation.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from types import FunctionType, UnionType

import msgspec

from aof._support import nesting
from aof._support.typed import prepare_type
from aof.core.errors.base import Call, InvalidInput
from aof.core.validation import findings, messages

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, TypeVar

    _Class = TypeVar("_Class", bound=type)
    _Kind = tuple[Any, frozenset[type]]

_VARIABLE = 0x08  # a function with this flag takes any keyword
_PLAIN = frozenset({str, int, float, bool, type(None)})


def checked(spoken: str) -> Callable[[_Class], _Class]:
    """A decorator for a class of operations: wrong types are refused before anything is asked.

    `spoken` is what programs call an object of the class; errors call it that, too.
    """

    def check(operations: _Class) -> _Class:
        for name, function in list(vars(operations).items()):
            if isinstance(function, FunctionType) and not name.startswith("_"):
                function.__qualname__ = f"{spoken}.{name}"  # which Python's own errors show
                setattr(operations, name, _checking(function))
        return operations

    return check


def _checking(function: FunctionType) -> Callable[..., Any]:
    code = function.__code__
    names = code.co_varnames[1 : code.co_argcount]
    takes_any = bool(code.co_flags & _VARIABLE)
    known: dict[str, _Kind | None] = {}

    @wraps(function)
    def call(self: Any, *args: Any, **given: Any) -> Any:
        for name, value in (*zip(names, args, strict=False), *given.items()) if args else given.items():
            if name not in known:  # worked out when it is first given, and only for what is
                known[name] = _kind(function, name)
            kind = known[name]
            if kind is not None:
                if type(value) not in kind[1]:
                    _check(name, value, kind[0])
            elif not takes_any:
                there = [one for one in function.__annotations__ if one != "return"]
                advice = findings.suggestion(name, there, f"use one of: {', '.join(there)}")
                raise InvalidInput(f"{function.__qualname__}() has no parameter {name[:80]!r}", advice)
        return function(self, *args, **given)

    return call


def _kind(function: FunctionType, name: str) -> _Kind | None:
    """What a parameter takes, and the types whose values are surely right: a look at one costs nothing."""
    text = function.__annotations__.get(name)
    if text is None or name == "return":
        return None
    kind = _evaluated(text, function.__globals__)
    plain = {one for one in (kind.__args__ if isinstance(kind, UnionType) else (kind,)) if one in _PLAIN}
    return kind, frozenset(plain | {int} if float in plain else plain)


def _evaluated(text: str, names: dict[str, Any]) -> Any:
    """An annotation as what it means; `typing` is loaded for those that name something of it."""
    try:
        return eval(text, names)  # noqa: S307 - our own annotations
    except NameError:
        import typing

        return eval(text, vars(typing) | names)  # noqa: S307 - as above


def _check(name: str, value: Any, kind: Any) -> None:

    try:
        msgspec.convert(value, prepare_type(kind))
    except (msgspec.ValidationError, RecursionError) as error:
        wrong = messages.complaint(nesting.reason(error), value, kind, name=name)
        hint = wrong.choices or f"give another value for '{name}'"
        raise InvalidInput(wrong.sentence, hint, parameter=name) from None


def invalid(said: str, kind: type[msgspec.Struct], given: object, call: Call | None = None) -> InvalidInput:
    """The refusal of values that do not fit a struct: which one it is, and what it could be."""
    fields = {field.encode_name: field for field in msgspec.structs.fields(kind)}
    wrong = messages.complaint(said, given, kind)
    field = fields.get(wrong.field)
    if wrong.unknown:
        hint = findings.suggestion(wrong.field, fields, f"the parameters are: {', '.join(fields)}")
    elif wrong.choices:
        hint = wrong.choices
    elif field is not None and isinstance(field.default, str):
        hint = f"without '{wrong.field}' it is '{field.default}'"
    else:
        missing = isinstance(given, dict) and wrong.field not in given
        hint = f"give {'' if missing else 'another value for '}'{wrong.field}'" if field else "give them by name"
    return InvalidInput(wrong.sentence, hint, call, parameter=wrong.field)
