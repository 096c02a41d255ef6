"""An operation is one function: its signature, docstring and return type say what every surface has of it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, TypedDict, Unpack

import msgspec
import pytest

from aof.api.catalogue import input_schema, output_schema
from aof.api.fabric import Fabric
from aof.api.signatures import operation_of
from aof.errors import InvalidInput
from aof.kernel.context import CallContext
from aof.kernel.declarations import IN_PYTHON, Family, Spelling, TaskId, param
from aof.kernel.operation import operation
from aof.kernel.results import Moved

_PLANTS = Family(verb="plant", help="grow plants", example="aof plant water fern", section="plan", order=5)


class _Care(TypedDict, total=False):
    soil: Annotated[str, param("kind of soil")] | None


@operation(
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


@operation(effect="read", section="see", order=1, example="aof plant-count", over_wire=_counted)
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
    assert far.value.hint == "use one of: task_id, blockers, hop, key, actor, expect_rev"
    with pytest.raises(InvalidInput, match="project"):
        fabric.charter_init(project=3)  # type: ignore[arg-type] # as above
