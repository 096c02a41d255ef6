"""Whatever a document holds, it is judged and not stumbled over; and a chart that is used keeps its promises."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import hypothesis.strategies as st
from hypothesis import HealthCheck, given, settings

from aof.org.chart import validate_chart
from aof.org.routing import WorkProfile, route
from aof.store.files.definitions import OrgFile
from tests.org.test_reference import REFERENCE

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


@settings(max_examples=300)
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


@settings(max_examples=200, suppress_health_check=[HealthCheck.function_scoped_fixture])
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
