"""A person at a terminal is asked for the charter; others give options."""

from __future__ import annotations

from pathlib import Path

from aof.service.bootstrap import init_data_dir, open_fabric
from tests.support.command_line import Aof
from tests.support.terminal import Terminal

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
