"""`aof workflow`, and the verbs on gated tasks; the examples of the documentation are tried."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from tests.support.command_line import Said
from tests.support.repository import ROOT

REFERENCE = Path("docs/reference/workflows.md")
HOWTO = Path("docs/howto/gate-work-with-reviews.md")


def _blocks(page: Path, language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", page.read_text(), flags=re.DOTALL)


def _template(name: str, text: str) -> None:
    folder = Path(".aof/workflows")
    folder.mkdir(exist_ok=True)
    (folder / f"{name}.yaml").write_text(text)


@pytest.fixture
def examples() -> dict[str, str]:
    """The templates of both pages; read before the test goes to its own folder."""
    root = ROOT
    return {"feature": _blocks(root / REFERENCE, "yaml")[0], "review": _blocks(root / HOWTO, "yaml")[0]}


@pytest.fixture
def gated(aof: Any, examples: dict[str, str]) -> Any:
    """A command line with the documented templates."""
    for name, text in examples.items():
        _template(name, text)
    return aof


def test_the_documented_templates_are_sound(gated: Any) -> None:
    said: Said = gated("workflow", "check", "--json")
    assert (said.code, said.data["ok"], said.data["problems"]) == (0, True, [])
    assert said.data["workflows"] == ["feature", "review"]


def test_a_problem_is_named_with_file_line_and_remedy(gated: Any) -> None:
    _template("bad", "name: bad\nhops:\n  - id: a\n    role: r\n    dependsOn: [b]\n")
    said = gated("workflow", "check", "bad")
    assert said.code == 1
    assert "workflows/bad.yaml:5" in said.out
    assert "→ " in said.out
    (problem,) = [one for one in gated("workflow", "check", "--json").data["problems"] if one["code"] == "unknown_hop"]
    assert (problem["file"], problem["line"]) == ("workflows/bad.yaml", 5)
    refused = gated("create", "x", "--workflow", "bad", "--json")
    assert (refused.code, refused.error["code"]) == (2, "invalid_workflow")
    assert "aof workflow check bad" in refused.error["hint"]
    missing = gated("create", "x", "--workflow", "revew", "--json")
    assert (missing.code, missing.error["code"]) == (3, "workflow_not_found")
    assert "did you mean 'review'?" in missing.error["hint"]


def test_a_workflow_is_drawn_and_a_tasks_with_the_state_of_each_hop(gated: Any) -> None:
    drawn = gated("workflow", "show", "feature", "--format", "mermaid").out
    assert drawn.startswith("flowchart TD\n")
    assert "h3 -.->|rejects| h0" in drawn
    gated("create", "x", "--workflow", "feature")
    gated("claim", "001", "--agent", "ada", "--hop", "implement")
    text = gated("workflow", "show", "001").out
    assert "▶ implement [developer] running by ada" in text
    assert "○ code-review" in text
    assert "implement (developer)<br/>running" in gated("workflow", "show", "001", "--format", "mermaid").out
    data = gated("workflow", "show", "001", "--json").data
    assert {hop["id"]: hop["status"] for hop in data["hops"]}["implement"] == "running"


def test_a_wrong_action_or_form_is_a_usage_error(gated: Any) -> None:
    assert gated("workflow", "lint").code == 2
    assert gated("workflow", "show", "review", "--format", "svg").code == 2
    assert gated("workflow", "attach").code == 2


def test_a_role_and_a_hop_can_be_named(gated: Any) -> None:
    gated("create", "x", "--workflow", "review")
    claimed = gated("claim", "001", "--agent", "ada", "--hop", "implement", "--json").data
    assert claimed["hop"] == "implement"
    run = ("--run", claimed["runId"])
    assert (
        gated("complete", "001", *run, "--outcome", "complete", "--role", "developer", "--json").data["status"]
        == "ready"
    )
    taught = gated("complete", "001", "--agent", "bob", "--outcome", "maybe", "--json")
    assert (taught.code, taught.error["code"]) == (1, "outcome_required")
