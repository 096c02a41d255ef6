"""Wrote `formats/*.tar.gz`: a data directory as each format left it, with its locks, made by that version's code.

The sources of a commit are unpacked from git and run with this environment's interpreter:

    python tests/data/make_formats.py

A later format gets a line in `SAMPLES`; what is there already is not made again. Dependencies may have changed since.
"""

from __future__ import annotations

import io
import os
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path
from typing import Final

HERE: Final = Path(__file__).parent / "formats"
ROOT: Final = HERE.parents[2]
SAMPLES: Final = {
    "first": "bf568856",  # the log's lock file has a day and no stamp
    "stamped": "101d4950",  # a stamp shows how the log was left; journal and revs; runs have secrets
    "documents": "e4a3b4bf",  # WORKLOG and mailbox; the last version before lanes
    "lanes": "09b617b9",  # several clones can merge; `locks/lanes` says whose lane it is
    "merged": "09b617b9",  # of two clones, as the one that began the history left it after a merge
}
_CALL: Final = (
    "import sys\ntry:\n    from aof.__main__ import main\nexcept ImportError:\n"
    "    from aof.surfaces.cli.main import main\nsys.exit(main())"
)
_WORK: Final = (
    ("create", "In review", "--brief", "Look at it.", "--tag", "api"),
    ("create", "Waits for the first", "--dep", "001"),
    ("create", "Running", "--no-review"),
    ("claim", "001", "--agent", "ada"),
    ("complete", "001", "--agent", "ada", "--summary", "please look"),
    ("claim", "003", "--agent", "bob"),
    ("create", "Ready", "--no-review"),
)
_SAID: Final = (
    ("worklog", "decide", "--owner", "ada", "Use JSONL"),
    ("mail", "send", "--from", "ada", "--to", "bob", "--type", "notify", "--priority", "P2", "--subject", "Hello"),
)


def _git(*words: str, cwd: Path = ROOT) -> bytes:
    identity = ("-c", "user.name=x", "-c", "user.email=x@example.org")
    return subprocess.run(["git", *identity, *words], cwd=cwd, check=True, capture_output=True).stdout


def _make(name: str, commit: str, place: Path) -> Path:
    source, work = place / "source", place / "work"
    with tarfile.open(fileobj=io.BytesIO(_git("archive", commit, "src"))) as archive:
        archive.extractall(source, filter="data")
    work.mkdir()

    def aof(*words: str, cwd: Path = work) -> None:
        environment = {"PATH": os.environ["PATH"], "PYTHONPATH": str(source / "src"), "AOF_ACTOR": "ada"}
        subprocess.run(
            [sys.executable, "-P", "-c", _CALL, *words], cwd=cwd, env=environment, check=True, capture_output=True
        )

    aof("init")
    for words in (*_WORK, *(_SAID if name not in ("first", "stamped") else ())):
        aof(*words)
    if name == "merged":
        other = place / "other"
        for words in (("init", "-q", "-b", "main"), ("add", "-A"), ("commit", "-qm", "Begin")):
            _git(*words, cwd=work)
        _git("clone", "-q", str(work), str(other))
        for clone in (work, other):
            aof("create", f"Made in {clone.name}", "--no-review", cwd=clone)
            _git("add", "-A", cwd=clone)
            _git("commit", "-qm", "Work", cwd=clone)
        _git("fetch", "-q", str(other), "main", cwd=work)
        subprocess.run(  # the documents of both clones conflict
            ["git", "-c", "user.name=x", "-c", "user.email=x@example.org", "merge", "-q", "FETCH_HEAD"],
            cwd=work,
            check=False,
            capture_output=True,
        )
        aof("merge")
    return work / ".aof"


def main() -> None:
    HERE.mkdir(exist_ok=True)
    for name, commit in SAMPLES.items():
        target = HERE / f"{name}.tar.gz"
        if target.exists():
            continue
        with tempfile.TemporaryDirectory() as place:
            root = _make(name, commit, Path(place))
            for cache in root.glob("index.sqlite*"):
                cache.unlink()
            with tarfile.open(target, "w:gz") as archive:
                archive.add(root, ".aof", filter=_nobodys)


def _nobodys(entry: tarfile.TarInfo) -> tarfile.TarInfo:
    entry.uid = entry.gid = 0
    entry.uname = entry.gname = ""
    return entry


if __name__ == "__main__":
    main()
