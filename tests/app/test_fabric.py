"""The facade is what the generator makes of the services, and has everything that the catalogue names."""

from __future__ import annotations

import inspect
from pathlib import Path

from aof.app.fabric import Fabric
from aof.app.operations import facade
from aof.app.operations.catalogue import OPERATIONS


def test_the_committed_facade_is_what_the_generator_writes() -> None:
    committed = Path(facade.TARGET).read_text("utf-8")
    assert committed == facade.generated(), "write it anew: python -m aof.app.operations.facade"


def test_every_operation_without_a_call_of_its_own_is_a_method_of_the_fabric() -> None:
    assert [one.name for one in OPERATIONS if one.ask is None and not hasattr(Fabric, one.name)] == []


def test_help_shows_the_parameters_of_an_operation() -> None:
    shown = inspect.signature(Fabric.create)
    assert list(shown.parameters)[:3] == ["self", "title", "brief"]
    assert shown.parameters["depends_on"].default == ()
    assert "Create a task" in (inspect.getdoc(Fabric.create) or "")


def test_the_fabric_is_two_classes_deep() -> None:
    assert [kind.__name__ for kind in Fabric.__mro__] == ["Fabric", "Facade", "object"]
