"""Random histories of two and three clones with real git and real processes, merged in every order and grouping."""

from __future__ import annotations

import itertools
import random
import re
from pathlib import Path
from typing import Any

import pytest

from tests.support.clones import Clone, cloned, differing, origin

_BIRTH = re.compile(r'"birth":"(born-[0-9]+)"')
_NOTHING_NEW = ("block", "complete")  # a task that is blocked or completed already stays as it is
_STATES = ("tasks", "runs", "archive")


class Histories:
    """Clones of one repository, and everything that any of them has acknowledged.

    Every text is unique, so that it can be found again wherever a merge has put it.
    """

    def __init__(self, folder: Path, seed: int, count: int) -> None:
        self._dice = random.Random(seed)
        self._words = itertools.count(1)
        self.folder = folder
        first = origin(folder)
        self.births: set[str] = set()
        self.said: set[str] = set()
        self.clones = [first]
        for _ in range(3):
            self._create(first, ())
        self.untouched = self._create(first, ())
        run = first.aof("claim", self.untouched, "--agent", "quiet")["runId"]
        first.aof("complete", self.untouched, "--run", run, "--summary", "done before")
        first.commit()
        self.before = self._files_of(first, self.untouched)
        self.clones += [cloned(first, "bcde"[number]) for number in range(count - 1)]

    def _word(self, kind: str) -> str:
        return f"{kind}-{next(self._words)}"

    def _create(self, clone: Clone, words: tuple[str, ...]) -> str:
        birth = self._word("born")
        made = clone.create(self._word("title"), "--meta", f'birth="{birth}"', *words)
        self.births.add(birth)
        return made

    def _files_of(self, clone: Clone, task_id: str) -> dict[str, bytes]:
        return {name: data for name, data in clone.bytes(*_STATES).items() if task_id in name}

    def work(self, rounds: int, most: int) -> None:
        """Every clone does something, and now and then two of them come together."""
        for _ in range(rounds):
            for clone in self.clones:
                for _ in range(self._dice.randint(1, most)):
                    self._one_step(clone)
            for clone in self.clones:
                clone.commit()
            if self._dice.random() < 0.6:
                into, other = self._dice.sample(self.clones, 2)
                self._come_together(into, other)

    def _one_step(self, clone: Clone) -> None:
        dice = self._dice
        ids = [one for one in _ids(clone) if one != self.untouched]
        one, two, agent = f"={dice.choice(ids)}", f"={dice.choice(ids)}", f"agent-{dice.choice('xyz')}"
        text = self._word("said")
        steps: tuple[tuple[str, ...], ...] = (
            ("create", "--dep", one),
            ("create", "--parent", one),
            ("create",),
            ("edit", one, "--title", text),
            ("edit", one, "--priority", dice.choice(("low", "high"))),
            ("claim", one, "--agent", agent),
            ("claim", "--agent", agent),
            ("progress", one, "--agent", agent, "--text", text),
            ("complete", one, "--agent", agent, "--summary", text),
            ("comment", one, text),
            ("release", one, "--agent", agent),
            ("cancel", one),
            ("block", one, "--reason", text),
            ("unblock", one),
            ("dep", "add", one, two),
            ("dep", "rm", one, two),
            ("archive", one),
            ("retry", one),
            ("worklog", "now", "--agent", agent, text),
            ("mail", "send", "--from", agent, "--to", "all", "--subject", text),
        )
        words = dice.choice(steps)
        if words[0] == "create":
            if clone.try_aof("show", words[-1], "--json").code == 0 or len(words) == 1:
                birth = self._word("born")
                done = clone.try_aof("create", self._word("title"), "--meta", f'birth="{birth}"', *words[1:], "--json")
                self.births |= {birth} if done.code == 0 else set()
            return
        before = _lines(clone)
        done = clone.try_aof(*words, "--json")
        assert done.code != 5, f"{clone.name}: aof {' '.join(words)}\n{done.out}{done.err}"
        same = words[0] in _NOTHING_NEW and _lines(clone) == before  # the status that it has: nothing was recorded
        if done.code == 0 and text in words and not same:
            self.said.add(text)

    def _come_together(self, into: Clone, other: Clone) -> None:
        """By a merge, a rebase or a squash, as the dice say."""
        way = self._dice.choice(("merge", "merge", "rebase", "squash"))
        if way == "squash":
            into.try_git("pull", "-q", "--no-rebase", "--squash", str(other.path), "main")
        elif way == "rebase":
            into.try_git("pull", "-q", "--rebase", str(other.path), "main")
            while (into.path / ".git/rebase-merge").exists():
                into.aof("merge")
                into.git("add", "-A", ".aof")
                if into.try_git("rebase", "--continue").returncode and not into.git("status", "--porcelain"):
                    into.try_git("rebase", "--skip")
        else:
            into.pull(other)
        into.settle()

    def gathered(self, order: tuple[int, ...]) -> Clone:
        """A new clone of the first in an order, which takes in the others one after the other."""
        name = "all-" + "".join(map(str, order))
        gathering = cloned(self.clones[order[0]], name)
        for number in order[1:]:
            gathering.pull(self.clones[number])
            gathering.settle()
        return gathering

    def paired(self, order: tuple[int, ...]) -> Clone:
        """The last two come together first, and the first one takes in what came of it."""
        name = "pairs-" + "".join(map(str, order))
        inner = cloned(self.clones[order[1]], f"{name}-inner")
        for number in order[2:]:
            inner.pull(self.clones[number])
            inner.settle()
        outer = cloned(self.clones[order[0]], name)
        outer.pull(inner)
        outer.settle()
        return outer

    def check(self, merged: Clone) -> None:
        """Nothing is lost, nothing is there twice, and what nobody touched is as it was."""
        merged.healthy()
        files = {name: data.decode() for name, data in merged.bytes("tasks", "archive").items() if name.endswith(".md")}
        births = [birth for text in files.values() for birth in _BIRTH.findall(text)]
        assert sorted(births) == sorted(self.births), "one birth is one task"
        everything = "".join(map(str, merged.log())) + "".join(data.decode() for data in merged.bytes().values())
        lost = {text for text in self.said if not re.search(rf"{text}\b", everything)}
        assert not lost, f"acknowledged, and lost: {sorted(lost)}"
        assert self._files_of(merged, self.untouched) == self.before

    def check_same(self, clones: list[Clone]) -> None:
        """The same tasks, runs and log, byte by byte; only merges on the way differ."""
        assert differing(*clones, parts=_STATES) == []
        ends = {_end(clone) for clone in clones}
        assert len(ends) == 1, "different histories"


def _end(clone: Clone) -> Any:
    last = clone.log()[-1]
    return last["seq"], last["hash"]


def _lines(clone: Clone) -> int:
    return sum(1 for _ in clone.lines())


def _ids(clone: Clone) -> list[str]:
    return sorted({path.stem for path in (clone.data / "tasks").glob("*/TASK-*.md")})


def _assert_proved(folder: Path, seed: int, count: int, rounds: int, orders: int) -> None:
    histories = Histories(folder, seed, count)
    histories.work(rounds, most=3)
    every = list(itertools.permutations(range(count)))
    merged = [histories.gathered(order) for order in every[:: max(1, len(every) // orders)]]
    if count > 2:
        merged += [histories.paired(order) for order in every[:: max(1, len(every) // orders)]]
    for one in merged:
        histories.check(one)
    histories.check_same(merged)


@pytest.mark.parametrize(("seed", "count"), [(1, 2), (2, 3)])
def test_any_order_and_grouping_of_merges_gives_the_same_bytes_and_loses_nothing(
    tmp_path: Path, seed: int, count: int
) -> None:
    _assert_proved(tmp_path, seed, count, rounds=2, orders=2)


@pytest.mark.full
@pytest.mark.parametrize("seed", range(3, 19))
def test_long_histories_of_three_clones_come_together_in_every_order(tmp_path: Path, seed: int) -> None:
    _assert_proved(tmp_path, seed, 3, rounds=4, orders=6)
