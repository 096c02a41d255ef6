"""A small team's charter, and charters without the numbers of their lines."""

from __future__ import annotations

import msgspec

from aof.core.documents.charter import model

TEAM = model.Charter(
    session_id="2026-03-02-alpha",
    date="2026-03-02",
    project="demo",
    milestone="First release",
    risk_tier="Medium",
    roster=(
        model.Participant(role="Maintainer", agent="pm", model="human"),
        model.Participant(role="Developer", agent="ada", model="any", lane="api"),
        model.Participant(role="Developer", agent="bob", model="any", lane="docs"),
    ),
    lanes=(
        model.CharterLane(name="api", owner="ada", patterns=("src/api/**",)),
        model.CharterLane(name="docs", owner="bob", patterns=("docs/**",)),
        model.CharterLane(name="Shared log", owner="All agents", patterns=("WORKLOG.md",)),
    ),
    governance=model.Governance(merge_policy="after review", test_policy="all green"),
    gates=(
        model.Gate(band="auto", scope=("documentation",)),
        model.Gate(band="delay", scope=("tag:refactor",), delay_seconds=1800),
        model.Gate(band="approval", scope=("tag:release", "risk:high")),
    ),
    acceptance=("All tests pass",),
    handshakes=(
        model.Signature(agent="ada", role="Developer", lane="api"),
        model.Signature(agent="bob", role="Developer", lane="docs"),
    ),
    checklist=tuple(model.Item(text=text, done=False) for text in model.KICKOFF),
)


def without_lines(charter: model.Charter) -> model.Charter:
    """The same with all lines as 0."""
    replace = msgspec.structs.replace
    parts = {
        name: tuple(replace(one, line=0) for one in getattr(charter, name))
        for name in ("roster", "lanes", "gates", "handshakes", "checklist")
    }
    return replace(charter, **parts)
