"""Python environments for tests with strangers' libraries: their dependencies must not meet ours."""

from __future__ import annotations

import fcntl
import shutil
import subprocess
import sys

from tests.support.repository import ROOT

_KEPT = ROOT / "build" / "python"


def python_with(name: str, *packages: str) -> str:
    """The interpreter of an environment with these packages; made once, by whoever comes first."""
    folder = _KEPT / name
    wanted = "\n".join(packages)
    _KEPT.mkdir(parents=True, exist_ok=True)
    with (_KEPT / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        ready = folder / ".ready"
        if not ready.exists() or ready.read_text("utf-8") != wanted:
            shutil.rmtree(folder, ignore_errors=True)
            _run(sys.executable, "-m", "venv", str(folder))
            quiet = ("-qq", "--disable-pip-version-check", "--no-input")
            _run(str(folder / "bin" / "python"), "-m", "pip", "install", *quiet, *packages)
            ready.write_text(wanted, "utf-8")
    return str(folder / "bin" / "python")


def _run(*words: str) -> None:
    done = subprocess.run(words, capture_output=True, text=True, check=False, timeout=900)
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-4000:]
