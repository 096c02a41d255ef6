"""A claim that outlives its session: clients that open a session for each call can claim, work and complete."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from aof.api.call import Caller, parameters, perform
from aof.api.catalogue import BY_NAME
from aof.api.fabric import Fabric
from aof.kernel.model import millis
from aof.workflows.model import leases
from tests.support.messages import update
from tests.support.present import present
from tests.support.service import workflow
from tests.support.waiting import eventually
from tests.support.workflows import hop, template
from tests.surfaces.doors import (
    Refusal,
    http_server,
    mcp_over_http,
    mcp_session,
    new_token,
    of_tool,
    refusal_of,
    root_of,
)

HOUR = 3_600_000


def _once(fabric: Fabric, tool: str, /, *words: str, actor: str = "ada", **given: Any) -> Any:
    """One call in a session of its own, on a server process of its own."""
    with mcp_session(root_of(fabric), words=words, actor=actor) as (portal, client):
        return of_tool(portal.call(client.call_tool, tool, given))


@contextmanager
def _over_http(url: str, token: str, mode: str, **headers: str) -> Iterator[Any]:
    with mcp_over_http(url, token, mode, **headers) as (portal, client):
        yield lambda tool, **given: of_tool(portal.call(client.call_tool, tool, given))


@pytest.mark.parametrize("how", ["the claim says so", "the connection says so"])
def test_on_stdio_a_kept_claim_is_worked_on_and_completed_in_later_processes(fabric: Fabric, how: str) -> None:
    task_id = fabric.create("Over several sessions", review=False).task_id
    fabric.release(task_id, run=fabric.claim(task_id, agent="ada").run_id)  # a name alone would not be enough
    words = ("--keep",) if how == "the connection says so" else ()
    keep: dict[str, Any] = {} if words else {"keep": True}
    claimed = _once(fabric, "aof_task_claim", *words, taskId=task_id, **keep)
    assert claimed["kept"]
    assert millis(claimed["expiresAt"]) - fabric.now() > HOUR * 0.9
    assert fabric.get(task_id).status == "in-progress"
    again = _once(fabric, "aof_task_claim", *words, taskId=task_id, **keep)
    assert (again["runId"], again["held"]) == (claimed["runId"], True)
    refusal_of(
        _once(fabric, "aof_task_complete", *words, actor="bob", taskId=task_id, summary="Mine."), "not_lease_holder"
    )
    assert _once(fabric, "aof_task_update", *words, taskId=task_id, body="# Half\n")["bodyUpdated"]
    assert _once(fabric, "aof_task_complete", *words, taskId=task_id, summary="Whole.")["status"] == "done"
    assert fabric.get(task_id).last_run == claimed["runId"]


def test_on_stdio_a_claim_that_refuses_to_be_kept_ends_with_its_session(fabric: Fabric) -> None:
    task_id = fabric.create("One session").task_id
    claimed = _once(fabric, "aof_task_claim", "--keep", taskId=task_id, keep=False)
    assert "kept" not in claimed
    eventually(lambda: fabric.get(task_id).lease is None)
    assert present(fabric.get(task_id).last_error).code == "no_completion_report"


@pytest.mark.parametrize("mode", ["legacy", "auto"])
@pytest.mark.parametrize("secrets", ["asked for", "not asked for"])
def test_over_http_the_token_is_what_a_kept_claim_is_known_by(fabric: Fabric, mode: str, secrets: str) -> None:
    root = root_of(fabric)
    if secrets == "asked for":
        (root / "aof.toml").write_text('schemaVersion = 1\nmaintainers = ["pm"]\n[identity]\nrequireSecret = true\n')
    task_id = fabric.create("By token", review=False).task_id
    ada, eve = (new_token(root, name, "agent") for name in ("ada", "eve"))
    with http_server(root) as url:
        with _over_http(url, ada, mode, **{"AOF-Keep": "true"}) as ask:
            claimed = ask("aof_task_claim", taskId=task_id)
        assert claimed["kept"]
        assert "secret" not in claimed
        with _over_http(url, eve, mode) as ask:
            assert ask("aof_task_complete", taskId=task_id).code in ("not_lease_holder", "unauthenticated")
            assert ask("aof_task_complete", taskId=task_id, run=claimed["runId"]).code in (
                "actor_mismatch",
                "unauthenticated",
            )
        with _over_http(url, ada, mode) as ask:
            assert ask("aof_task_claim", taskId=task_id)["runId"] == claimed["runId"]
        with _over_http(url, ada, mode) as ask:
            assert ask("aof_task_complete", taskId=task_id, summary="Done.")["status"] == "done"


def test_a_look_at_the_task_renews_a_kept_claim_for_its_holder_only(fabric: Fabric) -> None:
    task_id = fabric.create("Looked at").task_id
    fabric.as_actor("ada").claim(task_id, agent="ada", keep=True, ttl=60)
    first = fabric.lease_ends([task_id])[task_id]
    _once(fabric, "aof_task_show", actor="bob", taskId=task_id)
    assert fabric.lease_ends([task_id])[task_id] == first
    _once(fabric, "aof_task_show", taskId=task_id)
    assert fabric.lease_ends([task_id])[task_id] > first


def test_a_token_that_may_only_read_does_not_renew_a_kept_claim_of_its_name(fabric: Fabric) -> None:
    task_id = fabric.create("Watched").task_id
    fabric.as_actor("ada").claim(task_id, agent="ada", keep=True, ttl=60)
    first = fabric.lease_ends([task_id])[task_id]
    watcher = Caller("ada", "reader", proven=True, scope="read")
    show = BY_NAME["show"]
    perform(fabric, show, parameters(show, {"taskId": task_id}), watcher)
    assert fabric.lease_ends([task_id])[task_id] == first
    perform(fabric, show, parameters(show, {"taskId": task_id}), Caller("ada", "agent", proven=True, scope="work"))
    assert fabric.lease_ends([task_id])[task_id] > first


def test_where_secrets_are_asked_for_a_session_without_a_token_cannot_keep_a_claim(fabric: Fabric) -> None:
    (root_of(fabric) / "aof.toml").write_text('maintainers = ["pm"]\n[identity]\nrequireSecret = true\n')
    task_id = fabric.create("Proven").task_id
    refused = _once(fabric, "aof_task_claim", "--keep", taskId=task_id)
    assert isinstance(refused, Refusal)
    assert (refused.code, fabric.get(task_id).status) == ("unauthenticated", "ready")
    assert _once(fabric, "aof_task_claim", "--keep", taskId=task_id, keep=False)["runId"]


@pytest.mark.parametrize("gated", [False, True])
def test_on_a_connection_that_keeps_claims_a_run_begun_by_an_update_is_kept_too(fabric: Fabric, *, gated: bool) -> None:
    if gated:
        workflow(root_of(fabric), template(hop("build"), name="one"))
    task_id = fabric.create("Begun", review=False, workflow="one" if gated else None).task_id
    _once(fabric, "aof_task_update", "--keep", taskId=task_id, status="in-progress")
    (begun,) = leases(fabric.get(task_id))
    assert begun.kept_by == "ada"
    assert millis(begun.expires_at) - fabric.now() > HOUR * 0.9
    assert _once(fabric, "aof_task_complete", "--keep", taskId=task_id, outcome="complete")["status"] == "done"


def test_on_a_connection_that_keeps_claims_a_run_begun_by_a_message_or_an_acceptance_is_kept_too(
    fabric: Fabric,
) -> None:
    by_message, handed = (fabric.create(title, review=False).task_id for title in ("By message", "Handed over"))
    sent = _once(fabric, "aof_send", "--keep", messages=[update(by_message, status="in-progress")])
    assert "error" not in sent["results"][0]
    run = fabric.claim(handed, agent="pm").run_id
    given = fabric.handoff_new(
        type="sequential", task_id=handed, reason="Yours.", to=["ada"], segment_complete=True, run=run
    )
    _once(fabric, "aof_handoff_accept", "--keep", handoffId=given.handoff_id)
    for task_id in (by_message, handed):
        lease = present(fabric.get(task_id).lease)
        assert (lease.agent, lease.kept_by) == ("ada", "ada")


def test_where_a_claim_cannot_be_kept_the_hint_shows_one_that_is_not(fabric: Fabric) -> None:
    (root_of(fabric) / "aof.toml").write_text('maintainers = ["pm"]\n[identity]\nrequireSecret = true\n')
    task_id = fabric.create("Proven").task_id
    refused = _once(fabric, "aof_task_claim", "--keep", taskId=task_id)
    shown = json.loads(refused.hint[refused.hint.index("aof_task_claim(") + len("aof_task_claim(") : -1])
    assert _once(fabric, "aof_task_claim", "--keep", **shown)["taskId"] == task_id
    begun = fabric.create("Begun").task_id
    assert _once(fabric, "aof_task_update", "--keep", taskId=begun, status="in-progress")["transitioned"]
    eventually(lambda: fabric.get(begun).lease is None)
