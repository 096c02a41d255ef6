"""An operation has the same parameters everywhere: its row, the fabric's method, the command line, MCP, HTTP, the docs.

What differs on purpose stands in the tables below, each with its reason.
"""

from __future__ import annotations

import inspect
import re
from pathlib import Path
from typing import Any

import msgspec
import pytest

from aof.api.catalogue import BY_TOOL, OPERATIONS, Operation, input_schema, shown_fields
from aof.api.fabric import Fabric
from aof.surfaces.cli.generate import spelled
from aof.surfaces.cli.grammar import Verb
from aof.surfaces.cli.operations import NAMES
from aof.surfaces.cli.verbs import VERBS, verb_of
from aof.surfaces.http.openapi import document
from aof.surfaces.mcp.tools import tools

REFERENCE = Path(__file__).parents[2] / "docs" / "reference" / "operations.md"
# The fabric of one caller is `fabric.as_actor(name)`; its methods need not ask again.
NOT_OF_THE_METHOD = {(operation.name, "actor") for operation in OPERATIONS} | {
    ("graph", "format"),  # in Python `form`: `format` is a function
    ("ready", "explain"),  # in Python the method `held_back`
}
ONLY_OF_THE_METHOD = {
    ("claim", "worker"),  # the scheduler says with it that it started the worker itself
    ("graph", "form"),
    *((name, "say") for name in ("replay", "snapshot", "sync", "doctor")),  # progress, for a person who waits
    # Lists share their filters; what is ready or blocked has a status already, and is not archived.
    *((name, shared) for name in ("blocked", "ready") for shared in ("status", "archived")),
    *(("ready", shared) for shared in ("sort", "reverse", "cursor")),  # a queue is read from its front
}
NO_METHOD = {"log", "prime"}  # made of other methods: `events`, and the primer
NOT_OF_THE_COMMAND_LINE = {(operation.name, "actor") for operation in OPERATIONS} | {  # `--actor`, which every verb has
    ("status", "compact"),  # `--compact`, which every verb has
    ("show", "full"),  # a person sees it laid out, and a script gets the whole
    ("list", "full"),  # what a card of the web board says
    ("send", "messages"),  # FILE, or standard input
    ("import_tasks", "files"),  # FILE, or a folder
}
ONLY_OF_THE_COMMAND_LINE = {
    ("handoff_new", "no_wait"),
    ("charter_check", "git"),  # other surfaces name the files
    ("job_add", "file"),  # other surfaces give the items
    ("export_tasks", "file"),  # other surfaces answer with the text
    ("import_tasks", "file"),
    ("list", "tree"),  # how the list is drawn
    ("log", "types"),  # how events are shown
    ("portable_log", "types"),
    ("prime", "hook"),  # what a client's hook needs of a process
    ("log", "follow"),  # MCP and HTTP have streams and subscriptions
    ("log", "format"),  # the choice between the operations `log` and `portable_log`
    ("portable_log", "cursor"),  # refused: this log is read forwards
    ("portable_log", "follow"),
    ("portable_log", "format"),
    ("send", "file"),
    ("workflow_show", "format"),  # every other surface answers with text and diagram together
}
FOR_PEOPLE = (
    "description",
    "additionalProperties",
    "minItems",
    "minLength",
    "minimum",
)  # not of each tool, or in short


def _id(one: Operation | Verb) -> str:
    return one.name


def _parameters(operation: Operation) -> set[str]:
    return set(operation.parameters.__struct_fields__)


def _wire_names(operation: Operation) -> dict[str, str]:
    return {field.encode_name: field.name for field in msgspec.structs.fields(operation.parameters)}


def _verb(operation: Operation) -> Verb:
    return verb_of(operation.verb)


def _targets(verb: Verb) -> set[str]:
    """The names of the values that the verb takes."""
    return {one.target for one in verb.arguments} | {one.target.partition(".")[0] for one in verb.options}


def _shares_a_verb(operation: Operation) -> bool:
    return operation.cli is not None and operation.cli.family is not None


@pytest.mark.parametrize("operation", [one for one in OPERATIONS if one.name not in NO_METHOD], ids=_id)
def test_the_method_takes_what_the_row_declares(operation: Operation) -> None:
    signature = inspect.signature(getattr(Fabric, operation.name)).parameters
    taken = set(signature) - {"self", "context"}
    if any(one.kind is inspect.Parameter.VAR_KEYWORD for one in signature.values()):
        taken = (taken - {"changes", "filters", "given"}) | (_parameters(operation) - {"explain", "actor"})
    expected = {name for name in _parameters(operation) if (operation.name, name) not in NOT_OF_THE_METHOD}
    allowed = {name for name in taken if (operation.name, name) in ONLY_OF_THE_METHOD} | {"actor"}
    assert expected <= taken
    assert taken - expected <= allowed


@pytest.mark.parametrize("operation", OPERATIONS, ids=_id)
def test_the_command_line_spells_every_parameter(operation: Operation) -> None:
    verb = _verb(operation)
    named = NAMES.get(operation.name, {})
    targets = _targets(verb)
    expected = {name for name in _parameters(operation) if (operation.name, name) not in NOT_OF_THE_COMMAND_LINE}
    assert {named.get(name, name) for name in expected} <= targets
    if not _shares_a_verb(operation):
        assert {(operation.name, name) for name in targets - expected} <= ONLY_OF_THE_COMMAND_LINE


@pytest.mark.parametrize("verb", [verb for verb in VERBS if any("|" in one.name for one in verb.arguments)], ids=_id)
def test_a_verb_of_several_operations_takes_only_what_one_of_them_has(verb: Verb) -> None:
    members = [one for one in OPERATIONS if one.verb.split()[0] == verb.name]
    known = {NAMES.get(one.name, {}).get(name, name) for one in members for name in _parameters(one)} | {"action"}
    known |= {name for operation, name in ONLY_OF_THE_COMMAND_LINE if operation in {one.name for one in members}}
    if members:
        assert _targets(verb) <= known


@pytest.mark.parametrize("operation", [one for one in OPERATIONS if one.cli is not None], ids=_id)
def test_every_parameter_says_what_it_means(operation: Operation) -> None:
    for one in spelled(operation):
        nested = isinstance(one.kind, type) and issubclass(one.kind, msgspec.Struct)
        assert one.description or one.name == "priority" or nested, one.name


def test_every_operation_is_spelled_in_its_row() -> None:
    assert [one.name for one in OPERATIONS if one.cli is None] == ["portable_log"]  # which is `aof log --format …`


def _bare(schema: Any) -> Any:
    """A schema without words and limits."""
    if isinstance(schema, list):
        return [_bare(one) for one in schema]
    if not isinstance(schema, dict):
        return schema
    return {
        key: {name: _bare(one) for name, one in value.items()} if key == "properties" else _bare(value)
        for key, value in schema.items()
        if key not in FOR_PEOPLE
    }


def test_tools_show_parameters_of_the_row_as_it_declares_them() -> None:
    listed = {tool.name: tool for tool in tools(("all",))}
    assert listed.keys() == BY_TOOL.keys()
    for name, tool in listed.items():
        operation = BY_TOOL[name]
        full = input_schema(operation)
        for one, value in operation.tool_defaults:
            full["properties"][one] = full["properties"][one] | {"default": value}
        shown = tool.input_schema["properties"]
        assert [*shown] == [field.encode_name for field in shown_fields(operation)], name
        assert {one: _bare(schema) for one, schema in shown.items()} == {
            one: _bare(full["properties"][one]) for one in shown
        }, name
        required = {*full.get("required", ())} | {*operation.tool_requires}
        assert {*tool.input_schema.get("required", ())} == required, name


def test_the_openapi_document_has_every_parameter() -> None:
    described = document("1")
    for operation in OPERATIONS:
        method = "get" if operation.effect == "read" else "post"
        path = described["paths"][f"/api/v1/{operation.name}"][method]
        if method == "get":
            names = {one["name"] for one in path["parameters"] if one["in"] == "query"}
        else:
            schema = path["requestBody"]["content"]["application/json"]["schema"]
            schema = (
                described["components"]["schemas"][schema["$ref"].rpartition("/")[2]] if "$ref" in schema else schema
            )
            names = set(schema["properties"])
        assert names == _wire_names(operation).keys(), operation.name


def test_the_reference_page_has_every_parameter() -> None:
    sections = re.split(r"^## ", REFERENCE.read_text(), flags=re.MULTILINE)[1:]
    written = {
        section.partition("\n")[0]: set(re.findall(r"^\| `(\w+)` \|", section, flags=re.MULTILINE))
        for section in sections
    }
    assert written == {operation.name: set(_wire_names(operation)) for operation in OPERATIONS}


def test_every_exception_is_still_one() -> None:
    by_name = {operation.name: operation for operation in OPERATIONS}
    for name, parameter in NOT_OF_THE_METHOD | NOT_OF_THE_COMMAND_LINE:
        assert parameter in _parameters(by_name[name])
    for name, target in ONLY_OF_THE_COMMAND_LINE:
        assert target in _targets(_verb(by_name[name]))
