"""The committed table of the operations' verbs is what the catalogue says."""

from __future__ import annotations

import ast
import re
from pathlib import Path
from typing import Any

from aof.api.signatures import operation_of
from aof.kernel.operation import operation
from aof.kernel.results import Moved
from aof.surfaces.cli.generate import FILE, HANDLERS, generated, verb_of
from aof.surfaces.cli.help import help_text
from aof.surfaces.cli.operations import VERBS as GENERATED

ARCHITECTURE = Path(__file__).parents[2] / "ARCHITECTURE.md"


def test_the_committed_table_is_the_one_that_the_catalogue_gives() -> None:
    assert FILE.read_text(encoding="utf-8") == generated(), "run: python -m aof.surfaces.cli.generate"


def test_the_table_imports_nothing_but_its_grammar() -> None:
    imported = [
        node
        for node in ast.walk(ast.parse(FILE.read_text(encoding="utf-8")))
        if isinstance(node, ast.Import | ast.ImportFrom)
    ]
    assert {getattr(node, "module", None) for node in imported} == {"__future__", "aof.surfaces.cli.grammar"}


def test_a_function_of_its_own_belongs_to_a_verb_that_there_is() -> None:
    assert set(HANDLERS) <= {verb.name for verb in GENERATED}


def test_the_function_that_the_architecture_page_shows_becomes_a_verb_with_help() -> None:
    (shown,) = re.findall(r"```python\n(.*?)```", ARCHITECTURE.read_text(encoding="utf-8"), flags=re.DOTALL)
    names: dict[str, Any] = {"operation": operation, "Moved": Moved}
    exec(compile(f"from __future__ import annotations\n{shown}", "page", "exec"), names)
    verb = verb_of("retag", [operation_of("retag", names["retag"])])
    assert verb.usage == "aof retag ID TAG --to T"
    assert verb.operation == "retag"
    assert "aof retag: rename a tag of a task" in help_text(verb)
    assert "new name" in help_text(verb)
