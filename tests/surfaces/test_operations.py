"""Every operation answers, refuses and leaves behind the same on Python, command line, MCP and HTTP."""

from __future__ import annotations

import inspect
from collections.abc import Iterator

import pytest

from aof.api.catalogue import OPERATIONS
from aof.api.fabric import Fabric
from aof.documents.charter_operations import CharterFields
from aof.queries.operations import Filters
from aof.surfaces.cli.verbs import VERBS, verb_of
from tests.support.requirements import requirement
from tests.surfaces.conftest import Doors, opened
from tests.surfaces.scripts import SCRIPTS, Script
from tests.surfaces.tape import Tape

# Verbs that are the command line's own: they look after this machine, its files or its screen.
_OWN = {
    "admin bench", "admin notify", "admin reindex", "admin token", "board", "completion", "help", "init", "mcp",
    "trust", "up", "version", "watch",
}  # fmt: skip
# Methods for those who build on the fabric: parts of other operations, or about the object itself.
_PARTS = {
    "as_actor", "as_run", "claimable", "close", "events", "follow", "get", "held_back", "now", "on_behalf_of",
    "org_load", "org_report", "own_run", "portable_follow", "remark", "renew_kept", "resolve", "running", "settle",
    "speaks_for_others", "workflows",
    "branches", "catch_up", "handoff_inbox", "lease_ends", "relatives", "tasks", "turn_began", "turn_ended",
}  # fmt: skip


@pytest.fixture(scope="module")
def alike(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Doors]:
    """Doors on data directories with the same past; no lease or wait for a retry ends while a slow machine goes on."""
    patient = "[lease]\nttl = 36000\n[retry]\nbase = 900\n"
    with opened(lambda: tmp_path_factory.mktemp("alike"), patient) as found:
        yield found


@requirement("tools.errors.same-everywhere", "handoff.lifecycle.every-surface")
@pytest.mark.parametrize("script", SCRIPTS, ids=lambda script: script.__name__)
def test_every_surface_gives_the_same_answers_and_leaves_the_same_files(alike: Doors, script: Script) -> None:
    tapes = {name: Tape(door) for name, door in alike.items()}
    for tape in tapes.values():
        script(tape)
    expected = tapes.pop("python")
    for name, tape in tapes.items():
        assert tape.said() == expected.said(), name
        assert tape.files() == expected.files(), name


def test_the_scripts_use_every_operation() -> None:
    text = "".join(inspect.getsource(script) for script in SCRIPTS)
    looped = ("whoami", "heartbeat", "release", "fail", "complete", "cancel", "unblock", "pause", "resume", "archive")
    assert [one.name for one in OPERATIONS if f'"{one.name}"' not in text and one.name not in ("create", *looped)] == []


def test_every_operation_has_a_verb_and_every_verb_an_operation() -> None:
    by_verb = {verb_of(operation.verb).name for operation in OPERATIONS}
    assert by_verb | _OWN == {verb.name for verb in VERBS if not verb.is_group}
    assert not by_verb & _OWN


def test_every_operation_of_the_fabric_is_in_the_catalogue() -> None:
    methods = {name for name, one in inspect.getmembers(Fabric, inspect.isfunction) if not name.startswith("_")}
    assert {operation.name for operation in OPERATIONS} == methods - _PARTS


def test_a_parameter_of_an_operation_is_one_of_its_method() -> None:
    filters = set(Filters.__annotations__)
    for operation in OPERATIONS:
        if operation.ask is not None:
            continue
        signature = inspect.signature(getattr(Fabric, operation.name)).parameters
        more = {"filters": filters, "given": set(CharterFields.__annotations__)}
        known = set(signature) | {"actor"}.union(*(more[one] for one in more if one in signature))
        assert set(operation.parameters.__struct_fields__) <= known, operation.name
