"""What the returns of a broadcast come to, for any number of receivers and any order."""

from __future__ import annotations

import uuid

from hypothesis import given
from hypothesis import strategies as st

from aof.handoffs.answers import group_state
from aof.handoffs.model import AGGREGATIONS, Aggregation, is_format_1, is_handoff_id, is_part, uuid4

MODES = st.sampled_from(AGGREGATIONS)


@given(MODES, st.lists(st.booleans(), min_size=1, max_size=9))
def test_a_group_is_decided_once_and_stays_so(mode: Aggregation, returns: list[bool]) -> None:
    good = bad = 0
    states = [group_state(mode, len(returns), good, bad)]
    for success in returns:
        good, bad = good + success, bad + (not success)
        states.append(group_state(mode, len(returns), good, bad))
    assert states[0] == "open"
    final = [state for state in states if state != "open"]
    assert len(set(final)) == 1, "a decision never changes"
    needed = {"all": all(returns), "any": any(returns), "majority": sum(returns) > len(returns) / 2}[mode]
    assert states[-1] == ("success" if needed else "failed")


@given(MODES)
def test_a_group_that_owes_nothing_is_only_sent(mode: Aggregation) -> None:
    assert group_state(mode, 0, 0, 0) == "sent"


@given(st.text(), st.integers(0, 10**9))
def test_ids_are_version_4_uuids_that_follow_from_their_entropy(entropy: str, number: int) -> None:
    made = uuid4(entropy, number)
    parsed = uuid.UUID(made)
    assert (str(parsed), parsed.version, parsed.variant) == (made, 4, uuid.RFC_4122)
    assert is_handoff_id(made)
    assert made == uuid4(entropy, number) != uuid4(entropy, number + 1)
    assert all(is_part(made[:length]) for length in range(1, 37))


def test_only_whole_ids_become_file_names() -> None:
    sound = uuid4("x", 1)
    for wrong in ("", f"{sound}\n", sound.upper(), f"../{sound}", sound[:-1], sound.replace("-4", "-1", 1), "HO-2026"):
        assert not is_handoff_id(wrong)
    assert is_format_1("HO-2026-03-02-001-7")
    assert not is_part("../x")
