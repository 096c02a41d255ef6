"""Random histories of two and three clones with real git and real processes, merged in every order and grouping."""

from __future__ import annotations

import itertools
from pathlib import Path

import pytest

from tests.support.clone_histories import Histories


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
