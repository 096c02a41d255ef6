"""Hypothesis strategies for records: valid in every rule of the type, hostile in every text."""

from __future__ import annotations

from types import UnionType
from typing import Any, Literal, Union, get_args, get_origin

import msgspec
from hypothesis import strategies as st

from aof.tasks.model import NOT_FRONTMATTER, Task

KEYS = {field.encode_name for field in msgspec.structs.fields(Task) if field.name not in NOT_FRONTMATTER}

HOSTILE = (
    "",
    " ",
    "---",
    "\n---\n",
    "a\n---\nb",
    "fix: the colon",
    "a # b",
    "# a",
    "'",
    '"',
    '\\"',
    "\\u2028",
    "<<",
    "&a *b !c",
    "yes",
    "null",
    "2026-01-01",
    "0x10",
    "\x00",
    "\x1b[31m",
    "\x7f\x80\x85\x9f\xa0",
    "\u2028\u2029\ufeff\ufffe\uffff",
    "Grüße 🎉",
    "\r\n",
    "a\rb",
    "\t",
    "{}",
    "[",
    "x" * 1100,
)


def texts() -> st.SearchStrategy[str]:
    """Any text, often one that is hard for a file format."""
    return st.sampled_from(HOSTILE) | st.text(max_size=12)


def keys() -> st.SearchStrategy[str]:
    """A text that can name something: YAML readers refuse very long ones."""
    return texts().filter(lambda key: len(key) <= 256)


def json_values() -> st.SearchStrategy[Any]:
    """Any value that JSON and all its readers can hold."""
    scalars = (
        st.none()
        | st.booleans()
        | st.integers(min_value=-(2**63), max_value=2**64 - 1)
        | st.floats(allow_nan=False, allow_infinity=False)
        | texts()
    )
    return st.recursive(
        scalars,
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(keys(), inner, max_size=3),
        max_leaves=5,
    )


def json_objects() -> st.SearchStrategy[dict[str, Any]]:
    """A JSON object with any keys."""
    return st.dictionaries(keys(), json_values(), max_size=2)


def bodies() -> st.SearchStrategy[str]:
    """Markdown, or what somebody takes for it."""
    return st.lists(texts() | st.sampled_from(["\n", "\r\n", "---\n", "## Work Log\n"]), max_size=4).map("".join)


def of_type(kind: Any) -> st.SearchStrategy[Any]:
    """Any value of a type that a record's field may have."""
    origin, arguments = get_origin(kind), get_args(kind)
    if origin is Literal:
        return st.sampled_from(arguments)
    if origin in (Union, UnionType):
        return st.one_of([of_type(argument) for argument in arguments])
    if origin is tuple:
        return st.lists(of_type(arguments[0]), max_size=2).map(tuple)
    if isinstance(kind, type) and issubclass(kind, msgspec.Struct):
        return structs(kind)
    return _SIMPLE[origin or kind]


@st.composite
def structs(draw: st.DrawFn, /, kind: type[Any], **given: st.SearchStrategy[Any]) -> Any:
    """A record with its required fields and a few of the others; `given` says how to draw some of them."""
    fields = {field.name: field for field in msgspec.structs.fields(kind)}
    optional = [name for name, field in fields.items() if not field.required]
    chosen = draw(st.lists(st.sampled_from(optional), unique=True, max_size=5)) if optional else []
    names = [name for name, field in fields.items() if field.required or name in chosen]
    return kind(**{name: draw(given[name] if name in given else of_type(fields[name].type)) for name in names})


_SIMPLE: dict[Any, st.SearchStrategy[Any]] = {
    str: texts(),
    int: st.integers(min_value=0, max_value=2**63 - 1),
    bool: st.booleans(),
    type(None): st.none(),
    dict: json_objects(),
    Any: json_values(),
}


def tasks() -> st.SearchStrategy[Task]:
    """A task as the type allows it, but without a person's layout."""
    foreign = st.dictionaries(keys().filter(lambda key: key not in KEYS), json_values(), max_size=2)
    return structs(Task, body=bodies(), extra=foreign, layout=st.none())
