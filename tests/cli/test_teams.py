"""The verbs of a team: org chart, handoffs, workflows, supervision, charter, tokens."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import Any

import pytest

from aof.service.bootstrap import init_data_dir, open_fabric
from tests.support.command_line import Aof, Said
from tests.support.repository import ROOT
from tests.support.requirements import requirement
from tests.support.terminal import Terminal

# --- `aof org` and the chart's say in other verbs


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

    def __init__(self, folder: Path, aof: Aof) -> None:
        self.folder = folder
        self.run = aof

    def chart(self, text: str = CHART) -> None:
        path = self.folder / ".aof" / "org" / "org-chart.yaml"
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)

    def aof(self, *words: str) -> tuple[int, str, str]:
        said = self.run(*words)
        return said.code, said.out, said.err

    def json(self, *words: str) -> tuple[int, Any]:
        said = self.run(*words, "--json")
        return said.code, said.answer.get("data", said.answer.get("error"))


@pytest.fixture
def shell(tmp_path: Path, aof: Aof) -> Shell:
    return Shell(tmp_path, aof)


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


def test_a_broken_chart_is_a_matter_for_doctor(shell: Shell) -> None:
    shell.chart("agents: [{id: ada, nme: x}]\n")
    code, error = shell.json("create", "One")
    assert (code, error["code"]) == (5, "unusable_org_chart")
    assert "aof org check" in error["hint"]
    code, data = shell.json("doctor")
    assert (code, data["problems"][0]["code"]) == (5, "org_chart_unusable")
    assert shell.json("list")[0] == 0


def test_a_route_without_a_chart_says_why_there_is_none(aof: Aof) -> None:
    said = aof("org", "route", "--tag", "api", "--json")
    assert said.code == 1
    assert said.error["code"] == "no_route"
    assert said.error["message"] == "anybody: the org chart names no agent"
    assert said.data["state"] == "no_route"


# --- handoffs and the WORKLOG on the command line: what is refused shows the call that works


@pytest.mark.parametrize(("kind", "lacks"), [("escalation", "rationale")])
def test_the_hint_about_what_a_handoff_lacks_is_a_call_that_works(aof: Aof, kind: str, lacks: str) -> None:
    aof("create", "Work")
    words = ("handoff", "new", "--type", kind, "--from", "ada", "--to", "bob", "--task", "001", "--reason", "help")
    refused = aof(*words, "--json")
    assert (refused.code, refused.error["details"]["parameter"]) == (2, lacks)
    hint = refused.error["hint"].partition(": aof ")[2]
    assert aof(*shlex.split(hint), "--json").data["state"] == "requested"


@pytest.mark.parametrize(("option", "name"), [("--type", "type"), ("--risk", "risk"), ("--on-timeout", "on_timeout")])
def test_a_value_that_a_handoff_cannot_have_is_named_as_the_caller_knows_it(aof: Aof, option: str, name: str) -> None:
    aof("create", "Work")
    given = {
        "--type": "delegation",
        "--timeout": "1m",
        "--to": "bob",
        "--task": "001",
        "--reason": "x",
        option: "weird",
    }
    words = (word for pair in given.items() for word in pair)
    refused = aof("handoff", "new", *words, "--json")
    assert refused.code == 2
    assert refused.error["message"] == f"'{name}' cannot be 'weird'"
    assert refused.error["hint"].startswith(f"{name}: one of ")
    assert "proposal" not in refused.error["hint"]


def test_the_check_of_another_file_names_that_file(aof: Aof, tmp_path: Path) -> None:
    (tmp_path / "other.md").write_text("nothing\n", encoding="utf-8")
    found = aof("worklog", "check", "other.md", "--json")
    assert (found.code, {one["path"] for one in found.data["problems"]}) == (1, {"other.md"})
    missing = aof("mail", "check", "none.md", "--json")
    assert (missing.code, missing.data["problems"][0]["detail"]) == (
        2,
        "none.md cannot be read: No such file or directory",
    )


def test_a_full_handoff_without_a_status_is_told_which_there_are(aof: Aof) -> None:
    refused = aof("worklog", "add", "--agent", "ada", "--type", "handoff.posted", "--subject", "x", "--json").error
    assert refused["message"] == "an entry of the type handoff.posted needs 'status'"
    assert "Ready for review" in refused["hint"]


# --- `aof workflow`, and the verbs on gated tasks; the examples of the documentation are tried


REFERENCE = Path("docs/reference/workflows.md")
HOWTO = Path("docs/howto/gate-work-with-reviews.md")


def _blocks(page: Path, language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", page.read_text(), flags=re.DOTALL)


def _template(name: str, text: str) -> None:
    folder = Path(".aof/workflows")
    folder.mkdir(exist_ok=True)
    (folder / f"{name}.yaml").write_text(text)


@pytest.fixture
def examples() -> dict[str, str]:
    """The templates of both pages; read before the test goes to its own folder."""
    root = ROOT
    return {"feature": _blocks(root / REFERENCE, "yaml")[0], "review": _blocks(root / HOWTO, "yaml")[0]}


@pytest.fixture
def gated(aof: Any, examples: dict[str, str]) -> Any:
    """A command line with the documented templates."""
    for name, text in examples.items():
        _template(name, text)
    return aof


def test_the_documented_templates_are_sound(gated: Any) -> None:
    said: Said = gated("workflow", "check", "--json")
    assert (said.code, said.data["ok"], said.data["problems"]) == (0, True, [])
    assert said.data["workflows"] == ["feature", "review"]


def test_a_problem_is_named_with_file_line_and_remedy(gated: Any) -> None:
    _template("bad", "name: bad\nhops:\n  - id: a\n    role: r\n    dependsOn: [b]\n")
    said = gated("workflow", "check", "bad")
    assert said.code == 1
    assert "workflows/bad.yaml:5" in said.out
    assert "→ " in said.out
    (problem,) = [one for one in gated("workflow", "check", "--json").data["problems"] if one["code"] == "unknown_hop"]
    assert (problem["file"], problem["line"]) == ("workflows/bad.yaml", 5)
    refused = gated("create", "x", "--workflow", "bad", "--json")
    assert (refused.code, refused.error["code"]) == (2, "invalid_workflow")
    assert "aof workflow check bad" in refused.error["hint"]
    missing = gated("create", "x", "--workflow", "revew", "--json")
    assert (missing.code, missing.error["code"]) == (3, "workflow_not_found")
    assert "did you mean 'review'?" in missing.error["hint"]


def test_a_workflow_is_drawn_and_a_tasks_with_the_state_of_each_hop(gated: Any) -> None:
    drawn = gated("workflow", "show", "feature", "--format", "mermaid").out
    assert drawn.startswith("flowchart TD\n")
    assert "h3 -.->|rejects| h0" in drawn
    gated("create", "x", "--workflow", "feature")
    gated("claim", "001", "--agent", "ada", "--hop", "implement")
    text = gated("workflow", "show", "001").out
    assert "▶ implement [developer] running by ada" in text
    assert "○ code-review" in text
    assert "implement (developer)<br/>running" in gated("workflow", "show", "001", "--format", "mermaid").out
    data = gated("workflow", "show", "001", "--json").data
    assert {hop["id"]: hop["status"] for hop in data["hops"]}["implement"] == "running"


def test_a_wrong_action_or_form_is_a_usage_error(gated: Any) -> None:
    assert gated("workflow", "lint").code == 2
    assert gated("workflow", "show", "review", "--format", "svg").code == 2
    assert gated("workflow", "attach").code == 2


def test_a_role_and_a_hop_can_be_named(gated: Any) -> None:
    gated("create", "x", "--workflow", "review")
    claimed = gated("claim", "001", "--agent", "ada", "--hop", "implement", "--json").data
    assert claimed["hop"] == "implement"
    run = ("--run", claimed["runId"])
    assert (
        gated("complete", "001", *run, "--outcome", "complete", "--role", "developer", "--json").data["status"]
        == "ready"
    )
    taught = gated("complete", "001", "--agent", "bob", "--outcome", "maybe", "--json")
    assert (taught.code, taught.error["code"]) == (1, "outcome_required")


# --- what people who supervise agents see on the command line


def test_an_open_question_is_shown_with_its_choices(aof: Aof) -> None:
    aof("create", "Deploy")
    aof("claim", "001", "--agent", "ada")
    aof("ask", "001", "Which region?", "--choice", "eu", "--choice", "us", "--agent", "ada")
    assert "Q1 Which region? [eu | us] (ada)" in aof("inbox").out
    assert "Which region? [eu | us] (ada)" in aof("show", "001").out


def test_a_question_without_an_answer_yet_shows_how_to_wait_for_one(aof: Aof) -> None:
    task_id = aof("create", "Deploy", "--json").data["taskId"]
    aof("claim", "001", "--agent", "ada")
    asked = aof("ask", "001", "Which region?", "--agent", "ada").out
    assert f"aof ask {task_id} --question Q1 --wait 10m" in asked
    left = aof("ask", "001", "May I?", "--agent", "ada", "--leave").out
    assert "Q2 is open" in left
    assert "--wait" not in left


def test_a_change_at_an_event_is_shown_as_json_from_where_it_differs(aof: Aof) -> None:
    aof("create", "Deploy")
    aof("claim", "001", "--agent", "ada")
    aof("ask", "001", "Which region?", "--agent", "ada")
    aof("answer", "001", "eu")
    changed = aof("at", "001").out
    assert '"answer":{"text":"eu"' in changed
    assert "{'" not in changed


def test_an_event_that_changed_no_field_says_so(aof: Aof) -> None:
    aof("create", "Deploy")
    assert "this event changed no field" in aof("at", "001", "--seq", "3").out


def test_an_agent_that_nobody_knows_is_not_taken_for_an_empty_team(aof: Aof) -> None:
    aof("create", "Deploy")
    aof("claim", "001", "--agent", "ada")
    assert aof("agents", "--agent", "eve").out.strip() == "no agents"


def test_people_are_told_how_long_ago_an_agent_was_seen_and_programs_when(aof: Aof) -> None:
    aof("create", "Deploy")
    aof("claim", "001", "--agent", "ada")
    (ada,) = aof("agents", "--json").data["agents"]
    shown = aof("agents").out
    assert re.search(r"^ada +busy +1 +(just now|\d+[smh] ago) ", shown, re.MULTILINE), shown
    assert ada["lastSeen"].endswith("Z")
    assert ada["lastSeen"][:10] not in shown.replace(ada["holds"][0]["taskId"], "")


def test_a_wrong_duration_is_refused_with_the_forms_that_work(aof: Aof) -> None:
    refused = aof("claim", "--agent", "ada", "--wait", "soon")
    assert refused.code == 2
    assert "--wait needs seconds or a time such as 90s, 5m or 2h, not 'soon'" in refused.err


def test_work_in_review_is_called_a_review_everywhere(aof: Aof) -> None:
    aof("create", "Deploy")
    aof("complete", "001", "done", "--agent", "ada")
    assert "  review  " in aof("inbox").out
    assert "waiting permission" not in aof("show", "001").out
    assert aof("inbox", "--kind", "review", "--json").data == aof("inbox", "--kind", "gate", "--json").data
    assert aof("inbox", "--kind", "review", "--json").data["total"] == 1


def test_the_holder_of_a_lease_that_lives_is_not_offered_to_others_for_release(aof: Aof) -> None:
    aof("create", "Deploy")
    aof("claim", "001", "--agent", "ada")
    assert "release" not in aof("claim", "001", "--agent", "bob").err
    said = aof("claim", "001").err
    assert "only if the worker of ada is dead, end its run: aof release" in said


def test_the_way_back_from_a_claim_is_a_call_that_works(aof: Aof) -> None:
    aof("create", "Deploy")
    aof("claim", "001", "--agent", "ada")
    offered = aof("undo").err.partition("→ give the run back: aof ")[2].split()
    unnamed = aof("release", "001").err
    assert "leave it to ada, whose lease lasts until" in unnamed
    assert f"only if the worker of ada is dead, end its run: aof {' '.join(offered)}" in unnamed
    assert "end its run" not in aof("release", "001", "--agent", "bob").err
    assert aof(*offered).out.split()[1] == "ready"


def test_a_task_that_runs_is_not_said_to_wait_when_it_is_retried(aof: Aof) -> None:
    aof("create", "Deploy")
    aof("claim", "001", "--agent", "ada")
    said = aof("retry", "001", "--reason", "again").err
    assert "is in-progress; only a done, cancelled or dead task is retried" in said
    assert "see who works on it: aof show" in said


def test_prime_counts_as_ready_only_what_can_be_claimed(aof: Aof) -> None:
    aof("create", "Write it")
    aof("create", "Print it", "--dep", "001")
    assert "Tasks: 1 ready, 1 waiting\n" in aof("prime", "--agent", "ada").out


# --- A person at a terminal is asked for the charter; others give options


ANSWERS = ("export-1", "The export ships", "High", "", "ada:Developer:api", "", "api:ada:src/**", "", "tag:release", "")


def test_a_charter_is_made_from_the_answers_of_a_person(tmp_path: Path) -> None:
    root = Path(init_data_dir(tmp_path / ".aof", actor="tester")[0])
    with Terminal("charter", "init", cwd=tmp_path) as terminal:
        terminal.until("Session ID")
        terminal.type("".join(f"{answer}\n" for answer in (*ANSWERS, "All tests pass", "")).encode())
        assert terminal.end() == 0
    with open_fabric(root, actor="tester") as fabric:
        shown = fabric.charter_show()
    assert (shown.session_id, shown.risk_tier, shown.governance.decision_mode) == ("export-1", "High", "consent")
    assert [(one.agent, one.lane) for one in shown.roster] == [("tester", ""), ("ada", "api")]
    assert shown.gates[2].scope == ("tag:release",)
    assert shown.acceptance == ("All tests pass",)


def test_without_a_terminal_nobody_is_asked_and_the_usual_charter_is_made(aof: Aof) -> None:
    assert aof("charter", "init", "--json").data["riskTier"] == "Medium"


# --- `aof admin token`: whose token it is, said in either of the two ways that people try


def test_a_token_is_for_whom_the_command_names(aof: Aof) -> None:
    for words in (("ada",), ("--for", "ada"), ("ada", "--for", "ada")):
        assert aof("token", "create", *words, "--json").data["actor"] == "ada"
    assert aof("token", "create", "--json").data["actor"] == "tester", "else for who calls"


def test_two_names_for_one_token_are_refused(aof: Aof) -> None:
    told = aof("token", "create", "ada", "--for", "bob", "--json")
    assert (told.code, told.error["code"]) == (2, "usage")
    assert "aof admin token create ada" in told.error["hint"]
    assert aof("token", "list", "--json").data["tokens"] == []
