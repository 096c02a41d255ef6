"""The examples of the how-to pages run as they stand."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path

import ryaml

from aof.config import load_settings
from aof.core.org.chart.validation import judge
from aof.entrypoints.bootstrap import open_fabric
from aof.entrypoints.delivery import configured
from aof.entrypoints.trust import trust_data_dir
from tests.support.repository import ROOT
from tests.support.served import aof
from tests.support.service import Up, directory

DOCS = ROOT / "docs/howto"


def blocks(page: str, language: str) -> list[str]:
    """The code of a page."""
    return re.findall(rf"```{language}\n(.*?)```", (DOCS / page).read_text(encoding="utf-8"), flags=re.DOTALL)


def test_the_agents_of_the_page_do_what_it_says(tmp_path: Path) -> None:
    pulling, careless, delegating, started, printing = blocks("write-an-agent.md", "python")
    for name, code in (("started", started), ("printing", printing)):
        (tmp_path / f"{name}.py").write_text(code, encoding="utf-8")
    commands = {name: [sys.executable, f"{name}.py"] for name in ("started", "printing")}
    root = directory(tmp_path, {**commands, "swe-backend": {}, "careless": {}, "lead": {}, "qa": {}})
    with open_fabric(root, actor="pm") as fabric:
        ids = {
            name: fabric.create(f"For {name}", agent=name).task_id
            for name in ("swe-backend", "careless", "started", "printing")
        }
        said = [
            subprocess.run(
                [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True, timeout=60
            ).stdout
            for code in (pulling, careless, delegating)
        ]
        assert said == ["I do For swe-backend\n", "reported as exception\n", "review\n"]
        with Up(root, "--once") as up:
            assert up.finish() == 0
        status = {name: fabric.get(task_id).status for name, task_id in ids.items()}
    assert status == {"swe-backend": "review", "careless": "ready", "started": "review", "printing": "review"}


def test_the_chart_of_the_page_is_a_good_one() -> None:
    (text,) = blocks("run-agents.md", "yaml")
    judged = judge(ryaml.loads(text))
    assert not judged.findings
    chart = judged.chart
    assert chart is not None
    assert [agent.id for agent in chart.agents] == ["claude", "codex", "script", "ada"]
    assert chart.by_id["codex"].runner.command[-1] == "-"


def test_the_chart_of_the_reviews_page_has_every_role_that_its_workflow_needs(tmp_path: Path) -> None:
    workflow, text = blocks("gate-work-with-reviews.md", "yaml")
    judged = judge(ryaml.loads(text))
    assert not judged.findings
    root = directory(tmp_path, {})
    (root / "org/org-chart.yaml").write_text(text, encoding="utf-8")
    (root / "workflows").mkdir(exist_ok=True)
    (root / "workflows/review.yaml").write_text(workflow, encoding="utf-8")
    trust_data_dir(root)
    with open_fabric(root, actor="pm") as fabric:
        assert [report.findings for report in fabric.workflow_check()] == [()]
        task_id = fabric.create("Add refresh endpoint", workflow="review").task_id
        (action,) = fabric.tick(dry_run=True).actions
    assert (action.task_id, action.hop, action.agent) == (task_id, "implement", "ada")


def test_the_commands_of_the_mail_page_work_as_they_stand(tmp_path: Path) -> None:
    now = datetime.now(tz=UTC).strftime("%Y%m%d")
    script = "\n".join(blocks("leave-mail-for-an-agent.md", "sh")).replace("20260221", now)
    aof = f'aof() {{ {shlex.quote(sys.executable)} -m aof "$@"; }}\nset -e\naof init\n'
    done = subprocess.run(
        ["bash", "-c", aof + script], cwd=tmp_path, capture_output=True, text=True, check=False, timeout=300
    )
    assert done.returncode == 0, done.stderr
    assert "port 8080" in done.stdout
    assert done.stdout.endswith("MAILBOX.md is in order\n")


def test_the_commands_of_the_schedule_page_work_as_they_stand(tmp_path: Path) -> None:
    script = "\n".join(blocks("schedule-work.md", "sh"))
    aof = f'aof() {{ {shlex.quote(sys.executable)} -m aof "$@"; }}\nset -e\naof init\n'
    done = subprocess.run(
        ["bash", "-c", aof + script], cwd=tmp_path, capture_output=True, text=True, check=False, timeout=300
    )
    assert done.returncode == 0, done.stderr
    assert "ended, 2 of 2 items" in done.stdout
    assert done.stdout.endswith("translate  removed; its tasks stay\n")


def test_the_commands_about_other_tools_work_as_they_stand(tmp_path: Path) -> None:
    script = "\n".join(blocks("move-from-other-tools.md", "sh"))
    (tmp_path / ".beads").mkdir()
    (tmp_path / ".beads/issues.jsonl").write_text(
        '{"id": "bd-1", "title": "One", "status": "closed", "labels": ["api"]}\n{"id": "bd-2", "title": "Two"}\n'
    )
    aof = f'aof() {{ {shlex.quote(sys.executable)} -m aof "$@"; }}\nset -e\naof init\n'
    done = subprocess.run(
        ["bash", "-c", aof + script], cwd=tmp_path, capture_output=True, text=True, check=False, timeout=300
    )
    assert done.returncode == 0, done.stderr
    assert "2 would be created, 0 here already, 0 refused" in done.stdout
    assert "2 created, 0 here already, 0 refused" in done.stdout
    assert (tmp_path / "tasks.csv").read_text().count("\n") == 2
    assert "1 would change, 0 unchanged, 0 refused" in done.stdout


def test_the_channels_of_the_notification_page_can_be_used(tmp_path: Path) -> None:
    channels, local = blocks("get-notified.md", "toml")
    for text in (channels, local):
        (tmp_path / "aof.toml").write_text(text, encoding="utf-8")
        settings = load_settings(str(tmp_path))
        assert [one.plan.name for one in configured(str(tmp_path), settings)] == (
            ["team", "on-call"] if text is channels else []
        )
        assert bool(settings.notify.command) == (text is local)


def test_the_commands_of_the_charter_page_work(tmp_path: Path) -> None:
    root = directory(tmp_path, {})
    subprocess.run(["git", "-C", str(tmp_path), "init", "-q"], check=True)
    git = ["git", "-C", str(tmp_path), "-c", "user.name=a", "-c", "user.email=a@b"]
    subprocess.run([*git, "commit", "-q", "--allow-empty", "-m", "begin"], check=True)
    with open_fabric(root, actor="pm") as fabric:
        fabric.worklog_add(
            "proposal.created",
            agent="ada",
            subject="x",
            scope="x",
            proposal="x",
            risks=["x"],
            rollback="x",
            deadline="x",
        )
        raised = {"other": "ada", "recommended": "JSON", "counter": "CSV", "reasons": ["people read it"]}
        dispute = fabric.worklog_add("objection.raised", agent="bob", subject="CSV", **raised).event_id  # type: ignore[arg-type]
    shell = "".join(blocks("work-with-a-charter.md", "bash")).replace("\\\n", " ")
    for line in shell.splitlines():
        words = [word.replace("WL-0123456789abcdef", dispute) for word in shlex.split(line, comments=True)[1:]]
        done = aof(root, *words, AOF_ACTOR="pm")
        expected = 1 if words[:2] == ["charter", "check"] else 0  # the kickoff checklist is open
        assert done.returncode == expected, (line, done.stdout, done.stderr)
