"""Keeps the catalogue of requirements and the tests that cite it in agreement, both ways.

The catalogue is data: rows in `catalogue/*.yaml`. A citation is a `@requirement("id", ...)` decorator, found by reading
the source of the tests, so that nothing has to be imported or run. Each check takes rows and citations and returns its
findings as sentences; no finding means agreement. Must not know any single requirement.
"""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final

import msgspec
import ryaml

MAX_IDS: Final = 5
"""More ids than this, and a test no longer says what it proves."""

_RAISING: Final = frozenset({"raises", "warns", "fail"})

_Decorated = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef


class Row(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One requirement: what must hold, and how one would see that it does."""

    id: str
    must: str
    check: str
    source: str = msgspec.field(name="from", default="")
    planned: bool = False


class Citation(msgspec.Struct, frozen=True, kw_only=True):
    """One `@requirement` decorator: where it stands, what it names, and whether something is asserted there."""

    where: str
    ids: tuple[str, ...]
    readable: bool = True
    collected: bool = True
    asserts: bool = True


def parse_rows(text: str) -> list[Row]:
    """Read one file of the catalogue. A missing or unknown field is an error."""
    return msgspec.convert(ryaml.loads(text), list[Row])


def load_rows(folder: Path) -> list[Row]:
    """Read every file of the catalogue, in the order of their names."""
    return [row for path in sorted(folder.glob("*.yaml")) for row in parse_rows(path.read_text("utf-8"))]


def find_citations(source: str, filename: str) -> list[Citation]:
    """Find the citations of one test module in its source."""
    return [
        _citation(node, decorator, filename)
        for node in ast.walk(ast.parse(source, filename))
        if isinstance(node, _Decorated)
        for decorator in node.decorator_list
        if _name(decorator) == "requirement"
    ]


def load_citations(tests: Path) -> list[Citation]:
    """Find the citations of every `test_*.py` below a folder."""
    return [
        citation
        for path in sorted(tests.rglob("test_*.py"))
        for citation in find_citations(path.read_text("utf-8"), path.relative_to(tests).as_posix())
    ]


def duplicate_ids(rows: Iterable[Row]) -> list[str]:
    """An id names one row."""
    return [f"{id_} is the id of {count} rows" for id_, count in Counter(row.id for row in rows).items() if count > 1]


def unknown_ids(rows: Iterable[Row], citations: Iterable[Citation]) -> list[str]:
    """A test cites only what the catalogue holds."""
    known = {row.id for row in rows}
    return [f"{test} cites {id_}, which is not in the catalogue" for test, id_ in _cited(citations) if id_ not in known]


def unproven_rows(rows: Iterable[Row], citations: Iterable[Citation]) -> list[str]:
    """A row that is not planned has a test."""
    cited = {id_ for _, id_ in _cited(citations)}
    return [f"{row.id} is not planned, and no test cites it" for row in rows if not row.planned and row.id not in cited]


def stale_plans(rows: Iterable[Row], citations: Iterable[Citation]) -> list[str]:
    """A row that has a test is no longer planned."""
    planned = {row.id for row in rows if row.planned}
    return [f"{test} cites {id_}: take `planned` out of its row" for test, id_ in _cited(citations) if id_ in planned]


def crowded_citations(citations: Iterable[Citation]) -> list[str]:
    """A test cites few enough rows to prove each, counted over all its decorators."""
    count: Counter[str] = Counter()
    for citation in citations:
        count[citation.where] += len(citation.ids)
    return [f"{test} cites {ids} ids, at most {MAX_IDS} are allowed" for test, ids in count.items() if ids > MAX_IDS]


def empty_citations(citations: Iterable[Citation]) -> list[str]:
    """A citation asserts something, names its ids as plain strings, and stands on a test that pytest runs."""
    findings = []
    for citation in citations:
        if not citation.asserts:
            findings.append(f"{citation.where} cites requirements and asserts nothing")
        if not citation.readable:
            findings.append(f"{citation.where}: write @requirement with one or more ids, each a plain string")
        if not citation.collected:
            findings.append(f"{citation.where} cites requirements and is not a test")
    return findings


def _cited(citations: Iterable[Citation]) -> Iterator[tuple[str, str]]:
    """Each id with the test that cites it."""
    return ((citation.where, id_) for citation in citations for id_ in citation.ids)


def _citation(node: _Decorated, decorator: ast.expr, filename: str) -> Citation:
    arguments = decorator.args if isinstance(decorator, ast.Call) else []
    ids = tuple(arg.value for arg in arguments if isinstance(arg, ast.Constant) and isinstance(arg.value, str))
    return Citation(
        where=f"{filename}::{node.name}",
        ids=ids,
        readable=bool(ids) and len(ids) == len(arguments),
        collected=node.name.startswith(("test", "Test")),
        asserts=any(_is_assertion(child) for child in ast.walk(node)),
    )


def _is_assertion(node: ast.AST) -> bool:
    """An assert of something, `pytest.raises` and its kin, or a call of a helper named `assert...`."""
    if isinstance(node, ast.Assert):
        return not isinstance(node.test, ast.Constant)
    return isinstance(node, ast.Call) and (_name(node) in _RAISING or _name(node).startswith("assert"))


def _name(node: ast.expr) -> str:
    """The last word of what is called or named: `requirement` of `@pytest.mark.requirement("x")`."""
    if isinstance(node, ast.Call):
        return _name(node.func)
    if isinstance(node, ast.Attribute):
        return node.attr
    return node.id if isinstance(node, ast.Name) else ""
