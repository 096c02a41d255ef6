"""A small team's charter, and charters without the numbers of their lines."""

from __future__ import annotations

import msgspec

from aof.documents import charter_rules

TEAM = charter_rules.Charter(
    session_id="2026-03-02-alpha",
    date="2026-03-02",
    project="demo",
    milestone="First release",
    risk_tier="Medium",
    roster=(
        charter_rules.Participant(role="Maintainer", agent="pm", model="human"),
        charter_rules.Participant(role="Developer", agent="ada", model="any", lane="api"),
        charter_rules.Participant(role="Developer", agent="bob", model="any", lane="docs"),
    ),
    lanes=(
        charter_rules.CharterLane(name="api", owner="ada", patterns=("src/api/**",)),
        charter_rules.CharterLane(name="docs", owner="bob", patterns=("docs/**",)),
        charter_rules.CharterLane(name="Shared log", owner="All agents", patterns=("WORKLOG.md",)),
    ),
    governance=charter_rules.Governance(merge_policy="after review", test_policy="all green"),
    gates=(
        charter_rules.Gate(band="auto", scope=("documentation",)),
        charter_rules.Gate(band="delay", scope=("tag:refactor",), delay_seconds=1800),
        charter_rules.Gate(band="approval", scope=("tag:release", "risk:high")),
    ),
    acceptance=("All tests pass",),
    handshakes=(
        charter_rules.Signature(agent="ada", role="Developer", lane="api"),
        charter_rules.Signature(agent="bob", role="Developer", lane="docs"),
    ),
    checklist=tuple(charter_rules.Item(text=text, done=False) for text in charter_rules.KICKOFF),
)


def without_lines(charter: charter_rules.Charter) -> charter_rules.Charter:
    """The same with all lines as 0."""
    replace = msgspec.structs.replace
    parts = {
        name: tuple(replace(one, line=0) for one in getattr(charter, name))
        for name in ("roster", "lanes", "gates", "handshakes", "checklist")
    }
    return replace(charter, **parts)
