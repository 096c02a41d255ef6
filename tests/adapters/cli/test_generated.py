"""The committed table of the operations' verbs is what the catalogue says."""

from __future__ import annotations

import ast

from aof.adapters.cli.spec.generate import FILE, HANDLERS, generated
from aof.adapters.cli.spec.operations import VERBS


def test_the_committed_table_is_the_one_that_the_catalogue_gives() -> None:
    assert FILE.read_text(encoding="utf-8") == generated(), "run: python -m aof.adapters.cli.spec.generate"


def test_the_table_imports_nothing_but_its_grammar() -> None:
    imported = [
        node
        for node in ast.walk(ast.parse(FILE.read_text(encoding="utf-8")))
        if isinstance(node, ast.Import | ast.ImportFrom)
    ]
    assert {getattr(node, "module", None) for node in imported} == {"__future__", "aof.adapters.cli.spec.grammar"}


def test_a_function_of_its_own_belongs_to_a_verb_that_there_is() -> None:
    assert set(HANDLERS) <= {verb.name for verb in VERBS}
