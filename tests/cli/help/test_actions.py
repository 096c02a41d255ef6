"""Help on verbs that have several actions: each action by itself, with what it needs."""

from __future__ import annotations

import pytest

from aof.surfaces.cli.grammar import Verb
from aof.surfaces.cli.verbs import VERBS
from tests.support.command_line import Aof

FAMILIES = [verb for verb in VERBS if verb.actions]


def test_a_verb_with_actions_lists_them_on_lines_of_their_own(aof: Aof) -> None:
    told = aof("handoff", "--help").out
    assert "usage: aof handoff ACTION [ID] [OPTIONS]" in told
    assert "  accept      take a handoff on" in told
    assert "--rationale" not in told
    assert max(map(len, told.splitlines())) <= 120


@pytest.mark.parametrize("verb", FAMILIES, ids=lambda verb: verb.name)
def test_the_actions_together_have_every_option_of_the_verb(verb: Verb, aof: Aof) -> None:
    told = {one.name: aof(verb.name, one.name, "--help").out for one in verb.actions}
    assert len({one.partition(":")[0] for one in told.values()}) == len(verb.actions)
    for option in verb.options:
        having = [name for name, text in told.items() if f"  {option.name} " in text]
        assert having == list(option.actions or told)
    for one in verb.actions:
        assert f"usage: {one.usage}" in told[one.name]
        assert one.example in told[one.name]


def test_the_usage_of_an_action_has_what_it_needs(aof: Aof) -> None:
    assert "usage: aof handoff new --type T --task ID --reason T [OPTIONS]" in aof("handoff", "new", "-h").out
    assert "usage: aof mail ack ID --reason T [OPTIONS]" in aof("help", "mail", "ack").out
    assert aof("handoff", "nonsense", "--help").out == aof("handoff", "--help").out
