"""How the function of an operation becomes a method of the fabric. Must not know any operation."""

from __future__ import annotations

from functools import wraps
from importlib import import_module

from aof.kernel.arguments import argument_check, other_keywords, parameter_type

TYPE_CHECKING = False
if TYPE_CHECKING:
    from inspect import Signature
    from types import FunctionType
    from typing import Any

    from aof.api.fabric import Fabric


def add_methods(facade: type, methods: dict[str, str]) -> None:
    """Give a class the methods that a table names, by the modules of their functions."""
    for place, names in methods.items():
        for one in names.split():
            name, _, function = one.partition(":")
            setattr(facade, name, _FabricMethod(facade, name, place, function or name))


class _FabricMethod:
    """A method of the fabric that is an operation's function; its module is loaded when it is first asked for.

    A function whose first parameter is `fabric` gets that, any other one the context of the call.
    """

    def __init__(self, owner: type, name: str, place: str, function: str) -> None:
        self._owner = owner
        self._name = name
        self._place = place
        self._function = function

    def __get__(self, fabric: Fabric | None, owner: type[Fabric]) -> Any:
        """The method itself, which takes the place of this from now on."""
        function = getattr(import_module(self._place), self._function)
        function.__qualname__ = f"fabric.{self._name}"  # which Python's own errors show
        check = argument_check(function)
        whole = function.__code__.co_varnames[0] == "fabric"

        @wraps(function)
        def call(fabric: Fabric, *args: Any, **given: Any) -> Any:
            check(args, given)
            return function(fabric if whole else fabric.services, *args, **given)

        call.__wrapped__ = _Shown(function)  # type: ignore[assignment] # which inspect takes, too
        setattr(self._owner, self._name, call)
        return getattr(owner if fabric is None else fabric, self._name)


class _Shown:
    """The function behind a method, with the signature that `help` shows of it; that is worked out when asked for."""

    def __init__(self, function: FunctionType) -> None:
        self.__wrapped__ = function

    @property
    def __signature__(self) -> Signature:
        """The parameters with their types; those that are shared, one by one."""
        from inspect import Parameter, signature

        function = self.__wrapped__
        own, others = signature(function), other_keywords(function)
        shown = [Parameter("self", Parameter.POSITIONAL_OR_KEYWORD)]
        for one in list(own.parameters.values())[1:]:
            if one.kind is Parameter.VAR_KEYWORD and others is not None:
                shown += [_keyword(function, name) for name in others.__annotations__]
            else:
                kind = parameter_type(function, one.name)
                shown.append(one.replace(annotation=one.annotation if kind is None else kind[0]))
        return own.replace(parameters=shown)


def _keyword(function: FunctionType, name: str) -> Any:
    """A parameter that operations share; who leaves it out gives nothing."""
    from inspect import Parameter

    known = parameter_type(function, name)
    kind = known[0] if known is not None else Parameter.empty
    usual = False if kind is bool else () if str(kind).startswith("collections.abc.Sequence") else None
    return Parameter(name, Parameter.KEYWORD_ONLY, default=usual, annotation=kind)
