"""Do the tests notice when a rule is wrong? Change a module in many small ways and see which changes a test fails for.

    .venv/bin/python -m bench.mutants src/aof/runs/leases.py --tests tests/runs tests/kernel
    .venv/bin/python -m bench.mutants src/aof/tasks/*.py --tests tests/tasks --sample 40 --seed 7

Each mutant is a module with one change in a function: a comparison or condition turned round, a number or a word that
something is compared with, a returned value or a statement gone. The tests run once to see which of them runs which
lines; each mutant then gets those that run its line, in a fork of a process that has loaded them all. No file is
changed. A mutant that no test fails for is printed: either a test is missing, or the change makes no difference.
Processes that a test starts run the module as it is.
"""

from __future__ import annotations

import argparse
import ast
import copy
import gc
import importlib
import json
import multiprocessing
import os
import random
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from types import CodeType, FrameType, FunctionType
from typing import Any, NamedTuple, TextIO

import pytest
from hypothesis import HealthCheck, Phase, settings

TURNED: dict[type[ast.AST], type[ast.AST]] = {
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.And: ast.Or,
    ast.Or: ast.And,
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.FloorDiv,
    ast.BitOr: ast.BitAnd,
    ast.BitAnd: ast.BitOr,
}
STARTUP = 30.0  # seconds that a run may take beyond the time of its tests


class Mutant(NamedTuple):
    """One change of a module: the node that stands in for another, and the lines of the statement that it is in."""

    parent: ast.AST
    field: str
    place: int | None
    node: ast.AST
    label: str
    lines: range
    inside: bool  # of a function; else it runs when the module is imported

    def code(self, tree: ast.Module, path: str) -> CodeType:
        """The changed module; for a process that needs the tree for nothing else."""
        if self.place is None:
            setattr(self.parent, self.field, self.node)
        else:
            getattr(self.parent, self.field)[self.place] = self.node
        return compile(ast.fix_missing_locations(tree), path, "exec")


def mutants(tree: ast.Module) -> Iterator[Mutant]:
    """Every change of the module that we know."""
    yield from _below(tree, range(0), inside=False)


def _below(parent: ast.AST, lines: range, *, inside: bool) -> Iterator[Mutant]:
    for field, value in ast.iter_fields(parent):
        if field in ("annotation", "returns", "decorator_list"):
            continue
        for place, node in enumerate(value if isinstance(value, list) else [value]):
            if not isinstance(node, ast.AST) or _says_nothing(node):
                continue
            its = _lines(node) if isinstance(node, ast.stmt) else lines
            for other, label in _variants(node):
                ast.copy_location(other, node)
                yield Mutant(parent, field, place if isinstance(value, list) else None, other, label, its, inside)
            yield from _below(node, its, inside=inside or isinstance(node, ast.FunctionDef | ast.Lambda))


def _says_nothing(node: ast.AST) -> bool:
    """Docstrings, imports and what only a type checker reads."""
    match node:
        case ast.Import() | ast.ImportFrom() | ast.JoinedStr() | ast.Assert() | ast.Expr(value=ast.Constant()):
            return True
        case ast.If(test=ast.Name(id="TYPE_CHECKING")):
            return True
    return False


def _lines(node: ast.stmt) -> range:
    """The statement without its body."""
    body = getattr(node, "body", None)
    end = body[0].lineno if body else (node.end_lineno or node.lineno) + 1
    return range(node.lineno, max(end, node.lineno + 1))


def _variants(node: ast.AST) -> Iterator[tuple[ast.AST, str]]:
    match node:
        case ast.cmpop() | ast.boolop() | ast.operator() if type(node) in TURNED:
            other = TURNED[type(node)]
            yield other(), f"{type(node).__name__} → {other.__name__}"
        case ast.UnaryOp(op=ast.Not()):
            yield copy.deepcopy(node.operand), "not dropped"
        case ast.If() | ast.While() | ast.IfExp():
            negated = copy.copy(node)
            negated.test = ast.copy_location(ast.UnaryOp(op=ast.Not(), operand=node.test), node.test)
            yield negated, "condition negated"
        case ast.Constant(value=bool() as value):
            yield ast.Constant(not value), f"{value} → {not value}"
        case ast.Constant(value=int() as value):
            yield ast.Constant(value + 1), f"{value} → {value + 1}"
        case ast.Compare(left=left, ops=ops, comparators=[ast.Constant(value=str() as word)]):
            yield ast.Compare(left, ops, [ast.Constant(f"{word}x")]), f"{word!r} changed"
        case ast.Return(value=ast.expr() as value) if not isinstance(value, ast.Constant):
            yield ast.Return(ast.Constant(None)), "returns None"
        case ast.Raise() | ast.Continue() | ast.Break() | ast.Expr(value=ast.Call()) | ast.AugAssign():
            yield ast.Pass(), f"{type(node).__name__.lower()} dropped"


class Trace:
    """A pytest plugin that notes which lines of some files each test runs, and how long it takes."""

    def __init__(self, paths: Sequence[str]) -> None:
        self._lines: dict[str, set[int]] = {path: set() for path in paths}
        self.lines: dict[str, dict[str, list[int]]] = {path: {} for path in paths}
        self.seconds: dict[str, float] = {}

    def pytest_runtest_logstart(self) -> None:
        """A test begins."""
        self._began = time.monotonic()
        sys.settrace(self._called)

    def pytest_runtest_logfinish(self, nodeid: str) -> None:
        """And ends."""
        sys.settrace(None)
        self.seconds[nodeid] = time.monotonic() - self._began
        for path, lines in self._lines.items():
            if lines:
                self.lines[path][nodeid] = sorted(lines)
                lines.clear()

    def _called(self, frame: FrameType, _event: str, _given: object) -> Callable[..., Any] | None:
        return self._line if frame.f_code.co_filename in self._lines else None

    def _line(self, frame: FrameType, _event: str, _given: object) -> Callable[..., Any]:
        self._lines[frame.f_code.co_filename].add(frame.f_lineno)
        return self._line


class Brief:
    """A pytest plugin: a failing example is found, and not made shorter."""

    def pytest_collection(self) -> None:
        """Before any test module is imported."""
        settings.register_profile(
            "mutants", deadline=None, database=None, derandomize=True, suppress_health_check=[*HealthCheck],
            phases=(Phase.explicit, Phase.generate),
        )  # fmt: skip
        settings.load_profile("mutants")


class Judge:
    """A pytest plugin that tries mutants with the tests that were collected, each in a fork of this process."""

    def __init__(self, options: argparse.Namespace, said: TextIO) -> None:
        self._options, self._said = options, said
        self._paths = {module: str(Path(module).resolve()) for module in options.modules}

    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        """In place of running the tests."""
        session.config.pluginmanager.unregister(name="terminalreporter")
        for path in self._paths.values():
            importlib.import_module(path.rpartition("/src/")[2].removesuffix(".py").replace("/", "."))
        self._items = {item.nodeid: item for item in session.items}
        self._trace = self._traced(session)
        for module, path in self._paths.items():
            self._judged(module, path)
        return True

    def _traced(self, session: pytest.Session) -> dict[str, Any]:
        """Which lines each test runs, and how long it takes."""
        kept = Path(self._options.trace or f"{tempfile.gettempdir()}/trace.json")
        if not kept.exists():
            trace = Trace([*self._paths.values()])

            def run() -> bool:
                session.config.pluginmanager.register(trace)
                passed = self._passed(self._items)
                kept.write_text(json.dumps({"lines": trace.lines, "seconds": trace.seconds}))
                return passed

            assert _forked(run, 3_600), "a test fails as the source is"
        return dict(json.loads(kept.read_text()))

    def _judged(self, module: str, path: str) -> None:
        tree = ast.parse(Path(path).read_text(encoding="utf-8"))
        found = [mutant for mutant in mutants(tree) if mutant.inside]
        chosen = random.Random(self._options.seed).sample(found, min(self._options.sample or len(found), len(found)))
        functions = [one for one in gc.get_objects() if type(one) is FunctionType and one.__code__.co_filename == path]
        killed = 0
        for mutant in sorted(chosen, key=lambda mutant: mutant.lines.start):
            ran, seconds = self._trace["lines"][path].items(), self._trace["seconds"]
            tests = [test for test, lines in ran if {*lines} & {*mutant.lines} and test in self._items]
            tests = sorted(tests, key=seconds.__getitem__)[: self._options.most]

            def run(mutant: Mutant = mutant, tests: Sequence[str] = tests) -> bool:
                codes = dict(_codes(mutant.code(tree, path)))
                for function in functions:
                    function.__code__ = codes.get(_name(function.__code__), function.__code__)
                return self._passed(tests)

            if _forked(run, STARTUP + 5 * sum(seconds[test] for test in tests)):
                told = f"{module}:{mutant.lines.start} {mutant.label}: survived, {len(tests)} tests run it"
                print(told, file=self._said, flush=True)
            else:
                killed += 1
        told = f"{module}: {killed} of {len(chosen)} killed ({killed / len(chosen):.0%}; {len(found)} in all)"
        print(told, file=self._said, flush=True)

    def _passed(self, tests: Iterable[str]) -> bool:
        for test in tests:
            item = self._items[test]
            item.config.hook.pytest_runtest_protocol(item=item, nextitem=None)
            if item.session.testsfailed:
                return False
        return True


def _codes(code: CodeType) -> Iterator[tuple[tuple[str, int], CodeType]]:
    """The code of every function of a module."""
    for one in code.co_consts:
        if isinstance(one, CodeType):
            yield _name(one), one
            yield from _codes(one)


def _name(code: CodeType) -> tuple[str, int]:
    return code.co_qualname, code.co_firstlineno


def _forked(run: Callable[[], bool], seconds: float) -> bool:
    """Whether a fork of this process does this, in time."""
    process = multiprocessing.get_context("fork").Process(target=lambda: os._exit(0 if run() else 1))
    process.start()
    process.join(seconds)
    if process.exitcode is None:
        process.kill()
        process.join()
    return process.exitcode == 0


def main(arguments: Sequence[str] | None = None) -> int:
    """Print who survives, and how many do not."""
    parser = argparse.ArgumentParser(prog="python -m bench.mutants", description="See which changes no test fails for.")
    parser.add_argument("modules", nargs="+", help="such as src/aof/tasks/rules.py")
    parser.add_argument("--tests", nargs="+", required=True, help="files or folders of tests")
    parser.add_argument("--sample", type=int, default=40, help="how many mutants of a module to try; 0 for all")
    parser.add_argument("--seed", type=int, default=1, help="for the choice of them")
    parser.add_argument("--most", type=int, help="try a mutant with so many tests at most, the fastest")
    parser.add_argument("--trace", metavar="FILE", help="keep there which test runs what, and read it if it is there")
    options = parser.parse_args(arguments)
    scratch = tempfile.mkdtemp(prefix="aof-mutants-")
    os.environ |= {"TMPDIR": scratch, "HYPOTHESIS_STORAGE_DIRECTORY": f"{scratch}/hypothesis"}
    tempfile.tempdir = scratch
    try:
        with os.fdopen(os.dup(1), "w") as said:
            plugins = [Brief(), Judge(options, said)]
            return int(pytest.main(["-qq", "-p", "no:cacheprovider", "-p", "no:xdist", *options.tests], plugins))
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


if __name__ == "__main__":
    sys.exit(main())
