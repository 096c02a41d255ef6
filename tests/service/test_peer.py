"""The worker of a run that a peer does, where it cannot even begin."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import aof
from aof.service.extras import install_hint
from tests.support.waiting import BOUND

WITHOUT_A2A = """
import sys
from importlib.machinery import PathFinder
class Others(PathFinder):
    @classmethod
    def find_spec(cls, name, *where):
        return None if name.partition(".")[0] == "a2a" else PathFinder.find_spec(name, *where)
sys.meta_path[:] = [Others if finder is PathFinder else finder for finder in sys.meta_path]
from aof.service.peer import main
sys.exit(main())
"""


def test_without_its_library_the_task_is_blocked_and_says_how_to_install_it(tmp_path: Path) -> None:
    aof.init(tmp_path / ".aof")
    with aof.open(tmp_path / ".aof", actor="billing") as fabric:
        task = fabric.create("Charge the card")
        run = fabric.claim(task.task_id, agent="billing")
        assert isinstance(run.secret, str)
        work = {"AOF_RUN_ID": run.run_id, "AOF_AGENT": "billing", "AOF_RUN_SECRET": run.secret}
        variables = {name: value for name, value in os.environ.items() if not name.startswith("AOF_")} | work
        done = subprocess.run(
            [sys.executable, "-c", WITHOUT_A2A],
            cwd=tmp_path, env=variables | {"AOF_DATA_DIR": str(tmp_path / ".aof")},
            capture_output=True, text=True, check=False, timeout=BOUND,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        shown = fabric.get(task.task_id)
        assert shown.status == "blocked"
        assert shown.blocked is not None
        assert install_hint("a2a") in shown.blocked.reason
