"""What a call of the command line loads: nothing that its verb does not need, for loading is the user's time.

Each call is a process of its own, which tells what it had loaded at its end that a bare Python has not.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from aof.api.fabric import Fabric
from aof.service.bootstrap import init_data_dir, open_fabric
from aof.surfaces.cli.output import encoded
from aof.surfaces.cli.verbs import VERBS

SCRIPT = """
import os, sys
bare = set(sys.modules)
from aof.__main__ import main
end = os._exit
def told(code):
    ran = {
        name
        for name, module in list(sys.modules.items())
        if type(module).__name__ != "LazyModule" and not (name.startswith("aof") and hasattr(module, "__path__"))
    }
    sys.stderr.write("\\n" + " ".join(sorted(ran - bare)))
    sys.stderr.flush()
    end(code)
os._exit = told
main()
"""
OTHER_SURFACES = frozenset({
    "a2a", "aiohttp", "anyio", "apprise", "asyncio", "click", "fastapi", "httpx", "jinja2", "mcp", "opentelemetry",
    "prometheus_client", "psycopg", "pydantic", "requests", "rich", "ruamel", "starlette", "typer", "uvicorn",
    "watchfiles", "websockets",
})  # fmt: skip
SLOW = frozenset({
    "msgspec", "typing", "re", "enum", "dataclasses", "inspect", "hashlib", "json", "pathlib", "logging", "ryaml",
    "tomllib", "subprocess", "threading", "ctypes", "argparse", "difflib",
})  # fmt: skip
LISTS = (
    ("list", "--limit", "1"),  # with the cursor of the next page
    ("list", "--status", "ready", "--agent", "ada", "--priority", "normal", "--sort", "due"),
    ("ready",),
    ("ready", "--agent", "ada"),
    ("blocked",),
    ("status",),
    ("status", "--compact"),
)
BASE = (
    *LISTS,
    ("show", "001"),
    ("create", "third", "--dep", "001"),
    ("claim", "001", "--agent", "ada"),
    ("edit", "002", "--title", "other"),
    ("update", "002", "--body", "text"),
    ("block", "002", "--reason", "no key"),
    ("cancel", "002"),
    ("log",),
    ("graph",),
    ("replay", "--at", "3"),
    ("sync",),
    ("merge",),
    ("recover",),
    ("doctor",),
    ("reindex",),
    ("completion", "bash"),
    ("help",),
)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    init_data_dir(tmp_path / ".aof")
    with open_fabric(tmp_path / ".aof", actor="tester") as fabric:
        fabric.create("first")
        fabric.create("second", agent="ada")
        fabric.list()  # the index has seen both
    return tmp_path


def _run(folder: Path, *words: str) -> frozenset[str]:
    """The modules that the call has run; pending ones, and packages of ours, cost nothing."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("AOF_")}
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, *words],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    return frozenset(done.stderr.rpartition("\n")[2].split())


def _packages(modules: frozenset[str]) -> set[str]:
    return {name.partition(".")[0] for name in modules}


@pytest.mark.parametrize("words", BASE, ids=" ".join)
def test_a_verb_loads_no_other_surface_and_none_of_its_packages(folder: Path, words: tuple[str, ...]) -> None:
    loaded = _run(folder, *words)
    assert not _packages(loaded) & OTHER_SURFACES
    assert {name.split(".")[2] for name in loaded if name.startswith("aof.surfaces.")} <= {"cli"}
    assert {name.split(".")[2] for name in loaded if name.startswith("aof.service.")} <= {
        "bootstrap",
        "clock",
        "trust",
        "upkeep",
    }


@pytest.mark.parametrize("words", LISTS, ids=" ".join)
def test_a_list_loads_no_record_and_nothing_slow(folder: Path, words: tuple[str, ...]) -> None:
    loaded = _run(folder, *words)
    assert not _packages(loaded) & SLOW
    assert "aof.tasks.model" not in loaded
    assert "aof.store.files.log.writer" not in loaded


@pytest.mark.parametrize("words", LISTS, ids=" ".join)
def test_a_list_in_json_loads_json_but_not_msgspec(folder: Path, words: tuple[str, ...]) -> None:
    loaded = _packages(_run(folder, *words, "--json"))
    assert "msgspec" not in loaded
    assert "json" in loaded


def test_settings_are_checked_without_msgspec(folder: Path) -> None:
    (folder / ".aof" / "aof.toml").write_text("schemaVersion = 1\n[lease]\nttl = 60\n")
    loaded = _packages(_run(folder, "ready"))
    assert "tomllib" in loaded
    assert "msgspec" not in loaded


def test_who_looks_at_a_task_that_nobody_edited_loads_no_rules(folder: Path) -> None:
    loaded = _run(folder, "show", "001")
    assert "aof.kernel.decide" not in loaded
    assert "aof.store.files.log.writer" not in loaded
    assert "aof.store.files.changes" not in loaded


def test_who_creates_a_task_loads_no_index(folder: Path) -> None:
    assert not _packages(_run(folder, "create", "third")) & {"sqlite3", "hashlib", "ryaml", "difflib"}


def test_help_loads_nothing_but_the_command_line(folder: Path) -> None:
    ours = {name for name in _run(folder, "--help") if name.startswith("aof")}
    others = {name for name in ours if not name.startswith("aof.surfaces.")}
    assert others == {"aof.__main__", "aof.support.lazy_imports", "aof.support.printable"}


def test_every_verb_names_a_handler_that_exists() -> None:
    from importlib import import_module  # noqa: PLC0415 - what the command line does

    for verb in (one for one in VERBS if not one.is_group):
        assert bool(verb.handler) != bool(verb.operation)
        module, function = (verb.handler or "operation:perform").split(":")
        assert verb.handler or callable(getattr(Fabric, verb.operation))
        assert callable(getattr(import_module(f"aof.surfaces.cli.commands.{module}"), function))


def test_both_ways_to_json_give_the_same_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    data = {
        "title": 'quote " back \\ slash / tab \t bell \x07 del \x7f ü € 😀 \u2028',
        "total": 3,
        "no": None,
        "yes": True,
    }
    with_msgspec = encoded(data)
    monkeypatch.delitem(sys.modules, "msgspec")
    assert encoded(data) == with_msgspec


@pytest.mark.parametrize("words", [("show", "001"), ("create", "third")], ids=" ".join)
def test_records_are_loaded_without_what_only_others_need(folder: Path, words: tuple[str, ...]) -> None:
    """As a process of its own, where nothing else has loaded it before."""
    loaded = _run(folder, *words)
    assert "msgspec" in loaded
    assert loaded.isdisjoint({"typing_extensions", "inspect", "ast", "dis"})
