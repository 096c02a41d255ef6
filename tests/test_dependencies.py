"""What AOF asks others to install is what it uses, and a command loads none of what only servers need."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
import tomllib
from importlib.metadata import packages_distributions
from pathlib import Path

import aof
from aof.service.extras import DISTRIBUTION
from tests.support.repository import ROOT

SOURCE = Path(aof.__file__).parent
OURS_TO_DEVELOP = ("dev", "bench")
# The types of mcp, in the very same version, and the messages of a2a-sdk; both libraries show them to their users.
COME_WITH_OTHERS = {"mcp-types", "googleapis-common-protos"}
ONLY_IF_IT_IS_THERE = {"yaml"}  # what the benchmark compares with


def _project() -> dict[str, object]:
    project: dict[str, object] = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    return project


def _names(requirements: object) -> set[str]:
    """The distributions that a list of requirements names, apart from our own extras."""
    assert isinstance(requirements, list)
    found = {re.split(r"[\[<>=!~; ]", text)[0].lower().replace("_", "-") for text in requirements}
    return found - {DISTRIBUTION}


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
        declared |= _names(requirements) if name not in OURS_TO_DEVELOP else set()
    known = packages_distributions()
    used = {known[name][0].lower().replace("_", "-") for name in _imported()}
    assert used - COME_WITH_OTHERS == declared


def test_every_library_is_asked_for_with_a_bound() -> None:
    base, extras = _project()["dependencies"], _project()["optional-dependencies"]
    assert isinstance(base, list)
    assert isinstance(extras, dict)
    asked = base + [text for name in ("mcp", "server", "a2a", "notify") for text in extras[name]]
    assert "msgspec>=0.20" in asked
    assert [text for text in asked if ">=" not in text] == []


def test_the_names_of_all_extras_stay_valid() -> None:
    extras = _project()["optional-dependencies"]
    assert isinstance(extras, dict)
    assert {"mcp", "server", "a2a", "notify", "all"} <= extras.keys()


# The `aof` command in one process after the other, where nothing but two libraries is there: `pip install --no-deps`.
TWO_LIBRARIES = """
import sys
class Missing:
    @staticmethod
    def find_spec(name, *_where):
        if name.partition(".")[0] in MISSING:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
MISSING = set(sys.argv.pop(1).split(","))
sys.meta_path.insert(0, Missing)
from aof.__main__ import main
main()
"""
WORKS = (
    ("init",),
    ("create", "Add refresh endpoint"),
    ("create", "Document it", "--dep", "001"),
    ("ready", "--explain"),
    ("claim", "--agent", "ada"),
    ("progress", "001", "--agent", "ada", "--text", "core logic done"),
    ("complete", "001", "--agent", "ada", "--summary", "12 tests passing"),
    ("approve", "001"),
    ("show", "001"),
    ("log", "001"),
    ("board", "--once"),
    ("token", "create", "ada"),
    ("snapshot",),
    ("doctor",),
    ("up", "--once"),
)


def test_two_libraries_are_enough_for_everything_but_servers(tmp_path: Path) -> None:
    missing = ",".join(set(packages_distributions()) - {"aof", "msgspec", "ryaml"})

    def aof_with(*words: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-c", TWO_LIBRARIES, missing, *words]
        return subprocess.run(
            command, cwd=tmp_path, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=120, check=False
        )

    for words in WORKS:
        done = aof_with(*words)
        assert done.returncode == 0, (words, done.stderr)
    for words in (("mcp",), ("up", "--once", "--http", "0")):
        refused = aof_with(*words)
        assert refused.returncode == 1, words
        assert "is not installed" in refused.stderr, words
