"""An operation is one function: its signature, docstring and return type say what every surface has of it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Annotated, Any, TypedDict, Unpack

import jsonschema
import msgspec
import pytest

from aof.api import catalogue as api_catalogue
from aof.api.call import Caller, parameters, perform
from aof.api.catalogue import BY_NAME, OPERATIONS, Operation, input_schema, output_schema, plain_schema
from aof.api.fabric import Fabric
from aof.api.reference import reference
from aof.api.signatures import operation_of
from aof.errors import AofError, InvalidInput
from aof.kernel import operation as declared
from aof.kernel.context import CallContext
from aof.kernel.declarations import IN_PYTHON, TaskId, param
from aof.kernel.operation import Family, Spelling
from aof.kernel.results import Moved
from aof.surfaces.http.openapi import document
from aof.testing import memory_fabric
from tests.support.repository import ROOT

# --- an operation is one function: its signature, docstring and return type say what every surface has of it


_PLANTS = Family(verb="plant", help="grow plants", example="aof plant water fern", section="plan", order=5)


class _Care(TypedDict, total=False):
    soil: Annotated[str, param("kind of soil")] | None


@declared.operation(
    effect="write",
    example="aof plant water fern",
    family=_PLANTS,
    python_only=("say",),
    always=("reason",),
    shows_defaults=("litres",),
)
def plant_water(
    context: CallContext,
    name: Annotated[str, param("which plant", Spelling(place="NAME"))],
    reason: Annotated[str, param("why")] = "",
    *,
    litres: Annotated[int, param("how much", ge=1)] = 2,
    pots: Annotated[Sequence[str], param("which pots")] = (),
    after: Annotated[str, param("when")] | Annotated[float, IN_PYTHON] | None = None,
    task_id: TaskId | None = None,
    say: Any = None,
    actor: str | None = None,
    **care: Unpack[_Care],
) -> Moved:
    """Water a plant.

    Programs may pass a number of seconds as `after`.
    """
    raise NotImplementedError


def _counted(fabric: Fabric, values: dict[str, Any]) -> dict[str, int]:
    return {"plants": len(fabric.workflows()) + len(values)}


@declared.operation(effect="read", section="see", order=1, example="aof plant-count", over_wire=_counted)
def plant_count(context: CallContext) -> int:
    """Count the plants."""
    raise NotImplementedError


def test_names_and_help_follow_from_the_function() -> None:
    water, count = operation_of("plant_water", plant_water), operation_of("plant_count", plant_count)
    assert (water.name, water.tool, water.verb, water.help) == (
        "plant_water",
        "aof_plant_water",
        "plant water",
        "Water a plant.",
    )
    assert (count.tool, count.verb) == ("aof_plant_count", "plant-count")
    assert water.cli is not None
    assert (water.cli.section, water.cli.order) == ("plan", 5)


def test_parameters_follow_from_the_signature() -> None:
    schema = input_schema(operation_of("plant_water", plant_water))
    assert list(schema["properties"]) == ["actor", "name", "reason", "litres", "pots", "after", "taskId", "soil"]
    assert schema["required"] == ["name", "reason"]
    assert schema["properties"]["litres"] == {
        "description": "how much",
        "type": "integer",
        "minimum": 1,
        "default": 2,
    }
    assert schema["properties"]["pots"]["items"] == {"type": "string"}
    assert schema["properties"]["after"] == {"description": "when", "type": "string"}


def test_what_is_left_out_is_not_passed_on() -> None:
    kind = operation_of("plant_water", plant_water).parameters
    given = msgspec.convert({"name": "fern", "reason": "dry"}, kind).given()
    assert given == {"name": "fern", "reason": "dry", "litres": 2}


def test_the_answer_is_what_the_function_returns_or_what_surfaces_answer_instead() -> None:
    assert operation_of("plant_water", plant_water).result is Moved
    assert output_schema(operation_of("plant_count", plant_count))["additionalProperties"] == {"type": "integer"}


def test_keywords_that_operations_share_are_checked_by_name_and_type(fabric: Fabric) -> None:
    with pytest.raises(InvalidInput) as unknown:
        fabric.charter_init(projekt="x")  # type: ignore[call-arg] # what a user mistypes
    assert (unknown.value.message, unknown.value.hint) == (
        "fabric.charter_init() has no parameter 'projekt'",
        "did you mean 'project'?",
    )
    with pytest.raises(InvalidInput) as far:
        fabric.reject("001", why="x")  # type: ignore[call-arg] # as above
    assert far.value.hint == "use one of: task_id, blockers, hop, key, expect_rev, actor"
    with pytest.raises(InvalidInput, match="project"):
        fabric.charter_init(project=3)  # type: ignore[arg-type] # as above


# --- the schemas that the surfaces show are valid ones in the subset that all clients take, and say what is enforced


# What the strictest clients know of a tool's parameters.
KEYWORDS = {
    "additionalProperties", "anyOf", "default", "description", "enum", "items", "maximum", "minItems", "minLength",
    "minimum", "properties", "required", "type",
}  # fmt: skip
# What is refused, and where the schema says so: the value is as small as it may not be.
TOO_LITTLE: dict[tuple[str, str], Any] = {
    ("create", "title"): "",
    ("edit", "title"): "",
    ("block", "reason"): "",
    ("retry", "reason"): "",
    ("claim", "ttl"): 0,
    ("heartbeat", "ttl"): 0,
    ("link", "kind"): "likes",
    ("reject", "blockers"): [],
    ("job_add", "missed"): "never",
    ("preflight", "point"): "anything",
    ("context_decide", "risk"): "none",
    ("create", "maxAttempts"): 0,
    ("progress", "percent"): 101,
}


def test_every_operation_is_in_the_document() -> None:
    paths = document("1")["paths"]
    assert {f"/api/v1/{operation.name}" for operation in OPERATIONS} <= set(paths)


def _schemas(operation: Operation) -> tuple[dict[str, Any], ...]:
    return input_schema(operation), input_schema(operation, tool=True), output_schema(operation)


def test_every_schema_is_one() -> None:
    for operation in OPERATIONS:
        for schema in _schemas(operation):
            jsonschema.Draft202012Validator.check_schema(schema)
            jsonschema.Draft7Validator.check_schema(schema)
            assert schema["type"] == "object", operation.name


def test_names_are_given_once() -> None:
    assert len(api_catalogue.BY_NAME) == len(api_catalogue.BY_TOOL) == len(OPERATIONS)


def _parts(schema: Any) -> Iterator[dict[str, Any]]:
    """A schema and all those in it."""
    if isinstance(schema, dict):
        yield schema
        for key, value in schema.items():
            inside = value.values() if key == "properties" else value if key == "anyOf" else (value,)
            if key in ("properties", "anyOf", "items", "additionalProperties"):
                for one in inside:
                    yield from _parts(one)


@pytest.mark.parametrize("operation", OPERATIONS, ids=lambda operation: str(operation.name))
def test_every_schema_keeps_to_what_all_clients_take(operation: Operation) -> None:
    for schema in _schemas(operation):
        for part in _parts(schema):
            assert not {"prefixItems", "$ref", "const", "oneOf", "allOf"} & part.keys()
            if part.get("type") == "array":
                assert isinstance(part["items"], dict)
            if "enum" in part:
                assert part["type"] == "string"
            assert part.get("required") != []
    for part in _parts(input_schema(operation, tool=True)):
        assert part.keys() <= KEYWORDS
        assert part.get("items") != {}, "models fill lists by their items"
        defaulted = {name for name, one in part.get("properties", {}).items() if "default" in one}
        assert not defaulted & {*part.get("required", ())}
    assert not any("default" in part for part in _parts(output_schema(operation)))


def test_the_document_has_no_default_that_a_generator_takes_for_a_value_that_is_always_there() -> None:
    described = document("1")
    for schema in described["components"]["schemas"].values():
        assert not any("default" in part for part in _parts(schema))
    created = described["components"]["schemas"]["CreateParams"]
    assert created["properties"]["priority"]["description"] == "urgency; default: normal"
    assert created["required"] == ["title"]


@pytest.mark.parametrize("where", TOO_LITTLE, ids=".".join)
def test_what_is_enforced_is_said_in_the_schema_and_what_is_said_is_enforced(where: tuple[str, str]) -> None:
    operation, name = BY_NAME[where[0]], where[1]
    fabric = memory_fabric(actor="ada")
    task_id = fabric.create("Do it").task_id
    fabric.claim(task_id, agent="ada")
    schema = input_schema(operation)
    needed: dict[str, Any] = {
        "taskId": task_id,
        "title": "Do it",
        "reason": "so",
        "kind": "source_task",
        "target": task_id,
    }
    needed |= {"blockers": ["no tests"], "jobId": "nightly", "description": "that"}
    given = {key: needed[key] for key in schema.get("required", ())} | {name: TOO_LITTLE[where]}
    if where == ("job_add", "missed"):
        given |= {"cron": "@daily", "title": "Do it"}
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(given, schema)
    with pytest.raises(AofError) as refused:
        perform(fabric, operation, parameters(operation, given), Caller("ada"))
    assert refused.value.code == "invalid"


@pytest.mark.parametrize("operation", OPERATIONS, ids=lambda operation: str(operation.name))
def test_a_text_that_must_be_given_must_not_be_empty(operation: Operation) -> None:
    schema = input_schema(operation)
    fabric = memory_fabric(actor="ada")
    task_id = fabric.create("Do it").task_id
    examples = {"string": "some", "array": ["x"], "integer": 1, "object": {}}
    needed = {
        name: task_id
        if name in ("taskId", "blockerId")
        else (one.get("enum") or [examples[one.get("type", "string")]])[0]
        for name in schema.get("required", ())
        if (one := schema["properties"][name])
    }
    for name in needed:
        if schema["properties"][name].get("minLength") == 1:
            with pytest.raises(AofError):
                perform(fabric, operation, parameters(operation, needed | {name: ""}), Caller("ada"))


def test_a_tuple_becomes_a_list_of_as_many_values() -> None:
    pair = {"type": "array", "minItems": 2, "maxItems": 2, "items": False}
    same = plain_schema(pair | {"prefixItems": [{"type": "integer"}, {"type": "integer"}]})
    assert same == {"type": "array", "minItems": 2, "maxItems": 2, "items": {"type": "integer"}}
    mixed = plain_schema(pair | {"prefixItems": [{"type": "integer"}, {"const": "x"}]})
    assert mixed["items"] == {"anyOf": [{"type": "integer"}, {"type": "string", "enum": ["x"]}]}


# --- the reference of operations is what the catalogue says


PAGE = ROOT / "docs" / "reference" / "operations.md"


def test_the_page_is_what_the_catalogue_says() -> None:
    assert PAGE.read_text() == reference(), "write it anew: python -m aof.api.reference > docs/reference/operations.md"
