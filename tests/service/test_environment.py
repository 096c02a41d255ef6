"""What a worker gets of the service's environment, and what of it never stands in an output log."""

from __future__ import annotations

import itertools
import json
import os
import stat
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from aof.kernel.limits import looks_secret
from aof.kernel.ports import Work
from aof.service.bootstrap import init_data_dir
from aof.service.runners.process_runner import Redaction, dropped_variables, worker_secrets, worker_variables
from tests.support.served import create, once, output
from tests.support.service import Up, directory, scripted

SERVICE = {
    "PATH": "/bin",
    "HOME": "/h",
    "LANG": "C.UTF-8",
    "LC_ALL": "C",
    "TERM": "dumb",
    "TMPDIR": "/tmp",
    "API_KEY": "sk-1",
    "SSH_AUTH_SOCK": "/run/agent",
    "PYTHONPATH": "/x",
    "LD_PRELOAD": "/x.so",
    "AOF_RUN_SECRET": "RUN-1/ada/other",
    "AOF_RUN_ID": "RUN-1",
    "AOF_HOP": "other",
    "AOF_TOKEN": "t",
    "AOF_MESSAGE_NONCE": "n",
    "AOF_TRACEBACK": "1",
}
PASSED = {"PATH", "HOME", "LANG", "LC_ALL", "TERM", "TMPDIR", "AOF_TRACEBACK"}


def work(**more: Any) -> Work:
    given: dict[str, Any] = {"task_id": "T", "place": "T", "run_id": "R", "epoch": 1, "attempt": 1, "agent": "ada"}
    return Work(**(given | {"command": ("x",), "secret": "R/ada/mine", "nonce": "mine"} | more))


def test_a_worker_gets_a_short_list_and_what_belongs_to_its_run() -> None:
    got = worker_variables(work(), SERVICE, "/data")
    ours = {name: value for name, value in got.items() if name not in PASSED}
    assert {name: got[name] for name in PASSED} == {name: SERVICE[name] for name in PASSED}
    assert ours == {
        "AOF_DATA_DIR": "/data",
        "AOF_TASK_ID": "T",
        "AOF_RUN_ID": "R",
        "AOF_AGENT": "ada",
        "AOF_ACTOR": "ada",
        "AOF_EPOCH": "1",
        "AOF_RUN_SECRET": "R/ada/mine",
        "AOF_MESSAGE_NONCE": "mine",
    }


def test_the_chart_adds_values_and_names() -> None:
    got = worker_variables(
        work(env={"MODE": "fast", "HOME": "/other"}, inherit_env=("API_KEY", "MISSING")), SERVICE, "/data"
    )
    assert (got["MODE"], got["HOME"], got["API_KEY"]) == ("fast", "/other", "sk-1")
    assert "MISSING" not in got
    assert "LD_PRELOAD" not in got


@pytest.mark.parametrize("inherited", ["all", ("AOF_TOKEN", "AOF_MESSAGE_NONCE", "AOF_RUN_SECRET", "AOF_HOP")])
def test_nothing_that_proves_who_the_service_is_reaches_a_worker_whatever_is_inherited(inherited: Any) -> None:
    got = worker_variables(work(inherit_env=inherited), SERVICE, "/data")
    assert got["AOF_RUN_SECRET"] == "R/ada/mine"
    assert (got["AOF_RUN_ID"], got["AOF_MESSAGE_NONCE"]) == ("R", "mine")
    assert not {"AOF_TOKEN", "AOF_HOP"} & set(got)
    assert ("API_KEY" in got) == (inherited == "all")


def test_the_chart_cannot_make_a_worker_somebody_else() -> None:
    got = worker_variables(work(env={"AOF_ACTOR": "boss", "AOF_RUN_ID": "R2"}), SERVICE, "/data")
    assert (got["AOF_ACTOR"], got["AOF_RUN_ID"]) == ("ada", "R")


def test_what_was_dropped_is_named_only_where_the_chart_says_nothing() -> None:
    assert dropped_variables(work(), SERVICE) == ("API_KEY", "SSH_AUTH_SOCK", "LD_PRELOAD", "PYTHONPATH")
    assert dropped_variables(work(env={"A": "1"}), SERVICE) == ()
    assert dropped_variables(work(inherit_env=("API_KEY",)), SERVICE) == ()
    assert dropped_variables(work(inherit_env="all"), SERVICE) == ()


def test_a_service_warns_once_per_agent_and_its_workers_get_what_the_chart_names(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SOME_API_KEY", "sk-0123456789")
    dump = [sys.executable, "-S", "-E", "-c", "import json, os; print(json.dumps(sorted(os.environ)))"]
    named = {"runner": {"kind": "process", "command": dump, "inheritEnv": ["SOME_API_KEY"]}}
    root = directory(tmp_path, {"ada": dump, "bert": named, "cleo": dump})
    first, second, third = create(root, "ada"), create(root, "ada"), create(root, "bert")
    create(root, "cleo")
    lines = once(root)
    warned, again = [line["reason"] for line in lines if line["action"] == "environment"]
    assert warned.startswith("ada does not get ")
    assert again.startswith("cleo does not get the variables named above")
    assert "SOME_API_KEY" in warned
    assert "sk-0123456789" not in json.dumps(lines)
    assert "SOME_API_KEY" not in json.loads(output(root, first))
    assert "SOME_API_KEY" not in json.loads(output(root, second))
    assert "SOME_API_KEY" in json.loads(output(root, third))


def test_secrets_of_its_environment_that_a_worker_prints_are_blotted_out(tmp_path: Path) -> None:
    prints = (
        "import os, sys; r = os.environ['AOF_RUN_SECRET'].rpartition('/')[2]; k = os.environ['API_KEY']; "
        "print('a', k[:5], flush=True, end=''); print(k[5:], r, os.environ['AOF_RUN_SECRET'], 'short', flush=True); "
        "sys.stderr.write(k + '|' + os.environ['MODE'])"
    )
    runner = {
        "kind": "process",
        "command": [sys.executable, "-S", "-E", "-c", prints.replace("'a', k[:5]", "'a' + k[:5]")],
        "env": {"API_KEY": "sk-0123456789", "MODE": "ordinary", "TINY_TOKEN": "short"},
    }
    root = directory(tmp_path, {"ada": {"runner": runner}})
    task_id = create(root, "ada", max_attempts=1)
    once(root)
    kept, errors = output(root, task_id), output(root, task_id, name="errors.log")
    assert kept.startswith("a" + "*" * 13 + " *")
    assert "sk-0" not in kept + errors
    assert kept.endswith(" short\n"), "short words are left alone"
    assert errors == "*" * 13 + "|ordinary"
    for name in ("output.log", "errors.log", "process.json"):
        mode = (root / "runs" / task_id / "attempts/1" / name).stat().st_mode
        assert stat.S_IMODE(mode) == 0o600


def test_a_link_in_the_place_of_an_output_log_is_not_followed(tmp_path: Path) -> None:
    root = directory(tmp_path, {"ada": scripted("say=hello", "report=done")})
    victim = tmp_path / "victim"
    victim.write_text("mine")
    task_id = create(root, "ada", max_attempts=1)
    folder = root / "runs" / task_id / "attempts/1"
    folder.mkdir(parents=True)
    (folder / "output.log").symlink_to(victim)
    assert any(line["action"] == "failed" for line in once(root))
    assert victim.read_text() == "mine"


@pytest.mark.parametrize(
    "name", ["API_KEY", "GITHUB_TOKEN", "DB_PASSWORD", "GH_PAT", "AWS_SECRET_ACCESS_KEY", "db_pass"]
)
def test_names_of_secrets_are_known(name: str) -> None:
    assert looks_secret(name)


@pytest.mark.parametrize("name", ["PATH", "LANG", "PWD", "PATTERN", "COMPASS", "MODE"])
def test_other_names_are_left_alone(name: str) -> None:
    assert not looks_secret(name)


def test_each_line_of_a_key_in_several_lines_is_a_secret() -> None:
    found = set(worker_secrets({"PRIVATE_KEY": "-----BEGIN KEY-----\nabcdefghijklmnopqrst\nxyz\n"}))
    assert b"abcdefghijklmnopqrst" in found
    assert b"xyz" not in found


@settings(max_examples=150)
@given(
    hidden=st.lists(st.text("ab", min_size=2, max_size=6), min_size=1, max_size=3),
    text=st.text("abc", max_size=60),
    cuts=st.lists(st.integers(0, 60), max_size=8),
)
def test_a_stream_is_blotted_alike_however_it_is_cut(hidden: list[str], text: str, cuts: list[int]) -> None:
    data, patterns = text.encode(), [one.encode() for one in hidden]
    cutting = Redaction(patterns)
    edges = [0, *sorted(min(cut, len(data)) for cut in cuts), len(data)]
    pieces = [cutting.feed(data[start:end]) for start, end in itertools.pairwise(edges)]
    out = b"".join(pieces) + cutting.rest()
    assert len(out) == len(data)
    assert not any(one in out for one in patterns)
    assert all(kept in (ord("*"), given) for kept, given in zip(out, data, strict=True))


def test_output_is_kept_out_of_git_also_in_a_directory_of_an_older_version(tmp_path: Path) -> None:
    root = directory(tmp_path, {"ada": scripted("say=hello", "report=done")})
    older = "index.sqlite*\nlocks/\nmine/"
    (root / ".gitignore").write_text(older)
    task_id = create(root, "ada")
    once(root)
    text = (root / ".gitignore").read_text()
    assert text.startswith(f"{older}\n")
    subprocess.run(["git", "init", "-q", str(tmp_path)], check=True)
    for name in ("output.log", "errors.log", "process.json"):
        path = root / "runs" / task_id / "attempts/1" / name
        assert path.exists()
        ignored = subprocess.run(["git", "-C", str(tmp_path), "check-ignore", "-q", str(path)], check=False)
        assert ignored.returncode == 0, name
    once(root)
    assert (root / ".gitignore").read_text() == text, "said once"


def test_a_gitignore_that_is_a_link_is_left_alone(tmp_path: Path) -> None:
    target = tmp_path / "elsewhere"
    target.write_text("x\n")
    root = Path(init_data_dir(tmp_path / ".aof")[0])
    (root / ".gitignore").unlink()
    (root / ".gitignore").symlink_to(target)
    with Up(root) as up:
        up.wait("up")
        up.end()
    assert target.read_text() == "x\n"
    assert os.path.islink(root / ".gitignore")
