"""`aof org` and the chart's say in other verbs, each call a process of its own."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.support.command_line import Aof
from tests.support.requirements import requirement
from tests.support.warm import warm

CHART = """\
schemaVersion: 1
agents:
  - id: ada
    team: eng
    roles: [dev]
    capabilities: [api, {id: python, proficiency: 0.9}]
    concurrency: 1
  - {id: bob, team: eng, roles: [dev]}
  - {id: lea, team: eng, roles: [reviewer]}
teams: [{id: eng, lead: lea, limits: {maxConcurrent: 2}}]
routing: [{tags: [api], to: {role: dev}, weight: 10}]
"""


class Shell:
    """A folder with a data directory, and the command in it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        assert self.aof("init")[0] == 0

    def chart(self, text: str = CHART) -> None:
        path = self.folder / ".aof" / "org" / "org-chart.yaml"
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)

    def aof(self, *words: str) -> tuple[int, str, str]:
        environment = {key: value for key, value in os.environ.items() if not key.startswith("AOF_")}
        done = subprocess.run(
            [*warm(), "aof", *words],
            cwd=self.folder,
            env=environment | {"AOF_ACTOR": "pm"},
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        return done.returncode, done.stdout, done.stderr

    def json(self, *words: str) -> tuple[int, Any]:
        code, out, _ = self.aof(*words, "--json")
        answer = json.loads(out)
        return code, answer.get("data", answer.get("error"))


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    return Shell(tmp_path)


def test_check_is_content_without_a_chart_and_with_a_sound_one(shell: Shell) -> None:
    assert shell.json("org", "check") == (
        0,
        {"ok": True, "path": "org/org-chart.yaml", "state": "absent", "problems": []},
    )
    shell.chart()
    code, data = shell.json("org", "check")
    assert (code, data["ok"], data["state"]) == (0, True, "current")
    assert shell.aof("org", "check")[1] == "org/org-chart.yaml is fine\n"


@requirement("handoff.autonomy.org-chart-fields")
def test_check_names_place_and_fix_and_exits_1_with_problems_and_2_when_unreadable(shell: Shell) -> None:
    shell.chart(CHART.replace("concurrency: 1", "concurency: 1"))
    code, out, _ = shell.aof("org", "check")
    assert code == 1
    assert "org/org-chart.yaml:7:5: error: agents[0].concurency: agent 'ada': there is no key" in out
    assert "→ did you mean 'concurrency'?" in out
    shell.chart(CHART + "escalation: [boss\n")
    code, data = shell.json("org", "check")
    assert (code, data["problems"][0]["code"]) == (2, "unreadable")
    shell.chart(CHART.replace("lead: lea", "lead: leah"))
    code, data = shell.json("org", "check")
    assert (code, data["ok"], data["state"]) == (1, False, "current")
    assert {key: data["problems"][0][key] for key in ("code", "line", "column", "path", "fix")} == {
        "code": "unknown_agent",
        "line": 10,
        "column": 19,
        "path": "teams[0].lead",
        "fix": "did you mean 'lea'?",
    }
    for wrong in ("level: 4", "maxRisk: extreme"):
        shell.chart(f"agents: [{{id: a0}}, {{id: deep, autonomy: {{{wrong}}}}}]\n")
        code, data = shell.json("org", "check")
        assert (code, len(data["problems"])) == (1, 1)
        assert "'deep'" in data["problems"][0]["detail"]
    levels = ", ".join(f"{{id: a{level}, autonomy: {{level: {level}}}}}" for level in range(4))
    shell.chart(f"agents: [{levels}, {{id: plain}}]\n")
    assert shell.json("org", "check")[0] == 0


def test_a_note_alone_is_no_problem(shell: Shell) -> None:
    shell.chart(CHART + "escalation: [reviewer, architect, human]\n")
    code, data = shell.json("org", "check")
    assert (code, data["ok"], [problem["severity"] for problem in data["problems"]]) == (0, True, ["note"])


def test_show_has_the_limits_of_every_level(shell: Shell) -> None:
    levels = ", ".join(f"{{id: a{level}, autonomy: {{level: {level}}}}}" for level in range(4))
    shell.chart(f"agents: [{levels}]\n")
    _, data = shell.json("org", "show")
    shown = [tuple(agent["autonomy"]["limits"].values()) for agent in data["agents"]]
    assert shown == [(5, 10, 0, 0, 10), (20, 30, 10, 1000, 50), (50, 60, 30, 3000, 200), (100, 120, 50, 5000, 500)]
    assert [*data["agents"][0]["autonomy"]["limits"]] == ["iterations", "minutes", "files", "lines", "toolCalls"]


def test_show_prints_agents_teams_and_roles_with_their_load(shell: Shell) -> None:
    assert "there is no org chart" in shell.aof("org", "show")[1]
    shell.chart()
    shell.aof("create", "One")
    assert shell.aof("claim", "--agent", "ada")[0] == 0
    lines = [line.split() for line in shell.aof("org", "show")[1].splitlines()]
    assert ["ada", "worker", "eng", "1/1", "pull", "-", "dev", "api,", "python:0.9"] in lines
    assert ["eng", "1/2", "-", "lea", "ada,", "bob,", "lea"] in lines
    assert ["dev", "ada,", "bob"] in lines


def test_route_explains_step_by_step_who_gets_a_task_and_why_the_others_do_not(shell: Shell) -> None:
    shell.chart()
    task = shell.json("create", "One", "--tag", "api")[1]["taskId"]
    code, out, _ = shell.aof("org", "route", task)
    assert code == 0
    assert out.splitlines()[:2] == ["1. the rule for api (weight 10), role 'dev': ada gets it", "ada"]
    code, data = shell.json("org", "route", "--role", "dev", "--capability", "python:0.95")
    assert (code, data["state"], data["agent"]) == (1, "no_route", None)
    assert data["others"]["ada"] == "it lacks python (at least 0.95, has 0.9)"
    assert shell.json("org", "route", "--team", "eng")[1]["agent"] == "lea"
    assert shell.json("org", "route", "--capability", "python:7")[0] == 2


@pytest.mark.parametrize(
    "words", [("org",), ("org", "draw"), ("org", "route"), ("org", "check", "x"), ("org", "route", "001", "--tag", "x")]
)
def test_a_call_that_makes_no_sense_is_a_usage_error_with_an_example(shell: Shell, words: tuple[str, ...]) -> None:
    code, error = shell.json(*words)
    assert (code, error["code"]) == (2, "usage")
    assert "aof org" in error["hint"]


def test_create_teaches_who_there_is_and_warns_of_what_nobody_takes(shell: Shell) -> None:
    shell.chart()
    code, error = shell.json("create", "For ada", "--agent", "addda")
    assert (code, error["code"]) == (1, "no_route")
    assert error["hint"] == "did you mean 'ada'? See who there is: aof org show"
    code, data = shell.json("create", "Unserved", "--tag", "frob")
    assert (code, data["warning"]["code"], data["status"]) == (0, "no_route", "ready")
    code, out, err = shell.aof("create", "Unserved", "--capability", "cobol")
    assert code == 0
    assert out.startswith("TASK-")
    assert "no_route" in err
    assert "no_route" in shell.aof("list")[1]
    assert "no_route" in shell.aof("ready", "--explain")[1]
    assert "no route" in shell.aof("show", data["taskId"])[1]


def test_a_claim_is_refused_with_a_code_and_the_way_on(shell: Shell) -> None:
    shell.chart()
    first, second = (shell.json("create", f"Task {number}", "--role", "dev")[1]["taskId"] for number in range(2))
    code, error = shell.json("claim", first, "--agent", "lea")
    assert (code, error["code"]) == (1, "not_routed")
    assert error["hint"].endswith(f"aof org route {first}")
    assert shell.json("claim", "--agent", "ada")[1]["taskId"] == first
    code, error = shell.json("claim", second, "--agent", "ada")
    assert (code, error["code"]) == (1, "at_capacity")
    assert shell.json("claim", "--agent", "ada")[1]["code"] == "at_capacity"


def test_a_worker_neither_approves_its_own_work_nor_cancels_anothers_task(shell: Shell) -> None:
    shell.chart()
    task = shell.json("create", "One")[1]["taskId"]
    shell.aof("claim", task, "--agent", "ada")
    shell.aof("complete", task, "--agent", "ada")
    assert shell.json("approve", task, "--actor", "ada")[1]["code"] == "own_work"
    assert shell.json("approve", task, "--actor", "bob")[1]["code"] == "not_allowed"
    assert shell.json("cancel", task, "--actor", "bob")[1]["code"] == "not_allowed"
    assert shell.json("approve", task, "--actor", "lea") == (0, {"taskId": task, "status": "done"})


def test_a_broken_chart_is_a_matter_for_doctor(shell: Shell) -> None:
    shell.chart("agents: [{id: ada, nme: x}]\n")
    code, error = shell.json("create", "One")
    assert (code, error["code"]) == (5, "unusable_org_chart")
    assert "aof org check" in error["hint"]
    code, data = shell.json("doctor")
    assert (code, data["problems"][0]["code"]) == (5, "org_chart_unusable")
    assert shell.json("list")[0] == 0


def test_init_names_its_actor_as_maintainer(shell: Shell) -> None:
    assert 'maintainers = ["pm"]' in (shell.folder / ".aof" / "aof.toml").read_text()
    shell.chart()
    assert shell.json("org", "show")[1]["maintainers"] == ["pm"]


def test_a_route_without_a_chart_says_why_there_is_none(aof: Aof) -> None:
    said = aof("org", "route", "--tag", "api", "--json")
    assert said.code == 1
    assert said.error["code"] == "no_route"
    assert said.error["message"] == "anybody: the org chart names no agent"
    assert said.data["state"] == "no_route"
