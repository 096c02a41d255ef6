"""What the reference of the protocol tells its readers to type works."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

from tests.support.repository import ROOT

PAGE = ROOT / "docs/reference/protocol.md"


def test_the_commands_of_the_page_work_one_after_another(tmp_path: Path) -> None:
    script = "\n".join(re.findall(r"```sh\n(.*?)```", PAGE.read_text(), re.DOTALL))
    assert script.count("aof send") >= 4
    left_out = ("AOF_DATA_DIR", "AOF_RUN_ID")
    environment = {name: value for name, value in os.environ.items() if name not in left_out}
    environment["PATH"] = f"{Path(sys.executable).parent}:{environment['PATH']}"
    done = subprocess.run(
        ["bash", "-ec", script], cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stderr
    assert "in-progress → review" in done.stdout
    assert len(re.findall(r"^accepted  ", done.stdout, re.MULTILINE)) == 4
