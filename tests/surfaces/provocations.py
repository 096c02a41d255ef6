"""A call that provokes each error: what is set up by somebody else, and what the caller `tester` then asks.

Every code of the tree of errors is here, or has a reason why no call over a surface provokes it.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec

from aof.api.fabric import Fabric
from tests.support.service import workflow
from tests.support.workflows import hop, template
from tests.surfaces.scripts import MISSING

WHO = "tester"
Asked = tuple[str, dict[str, Any]]


class Scene(msgspec.Struct, frozen=True):
    """The data directory that is provoked, and the fabric of the maintainer who sets things up."""

    root: Path
    fabric: Fabric
    _numbers: Iterator[int] = msgspec.field(default_factory=itertools.count)

    def new(self, word: str) -> str:
        """A name that nothing has yet."""
        return f"{word}-{next(self._numbers)}"

    def task(self, **given: Any) -> str:
        """A task that is ready."""
        return self.fabric.create("Do it", **({"brief": "All of it.\n"} | given)).task_id

    def held(self, agent: str = "bob", **given: Any) -> str:
        """A task that an agent works on."""
        task_id = self.task(**given)
        self.fabric.claim(task_id, agent=agent)
        return task_id

    def gated(self) -> str:
        """A task in a workflow."""
        workflow(self.root, template(hop("a"), hop("b", "a")))
        return self.task(workflow="flow")

    def again(self) -> str:
        """A task that the caller holds for the second time."""
        task_id = self.held(WHO)
        self.fabric.release(task_id, agent=WHO)
        self.fabric.claim(task_id, agent=WHO)
        return task_id

    def handoff(self, kind: str = "delegation", to: str = WHO, **given: Any) -> str:
        """A handoff that waits for its answer."""
        task_id = given.pop("task_id", None) or self.task()
        asked = {"from_agent": "ada", "to": [to], "reason": "needs a test", "timeout": "5m"} | given
        started = self.fabric.handoff_new(type=kind, task_id=task_id, **asked)
        return str(started.handoff_id)

    def accepted(self, **given: Any) -> str:
        """One that was accepted."""
        handoff_id = self.handoff(**given)
        self.fabric.handoff_accept(handoff_id, agent=WHO)
        return handoff_id

    def mail(self, to: str = WHO, **given: Any) -> str:
        """A message."""
        return self.fabric.mail_send(to, "Which port?", **({"from_agent": "bob"} | given)).message_id


Provoke = Callable[[Scene], Asked]


def _waits_for_an_answer(scene: Scene) -> Asked:
    task_id = scene.held(WHO)
    scene.fabric.ask(task_id, text="May I?", agent=WHO)
    return "complete", {"task_id": task_id, "summary": "done"}


def _all_taken(scene: Scene) -> Asked:
    for row in scene.fabric.ready(limit=1000).tasks:
        scene.fabric.claim(row.id, agent="bob")
    return "claim", {"agent": WHO}


def _parent_of_open(scene: Scene) -> Asked:
    task_id = scene.held(WHO)
    scene.task(parent_id=task_id)
    return "complete", {"task_id": task_id}


def _lost_key(scene: Scene) -> Asked:
    key = scene.new("key")
    scene.fabric.as_actor(WHO).create("Do it", key=key)
    return "create", {"title": "Do that", "brief": "x", "key": key}


def _stale_base(scene: Scene) -> Asked:
    task_id = scene.held(WHO)
    mine = scene.fabric.as_actor(WHO)
    for value in ("a", "b"):
        mine.context_set(task_id, variables={"plan": value}, scope="shared")
    return "context_set", {"task_id": task_id, "variables": {"plan": "c"}, "base": 1}


def _locked_file(scene: Scene) -> Asked:
    folder, other = scene.new("src"), scene.held("bob")
    scene.fabric.lock(f"{folder}/api.py", task_id=other, run=_run(scene, other))
    return "lock", {"path": folder, "task_id": scene.held(WHO)}


def _run(scene: Scene, task_id: str) -> str:
    lease = scene.fabric.get(task_id).lease
    assert lease is not None
    return lease.run_id


def _over(scene: Scene) -> Asked:
    task_id = scene.held(WHO)
    run = _run(scene, task_id)
    scene.fabric.release(task_id, agent=WHO)
    return "heartbeat", {"task_id": task_id, "run": run}


def _returned(scene: Scene) -> Asked:
    handoff_id = scene.accepted()
    scene.fabric.handoff_return(handoff_id, agent=WHO, status="success", result="done")
    return "handoff_return", {"handoff_id": handoff_id, "agent": WHO, "status": "success"}


def _closed_handoff(scene: Scene) -> Asked:
    handoff_id = scene.handoff(to="bob", from_agent=WHO)
    scene.fabric.handoff_accept(handoff_id, agent="bob")
    scene.fabric.handoff_return(handoff_id, agent="bob", status="success", result="done")
    return "handoff_reroute", {"handoff_id": handoff_id, "reason": "away"}


def _settled(scene: Scene) -> Asked:
    raised: dict[str, Any] = {"other": "ada", "recommended": "JSON", "counter": "CSV", "reasons": ["people read it"]}
    dispute = scene.fabric.worklog_add("objection.raised", agent=WHO, subject=scene.new("CSV"), **raised).event_id
    scene.fabric.conflict_settle(dispute, text="use CSV")
    return "conflict_settle", {"conflict_id": dispute, "text": "again"}


def _actioned(scene: Scene) -> Asked:
    message_id = scene.mail()
    scene.fabric.mail_ack(message_id, agent=WHO, reason="read")
    scene.fabric.mail_action(message_id, agent=WHO, reason="done")
    return "mail_ack", {"message_id": message_id, "reason": "read"}


def _closed_mail(scene: Scene) -> Asked:
    message_id = scene.mail()
    scene.fabric.mail_close(message_id, agent="bob", disposition="withdrawn", reason="never mind")
    return "mail_escalate", {"message_id": message_id, "reason": "no answer"}


_REVIEW: dict[str, Any] = {"review_scope": "full", "topic": "login", "files": ["src/login.py"], "ask": "review-only"}


def _unnamed_revision(scene: Scene) -> Asked:
    message_id = scene.mail(type="request", payload="new text\n", **_REVIEW)
    return "mail_ack", {"message_id": message_id, "reason": "good"}


def _first_part(scene: Scene) -> Asked:
    message_id = scene.mail(type="request", payload="1\n", part="1/3", **_REVIEW)
    body = scene.fabric.mail_show(message_id).body
    revision = next(line.partition(": ")[2] for line in body.split("\n") if line.startswith("Revision"))
    return "mail_ack", {"message_id": message_id, "reason": "good", "revision": revision}


def _twice(scene: Scene) -> Asked:
    job_id = scene.new("nightly")
    scene.fabric.job_add(job_id, title="Check", cron="@daily")
    return "job_add", {"job_id": job_id, "title": "Check", "cron": "@daily"}


def _cycle(scene: Scene) -> Asked:
    first = scene.task()
    return "dep_add", {"task_id": first, "blocker_id": scene.task(depends_on=[first])}


def _below_a_cancelled(scene: Scene) -> Asked:
    above = scene.task()
    scene.fabric.cancel(above)
    return "create", {"title": "Below", "brief": "x", "parent_id": above}


def _busy(scene: Scene) -> Asked:
    resource = scene.new("gpu")
    scene.held(resource=resource)
    return "claim", {"task_id": scene.task(resource=resource), "agent": WHO}


def _broken_file(scene: Scene) -> Asked:
    task_id = scene.task()
    path = scene.root / "tasks" / "ready" / f"{task_id}.md"
    path.write_text(path.read_text().replace("title: ", "title: [", 1))
    return "edit", {"task_id": task_id, "title": "Do that"}


def _for_another(scene: Scene) -> Asked:
    task_id = scene.task()
    scene.fabric.handoff_accept(scene.handoff(to="bob", task_id=task_id), agent="bob")
    return "claim", {"task_id": task_id, "agent": WHO}


def _already_handed(scene: Scene) -> Asked:
    task_id = scene.task()
    scene.handoff(to="bob", task_id=task_id, from_agent=WHO)
    return "handoff_new", {
        "type": "delegation", "task_id": task_id, "to": ["bob"], "reason": "again", "timeout": "5m",
    }  # fmt: skip


def _unreadable_workflow(scene: Scene) -> Asked:
    (scene.root / "workflows").mkdir(exist_ok=True)
    (scene.root / "workflows/broken.yaml").write_text(json.dumps({"name": "broken", "hops": []}))
    return "create", {"title": "Do it", "brief": "x", "workflow": "broken"}


def _questioned(scene: Scene, *texts: str) -> str:
    task_id = scene.held("bob")
    for text in texts:
        scene.fabric.ask(task_id, text=text, agent="bob")
    return task_id


def _answered_before(scene: Scene) -> Asked:
    task_id = _questioned(scene, "Which?")
    scene.fabric.answer(task_id, text="this")
    return "answer", {"task_id": task_id, "text": "that"}


PLAIN: dict[str, Provoke] = {
    "already_answered": _answered_before,
    "no_question": lambda scene: ("answer", {"task_id": scene.held("bob"), "text": "that"}),
    "question_required": lambda scene: ("answer", {"task_id": _questioned(scene, "Which?", "How?"), "text": "that"}),
    "invalid": lambda scene: ("edit", {"task_id": scene.task()}),
    "payload_too_large": lambda scene: ("create", {"title": "x" * 501, "brief": "x"}),
    "task_not_found": lambda _scene: ("show", {"task_id": MISSING}),
    "ambiguous_id": lambda scene: ("show", {"task_id": scene.task()[: len("TASK-2026")]}),
    "already_claimed": lambda scene: ("claim", {"task_id": scene.held(), "agent": WHO}),
    "not_ready": lambda scene: ("claim", {"task_id": scene.task(metadata={"draft": True}), "agent": WHO}),
    "nothing_ready": _all_taken,
    "not_lease_holder": lambda scene: ("complete", {"task_id": scene.held()}),
    "stale_lease": _over,
    "run_required": lambda scene: ("complete", {"task_id": scene.again(), "summary": "done"}),
    "invalid_transition": lambda scene: ("archive", {"task_id": scene.task()}),
    "dependency_cycle": _cycle,
    "children_open": _parent_of_open,
    "task_running": lambda scene: ("dep_add", {"task_id": scene.held(WHO), "blocker_id": scene.task()}),
    "cancel_requested": _below_a_cancelled,
    "resource_busy": _busy,
    "key_conflict": _lost_key,
    "revision_conflict": lambda scene: ("edit", {"task_id": scene.task(), "title": "Do that", "expect_rev": 1}),
    "no_such_attempt": lambda scene: ("output", {"task_id": scene.task(), "attempt": 7}),
    "not_reconciled": lambda scene: (
        "complete",
        {"task_id": scene.held(WHO, review=False, acceptance=["it works"])},
    ),
    "unreadable_task": _broken_file,
    "reserved": lambda scene: (
        "claim", {"task_id": scene.fabric.as_actor(WHO).create("Do it", brief="x", agent="bob").task_id, "agent": WHO},
    ),
    "question_open": _waits_for_an_answer,
    "outcome_required": lambda scene: ("complete", {"task_id": scene.gated(), "outcome": "maybe"}),
    "workflow_not_found": lambda _scene: ("workflow_show", {"name": "nothing"}),
    "invalid_workflow": _unreadable_workflow,
    "handoff_not_found": lambda _scene: ("handoff_show", {"handoff_id": "HO-1999-01-01-001-1"}),
    "handoff_not_accepted": lambda scene: (
        "handoff_return", {"handoff_id": scene.handoff(), "agent": WHO, "status": "success"},
    ),
    "not_addressee": lambda scene: ("handoff_accept", {"handoff_id": scene.handoff(to="bob"), "agent": WHO}),
    "already_returned": _returned,
    "handoff_closed": _closed_handoff,
    "handed_over": _for_another,
    "handoff_open": _already_handed,
    "segment_open": lambda scene: (
        "handoff_new",
        {"type": "sequential", "task_id": scene.held(WHO), "to": ["bob"], "reason": "next", "segment_complete": False},
    ),
    "context_conflict": _stale_base,
    "out_of_scope": lambda scene: (
        "context_set", {"task_id": scene.held(WHO), "variables": {"own": 1}, "scope": "bob"},
    ),
    "file_locked": _locked_file,
    "lock_required": lambda scene: ("context_artifact", {"task_id": scene.held(WHO), "path": scene.new("src/other")}),
    "message_not_found": lambda _scene: ("mail_show", {"message_id": "MSG-19990101-001"}),
    "not_receiver": lambda scene: ("mail_ack", {"message_id": scene.mail("bob", from_agent=WHO), "reason": "read"}),
    "not_closer": lambda scene: (
        "mail_close", {"message_id": scene.mail(), "disposition": "resolved", "reason": "x"},
    ),
    "message_closed": _closed_mail,
    "status_not_allowed": _actioned,
    "revision_mismatch": _unnamed_revision,
    "missing_part": _first_part,
    "malformed_payload": lambda _scene: (
        "mail_send", {"to": "bob", "subject": "Look", "payload": "x\n" * 302, **_REVIEW},
    ),
    "job_not_found": lambda _scene: ("job_show", {"job_id": "nothing"}),
    "job_exists": _twice,
    "conflict_not_found": lambda _scene: ("conflict_show", {"conflict_id": "PROP-404"}),
    "conflict_settled": _settled,
    "not_allowed": lambda _scene: ("mail_archive", {"days": 0}),
    "no_charter": lambda _scene: ("charter_show", {}),
}  # fmt: skip

CHART = {
    "schemaVersion": 1,
    "agents": [
        {"id": WHO, "team": "eng", "roles": ["developer"], "concurrency": 1, "autonomy": {"level": 2}},
        {"id": "bob", "team": "eng", "roles": ["reviewer"], "concurrency": 9, "autonomy": {"level": 2}},
        {"id": "low", "team": "eng", "roles": ["developer"], "concurrency": 9, "autonomy": {"level": 0}},
        {"id": "gone", "team": "eng", "roles": ["developer"], "active": False},
    ],
    "teams": [{"id": "eng", "lead": "bob"}],
    "roles": {"developer": {"agents": [WHO, "low"]}, "reviewer": {"agents": ["bob"]}},
}


def _free(scene: Scene) -> None:
    """Let the caller hold nothing."""
    for row in scene.fabric.list(status="in-progress", agent=WHO).tasks:
        scene.fabric.cancel(row.id)


def _one_too_many(scene: Scene) -> Asked:
    _free(scene)
    scene.held(WHO)
    return "claim", {"task_id": scene.task(), "agent": WHO}


def _for_bob_only(scene: Scene) -> Asked:
    _free(scene)
    return "claim", {"task_id": scene.task(role="reviewer"), "agent": WHO}


def _own_work(scene: Scene) -> Asked:
    _free(scene)
    task_id = scene.held(WHO)
    scene.fabric.complete(task_id, agent=WHO)
    return "approve", {"task_id": task_id}


def _of_another_role(scene: Scene) -> Asked:
    _free(scene)
    workflow(scene.root, template(hop("look", role="reviewer"), name="looked"))
    return "claim", {"task_id": scene.task(workflow="looked"), "agent": WHO}


def _delegated(scene: Scene, to: str, **given: Any) -> Asked:
    task_id = scene.fabric.as_actor(WHO).create("Do it", brief="x").task_id
    asked = {"type": "delegation", "task_id": task_id, "to": [to], "reason": "needs a test", "timeout": "5m"}
    return "handoff_new", asked | given


def _own_question(scene: Scene) -> Asked:
    _free(scene)
    task_id = scene.fabric.as_actor(WHO).create("Do it", brief="x").task_id
    scene.fabric.claim(task_id, agent=WHO)
    scene.fabric.ask(task_id, text="May I?", agent=WHO)
    return "answer", {"task_id": task_id, "text": "yes"}


CHARTED: dict[str, Provoke] = {
    "self_answer": _own_question,
    "at_capacity": _one_too_many,
    "not_routed": _for_bob_only,
    "own_work": _own_work,
    "wrong_role": _of_another_role,
    "budget_too_small": lambda scene: _delegated(scene, "low", autonomy_budget=2, risk="low"),
}

_FAMILY = "a family of errors: what is raised has a code of its own"
_MACHINE = "the machine, the disk or the data directory is unfit; tests/faults and tests/cli/test_wrong_states.py"
_CHART = "needs an org chart, and callers that it binds; tests/app/org, tests/contracts/test_handoffs.py"
_ANSWER = "the reason of a refused message: `send` answers for each, and fails for none"
NOT_BY_A_CALL: dict[str, str] = {
    **dict.fromkeys(("conflict", "internal", "not_found", "refused", "unavailable"), _FAMILY),
    **dict.fromkeys(
        (
            "commit_unknown", "disk_full", "link_refused", "lock_timeout", "log_damaged", "log_line_endings",
            "log_poisoned", "no_data_directory", "read_only", "settings_unusable", "storage_failed", "unmerged_paths",
            "merge_pending", "unmergeable_history", "lane_refused", "log_rewritten",
            "unsupported_filesystem", "unsupported_version", "another_task", "id_taken", "jobs_unreadable",
            "unreadable_message", "edit_waits", "nothing_waits", "invalid_run_result", "runner_failed",
            "unusable_org_chart",
        ),
        _MACHINE,
    ),
    **dict.fromkeys(
        (
            "agent_inactive", "approval_required", "budget_exceeded", "capability_mismatch", "escalation_depth",
            "no_return_expected", "no_route", "review_required", "stale_handoff",
        ),
        _CHART,
    ),
    **dict.fromkeys(
        (
            "invalid_envelope", "invalid_json", "nested_delegation", "parent_not_found", "taskId_mismatch",
            "too_many_messages",
        ),
        _ANSWER,
    ),
    "not_claimed": "of sessions only, the command line claims at once; tests/surfaces/test_claims.py",
    "charter_exists": "only a maintainer comes that far; tests/app/documents/charter",
    "not_undoable": "needs a change that cannot be undone; tests of undo",
    "actor_mismatch": "depends on how the caller has proven itself; tests/surfaces/test_identity.py",
    "too_many_requests": "the server's limits; tests/adapters/http/limits",
    "unauthenticated": "no token, or no secret of a run; tests/http/test_guard.py, test_secret.py",
    "rebuttal_late": "needs cycles of a WORKLOG; tests/app/documents",
    "rebuttal_used": "needs cycles of a WORKLOG; tests/app/documents",
    "workflow_not_attached": "never seen from outside: the dispatcher attaches the workflow and goes on",
}  # fmt: skip
