"""The OpenAPI document keeps its word: a stranger who generates calls from it meets no fault and no other shape."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.surfaces.doors import OverHttp, http_door

CHECKS = (
    "not_a_server_error",
    "status_code_conformance",
    "content_type_conformance",
    "response_schema_conformance",
    "negative_data_rejection",
)
_OTHERS = r"^(/api/v1/events|/mcp|/a2a/.*|/\.well-known/.*)$"


def test_schemathesis_finds_no_fault_and_no_answer_that_the_document_does_not_describe(tmp_path: Path) -> None:
    _assert_no_fault(tmp_path, "--max-examples", "3", "--phases", "fuzzing", "--max-time", "30")


def test_schemathesis_covers_every_parameter_of_every_operation_to_the_end(tmp_path: Path) -> None:
    _assert_no_fault(tmp_path, "--phases", "coverage")


@pytest.mark.full
def test_schemathesis_finds_none_either_when_it_takes_its_time(tmp_path: Path) -> None:
    _assert_no_fault(tmp_path, "--max-examples", "20", "--phases", "fuzzing", "--max-time", "240")


def _assert_no_fault(folder: Path, *words: str) -> None:
    with http_door(folder) as door:
        for number in range(40):
            door.elsewhere.create(f"Something to claim {number}")
        done = _run(door, folder, *words)
        assert door.elsewhere.doctor().ok
    assert done.returncode == 0, done.stdout[-6000:]


def _run(door: OverHttp, folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """The stream goes on for ever, which no generator of calls waits for; it and the protocols have their own tests."""
    script = Path(sys.executable).with_name("schemathesis")
    header = f"Authorization: {door.client.headers['authorization']}"
    asked = ("-H", header, "--exclude-path-regex", _OTHERS, "--checks", ",".join(CHECKS), "--no-color")
    repeatable = ("--generation-deterministic", "--warnings", "off", "--no-shrink")
    url = f"{door.client.base_url}/openapi.json"
    return subprocess.run(
        [script, "run", url, *asked, *repeatable, "--request-timeout", "90", *words],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
        timeout=280,
    )
