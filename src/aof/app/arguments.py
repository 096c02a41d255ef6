"""Arguments of operations are checked against their annotations, once and for all operations alike.

The core checks what a value may be; here only its type is, so that nobody sees a TypeError from somewhere inside.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from types import FunctionType, SimpleNamespace, UnionType
from typing import Any, TypeVar, get_args, get_type_hints

import msgspec

from aof.core.errors import InvalidInput

_Class = TypeVar("_Class", bound=type)
_PLAIN = frozenset({str, int, float, bool, type(None)})


def checked(filters: Callable[..., Any], *, leave: tuple[str, ...] = ()) -> Callable[[_Class], _Class]:
    """A decorator for a class of operations; `**filters` of an operation are those that the given function takes."""

    def decorate(operations: _Class) -> _Class:
        for name in dir(operations):
            function = getattr(operations, name)
            if isinstance(function, FunctionType) and not name.startswith("_") and name not in leave:
                setattr(operations, name, _checking(function, filters))
        return operations

    return decorate


def _checking(function: FunctionType, filters: Callable[..., Any]) -> Callable[..., Any]:
    code = function.__code__
    count = code.co_argcount + code.co_kwonlyargcount
    names = code.co_varnames[1 : code.co_argcount]
    takes_filters = code.co_varnames[count : count + 1] == ("filters",)
    hints: dict[str, tuple[Any, frozenset[type]]] = {}

    @wraps(function)
    def call(self: Any, *args: Any, **given: Any) -> Any:
        if not hints:  # worked out at the first call only, and only for what is called
            kinds = (_kinds(filters) if takes_filters else {}) | _kinds(function)
            hints.update({name: (kind, _plain(kind)) for name, kind in kinds.items()})
        for name, value in (*zip(names, args, strict=False), *given.items()) if args else given.items():
            hint = hints.get(name)
            if hint is not None:
                if type(value) not in hint[1]:
                    _check(name, value, hint[0])
            elif takes_filters:
                raise InvalidInput(f"there is no filter {name[:80]!r}", f"use one of: {', '.join(sorted(hints))}")
        return function(self, *args, **given)

    return call


def _kinds(function: Callable[..., Any]) -> dict[str, Any]:
    """What each parameter takes; what is answered may be a name that only the type checker knows."""
    parameters = {name: kind for name, kind in function.__annotations__.items() if name not in ("return", "filters")}
    return get_type_hints(SimpleNamespace(__annotations__=parameters), globalns=function.__globals__)


def _plain(kind: Any) -> frozenset[type]:
    """The types whose values are surely right: a look at one costs nothing."""
    kinds = {one for one in (get_args(kind) if isinstance(kind, UnionType) else (kind,)) if one in _PLAIN}
    return frozenset(kinds | {int} if float in kinds else kinds)


def _check(name: str, value: Any, kind: Any) -> None:
    try:
        msgspec.convert(value, kind)
    except (msgspec.ValidationError, RecursionError) as error:
        what = str(error)[:200]
        raise InvalidInput(f"'{name}' is of the wrong type: {what}", f"give another value for '{name}'") from None
