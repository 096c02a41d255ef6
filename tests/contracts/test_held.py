"""What an agent holds, asked under a unit's locks: every store knows it from the moment of the claim to the end."""

from __future__ import annotations

from aof.app.fabric import Fabric
from aof.ports.store import Scope, Store


def test_an_agent_holds_what_it_claimed_until_the_run_ends(fabric: Fabric, store: Store) -> None:
    def held(agent: str) -> tuple[str, ...]:
        with store.unit(Scope(names=frozenset({f"agent:{agent}"}))) as unit:
            return unit.held_by(agent)

    first, second, third = (fabric.create(f"Task {number}").task_id for number in range(3))
    assert held("ada") == ()
    fabric.claim(second, agent="ada")
    fabric.claim(first, agent="ada")
    fabric.claim(third, agent="bob")
    assert (held("ada"), held("bob"), held("cem")) == ((first, second), (third,), ())
    fabric.complete(first, actor="ada")
    fabric.cancel(third)
    assert held("ada") == (second,)
    fabric.release(second, agent="ada")
    assert held("ada") == ()
