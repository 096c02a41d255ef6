"""The harness sees every kind of disagreement, shown on small catalogues and sources made up here."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from tests.requirements import harness
from tests.support.requirements import requirement


def row(id_: str, *, planned: bool = False) -> harness.Row:
    return harness.Row(id=id_, must="It works.", check="See it work.", planned=planned)


def cite(*decorators: str, body: str = "assert works()", name: str = "test_it") -> list[harness.Citation]:
    lines = [*decorators, f"def {name}():", f"    {body}"]
    return harness.find_citations("\n".join(lines), "test_made_up.py")


def test_a_row_is_read_with_its_source_and_its_plan() -> None:
    text = '- id: a.b\n  planned: true\n  from: "000 Intro"\n  must: >-\n    It\n    works.\n  check: See it.\n'
    assert harness.parse_rows(text) == [
        harness.Row(id="a.b", must="It works.", check="See it.", source="000 Intro", planned=True)
    ]


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("- id: a\n  must: x\n", id="no check"),
        pytest.param("- id: a\n  must: x\n  check: y\n  plannd: true\n", id="unknown field"),
        pytest.param("- id: a\n  must: x\n  check: y\n  planned: maybe\n", id="planned is not a truth value"),
    ],
)
def test_a_row_of_another_shape_is_an_error(text: str) -> None:
    with pytest.raises(msgspec.ValidationError):
        harness.parse_rows(text)


def test_rows_and_citations_come_from_every_file(tmp_path: Path) -> None:
    (tmp_path / "deep").mkdir()
    (tmp_path / "one.yaml").write_text("- {id: a, must: x, check: y}\n")
    (tmp_path / "two.yaml").write_text("- {id: b, must: x, check: y}\n")
    (tmp_path / "deep" / "test_one.py").write_text('@requirement("a")\ndef test_it():\n    assert works()\n')
    (tmp_path / "deep" / "helper.py").write_text('@requirement("b")\ndef test_it():\n    assert works()\n')
    assert [found.id for found in harness.load_rows(tmp_path)] == ["a", "b"]
    assert [found.where for found in harness.load_citations(tmp_path)] == ["deep/test_one.py::test_it"]


@pytest.mark.parametrize("decorator", ['@requirement("a", "b")', '@pytest.mark.requirement("a", "b")'])
def test_a_citation_is_found_however_the_marker_is_spelled(decorator: str) -> None:
    [found] = cite("@pytest.mark.full", decorator)
    assert found == harness.Citation(where="test_made_up.py::test_it", ids=("a", "b"))


def test_a_citation_is_found_on_async_functions_methods_and_classes() -> None:
    source = """
@requirement("a")
async def test_it():
    assert await works()

class TestThem:
    @requirement("b")
    def test_it(self):
        assert works()

@requirement("c")
class TestOthers:
    def test_it(self):
        assert works()
"""
    found = harness.find_citations(source, "test_made_up.py")
    assert sorted(citation.ids for citation in found) == [("a",), ("b",), ("c",)]
    assert harness.empty_citations(found) == []


def test_the_marker_is_one_that_pytest_can_read() -> None:
    assert requirement("a", "b").mark == pytest.mark.requirement("a", "b").mark


def test_agreement_has_no_findings() -> None:
    rows, citations = [row("a"), row("b", planned=True)], cite('@requirement("a")')
    assert not harness.duplicate_ids(rows)
    assert not harness.unknown_ids(rows, citations)
    assert not harness.unproven_rows(rows, citations)
    assert not harness.stale_plans(rows, citations)
    assert not harness.crowded_citations(citations)
    assert not harness.empty_citations(citations)


def test_an_id_on_two_rows_is_found() -> None:
    assert harness.duplicate_ids([row("a"), row("b"), row("a")]) == ["a is the id of 2 rows"]


def test_a_cited_id_without_a_row_is_found() -> None:
    [finding] = harness.unknown_ids([row("a")], cite('@requirement("a", "z")'))
    assert finding == "test_made_up.py::test_it cites z, which is not in the catalogue"


def test_a_row_without_plan_or_test_is_found() -> None:
    [finding] = harness.unproven_rows([row("a"), row("b"), row("c", planned=True)], cite('@requirement("a")'))
    assert finding == "b is not planned, and no test cites it"


def test_a_planned_row_with_a_test_is_found() -> None:
    [finding] = harness.stale_plans([row("a", planned=True)], cite('@requirement("a")'))
    assert finding == "test_made_up.py::test_it cites a: take `planned` out of its row"


@pytest.mark.parametrize(
    "decorators",
    [['@requirement("a", "b", "c", "d", "e", "f")'], ['@requirement("a", "b", "c")', '@requirement("d", "e", "f")']],
)
def test_a_sixth_id_is_found(decorators: list[str]) -> None:
    assert harness.crowded_citations(cite('@requirement("a", "b", "c", "d", "e")')) == []
    [finding] = harness.crowded_citations(cite(*decorators))
    assert finding == "test_made_up.py::test_it cites 6 ids, at most 5 are allowed"


@pytest.mark.parametrize("body", ["works()", "pass", "assert True", '"""assert works()"""'])
def test_a_citation_that_asserts_nothing_is_found(body: str) -> None:
    [finding] = harness.empty_citations(cite('@requirement("a")', body=body))
    assert finding == "test_made_up.py::test_it cites requirements and asserts nothing"


@pytest.mark.parametrize(
    "body", ["assert works()", "with pytest.raises(OSError): works()", "assert_works()", "support.assert_works()"]
)
def test_each_way_to_assert_counts(body: str) -> None:
    assert harness.empty_citations(cite('@requirement("a")', body=body)) == []


@pytest.mark.parametrize("decorator", ["@requirement", "@requirement()", "@requirement(ID)", '@requirement("a", ID)'])
def test_a_citation_whose_ids_cannot_be_read_is_found(decorator: str) -> None:
    [finding] = harness.empty_citations(cite(decorator))
    assert finding == "test_made_up.py::test_it: write @requirement with one or more ids, each a plain string"


def test_a_citation_on_what_pytest_does_not_run_is_found() -> None:
    [finding] = harness.empty_citations(cite('@requirement("a")', name="check_it"))
    assert finding == "test_made_up.py::check_it cites requirements and is not a test"
