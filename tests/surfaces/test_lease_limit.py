"""A lease of more than a day is refused on every surface."""

from __future__ import annotations

from tests.surfaces.conftest import Doors
from tests.surfaces.doors import Refusal

TOO_LONG = 25 * 3600.0


def test_nobody_gets_a_lease_of_more_than_a_day_from_any_surface(doors: Doors) -> None:
    for door in doors.values():
        task_id = door.elsewhere.create("Do it").task_id
        refused = door.ask("claim", task_id=task_id, agent="ada", ttl=TOO_LONG)
        assert isinstance(refused, Refusal)
        assert refused.code == "invalid"
        door.elsewhere.claim(task_id, agent="ada")
        if door.name == "cli":
            continue  # `aof heartbeat` renews by the lease's own length
        refused = door.ask("heartbeat", task_id=task_id, agent="ada", ttl=TOO_LONG)
        assert isinstance(refused, Refusal)
        assert refused.code == "invalid"
