"""A null for what may be left out counts as left out: some clients fill in every parameter that they know of."""

from __future__ import annotations

from typing import Any

import httpx
import msgspec
import pytest

from aof.api.call import parameters
from aof.api.catalogue import BY_NAME, BY_TOOL, OPERATIONS, Operation, input_schema
from aof.errors import InvalidInput
from tests.surfaces.doors import OverHttp, OverMcp, Refusal, of_response, of_tool

_SAMPLES: dict[str, Any] = {"string": "text", "integer": 3, "array": ["x"], "object": {}}


def _required(operation: Operation) -> dict[str, Any]:
    """Something of the right type for each parameter that must be given."""
    schema = input_schema(operation)
    kinds = {name: schema["properties"][name] for name in schema.get("required", ())}
    return {name: kind.get("enum", [_sample(kind)])[0] for name, kind in kinds.items()}


def _sample(kind: dict[str, Any]) -> Any:
    return [{}] if kind.get("items", {}).get("type") == "object" else _SAMPLES[kind.get("type", "integer")]


@pytest.mark.parametrize("operation", OPERATIONS, ids=lambda one: one.name)
def test_every_operation_takes_a_null_for_each_parameter_that_may_be_left_out(operation: Operation) -> None:
    needed = _required(operation)
    others = {field.encode_name for field in msgspec.structs.fields(operation.parameters)} - needed.keys()
    assert "actor" in others
    assert parameters(operation, needed | dict.fromkeys(others)) == parameters(operation, needed)


def test_a_null_within_a_parameter_counts_as_absent_and_one_in_free_data_stays() -> None:
    given = {"taskId": "001", "routing": {"role": None, "agent": "ada"}, "metadata": {"gone": None}}
    params = parameters(BY_NAME["edit"], given).given()
    assert msgspec.to_builtins(params["routing"]) == {"agent": "ada"}
    assert params["metadata"] == {"gone": None}


def test_a_null_for_what_must_be_given_is_refused() -> None:
    with pytest.raises(InvalidInput, match="title"):
        parameters(BY_NAME["create"], {"title": None})
    with pytest.raises(InvalidInput, match="brief"):
        parameters(BY_NAME["create"], {"title": "A task", "brief": None}, tool=True)
    with pytest.raises(InvalidInput, match="nonsense"):
        parameters(BY_NAME["create"], {"title": "A task", "nonsense": None})


def _filled(tool: str, given: dict[str, Any]) -> dict[str, Any]:
    """The arguments as a client makes them that sends a null for everything else in the schema."""
    return dict.fromkeys(input_schema(BY_TOOL[tool], tool=True)["properties"]) | given


def test_a_client_that_fills_in_nulls_creates_claims_edits_and_completes_over_mcp(mcp: OverMcp) -> None:
    def call(tool: str, **given: Any) -> dict[str, Any]:
        answer = of_tool(mcp.portal.call(mcp.client.call_tool, tool, _filled(tool, given)))
        assert not isinstance(answer, Refusal), answer
        return answer

    made = call("aof_dispatch", title="With nulls", brief="All of it.")["taskId"]
    assert call("aof_task_claim", taskId=made)["taskId"] == made
    call("aof_task_edit", taskId=made, title="Without", routing={"role": None, "team": None, "agent": None})
    assert call("aof_task_complete", taskId=made, summary="Done.")["status"] == "review"
    assert mcp.elsewhere.get(made).title == "Without"


def test_a_client_that_fills_in_nulls_creates_claims_and_completes_over_http(http: OverHttp) -> None:
    def call(name: str, headers: dict[str, str] | None = None, **given: Any) -> dict[str, Any]:
        known = [field.encode_name for field in msgspec.structs.fields(BY_NAME[name].parameters)]
        response: httpx.Response = http.client.post(
            f"/api/v1/{name}", json=dict.fromkeys(known) | given, headers=headers or {}
        )
        answer = of_response(response)
        assert not isinstance(answer, Refusal), answer
        return answer

    made = call("create", title="With nulls")["taskId"]
    call("claim", taskId=made)
    rev = http.elsewhere.get(made).rev
    assert call("complete", {"If-Match": f'"{rev}"'}, taskId=made)["status"] == "review"
