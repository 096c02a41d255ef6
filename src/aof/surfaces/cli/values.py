"""From the texts that were given to the values that an operation takes: standard input, JSON, files, nested keys.

Read after the whole call is known to make sense, so that nobody is asked for input in vain. Must not know any verb.
"""

from __future__ import annotations

import sys
from typing import Any

import msgspec

from aof.errors import PayloadTooLarge
from aof.support import nesting
from aof.surfaces.cli.grammar import MANY, Argument, Option, Verb
from aof.surfaces.cli.parser import UsageError

_LARGEST = 64 * 1024 * 1024  # bytes of any other text: a thousand messages, or a long history
_MOST = 16 * 1024 * 1024  # bytes of a file of JSON: more than the core takes, less than the memory of a small machine


def resolved(verb: Verb, given: dict[str, Any]) -> dict[str, Any]:
    """The values by the names of the parameters. What must be there and was not given is empty: the core refuses it."""
    by_target: dict[str, Option | Argument] = {one.target: one for one in verb.arguments}
    by_target |= {option.target: option for option in verb.options}
    values = {
        name: _read(by_target[name], value) if name in by_target else value
        for name, value in given.items()
        if "." not in name
    }
    for name, value in given.items():
        whole, dot, key = name.partition(".")
        if dot:
            values[whole] = values.get(whole, {}) | {key: None if value == "" else value}  # an empty text takes it away
    for option in verb.options:
        if option.required and option.type == "text":
            values.setdefault(option.target, [] if option.kind == MANY else "")
    return values


def _read(option: Option | Argument, value: Any) -> Any:
    if option.type == "stdin":
        return _input() if value == "-" else value
    if isinstance(option, Argument):
        return value
    if option.type == "item":
        return [_decoded(option, text) if text.startswith("{") else text for text in value]
    if option.type == "object":
        merged: dict[str, Any] = {}
        for text in value:
            merged |= _object(option, text)
        return merged
    return value


def _input() -> str:
    text = sys.stdin.read(_LARGEST + 1)
    if len(text) > _LARGEST:
        raise _too_large("standard input")
    return text


def _object(option: Option, text: str) -> dict[str, Any]:
    """`KEY=JSON`, where what is not JSON is text; a JSON object; or `@FILE` with one."""
    if text.startswith("{"):
        return _decoded(option, text)
    name, equals, value = text.partition("=")
    if not equals and text.startswith("@"):
        return _decoded(option, _content(option, text[1:]))
    if not equals or not name:
        raise UsageError(f"{option.name} needs KEY=JSON, not {text[:80]!r}", f"for example: {option.name} key=1")
    try:
        return {name: nesting.decode_json(value, object)}
    except nesting.NestedTooDeeply as error:
        raise UsageError(f"{option.name} {name[:80]} is {error}", "keep deep structures in a file") from None
    except msgspec.DecodeError:
        return {name: value}


def _decoded(option: Option, text: str | bytes) -> dict[str, Any]:
    try:
        return nesting.decode_json(text, dict[str, Any])
    except (msgspec.DecodeError, RecursionError, UnicodeError) as error:
        example = f"""for example: {option.name} '{{"key": 1}}'"""
        raise UsageError(f"{option.name} needs a JSON object: {error}", example) from None


def _content(option: Option, path: str) -> bytes:
    try:
        content = _bounded(path, _MOST)
    except OSError as error:
        raise UsageError(f"{path} cannot be read: {error.strerror}", f"name a file: {option.name} @FILE") from None
    if len(content) > _MOST:
        raise UsageError(f"{path} is larger than {_MOST} bytes", f"give less: {option.name} @FILE")
    return content


def file_text(path: str) -> str:
    """A file's text, or that of standard input; what is not UTF-8 stays recognisable as such."""
    try:
        content = _bounded(path, _LARGEST)
    except OSError as error:
        raise UsageError(f"{path} cannot be read: {error.strerror}", "name a file, or - for standard input") from None
    if len(content) > _LARGEST:
        raise _too_large("standard input" if path == "-" else path)
    return content.decode("utf-8", "surrogateescape")


def _too_large(what: str) -> PayloadTooLarge:
    return PayloadTooLarge(f"{what} is larger than {_LARGEST:,} bytes", "give it in parts", limit=_LARGEST)


def _bounded(path: str, most: int) -> bytes:
    """What a file has, up to one byte more than it may: one that never ends is not read to its end."""
    if path == "-":
        return sys.stdin.buffer.read(most + 1)
    with open(path, "rb") as file:
        return file.read(most + 1)
