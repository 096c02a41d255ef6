"""Merges of histories that die on the way or meet each other: with real processes, which are really killed."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.support.clones import Clone, cloned, copied, differing, origin
from tests.support.terminal import AOF, environment


@pytest.fixture
def apart(tmp_path: Path) -> Clone:
    """A clone into which git has brought another one's work, and in which nobody has merged the histories yet."""
    first = origin(tmp_path, "one", "two", "three")
    second = cloned(first, "b")
    for clone in (first, second):
        clone.aof("edit", "001", "--title", f"of {clone.name}")
        clone.aof("claim", "002", "--agent", f"agent-{clone.name}")
        clone.create(f"made in {clone.name}")
        clone.commit()
    assert not first.pull(second)
    return first


def _begun(clone: Clone, *words: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [*AOF, *words], cwd=clone.path, env=environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )


def test_processes_that_merge_at_once_write_one_merge_and_all_succeed(apart: Clone) -> None:
    processes = [_begun(apart, "merge", "--json") for _ in range(4)]
    ended = [process.communicate(timeout=120) for process in processes]
    assert [process.returncode for process in processes] == [0] * 4, ended
    assert sum(b'"merged":true' in out for out, _ in ended) == 1
    assert len(list((apart.data / "events").glob("*.m*.jsonl"))) == 1
    apart.settle()
    apart.healthy()


@pytest.mark.parametrize("moment", [0.15, 0.25, 0.35, 0.5])
def test_a_merge_that_is_killed_is_completed_by_the_next_one_with_the_same_bytes(apart: Clone, moment: float) -> None:
    undisturbed = copied(apart, "undisturbed")
    process = _begun(apart, "merge")
    try:
        process.wait(moment)
    except subprocess.TimeoutExpired:
        process.kill()
    process.communicate(timeout=60)
    for clone in (apart, undisturbed):
        clone.settle()
        clone.healthy()
    assert differing(apart, undisturbed) == []
