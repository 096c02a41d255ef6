"""The schemas that the surfaces show are valid ones, and every operation has them under one name."""

from __future__ import annotations

import jsonschema

from aof.adapters.http.api.openapi import document
from aof.app.operations import catalogue
from aof.app.operations.catalogue import OPERATIONS
from aof.app.operations.schemas import input_schema, output_schema


def test_every_operation_is_in_the_document() -> None:
    paths = document("1")["paths"]
    assert {f"/api/v1/{operation.name}" for operation in OPERATIONS} <= set(paths)


def test_every_schema_is_one() -> None:
    for operation in OPERATIONS:
        for schema in (input_schema(operation), input_schema(operation, tool=True), output_schema(operation)):
            jsonschema.Draft202012Validator.check_schema(schema)
            assert schema["type"] == "object", operation.name


def test_names_are_given_once() -> None:
    assert len(catalogue.BY_NAME) == len(catalogue.BY_TOOL) == len(OPERATIONS)
