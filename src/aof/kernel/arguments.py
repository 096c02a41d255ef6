"""Checks the arguments of a call against the annotations of the function, before the function runs."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from functools import reduce, wraps
from operator import or_
from types import FunctionType, GenericAlias, UnionType

import msgspec

from aof.errors import Call, InvalidInput
from aof.kernel import declarations, findings
from aof.support import lazy_imports, nesting
from aof.support.typed import prepare_type

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, TypeVar

    _Class = TypeVar("_Class", bound=type)
    _Kind = tuple[Any, frozenset[type]]

_POSITIONAL, _KEYWORDS = 0x04, 0x08  # a function with these flags takes more arguments than it names
_PLAIN = frozenset({str, int, float, bool, type(None)})


def checks_arguments(spoken: str) -> Callable[[_Class], _Class]:
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
    """The method with its arguments checked."""
    check = argument_check(function)

    @wraps(function)
    def call(self: Any, *args: Any, **given: Any) -> Any:
        check(args, given)
        return function(self, *args, **given)

    return call


def argument_check(function: FunctionType) -> Callable[[tuple[Any, ...], dict[str, Any]], None]:
    """What checks the arguments of a call against the function's annotations."""
    code = function.__code__
    names = code.co_varnames[1 : code.co_argcount]
    known: dict[str, _Kind | None] = {}

    def check(args: tuple[Any, ...], given: dict[str, Any]) -> None:
        for name, value in (*zip(names, args, strict=False), *given.items()) if args else given.items():
            if name not in known:  # worked out when it is first given, and only for what is
                known[name] = parameter_type(function, name)
            kind = known[name]
            if kind is not None and type(value) not in kind[1]:
                _check(name, value, kind[0])

    return check


def parameter_type(function: FunctionType, name: str) -> _Kind | None:
    """What a parameter takes, and the types whose values are surely right: a look at one costs nothing."""
    annotations, names = function.__annotations__, function.__globals__
    if name not in annotations or name == "return":
        others = other_keywords(function)
        if others is None:
            return None
        if name not in others.__annotations__:
            there = [*(one for one in annotations if one not in ("context", "return")), *others.__annotations__]
            advice = findings.suggestion(name, there, f"use one of: {', '.join(there)}")
            raise InvalidInput(f"{function.__qualname__}() has no parameter {name[:80]!r}", advice)
        annotations, names = others.__annotations__, vars(sys.modules[others.__module__])
    text = annotations[name]
    kind = _bare(_evaluated(text if isinstance(text, str) else text.__forward_arg__, names))
    plain = {one for one in (kind.__args__ if isinstance(kind, UnionType) else (kind,)) if one in _PLAIN}
    return kind, frozenset(plain | {int} if float in plain else plain)


def other_keywords(function: FunctionType) -> type | None:
    """The keywords that a function takes beside its parameters; None where it takes any."""
    code = function.__code__
    if not code.co_flags & _KEYWORDS:
        return _NoOthers
    place = code.co_argcount + code.co_kwonlyargcount + bool(code.co_flags & _POSITIONAL)
    text = function.__annotations__[code.co_varnames[place]]
    kind: type | None = _evaluated(text, function.__globals__) if text.startswith("Unpack") else None
    return kind  # whoever it passes others on to checks them


class _NoOthers:
    """Stands for no further keywords."""


class _First:
    """Stands for `Annotated` where only the type counts, and for `Unpack`."""

    def __class_getitem__(cls, parts: Any) -> Any:
        return parts[0] if isinstance(parts, tuple) else parts


class _Text:
    """Stands for a set of words: any text will do, for the rules refuse others and say which ones there are."""

    def __class_getitem__(cls, words: object) -> type[str]:
        return str


def _unsaid(*_said: object, **_more: object) -> None:
    """Stands for what is said of a parameter."""


# What checking needs of the names in annotations, so that neither `typing` nor our own words are loaded for it.
_STAND_INS: dict[str, Any] = {
    "Annotated": _First,
    "Unpack": _First,
    "Literal": _Text,
    "Any": object,
    **dict.fromkeys(("param", "Spelling", "one_of", "get_args"), _unsaid),
    **dict.fromkeys(("IN_PYTHON", "FILLED", "SOME", "OBJECTS", "TEXTS_OR_OBJECTS", "TASK_TEXT", "EVENT", "BY_KEY")),
    **dict.fromkeys(("Status", "Priority", "BlockedKind", "Visibility", "Cause", "Outcome", "Delivery"), str),
    **dict.fromkeys(("Sort", "Stream", "GraphForm", "LockMode"), str),
    **dict.fromkeys(("TaskId", "Run", "Reason", "Hop", "IdempotencyKey", "Cursor", "ActingAgent"), str),
    **dict.fromkeys(("Blockers", "NeededBlockers"), Sequence[str]),
    "ExpectedRev": int,
    "LeaseTime": float,
    "OpenChildren": bool,
    "EventName": int | str,
    "At": int | str,
    "Object": dict[str, object],
}


def _evaluated(text: str, names: dict[str, Any]) -> Any:
    """An annotation as the type that it means; `typing` and other words are loaded for those that need them."""
    try:
        return eval(text, names, _STAND_INS)  # noqa: S307 - our own annotations
    except NameError:
        import typing

        lazy_imports.run(declarations)
        return eval(text, vars(typing) | vars(declarations) | names, _STAND_INS)  # noqa: S307 - as above


def _bare(kind: Any) -> Any:
    """The same for the aliases that it names."""
    if isinstance(kind, UnionType):
        return kind if all(one in _PLAIN for one in kind.__args__) else reduce(or_, map(_bare, kind.__args__))
    if isinstance(kind, GenericAlias) and kind.__origin__ is Sequence:
        return GenericAlias(Sequence, _bare(kind.__args__[0]))
    if isinstance(kind, type | GenericAlias):
        return kind
    from typing import Annotated, Literal, Union, get_args, get_origin  # which lists do not need

    origin, parts = get_origin(kind), get_args(kind)
    if origin is Annotated:
        return _bare(parts[0])
    if origin is Literal:
        return str
    return reduce(or_, map(_bare, parts)) if origin is Union else kind


def _check(name: str, value: Any, kind: Any) -> None:
    try:
        msgspec.convert(value, prepare_type(kind))
    except (msgspec.ValidationError, RecursionError) as error:
        wrong = findings.complaint(nesting.reason(error), value, kind, name=name)
        hint = wrong.choices or f"give another value for '{name}'"
        raise InvalidInput(wrong.sentence, hint, parameter=name) from None


def invalid_arguments(said: str, kind: type[msgspec.Struct], given: object, call: Call | None = None) -> InvalidInput:
    """The refusal of values that do not fit a struct: which one it is, and what it could be."""
    fields = {field.encode_name: field for field in msgspec.structs.fields(kind)}
    wrong = findings.complaint(said, given, kind)
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
