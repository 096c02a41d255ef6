"""What `make demo` shows: each task ends as announced, and a demo in which one does not says so and fails."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
BOUND = 240.0
ENDS = {
    "Token refresh": "done",
    "Test the refresh endpoint": "done",
    "Build part 1": "done",
    "Build part 2": "done",
    "Migrate the table": "done",
    "Connect the payment provider": "blocked",
    "Convert the archive": "deadletter",
    "Release it": "review",
}


def run(*words: str, cwd: Path, home: Path) -> subprocess.CompletedProcess[str]:
    """A command in an environment that has more variables than any agent needs."""
    home.mkdir(exist_ok=True)
    env = os.environ | {"HOME": str(home), "XDG_CONFIG_HOME": str(home), "AOF_DEMO_TEST": "x", "SOMETHING": "else"}
    return subprocess.run(words, cwd=cwd, env=env, capture_output=True, text=True, timeout=BOUND, check=False)


def told(printed: str, heading: str) -> dict[str, tuple[str, str]]:
    """The status of each task, and what is said of it, in the table below a heading."""
    lines = printed.partition(f"{heading}\n\n")[2].partition("\n\n")[0].splitlines()
    return {line[14:42].rstrip(): (line[2:12].rstrip(), line[44:]) for line in lines}


def test_make_demo_ends_with_every_task_as_it_announces(tmp_path: Path) -> None:
    """The recipe of the Makefile, with the Python of this test run, and without building a `.venv`."""
    own = f"BIN={Path(sys.executable).parent}"
    done = run("make", "--no-print-directory", "-o", ".venv/.ready", own, "demo", cwd=ROOT, home=tmp_path / "home")
    assert done.returncode == 0, done.stdout + done.stderr
    announced = told(done.stdout, "This is how each should end:")
    ended = told(done.stdout, "This is how each has ended:")
    assert {title: status for title, (status, _) in announced.items()} == ENDS
    assert {title: status for title, (status, _) in ended.items()} == ENDS
    runs = {title: said.partition(":")[0] for title, (_, said) in ended.items()}
    assert runs["Token refresh"] == "lead released, lead completed"
    assert runs["Test the refresh endpoint"] == "qa completed"
    assert runs["Migrate the table"] == "crasher failed, crasher completed"
    assert runs["Convert the archive"] == "sleeper failed, sleeper failed"
    assert "designed; qa says: it behaves as the brief says" in ended["Token refresh"][1]
    assert "All 8 tasks ended as announced." in done.stdout
    assert "environment" not in done.stdout, "no list of variables that nobody needs"
    assert done.stderr == ""


@pytest.mark.parametrize(
    ("agent", "script", "said"),
    [
        ("qa", "raise SystemExit", "'Token refresh' should be done, and is "),
        (
            "stuck",
            "import aof\nwith aof.open() as fabric, fabric.own_run() as work:\n    work.complete('never mind')\n",
            "'Connect the payment provider' should be blocked, and is review: never mind",
        ),
    ],
)
def test_a_demo_with_an_agent_that_misbehaves_fails_and_says_why(
    tmp_path: Path, agent: str, script: str, said: str
) -> None:
    examples = tmp_path / "examples"
    shutil.copytree(ROOT / "examples", examples)
    (examples / "agents" / f"{agent}.py").write_text(script, encoding="utf-8")
    done = run(sys.executable, "examples/demo.py", cwd=tmp_path, home=tmp_path / "home")
    assert done.returncode == 1, done.stdout + done.stderr
    assert said in done.stdout.partition("Not all is as announced.")[2]
    assert "ended as announced" not in done.stdout
    assert done.stderr == ""
