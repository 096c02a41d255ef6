"""Org charts for tests: one that says everything, and how to make others."""

from __future__ import annotations

from typing import Any

from aof.org.chart import validate_chart
from aof.org.model import OrgChart

CHART: dict[str, Any] = {
    "schemaVersion": 1,
    "agents": [
        {
            "id": "swe-backend",
            "name": "Backend",
            "team": "eng",
            "roles": ["developer"],
            "capabilities": ["api", {"id": "python", "proficiency": 0.9}],
            "concurrency": 2,
            "autonomy": {"level": 2, "maxRisk": "medium"},
            "maxExecutionTime": "30m",
            "escalatesTo": "swe-lead",
            "runner": {"kind": "process", "command": ["python", "agents/backend.py"], "env": {"A": "1"}},
        },
        {"id": "swe-lead"},
        {"id": "pm", "active": False},
    ],
    "teams": [{"id": "eng", "lead": "swe-lead", "orchestrator": "pm", "limits": {"maxConcurrent": 4}}],
    "roles": {"developer": {"agents": ["swe-backend"]}, "reviewer": {"agents": ["swe-lead"]}},
    "routing": [{"tags": ["api"], "to": {"role": "developer"}, "weight": 10}],
    "escalation": ["reviewer", "architect", "human"],
}


def chart_of(**parts: Any) -> OrgChart:
    """A chart of these parts, which must be usable."""
    judged = validate_chart(parts)
    assert judged.chart is not None, judged.findings
    return judged.chart
