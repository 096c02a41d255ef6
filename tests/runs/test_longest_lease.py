"""How long a lease may last without a sign of life: a day, or as long as the chart says."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from aof.api.fabric import Fabric
from aof.errors import InvalidInput
from aof.service.bootstrap import init_data_dir, open_fabric
from tests.support.clock import ManualClock

DAY = 86_400


@pytest.fixture
def fabric(tmp_path: Path) -> Fabric:
    root, _ = init_data_dir(tmp_path / ".aof", actor="pm")
    agents = [{"id": "ada"}, {"id": "bert", "maxLeaseTime": "3d"}]
    Path(root, "org").mkdir(exist_ok=True)
    Path(root, "org/org-chart.yaml").write_text(json.dumps({"schemaVersion": 1, "agents": agents}))
    return open_fabric(root, actor="pm", clock=ManualClock())


def test_nobody_asks_for_more_than_a_day_unless_the_chart_says_so(fabric: Fabric) -> None:
    for agent, most in (("ada", DAY), ("bert", 3 * DAY)):
        task = fabric.create("Long", agent=agent).task_id
        with pytest.raises(InvalidInput, match="longer than"):
            fabric.claim(task, agent=agent, ttl=most + 1)
        run = fabric.claim(task, agent=agent, ttl=most).run_id
        with pytest.raises(InvalidInput, match="longer than"):
            fabric.heartbeat(task, run=run, ttl=most + 1)
        fabric.heartbeat(task, run=run, ttl=most)


def test_a_tasks_own_figure_gets_nobody_more(fabric: Fabric) -> None:
    for agent, most in (("ada", DAY), ("bert", 3 * DAY)):
        task = fabric.create("Long", agent=agent, metadata={"leaseTtlMs": 5 * DAY * 1000}).task_id
        fabric.claim(task, agent=agent)
        lease = fabric.get(task).lease
        assert lease is not None
        assert lease.ttl_ms == most * 1000
