"""The org chart: what it says, what is refused, and that its size costs what it must."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from types import FrameType
from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from aof.kernel import findings
from aof.kernel.findings import Finding
from aof.kernel.model import duration_ms
from aof.org import chart
from aof.org import model as org_model
from aof.org.chart import Judged, validate_chart
from aof.org.model import EMPTY, OrgChart
from aof.org.rights import KINDS_BY_NAME
from aof.org.routing import WorkProfile, route
from aof.store.files.definitions import OrgFile
from tests.support.repository import ROOT
from tests.support.requirements import requirement
from tests.support.team import CHART, chart_of

# --- the org chart as data: what a document says, and what may be left out


def test_a_chart_says_what_its_document_says() -> None:
    chart = chart_of(**CHART)
    agent = chart.by_id["swe-backend"]
    assert agent.skills == {"api": 1.0, "python": 0.9}
    assert agent.max_execution_ms == 30 * 60_000
    assert agent.runner.command == ("python", "agents/backend.py")
    assert (chart.members, chart.holders["developer"]) == ({"eng": ("swe-backend",)}, ("swe-backend",))
    assert chart.teams_by_id["eng"].limits.max_concurrent == 4
    assert chart.routing[0].to.role == "developer"


def test_a_chart_survives_the_way_to_json_and_back() -> None:
    chart = chart_of(**CHART)
    assert msgspec.json.decode(msgspec.json.encode(chart), type=OrgChart) == chart


def test_only_the_id_of_an_agent_is_required() -> None:
    agent = chart_of(agents=[{"id": "ada"}]).by_id["ada"]
    assert agent.active
    assert agent.runner.kind == "pull"
    assert (agent.concurrency, agent.autonomy.level, agent.skills) == (None, None, {})


def test_a_role_is_held_whether_the_role_or_the_agent_says_so() -> None:
    chart = chart_of(
        agents=[{"id": "a", "roles": ["dev"]}, {"id": "b"}, {"id": "c", "roles": ["ops"]}],
        roles={"dev": {"agents": ["b"]}},
    )
    assert chart.holders == {"dev": ("a", "b"), "ops": ("c",)}
    assert chart.roles_of == {"a": {"dev"}, "b": {"dev"}, "c": {"ops"}}


def test_a_chart_without_agents_declares_nothing() -> None:
    assert not EMPTY.declared
    assert not chart_of(schemaVersion=1, teams=[{"id": "eng"}]).declared
    assert chart_of(agents=[{"id": "ada"}]).declared


@pytest.mark.parametrize(
    ("text", "length"),
    [
        ("90s", 90_000),
        ("30m", 1_800_000),
        ("2h", 7_200_000),
        ("1h30m", 5_400_000),
        ("250ms", 250),
        ("1.5d", 129_600_000),
    ],
)
def test_a_duration_is_a_number_with_a_unit(text: str, length: int) -> None:
    assert duration_ms(text) == length


@pytest.mark.parametrize("text", ["", "30", "m", "30 m", "-5m", "0s", "5m5m", "1e3s", "9999d", "30m\n", "٣m", 30, None])
def test_anything_else_is_no_duration(text: object) -> None:
    assert duration_ms(text) is None


# --- the lint: every problem is named with its place and its fix, and only what is unusable keeps a chart from use


ADA = {"id": "ada"}


def only(document: Any) -> Finding:
    """The one thing that is wrong with the document."""
    findings = validate_chart(document).findings
    assert len(findings) == 1, findings
    return findings[0]


def with_agent(**given: Any) -> dict[str, Any]:
    return {"agents": [ADA | given]}


@pytest.mark.parametrize(
    ("document", "code", "where", "words"),
    [
        ({"agent": []}, "unknown_key", "agent", "did you mean 'agents'?"),
        (with_agent(concurency=2), "unknown_key", "agents[0].concurency", "did you mean 'concurrency'?"),
        (with_agent(zzz=2), "unknown_key", "agents[0].zzz", "use one of: id, name"),
        ({"agents": [{"name": "x"}]}, "missing_key", "agents[0]", "add 'id: …'"),
        ({"agents": {"ada": {}}}, "wrong_type", "agents", "give a list"),
        (with_agent(name=7), "wrong_type", "agents[0].name", "put it in quotes"),
        (with_agent(active="no"), "wrong_type", "agents[0].active", "true or false"),
        (with_agent(concurrency=True), "wrong_type", "agents[0].concurrency", "a whole number"),
        (with_agent(runner={"kind": "shell"}), "wrong_type", "agents[0].runner.kind", "one of: "),
        (with_agent(capabilities=[7]), "wrong_type", "agents[0].capabilities[0]", "give"),
        (with_agent(id="a b"), "bad_name", "agents[0].id", "letters, digits"),
        ({"agents": [ADA, ADA]}, "duplicate_id", "agents[1].id", "its own id"),
        ({"agents": [ADA], "teams": [{"id": "t"}, {"id": "t"}]}, "duplicate_id", "teams[1].id", "its own id"),
        (with_agent(capabilities=["x", {"id": "x"}]), "duplicate_id", "agents[0].capabilities[1]", "keep one"),
        (with_agent(concurrency=0), "bad_value", "agents[0].concurrency", "active: false"),
        (with_agent(autonomy={"level": 4}), "bad_value", "agents[0].autonomy.level", "0, 1, 2 or 3"),
        (
            with_agent(autonomy={"limits": {"toolCalls": -1}}),
            "bad_value",
            "agents[0].autonomy.limits.toolCalls",
            "0 or",
        ),
        (
            with_agent(capabilities=[{"id": "x", "proficiency": 1.5}]),
            "bad_value",
            "agents[0].capabilities[0].proficiency",
            "0.0 to 1.0",
        ),
        (with_agent(maxExecutionTime="3x"), "bad_duration", "agents[0].maxExecutionTime", "30m"),
        (with_agent(runner={"grace": "soon"}), "bad_duration", "agents[0].runner.grace", "30m"),
        (with_agent(runner={"kind": "process"}), "empty_command", "agents[0].runner", "command: ["),
        (with_agent(runner={"kind": "process", "command": [" "]}), "empty_command", "agents[0].runner", "command: ["),
        (with_agent(runner={"command": ["x"]}), "unused_command", "agents[0].runner.command", "kind: process"),
        (with_agent(runner={"kind": "a2a"}), "missing_url", "agents[0].runner", "url: "),
        (
            {"agents": [ADA], "routing": [{"tags": [], "to": {"agent": "ada"}}]},
            "never_matches",
            "routing[0].tags",
            "tag",
        ),
        ({"agents": [ADA], "routing": [{"tags": ["x"], "to": {}}]}, "bad_target", "routing[0].to", "exactly one"),
        ({"schemaVersion": 2}, "unknown_version", "schemaVersion", "newer"),
        ({"schemaVersion": "1"}, "unknown_version", "schemaVersion", "newer"),
        ([], "wrong_type", "the document", "a mapping"),
    ],
)
def test_what_cannot_be_used_is_named_with_its_fix(document: Any, code: str, where: str, words: str) -> None:
    finding = only(document)
    assert (finding.code, finding.severity, finding.where) == (code, "error", where)
    assert words in finding.fix
    assert validate_chart(document).chart is None


@pytest.mark.parametrize(
    ("more", "code", "where", "words"),
    [
        ({"teams": [{"id": "t", "lead": "adda"}]}, "unknown_agent", "teams[0].lead", "did you mean 'ada'?"),
        ({"teams": [{"id": "t", "orchestrator": "zoe"}]}, "unknown_agent", "teams[0].orchestrator", "use one of"),
        ({"roles": {"dev": {"agents": ["ada", "bb"]}}}, "unknown_agent", "roles.dev.agents[1]", "did you mean 'bob'?"),
        ({"roles": {"dev": {}}}, "unheld_role", "roles.dev", "list an active agent"),
        ({"roles": {"dev": {"agents": ["off"]}}}, "unheld_role", "roles.dev", "list an active agent"),
        ({"teams": [{"id": "t", "lead": "off"}]}, "inactive_lead", "teams[0].lead", "active agent"),
        ({"routing": [{"tags": ["x"], "to": {"role": "q"}}]}, "unknown_role", "routing[0].to.role", "add the role"),
        ({"routing": [{"tags": ["x"], "to": {"team": "q"}}]}, "unknown_team", "routing[0].to.team", "add the team"),
        ({"routing": [{"tags": ["x"], "to": {"agent": "boob"}}]}, "unknown_agent", "routing[0].to.agent", "'bob'"),
        ({"escalation": ["ada", "bob", "off", "human"]}, "escalation_depth", "escalation", "keep 3"),
        ({"escalation": ["ada", "ada"]}, "duplicate_id", "escalation[1]", "keep one"),
    ],
)
def test_what_leads_nowhere_is_named_and_the_chart_used_all_the_same(
    more: dict[str, Any], code: str, where: str, words: str
) -> None:
    document = {"agents": [ADA, {"id": "bob"}, {"id": "off", "active": False}]} | more
    finding = only(document)
    assert (finding.code, finding.severity, finding.where) == (code, "warning", where)
    assert words in finding.fix
    assert validate_chart(document).chart is not None


@pytest.mark.parametrize(
    ("rules", "dead"),
    [
        ([(["x"], 10), (["x"], 1)], 1),
        ([(["x"], 1), (["x"], 1)], 1),
        ([(["x"], 1), (["x", "y"], 1)], 1),
        ([(["x", "y"], 1), (["x"], 5)], 0),
        ([(["x", "y"], 5), (["x"], 1)], None),
        ([(["x"], 1), (["x", "y"], 2)], None),
        ([(["x"], 1), (["y"], 1)], None),
    ],
)
def test_a_rule_that_another_one_always_precedes_can_never_match(rules: list[Any], dead: int | None) -> None:
    routing = [{"tags": tags, "to": {"agent": "ada"}, "weight": weight} for tags, weight in rules]
    findings = validate_chart({"agents": [ADA], "routing": routing}).findings
    assert [(finding.code, finding.where) for finding in findings] == (
        [("never_matches", f"routing[{dead}]")] if dead is not None else []
    )


def test_a_circle_of_escalations_is_told_once_with_its_way() -> None:
    chain = {"a": "b", "b": "c", "c": "a", "d": "a"}
    finding = only({"agents": [{"id": who, "escalatesTo": to} for who, to in chain.items()]})
    assert (finding.code, finding.where) == ("escalation_cycle", "agents[0].escalatesTo")
    assert "a → b → c → a" in finding.detail


def test_an_escalation_that_takes_more_than_three_steps_is_told() -> None:
    chain = {"a": "b", "b": "c", "c": "d", "d": "human"}
    finding = only({"agents": [{"id": who, "escalatesTo": to} for who, to in chain.items()]})
    assert (finding.code, finding.where) == ("escalation_depth", "agents[0].escalatesTo")
    assert "4 steps" in finding.detail


def test_a_role_of_the_chain_that_nobody_has_is_only_a_note() -> None:
    finding = only({"agents": [ADA], "escalation": ["architect", "human"]})
    assert (finding.code, finding.severity) == ("unheld_role", "note")


def test_an_agent_may_bring_a_role_into_being_but_a_slip_of_the_pen_is_told() -> None:
    roles = {"developer": {"agents": ["ada"]}}
    assert validate_chart({"agents": [ADA | {"roles": ["writer"]}], "roles": roles}).findings == ()
    assert only({"agents": [ADA | {"roles": ["develper"]}], "roles": roles}).code == "unknown_role"


def test_all_problems_are_told_at_once() -> None:
    findings = validate_chart({"agents": [{"id": "a", "x": 1, "active": 2}, {"name": 3}], "extra": 1}).findings
    assert len(findings) == 5


@requirement("handoff.autonomy.org-chart-fields")
def test_levels_and_risks_outside_the_table_are_reported_with_the_agents_id() -> None:
    levels = [{"id": f"l{level}", "autonomy": {"level": level, "maxRisk": "high"}} for level in range(4)]
    assert validate_chart({"agents": [*levels, ADA]}).findings == ()
    for wrong in ({"level": 4}, {"maxRisk": "extreme"}, {"level": -1}):
        finding = only({"agents": [*levels, ADA | {"autonomy": wrong}]})
        assert "'ada'" in finding.detail
        assert finding.severity == "error"


def test_an_older_version_is_brought_up_to_date_step_by_step() -> None:
    def renamed(document: dict[str, Any]) -> dict[str, Any]:
        return {"agents": document["people"]}

    def numbered(document: dict[str, Any]) -> dict[str, Any]:
        return {"agents": [agent | {"concurrency": 1} for agent in document["agents"]]}

    steps = {1: renamed, 2: numbered}
    chart = validate_chart({"schemaVersion": 1, "people": [ADA]}, steps, newest=3).chart
    assert chart is not None
    assert (chart.schema_version, chart.by_id["ada"].concurrency) == (3, 1)
    assert validate_chart({"schemaVersion": 3, "agents": [ADA]}, steps, newest=3).findings == ()


def test_the_whole_example_has_only_the_note_that_nobody_is_an_architect() -> None:
    document = CHART | {"agents": [agent | {"active": True} for agent in CHART["agents"]]}
    assert [(finding.code, finding.severity) for finding in validate_chart(document).findings] == [
        ("unheld_role", "note")
    ]


# --- what a data directory without an org chart does not pay for


SCRIPT = """
import sys
from aof.support import lazy_imports
lazy_imports.install()
from aof.surfaces.cli.main import main
for words in (
    ["init"], ["create", "x"], ["claim", "--agent", "a"], ["list"], ["ready"], ["complete", "--agent", "a", "001"]):
    assert main(words) == 0
heavy = ("aof.org.chart", "aof.org.budgets", "aof.store.files.strict_yaml")
print([name for name in heavy if name in sys.modules and lazy_imports.has_run(name)], file=sys.stderr)
"""


def test_without_a_chart_nothing_about_charts_is_loaded(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT], cwd=tmp_path, capture_output=True, text=True, timeout=60, check=True
    )
    assert done.stderr.strip() == "[]"


# --- the documentation tells the truth: its example is a sound chart, and it names every key and every code


REFERENCE = (ROOT / "docs" / "reference" / "org-chart.md").read_text()
HOWTO = (ROOT / "docs" / "howto" / "route-tasks.md").read_text()


def test_the_examples_load_and_have_nothing_to_mend(tmp_path: Path) -> None:
    for text in (REFERENCE, HOWTO):
        example = re.findall(r"```yaml\n(.*?)```", text, re.DOTALL)[0]
        (tmp_path / "org").mkdir(exist_ok=True)
        (tmp_path / "org" / "org-chart.yaml").write_text(example)
        report = OrgFile(str(tmp_path)).report()
        assert (report.state, report.findings) == ("current", ())
        assert report.chart.declared


def test_the_reference_names_every_key() -> None:
    kinds = [kind for kind in vars(org_model).values() if isinstance(kind, type) and issubclass(kind, msgspec.Struct)]
    kinds = [kind for kind in kinds if kind not in {org_model.Gate, org_model.KeptChart}]  # written elsewhere
    keys = {field.encode_name for kind in kinds for field in msgspec.structs.fields(kind)}
    assert len(keys) > 30
    assert {key for key in keys if not re.search(rf"\b{key}\b", REFERENCE)} == set()


def test_the_reference_names_every_code_of_the_lint_and_every_role_that_means_something() -> None:
    source = "".join(Path(str(module.__file__)).read_text() for module in (chart, findings))
    codes = set(re.findall(r'"([a-z]+_[a-z_]+)"', source))
    assert {"unknown_key", "bad_duration", "escalation_cycle", "never_matches"} <= codes
    assert {code for code in codes if f"`{code}`" not in REFERENCE} == set()
    assert all(f"`{name}`" in REFERENCE for name in KINDS_BY_NAME)


# --- whatever a document holds, it is judged and not stumbled over; and a chart that is used keeps its promises


NAMES = st.sampled_from(["ada", "bob", "eng", "dev", "human", "", "a b"])
ODD: st.SearchStrategy[object] = (
    st.none() | st.booleans() | st.integers(-1, 5) | st.floats(allow_nan=False) | NAMES | st.just([]) | st.just({})
)
LISTS = st.lists(NAMES, max_size=2)
AGENTS = st.fixed_dictionaries(
    {"id": NAMES},
    optional={
        "team": NAMES | ODD,
        "roles": LISTS | ODD,
        "capabilities": st.lists(NAMES | ODD | st.fixed_dictionaries({"id": NAMES, "proficiency": ODD}), max_size=2),
        "concurrency": ODD,
        "autonomy": ODD | st.fixed_dictionaries({"level": ODD, "limits": ODD}),
        "escalatesTo": NAMES,
        "runner": ODD | st.fixed_dictionaries({"kind": NAMES | st.just("process"), "command": LISTS}),
        "maxExecutionTime": ODD,
    },
)
DOCUMENTS = st.fixed_dictionaries(
    {},
    optional={
        "agents": ODD | st.lists(AGENTS | ODD, max_size=3),
        "teams": ODD | st.lists(ODD | st.fixed_dictionaries({"id": NAMES}, optional={"lead": NAMES | ODD}), max_size=2),
        "roles": ODD | st.dictionaries(NAMES, ODD | st.fixed_dictionaries({"agents": LISTS | ODD}), max_size=2),
        "routing": ODD
        | st.lists(
            ODD | st.fixed_dictionaries({"tags": LISTS | ODD, "to": ODD | st.dictionaries(NAMES, NAMES)}), max_size=2
        ),
        "escalation": LISTS | ODD,
        "schemaVersion": ODD | st.just(1),
    },
)


@given(ODD | DOCUMENTS)
def test_any_document_is_a_chart_or_has_an_error_with_a_fix(document: Any) -> None:
    judged = validate_chart(document)
    assert (judged.chart is None) == any(finding.severity == "error" for finding in judged.findings)
    assert all(finding.detail and finding.fix and finding.where for finding in judged.findings)
    if judged.chart is not None:
        for agent in judged.chart.agents:
            assert agent.concurrency is None or agent.concurrency >= 1
        assert route(judged.chart, WorkProfile(role="dev", tags=("x",)), {}).reason


EXAMPLE = REFERENCE.split("```yaml\n")[1].split("```")[0]


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.data())
def test_a_file_that_was_cut_or_scribbled_on_is_reported_and_never_crashes(tmp_path: Path, data: st.DataObject) -> None:
    text = EXAMPLE
    for _ in range(data.draw(st.integers(1, 3))):
        start = data.draw(st.integers(0, len(text)))
        end = start + data.draw(st.integers(0, 12))
        text = text[:start] + data.draw(st.text("ab:-[]{},#&*!|>'\" \n\té", max_size=4)) + text[end:]
    (tmp_path / "org").mkdir(exist_ok=True)
    (tmp_path / "org" / "org-chart.yaml").write_text(text)
    report = OrgFile(str(tmp_path)).report()
    assert report.state in ("current", "unusable", "unreadable")
    assert (report.state == "current") == all(finding.severity != "error" for finding in report.findings)
    assert all(finding.line is None or 1 <= finding.line <= text.count("\n") + 1 for finding in report.findings)


# --- A chart of any size is read in time that grows with its size only
# Work is counted, not timed: function calls while the chart is judged, and the characters of what is found.


SMALL, FACTOR = 400, 4


def counted(document: dict[str, Any]) -> tuple[int, Judged]:
    """How much is done to judge a document, and what comes of it: calls in Python and in C, and letters told."""
    calls = 0

    def count(_frame: FrameType, event: str, _argument: object) -> None:
        nonlocal calls
        calls += event in ("call", "c_call")

    before = sys.getprofile()
    sys.setprofile(count)
    try:
        judged = validate_chart(document)
        if judged.chart is not None:
            assert judged.chart.holders is not None
            assert judged.chart.roles_of is not None
            assert judged.chart.members is not None
    finally:
        sys.setprofile(before)
    return calls + sum(len(finding.detail) + len(finding.fix) for finding in judged.findings), judged


def names(count: int) -> list[str]:
    """As many names, all of one length."""
    return [f"agent-{number:06d}" for number in range(count)]


def chained(count: int) -> dict[str, Any]:
    """Each agent escalates to the next."""
    known = names(count)
    agents = [{"id": one, "escalatesTo": above} for one, above in pairwise(known)]
    return {"agents": [*agents, {"id": known[-1]}]}


def chained_downward(count: int) -> dict[str, Any]:
    """The same, the last one first."""
    return {"agents": list(reversed(chained(count)["agents"]))}


def circle(count: int) -> dict[str, Any]:
    """The last one escalates to the first."""
    agents = chained(count)["agents"]
    agents[-1]["escalatesTo"] = agents[0]["id"]
    return {"agents": agents}


def in_many_roles(count: int) -> dict[str, Any]:
    """As many roles as agents, each held by a few."""
    known = names(count)
    roles = {f"role-{number:06d}": {"agents": [known[number], known[-1 - number]]} for number in range(count)}
    return {"agents": [{"id": one} for one in known], "roles": roles}


def bring_own_roles(count: int) -> dict[str, Any]:
    """Each agent has a role that the chart does not list, and that is not like one that it does."""
    agents = [{"id": one, "roles": [f"{number:06d}{'x' * 30}"]} for number, one in enumerate(names(count))]
    return {"agents": agents, "roles": {f"r{number}": {"agents": [agents[0]["id"]]} for number in range(count)}}


def rules(count: int) -> dict[str, Any]:
    """Rules of two tags, of which all share one."""
    routing = [{"tags": ["all", f"tag-{number}"], "to": {"agent": "agent-000000"}} for number in range(count)]
    return {"agents": [{"id": "agent-000000"}], "routing": routing}


def same_rules(count: int) -> dict[str, Any]:
    """The same rule again and again."""
    routing = [{"tags": ["all"], "to": {"agent": "agent-000000"}} for _ in range(count)]
    return {"agents": [{"id": "agent-000000"}], "routing": routing}


def teams(count: int) -> dict[str, Any]:
    """As many teams as agents."""
    known = names(count)
    agents = [{"id": one, "team": f"team-{number}"} for number, one in enumerate(known)]
    return {"agents": agents, "teams": [{"id": f"team-{number}", "lead": one} for number, one in enumerate(known)]}


@pytest.mark.parametrize(
    "make", [chained, chained_downward, circle, in_many_roles, rules, same_rules, teams], ids=lambda make: make.__name__
)
def test_a_chart_four_times_as_large_takes_four_times_the_work(make: Callable[[int], dict[str, Any]]) -> None:
    small, _ = counted(make(SMALL))
    large, _ = counted(make(SMALL * FACTOR))

    assert large < small * FACTOR * 1.5


def test_names_that_lead_nowhere_are_compared_within_bounds() -> None:
    def wrong(count: int) -> dict[str, Any]:
        return {"agents": [{"id": one, "team": f"no-{number}"} for number, one in enumerate(names(count))],
                "teams": [{"id": f"team-{number}"} for number in range(count)]}  # fmt: skip

    bounded, judged = counted(wrong(SMALL * FACTOR))
    more, _ = counted(wrong(SMALL * FACTOR * 2))

    assert len([one for one in judged.findings if one.code == "unknown_team"]) == SMALL * FACTOR
    assert more < bounded * 3
    assert all(len(one.fix) < 1_000 for one in judged.findings)


def test_own_roles_of_agents_are_compared_within_bounds() -> None:
    bounded, judged = counted(bring_own_roles(SMALL * FACTOR))
    more, _ = counted(bring_own_roles(SMALL * FACTOR * 2))

    assert judged.chart is not None
    assert more < bounded * 3


def test_twenty_five_thousand_agents_in_one_chain_are_judged() -> None:
    judged = validate_chart(chained(25_000))

    assert judged.chart is not None
    assert len(judged.findings) == 25_000 - 4
    assert judged.findings[0].detail.startswith("an escalation from 'agent-000000' takes 24999 steps: ")
    assert max(len(one.detail) for one in judged.findings) < 500


def test_a_circle_of_many_is_told_once() -> None:
    (finding,) = validate_chart(circle(5_000)).findings

    assert finding.code == "escalation_cycle"
    assert finding.at == ("agents", 0, "escalatesTo")
    assert len(finding.detail) < 500
