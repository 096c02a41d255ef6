"""What AOF asks others to install is what it uses, and the base install stays small."""

from __future__ import annotations

import ast
import re
import sys
import tomllib
from importlib.metadata import packages_distributions
from pathlib import Path

import aof
from tests.support.repository import ROOT

SOURCE = Path(aof.__file__).parent
OURS_TO_DEVELOP = ("dev", "bench")
NAMED_AHEAD = ("a2a", "postgres")  # so that whoever asks for them now has them when their part comes
ONLY_IF_IT_IS_THERE = {"yaml"}  # what the benchmark compares with


def _project() -> dict[str, object]:
    project: dict[str, object] = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    return project


def _names(requirements: object) -> set[str]:
    """The distributions that a list of requirements names, apart from our own extras."""
    assert isinstance(requirements, list)
    found = {re.split(r"[\[<>=!~; ]", text)[0].lower().replace("_", "-") for text in requirements}
    return found - {"aof"}


def _imported() -> set[str]:
    """The first name of every import in the package, wherever it stands."""
    found: set[str] = set()
    for path in SOURCE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.Import):
                found |= {name.name.partition(".")[0] for name in node.names}
            elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
                found.add(node.module.partition(".")[0])
    return found - set(sys.stdlib_module_names) - {"aof"} - ONLY_IF_IT_IS_THERE


def test_every_import_is_declared_and_everything_declared_is_imported() -> None:
    project = _project()
    extras = project["optional-dependencies"]
    assert isinstance(extras, dict)
    declared = _names(project["dependencies"])
    for name, requirements in extras.items():
        declared |= _names(requirements) if name not in OURS_TO_DEVELOP + NAMED_AHEAD else set()
    known = packages_distributions()
    used = {known[name][0].lower().replace("_", "-") for name in _imported()}
    assert used - {"mcp-types"} == declared  # which comes with mcp, in the very same version


def test_the_base_install_asks_for_two_libraries_each_with_a_bound() -> None:
    assert _names(_project()["dependencies"]) == {"msgspec", "ryaml"}
    extras = _project()["optional-dependencies"]
    assert isinstance(extras, dict)
    asked = [text for name in ("mcp", "server", *NAMED_AHEAD) for text in extras[name]]
    assert [text for text in asked if ">=" not in text] == []
