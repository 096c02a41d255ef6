"""What a data directory without an org chart does not pay for."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

SCRIPT = """
import sys
from aof.support import lazy_imports
lazy_imports.install()
from aof.surfaces.cli.main import main
for words in (
    ["init"], ["create", "x"], ["claim", "--agent", "a"], ["list"], ["ready"], ["complete", "--agent", "a", "001"]):
    assert main(words) == 0
heavy = ("aof.org.chart", "aof.org.budgets", "aof.store.files.strict_yaml")
print([name for name in heavy if name in sys.modules and lazy_imports.has_run(name)], file=sys.stderr)
"""


def test_without_a_chart_nothing_about_charts_is_loaded(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT], cwd=tmp_path, capture_output=True, text=True, timeout=60, check=True
    )
    assert done.stderr.strip() == "[]"
