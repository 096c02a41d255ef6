"""Records that several threads meet for the first time at once: the checker of types would end the process."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import aof

_PLAIN = ("str", "int", "dict[str, Any]", "list[str]")
_CHILD = """
import sys, threading, types
import msgspec
from aof.support.typed import prepare_type

sys.setswitchinterval(1e-6)
SOURCE = "from __future__ import annotations\\nimport msgspec\\n"
SOURCE += "class Inner(msgspec.Struct):\\n" + "".join(f"    f{n}: int | None = None\\n" for n in range(20))
SOURCE += "class Outer(msgspec.Struct):\\n" + "".join(f"    f{n}: Inner | None = None\\n" for n in range(20))
for number in range(150):
    module = sys.modules[f"made{number}"] = types.ModuleType(f"made{number}")
    exec(SOURCE, module.__dict__)
    together = threading.Barrier(4)
    def use(kind, given):
        together.wait()
        msgspec.convert(given, prepare_type(kind))
    uses = [(module.Outer, {"f19": {"f19": 3}}), (module.Inner, {"f19": 3})] * 2
    threads = [threading.Thread(target=use, args=one) for one in uses]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
"""


def test_threads_that_meet_a_type_for_the_first_time_at_once_all_get_a_record() -> None:
    done = subprocess.run([sys.executable, "-c", _CHILD], capture_output=True, text=True, timeout=120, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def _types_named(tree: ast.Module) -> Iterator[ast.expr]:
    """The types that data is turned into, wherever that is done."""
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call):
            continue
        called = ast.unparse(node.func)
        if called == "msgspec.convert":
            yield node.args[1]
        elif called.endswith("json.Decoder") and node.args:
            yield node.args[0]
        elif called.endswith(".decode"):
            yield from (given.value for given in node.keywords if given.arg == "type")


def test_every_type_that_data_is_turned_into_is_made_ready_first() -> None:
    package = Path(aof.__file__).parent
    found = {
        f"{path.relative_to(package)}:{one.lineno} {ast.unparse(one)}"
        for path in package.rglob("*.py")
        if path.name != "typed.py"
        for one in _types_named(ast.parse(path.read_text()))
        if ast.unparse(one) not in _PLAIN and not ast.unparse(one).startswith("prepare_type(")
    }
    assert found == set()
