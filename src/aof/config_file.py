"""Parses `aof.toml` and checks its values against the types of the settings. Must not know any single setting."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from types import UnionType
from typing import Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

from aof.config import SCHEMA_VERSION, Section
from aof.errors import SettingsUnusable, UnsupportedVersion

_Section = TypeVar("_Section", bound=Section)


class _Wrong(Exception):
    """A value that its setting cannot have."""


def parsed(text: str, kind: type[_Section], path: str) -> _Section:
    """The settings that a file gives; raises SettingsUnusable."""
    try:
        values: dict[str, Any] = tomllib.loads(text)
        _refuse_newer(values.get("schemaVersion"))
        return _filled(kind, values, "")
    except (tomllib.TOMLDecodeError, _Wrong) as error:
        hint = "correct the file, or delete it: every setting has a default"
        raise SettingsUnusable(f"aof.toml cannot be used: {error}", hint, path=path) from None


def _filled(section: type[_Section], values: dict[str, Any], place: str) -> _Section:
    kinds = {
        _spelled(name): (name, kind) for name, kind in get_type_hints(section, localns={"Literal": Literal}).items()
    }
    given: dict[str, Any] = {}
    for key, value in values.items():
        if key not in kinds:
            raise _Wrong(f"there is no setting '{place}{key}'; there are {', '.join(kinds)}")
        name, kind = kinds[key]
        given[name] = _fitting(value, kind, f"{place}{key}")
    return section(**given)


def _spelled(name: str) -> str:
    first, *others = name.split("_")
    return first + "".join(word.capitalize() for word in others)


def _fitting(value: Any, kind: Any, place: str) -> Any:
    """The value as its setting wants it; a whole number will do for any other."""
    if isinstance(kind, type) and issubclass(kind, Section):
        short = getattr(kind, "shorthand", None)  # the setting that a text in the place of the table is for
        value = {short: value} if short is not None and isinstance(value, str) else value
        if isinstance(value, dict):
            return _filled(kind, value, f"{place}.")
    if kind is float and type(value) is int:
        return float(value)
    origin, inside = get_origin(kind), get_args(kind)
    if origin is tuple and isinstance(value, list):
        return tuple(_fitting(item, inside[0], f"{place}[{number}]") for number, item in enumerate(value))
    if origin is Mapping and isinstance(value, dict):
        return {key: _fitting(item, inside[1], f"{place}.{key}") for key, item in value.items()}
    if origin in (Union, UnionType):
        kinds = [one for one in inside if one is not type(None)]
        fits = (one for one in kinds if isinstance(value, list) == (get_origin(one) is tuple))
        return _fitting(value, next(fits, kinds[0]), place)
    if value in inside if origin is Literal else type(value) is kind:
        return value
    wanted = " or ".join(map(repr, inside)) if origin is Literal else _WORDS.get(origin or kind, "a table")
    raise _Wrong(f"'{place}' must be {wanted}, not {value!r:.80}")


_WORDS = {
    str: "a text",
    int: "a whole number",
    float: "a number",
    bool: "true or false",
    tuple: "a list",
    Mapping: "a table",
}


def _refuse_newer(version: object) -> None:
    if isinstance(version, int) and version > SCHEMA_VERSION:
        raise UnsupportedVersion(
            f"the data directory has schemaVersion {version}, and this AOF knows versions up to {SCHEMA_VERSION}",
            "use the AOF that wrote it, or a newer one; nothing was changed",
            version=version,
        )
