"""The org chart in the application: routes, warnings, what an agent is offered, and the rows that ask for it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest

from aof.api.fabric import Fabric
from aof.config import load_settings
from aof.errors import AofError, AtCapacity, NothingReady
from aof.kernel.model import Policy
from aof.org.model import OrgChart
from aof.service.bootstrap import init_data_dir, open_fabric
from aof.testing import FakeClock, memory_fabric
from tests.support.processes import outcome, together
from tests.support.requirements import requirement
from tests.support.team import chart_of

TEAM: dict[str, Any] = {
    "agents": [
        {"id": "ada", "team": "eng", "roles": ["dev"], "capabilities": ["api", "python"], "concurrency": 2},
        {"id": "bob", "team": "eng", "roles": ["dev"], "capabilities": ["sql"]},
        {"id": "lea", "team": "eng", "roles": ["reviewer"]},
        {"id": "zoe", "roles": ["ghost"], "active": False},
    ],
    "teams": [{"id": "eng", "lead": "lea"}],
    "routing": [{"tags": ["docs"], "to": {"agent": "bob"}, "weight": 2}],
}


@pytest.fixture
def fabric() -> Fabric:
    """A fabric in memory with that team."""
    return memory_fabric("pm", FakeClock("2026-03-02T09:00:00Z"), org=chart_of(**TEAM))


def refused(call: Any, /, *given: Any, **named: Any) -> AofError:
    with pytest.raises(AofError) as caught:
        call(*given, **named)
    return caught.value


@requirement("tools.dispatch.no-route", "handoff.routing.no-route")
def test_who_creates_a_task_that_nobody_can_take_learns_that_at_once(fabric: Fabric) -> None:
    for unknown in ({"agent": "adda"}, {"role": "deve"}, {"team": "engg"}):
        refusal = refused(fabric.create, "For nobody", **unknown)
        assert refusal.code == "no_route"
        assert "did you mean" in refusal.hint
    assert fabric.list().total == 0, "a typing mistake leaves no task behind"
    for given, words in (
        ({"role": "ghost"}, "zoe: it is not active"),
        ({"tags": ["frob"]}, "no rule and no capability is about frob"),
        ({"profile": {"requiredCapabilities": ["cobol"]}}, "lacks cobol"),
        ({"agent": "zoe"}, "not active"),
    ):
        made = fabric.create("For nobody yet", **given)
        assert made.warning is not None
        assert made.warning.code == "no_route"
        assert made.warning.hint
        assert words in made.warning.message


def test_list_show_and_ready_say_of_a_task_that_nobody_can_take_it(fabric: Fabric) -> None:
    lost = fabric.create("Lost", role="ghost").task_id
    fine = fabric.create("Fine", role="dev").task_id
    for listed in (fabric.list(), fabric.ready()):
        reasons = {row.id: row.reason for row in listed.tasks}
        assert reasons[fine] is None
        assert str(reasons[lost]).startswith("no_route: role 'ghost'")
    assert fabric.show(lost)["warning"]["code"] == "no_route"
    assert "warning" not in fabric.show(fine)
    fabric.edit(lost, routing={"role": "dev"})
    assert fabric.list().tasks[0].reason is None


def test_without_a_chart_any_name_is_taken_and_nothing_is_said() -> None:
    fabric = memory_fabric("pm")
    made = fabric.create("For anybody", agent="nobody-knows", role="any", team="all", tags=["x"])
    assert msgspec.to_builtins(made).keys() == {"taskId", "status", "filePath"}
    fabric.claim(made.task_id, agent="nobody-knows")
    fabric.complete(made.task_id, agent="nobody-knows")
    fabric.approve(made.task_id, actor="anybody")
    assert fabric.org_report().state == "absent"
    assert fabric.org_route(role="any").state == "no_route"


@requirement("task.record.profile")
def test_required_capabilities_of_a_profile_decide_who_gets_the_task(fabric: Fabric) -> None:
    profile = {
        "requiredCapabilities": ["sql"],
        "latency": "interactive",
        "budget": {"usd": 2},
        "fallback": ["small"],
        "continuity": "same-agent",
    }
    made = fabric.create("Only bob can", profile=profile)
    assert made.warning is None
    assert fabric.org_route(made.task_id).agent == "bob"
    assert refused(fabric.claim, made.task_id, agent="ada").code == "not_routed"
    assert fabric.claim(agent="bob").task_id == made.task_id
    assert fabric.show(made.task_id)["profile"] == profile


def test_the_next_task_of_an_agent_is_one_that_it_may_take(fabric: Fabric) -> None:
    for number in range(40):
        fabric.create(f"For another {number}", role="reviewer", priority="critical")
    mine = [fabric.create(f"Mine {number}", role="dev", priority="low").task_id for number in range(2)]
    assert [row.id for row in fabric.ready(agent="bob").tasks] == mine
    assert fabric.ready(agent="bob", limit=1).total == 2
    assert [fabric.claim(agent="bob").task_id for _ in range(2)] == mine
    with pytest.raises(NothingReady):
        fabric.claim(agent="bob")
    held = fabric.held_back(agent="bob")
    assert {row.reason for row in held if row.status == "ready"} == {"bob may not take it: it is for role 'reviewer'"}


def test_an_agent_at_its_limit_is_told_so_and_goes_on_when_something_ends(fabric: Fabric) -> None:
    for number in range(3):
        fabric.create(f"Task {number}")
    first = fabric.claim(agent="ada").task_id
    fabric.claim(agent="ada")
    with pytest.raises(AtCapacity):
        fabric.claim(agent="ada")
    assert fabric.org_load() == {"ada": 2}
    fabric.release(first, agent="ada")
    assert fabric.claim(agent="ada").task_id == first


def test_an_agent_that_waits_for_work_waits_for_capacity_too(fabric: Fabric) -> None:
    for number in range(3):
        fabric.create(f"Task {number}")
    for _ in range(2):
        fabric.claim(agent="ada")
    with pytest.raises(AtCapacity):
        fabric.claim(agent="ada", wait=0.01)


def test_a_claim_that_is_repeated_with_its_key_is_no_second_task(fabric: Fabric) -> None:
    for number in range(4):
        fabric.create(f"Task {number}")
    fabric.claim(agent="ada")
    again = {fabric.claim(agent="ada", key="k").task_id for _ in range(3)}
    assert len(again) == 1


def test_the_chart_is_shown_with_loads_and_with_the_limits_of_each_level(fabric: Fabric) -> None:
    fabric.create("One")
    fabric.claim(agent="bob")
    shown = fabric.org_show()
    bob = next(agent for agent in shown["agents"] if agent["id"] == "bob")
    assert (bob["load"], bob["kind"], bob["capabilities"]) == (1, "worker", {"sql": 1.0})
    assert shown["teams"] == [
        {
            "id": "eng",
            "lead": "lea",
            "orchestrator": None,
            "members": ["ada", "bob", "lea"],
            "load": 1,
            "maxConcurrent": None,
        }
    ]


def test_whoever_makes_a_data_directory_is_its_maintainer(tmp_path: Path) -> None:
    for number, name in enumerate(("mia", 'O"Neil #1', "Jürgen")):
        root, _ = init_data_dir(tmp_path / str(number), actor=name)
        assert load_settings(root).maintainers == (name,)
    init_data_dir(tmp_path / "0", actor="somebody else")
    assert load_settings(str(tmp_path / "0")).maintainers == ("mia",)


def test_maintainers_are_read_with_and_without_other_settings(tmp_path: Path) -> None:
    path = tmp_path / "aof.toml"
    for text in (
        'maintainers = ["a", "b"]\n',
        'schemaVersion = 1\nmaintainers = [\n  "a",\n  "b",\n]\n[lease]\nttl = 9\n',
    ):
        path.write_text(text)
        assert load_settings(str(tmp_path)).policy().maintainers == ("a", "b")


def test_a_maintainer_of_the_chart_may_steer_what_is_not_its_own() -> None:
    fabric = memory_fabric("pm", policy=Policy(maintainers=("bob",)), org=chart_of(**TEAM))
    task_id = fabric.create("Somebody else's").task_id
    assert refused(fabric.cancel, task_id, actor="ada").code == "not_allowed"
    assert fabric.cancel(task_id, actor="bob").status == "cancelled"


def test_processes_that_claim_for_one_agent_at_once_never_go_past_its_limit(tmp_path: Path) -> None:
    root = tmp_path / ".aof"
    init_data_dir(root)
    _write(root, chart_of(**TEAM))
    with open_fabric(root, actor="pm") as fabric:
        tasks = [fabric.create(f"Task {number}").task_id for number in range(8)]

    def claim(number: int) -> str:
        with open_fabric(root) as mine:
            return outcome(lambda: mine.claim(tasks[number], agent="ada"))

    answers = together(8, claim)
    assert sorted(answers).count("at_capacity") == 6
    with open_fabric(root) as fabric:
        assert fabric.org_load() == {"ada": 2}


def test_processes_that_claim_for_one_team_at_once_never_go_past_its_limit(tmp_path: Path) -> None:
    root = tmp_path / ".aof"
    init_data_dir(root)
    agents = [{"id": f"agent-{number}", "team": "eng"} for number in range(8)]
    _write(root, chart_of(agents=agents, teams=[{"id": "eng", "limits": {"maxConcurrent": 3}}]))
    with open_fabric(root, actor="pm") as fabric:
        tasks = [fabric.create(f"Task {number}").task_id for number in range(8)]

    def claim(number: int) -> str:
        with open_fabric(root) as mine:
            return outcome(lambda: mine.claim(tasks[number], agent=f"agent-{number}"))

    assert sorted(together(8, claim)).count("at_capacity") == 5
    with open_fabric(root) as fabric:
        assert sum(fabric.org_load().values()) == 3


def _write(root: Path, chart: OrgChart) -> None:
    (root / "org").mkdir()
    (root / "org" / "org-chart.yaml").write_bytes(msgspec.json.encode(chart))
