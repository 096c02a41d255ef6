"""The tutorial works as it is written: its commands are run in order, and what it shows is what comes."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from pathlib import Path

from tests.support.repository import ROOT
from tests.support.terminal import aof

DOCS = ROOT / "docs"
_BLOCK = re.compile(r"^```console\n(.*?)^```", re.MULTILINE | re.DOTALL)


def steps(page: Path) -> list[tuple[list[str], list[str]]]:
    """Each command of a page, with the lines that it should give."""
    found: list[tuple[list[str], list[str]]] = []
    for line in "".join(_BLOCK.findall(page.read_text("utf-8"))).splitlines():
        if line.startswith("$ aof "):
            found.append((shlex.split(line)[2:], []))
        else:
            found[-1][1].append(line)
    return found


def fits(shown: str, line: str) -> bool:
    """Whether a line is as it is shown; the ellipsis stands for anything, and spaces count as one."""
    pattern = r"\s+".join(re.escape(part).replace("…", ".*") for part in shown.split())
    return re.search(pattern, line) is not None


def test_the_tutorial_shows_what_really_comes(tmp_path: Path) -> None:
    done = steps(DOCS / "tutorial/first-task.md")
    assert len(done) > 10
    for words, expected in done:
        said = aof(*words, cwd=tmp_path)
        for shown in expected:
            lines = (said.out + said.err).splitlines()
            assert any(fits(shown, line) for line in lines), f"{words} gave {lines} and not {shown!r}"
        assert said.code == (4 if any("already claimed" in shown for shown in expected) else 0)


def test_the_readme_shows_calls_that_work(tmp_path: Path) -> None:
    page = (DOCS.parent / "README.md").read_text("utf-8")
    shell = page.partition("## Use it")[2].partition("```\n")[2].partition("```")[0]
    calls = [shlex.split(line, comments=True)[1:] for line in shell.splitlines() if line.startswith("aof ")]
    assert len(calls) > 10
    for words in calls:
        said = aof(*words, cwd=tmp_path)
        assert said.code == 0, (words, said.err)
    (code,) = re.findall(r"```python\n(.*?)```", page, flags=re.DOTALL)
    (tmp_path / "python").mkdir()
    subprocess.run([sys.executable, "-c", code], cwd=tmp_path / "python", check=True, timeout=60)
    assert aof("status", "--compact", cwd=tmp_path / "python").out == "done:1\n"
