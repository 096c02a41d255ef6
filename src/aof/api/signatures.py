"""From the signature and the docstring of a function to the operation that it declares; see `aof.kernel.operation`."""

from __future__ import annotations

import inspect
import sys
import typing
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache, reduce
from importlib import import_module
from operator import or_
from types import FunctionType, GenericAlias, ModuleType, NoneType, UnionType
from typing import Annotated, Any, ForwardRef, Union, get_args, get_origin

import msgspec
from msgspec import UNSET, UnsetType

from aof.kernel import declarations, kinds, operation, results
from aof.kernel.declarations import IN_PYTHON, Cli, Operation, Params
from aof.support import lazy_imports

_OF_CLI = frozenset(Cli.__struct_fields__)
_OF_SIGNATURE = (
    "name",
    "python_only",
    "always",
    "shows_defaults",
    "over_wire",
    "wire_types",
    "tool_example",
)


def offered(module: ModuleType) -> Iterator[tuple[str, Callable[..., Any]]]:
    """The methods of the fabric that a module has, by their names, in its own order."""
    lazy_imports.run(module)
    for name, function in vars(module).items():
        ours = isinstance(function, FunctionType) and function.__module__ == module.__name__
        if ours and hasattr(function, "declared"):
            yield (function.declared or {}).get("name", name), function


def operations_of(module: ModuleType) -> Iterator[Operation]:
    """The operations that a module declares, in its own order."""
    for name, function in offered(module):
        if function.declared is not None:  # type: ignore[attr-defined] # the decorator sets it
            yield operation_of(name, function)


def operation_of(name: str, function: Callable[..., Any]) -> Operation:
    """The operation that a function declares."""
    declared: dict[str, Any] = function.declared  # type: ignore[attr-defined] # as above
    ask, family = declared.get("over_wire"), declared.get("family")
    passes_on = ask is not None and "values" in ask.__annotations__
    of_family = {"section": family.section, "order": family.order} if family is not None else {}
    cli = of_family | {key: value for key, value in declared.items() if key in _OF_CLI}
    rest = {key: value for key, value in declared.items() if key not in (*_OF_CLI, *_OF_SIGNATURE)}
    usual = {"tool": f"aof_{name}", "verb": name.replace("_", " ", 1) if family else name.replace("_", "-")}
    return Operation(
        name=name,
        parameters=_parameters(name, function if ask is None or passes_on else ask, declared),
        result=_on_the_wire(kind_of(ask or function, "return", declared.get("wire_types", {}))),
        help=" ".join(inspect.cleandoc(function.__doc__ or "").split("\n\n")[0].split()),
        ask=ask if ask is None or passes_on else lambda fabric, values: ask(fabric, **values),
        cli=Cli(**cli) if cli else None,
        example=declared.get("tool_example", ()),
        **usual | rest,
    )


def _on_the_wire(kind: Any) -> Any:
    """A class of objects that only Python tells apart is any object in a schema."""
    return dict[str, Any] if isinstance(kind, type) and issubclass(kind, dict) else kind


def kind_of(function: Callable[..., Any], name: str, wire_types: Mapping[str, str] = {}) -> Any:
    """The type of a parameter, or of what is returned, with what is said of it."""
    if (place := wire_types.get(name)) is not None:
        module, _, kind = place.rpartition(".")
        return getattr(import_module(module), kind)
    return _evaluated(function.__annotations__[name], function.__globals__)


@cache
def _known_names() -> dict[str, Any]:
    """What every module may use in signatures."""
    modules = (operation, kinds, results, declarations)
    for module in modules:
        lazy_imports.run(module)
    return {name: value for module in (typing, *modules) for name, value in vars(module).items()}


def _evaluated(annotation: Any, own: dict[str, Any]) -> Any:
    names = _known_names() | own
    text = annotation.__forward_arg__ if isinstance(annotation, ForwardRef) else annotation
    return eval(text, names) if isinstance(text, str) else text  # noqa: S307 - our own annotations


def keywords(shared: Any) -> dict[str, Any]:
    """What a function takes as other keywords, by the type that it unpacks: their names and types."""
    kind = get_args(shared)[0] if get_args(shared) else shared
    own = vars(sys.modules[kind.__module__])
    return {key: _evaluated(annotation, own) for key, annotation in kind.__annotations__.items()}


def _parameters(name: str, function: Callable[..., Any], declared: dict[str, Any]) -> type[Params]:
    """The parameters as a struct; one that may be left out is unset then, and Python's default counts."""
    shows, always = declared.get("shows_defaults", ()), declared.get("always", ())
    ours, wire_types = ("actor", *declared.get("python_only", ())), declared.get("wire_types", {})
    fields: list[tuple[str, Any, Any] | tuple[str, Any]] = []
    for one in list(inspect.signature(function).parameters.values())[1:]:
        if one.name in ours:
            continue
        kind = kind_of(function, one.name, wire_types)
        if one.kind is one.VAR_KEYWORD:
            fields += [
                (key, _given(part) | UnsetType, UNSET) for key, part in keywords(kind).items() if key not in ours
            ]
        elif one.default is one.empty or one.name in always:
            fields.append((one.name, _given(kind)))
        elif one.name in shows:
            default = msgspec.field(default_factory=list) if one.default == () else one.default
            fields.append((one.name, _given(kind), default))
        else:
            fields.append((one.name, _given(kind) | UnsetType, UNSET))
    title = "".join(part.capitalize() for part in name.split("_"))
    struct = msgspec.defstruct(
        f"{title}Params",
        fields,
        bases=(Params,),
        module=function.__module__,
        namespace={"__doc__": f"Parameters of {name}."},
        frozen=True,
        kw_only=True,
        rename="camel",
        forbid_unknown_fields=True,
    )
    assert issubclass(struct, Params)
    return struct


def _given(kind: Any) -> Any:
    """The type of a value that is given over the wire: None says no more than nothing there, a sequence is a list."""
    origin = get_origin(kind)
    if origin is Annotated:
        inner, *said = get_args(kind)
        return Annotated[(_given(inner), *said)]
    if origin is Sequence:
        return GenericAlias(list, get_args(kind))
    if origin in (Union, UnionType):
        kinds = (one for one in get_args(kind) if one is not NoneType and IN_PYTHON not in get_args(one))
        return reduce(or_, map(_given, kinds))
    return kind
