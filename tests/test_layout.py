"""The source stays easy to find one's way in: one class per name."""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from pathlib import Path

import aof

SOURCE = Path(aof.__file__).parent
MODULES = sorted(SOURCE.rglob("*.py"))


def test_no_two_public_classes_share_a_name() -> None:
    homes = defaultdict(list)
    for path in {*MODULES} - {SOURCE / "api/facade_generator.py"}:  # it holds the text of a class
        for name in re.findall(r"^class ([A-Za-z]\w*)", path.read_text("utf-8"), re.MULTILINE):
            homes[name].append(path.relative_to(SOURCE).as_posix())
    assert homes["Fabric"] == ["api/fabric.py"], "classes are found"
    assert not {name: found for name, found in homes.items() if len(found) > 1}


def test_packages_hold_nothing_but_a_docstring() -> None:
    """The command's lazy imports do not run them."""
    packages = [path for path in MODULES if path.name == "__init__.py" and path.parent != SOURCE]
    bodies = {str(path): ast.parse(path.read_text("utf-8")).body for path in packages}
    assert not [name for name, body in bodies.items() if not all(isinstance(node, ast.Expr) for node in body)]
