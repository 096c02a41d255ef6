"""The import hook of the command: modules run when they are used, once, and whole for every thread."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

BEGIN = """
import sys
from aof.support import lazy_imports
lazy_imports.install()
"""


def _told(program: str, folder: Path | None = None) -> list[str]:
    """What a process says that runs the program under the hook; modules of the folder count as ours."""
    within = f"import aof; aof.__path__.append({str(folder)!r})\n" if folder is not None else ""
    done = subprocess.run(
        [sys.executable, "-c", BEGIN + within + program], capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.split()


def test_a_module_runs_when_something_of_it_is_used(tmp_path: Path) -> None:
    (tmp_path / "late.py").write_text("print('ran')\nvalue = 1\n")
    said = _told("from aof import late; print('imported'); late.value; late.value", tmp_path)
    assert said == ["imported", "ran"]


def test_a_name_of_a_module_is_there_at_once(tmp_path: Path) -> None:
    (tmp_path / "late.py").write_text("value = 41\n")
    assert _told("from aof.late import value; print(value + 1)", tmp_path) == ["42"]


def test_a_name_that_is_not_there_is_an_ordinary_error(tmp_path: Path) -> None:
    (tmp_path / "late.py").write_text("value = 1\n")
    program = "from aof import late\ntry:\n    late.other\nexcept AttributeError as error:\n    print(error.args[0])"
    assert " ".join(_told(program, tmp_path)) == "module 'aof.late' has no attribute 'other'"


def test_a_module_that_fails_to_run_can_be_imported_again(tmp_path: Path) -> None:
    (tmp_path / "late.py").write_text("import sys\nvalue = sys.once.pop()\n")
    program = """
sys.once = []
for _ in range(2):
    try:
        from aof.late import value
        print(value)
    except IndexError:
        print("failed")
    sys.once = ["well"]
"""
    assert _told(program, tmp_path) == ["failed", "well"]


def test_threads_that_use_a_module_at_once_all_see_it_whole(tmp_path: Path) -> None:
    (tmp_path / "late.py").write_text("import threading\nbegun = True\nthreading.Event().wait(0.2)\nvalue = 1\n")
    program = """
import threading
threading.Thread
from aof import late
together = threading.Barrier(8)
def use():
    together.wait()
    sys.stdout.write(f"{late.value}\\n")
threads = [threading.Thread(target=use) for _ in range(8)]
for one in threads: one.start()
for one in threads: one.join()
"""
    assert _told(program, tmp_path) == ["1"] * 8


def test_after_settling_nothing_is_pending_and_imports_are_ordinary(tmp_path: Path) -> None:
    (tmp_path / "late.py").write_text("print('late')\nvalue = 1\n")
    (tmp_path / "later.py").write_text("print('later')\n")
    program = """
from aof import late
from aof.surfaces.cli import main
lazy_imports.settle()
from aof import later
print(sum(type(one) is lazy_imports.LazyModule for one in list(sys.modules.values())))
"""
    assert _told(program, tmp_path) == ["late", "later", "0"]


@pytest.mark.parametrize("name", ["aof", "aof.tasks.model", "aof.surfaces.cli.main"])
def test_a_program_that_imports_aof_gets_ordinary_imports(name: str) -> None:
    program = f"import sys, {name}; print(any('lazy' in repr(one) for one in sys.meta_path))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout.split() == ["False"]
