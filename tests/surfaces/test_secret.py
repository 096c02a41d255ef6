"""The secret of a run: whoever sends it is the run's agent, on every surface, and nobody else can say to be."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from hashlib import sha256
from pathlib import Path
from typing import Any

import httpx
import pytest

import aof
from aof.api.call import wire_names
from aof.api.fabric import Fabric
from aof.errors import AofError, Call
from aof.service.bootstrap import init_data_dir, open_fabric
from aof.surfaces.mcp.tools import SECRETS
from tests.support.desk import contents
from tests.support.messages import report
from tests.support.present import present
from tests.support.service import chart
from tests.surfaces.doors import (
    Answer,
    OnTheCommandLine,
    OverHttp,
    OverMcp,
    Refusal,
    answer_of,
    code_of,
    http_server,
    mcp_on,
    mcp_over_http,
    mcp_session,
    new_token,
    root_of,
)

Ask = Callable[..., Answer]
Sends = Callable[[str], Ask]
SURFACES = ("python", "cli", "mcp", "http")


@pytest.fixture(scope="module")
def fabric(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Fabric]:
    """A data directory with two workers and a reviewer."""
    root = Path(init_data_dir(tmp_path_factory.mktemp("secret") / ".aof")[0])
    (root / "aof.toml").write_text("[storage]\nlockTimeout = 1\n")
    chart(root, {"ada": {"concurrency": 99}, "bob": {"concurrency": 99}, "rita": {"roles": ["reviewer"]}})
    with open_fabric(root, actor="pm") as fabric:
        yield fabric


@pytest.fixture(scope="module")
def server(fabric: Fabric) -> Iterator[tuple[str, str]]:
    """The address of a server on it, and ada's token."""
    with http_server(root_of(fabric)) as url:
        yield url, new_token(root_of(fabric), "ada", "agent")


@pytest.fixture(params=SURFACES)
def sends(request: pytest.FixtureRequest, fabric: Fabric) -> Iterator[Sends]:
    """What sends calls with a secret, over each surface."""
    root = root_of(fabric)
    with ExitStack() as stack:

        def sending(secret: str) -> Ask:
            match request.param:
                case "python":
                    return _in_python(stack.enter_context(aof.open(root, secret=secret)))
                case "cli":
                    variables = {"AOF_ACTOR": "", "AOF_RUN_SECRET": secret}
                    return OnTheCommandLine(root, fabric, variables).ask
                case "mcp":
                    session = mcp_session(root, tools="all", actor="", secret=secret)
                    return OverMcp(root, fabric, *stack.enter_context(session)).ask
                case _:
                    url, token = request.getfixturevalue("server")
                    headers = [(b"Authorization", f"Bearer {token}".encode()), (b"AOF-Run-Secret", secret.encode())]
                    return OverHttp(
                        root, fabric, stack.enter_context(httpx.Client(base_url=url, headers=headers, timeout=30))
                    ).ask

        yield sending


def _in_python(fabric: Fabric) -> Ask:
    def ask(operation: str, **given: Any) -> Answer:
        try:
            actor = given.pop("actor", None)
            view = fabric if actor is None else fabric.as_actor(actor)
            answer = getattr(view, operation)(**given)
        except AofError as error:
            return Refusal(error.code, error.message, error.hint)
        return answer if isinstance(answer, dict) else {}

    return ask


def _claimed(fabric: Fabric, agent: str = "ada", **given: Any) -> tuple[str, str]:
    """A task that the agent holds, and its secret."""
    work = fabric.claim(fabric.create("Work").task_id, agent=agent, **given)
    assert isinstance(work.secret, str)
    return work.task_id, work.secret


@contextmanager
def _unchanged(fabric: Fabric) -> Iterator[None]:
    before = contents(root_of(fabric))
    yield
    assert contents(root_of(fabric)) == before


def test_whoever_sends_the_secret_acts_as_the_runs_agent(fabric: Fabric, sends: Sends) -> None:
    task_id, secret = _claimed(fabric)
    ask = sends(secret)
    assert code_of(ask("progress", task_id=task_id, text="half")) == "yes"
    assert code_of(ask("create", title="Found on the way", brief="Look at it.")) == "yes"
    said = [event for event in fabric.events() if event.type == "task.progress"][-1]
    assert (said.actor, said.task_id) == ("ada", task_id)
    assert [event.actor for event in fabric.events() if event.type == "task.created"][-1] == "ada"
    assert code_of(ask("complete", task_id=task_id, summary="done")) == "yes"
    assert fabric.get(task_id).status == "review"


def test_a_name_that_contradicts_the_secret_is_refused_and_changes_nothing(fabric: Fabric, sends: Sends) -> None:
    task_id, secret = _claimed(fabric)
    others, _ = _claimed(fabric, "bob")
    lease = present(fabric.get(others).lease)
    ask = sends(secret)
    with _unchanged(fabric):
        for given in (
            {"operation": "complete", "task_id": task_id, "actor": "bob"},
            {"operation": "cancel", "task_id": task_id, "actor": "bob"},
            {"operation": "create", "title": "Forged", "brief": "x", "actor": "pm"},
            {"operation": "claim", "agent": "bob"},
            {"operation": "heartbeat", "task_id": task_id, "agent": "bob"},
            {"operation": "complete", "task_id": others, "run": lease.run_id},
        ):
            answer = ask(**given)
            assert code_of(answer) == "actor_mismatch", given
            assert isinstance(answer, Refusal)
            assert "leave" in answer.hint
            assert secret.rpartition("/")[2] not in f"{answer}"


def test_a_worker_with_a_secret_does_only_what_its_roles_allow(fabric: Fabric, sends: Sends) -> None:
    task_id, secret = _claimed(fabric)
    own, _ = _claimed(fabric)
    fabric.complete(own, agent="ada")
    others, _ = _claimed(fabric, "bob")
    reviewed, _ = _claimed(fabric, "bob")
    fabric.complete(reviewed, agent="bob")
    ask = sends(secret)
    with _unchanged(fabric):
        assert code_of(ask("approve", task_id=own)) == "own_work"
        assert code_of(ask("update", task_id=own, status="done")) == "own_work"
        assert code_of(ask("approve", task_id=reviewed)) == "not_allowed"
        assert code_of(ask("cancel", task_id=others)) == "not_allowed"
        assert code_of(ask("edit", task_id=others, title="Mine now")) == "not_allowed"
        assert code_of(ask("heartbeat", task_id=others)) == "not_lease_holder"
    assert code_of(ask("cancel", task_id=task_id)) == "yes"


def _wrong(secret: str) -> list[str]:
    run, agent, random = secret.split("/")
    other = "0" * 64 if random != "0" * 64 else "1" * 64
    return [
        f"{run}/{agent}/{other}",
        f"RUN-2026-01-01-001-1/{agent}/{random}",
        "garbage",
        "x" * 5_000,
        "ünï/cödé/✓",
        f"{run}/{agent}/{sha256(random.encode()).hexdigest()}",
    ]


def test_a_wrong_secret_is_refused_and_not_repeated(fabric: Fabric, sends: Sends) -> None:
    task_id, secret = _claimed(fabric)
    for wrong in _wrong(secret):
        ask = sends(wrong)
        with _unchanged(fabric):
            for answer in (ask("heartbeat", task_id=task_id), ask("block", task_id=task_id, reason="x")):
                assert code_of(answer) == "unauthenticated", wrong
                assert isinstance(answer, Refusal)
                assert wrong not in f"{answer.message} {answer.hint}"


def test_the_secret_of_a_run_that_was_replaced_is_stale(fabric: Fabric, sends: Sends) -> None:
    task_id, old = _claimed(fabric)
    fabric.release(task_id, agent="ada")
    ask = sends(old)
    with _unchanged(fabric):
        for given in ({"operation": "heartbeat"}, {"operation": "cancel"}):
            assert code_of(ask(task_id=task_id, **given)) == "stale_lease"
    assert code_of(ask("complete", task_id=task_id, summary="x")) == "stale_lease"
    assert [(one.agent, one.summary) for one in fabric.get(task_id).late_results] == [("ada", "x")]
    assert fabric.get(task_id).status == "ready"
    assert fabric.claim(task_id, agent="bob").secret != old
    with _unchanged(fabric):
        assert code_of(ask("heartbeat", task_id=task_id)) == "stale_lease"


def test_the_secret_of_a_run_that_has_ended_proves_nothing_and_reads_go_on(fabric: Fabric, sends: Sends) -> None:
    task_id, secret = _claimed(fabric)
    other = fabric.create("Another").task_id
    fabric.complete(task_id, agent="ada", summary="Done.")
    ask = sends(secret)
    with _unchanged(fabric):
        assert code_of(ask("heartbeat", task_id=task_id)) == "stale_lease"
        assert code_of(ask("create", title="What came up", brief="See the summary.")) == "stale_lease"
        assert code_of(ask("claim", task_id=other, agent="ada")) == "stale_lease"
        assert code_of(ask("cancel", task_id=other)) == "stale_lease"
        assert code_of(ask("edit", task_id=task_id, title="Mine")) == "stale_lease"
        assert code_of(ask("approve", task_id=task_id)) == "stale_lease"
    shown = answer_of(ask("show", task_id=task_id))
    assert shown["status"] == "review"


def test_the_environment_of_one_data_directory_proves_nothing_in_another(
    fabric: Fabric, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, secret = _claimed(fabric)
    monkeypatch.setenv("AOF_RUN_SECRET", secret)
    monkeypatch.setenv("AOF_DATA_DIR", str(root_of(fabric)))
    root, _ = init_data_dir(tmp_path / ".aof")
    with aof.open(root, actor="pm") as elsewhere:
        elsewhere.create("Not ada's")
    with aof.open(actor="pm") as here, pytest.raises(aof.errors.ActorMismatch):
        here.create("Forged")


def test_a_claim_tells_the_secret_once_and_keeps_its_digest(fabric: Fabric, server: tuple[str, str]) -> None:
    root = root_of(fabric)
    url, token = server
    with httpx.Client(base_url=url, headers={"Authorization": f"Bearer {token}"}, timeout=30) as client:
        http = OverHttp(root, fabric, client)
        for ask in (http.ask, OnTheCommandLine(root, fabric).ask):
            task_id = fabric.create("Once").task_id
            given = {"task_id": task_id, "agent": "ada", "key": f"key of {task_id}"}
            first, again = ask("claim", **given), ask("claim", **given)
            assert isinstance(first, dict)
            assert isinstance(again, dict)
            assert "secret" not in again
            lease = present(fabric.get(task_id).lease)
            random = first["secret"].removeprefix(f"{first['runId']}/ada/")
            assert lease.secret_digest == sha256(random.encode()).hexdigest()


def test_of_two_that_claim_at_once_one_has_the_secret(fabric: Fabric) -> None:
    task_id = fabric.create("One winner").task_id
    first = OnTheCommandLine(root_of(fabric), fabric).ask("claim", task_id=task_id, agent="ada")
    second = OnTheCommandLine(root_of(fabric), fabric).ask("claim", task_id=task_id, agent="bob")
    assert isinstance(first, dict)
    assert code_of(second) == "already_claimed"
    assert first["secret"].rpartition("/")[2] not in f"{second}"


def test_a_session_keeps_the_secret_and_the_model_never_sees_it(fabric: Fabric) -> None:
    task_id = fabric.create("In a session").task_id
    with mcp_on(fabric, tools="all", actor="ada") as mcp:
        listed = mcp.portal.call(mcp.client.list_tools)
        assert "secret" not in listed.model_dump_json().lower()
        assert "secret" not in f"{mcp.ask('claim', task_id=task_id)}"
        with _unchanged(fabric):
            assert code_of(mcp.ask("complete", task_id=task_id, actor="bob")) == "actor_mismatch"
            assert code_of(mcp.ask("release", task_id=task_id, agent="bob")) == "actor_mismatch"
        assert code_of(mcp.ask("complete", task_id=task_id, actor="ada")) == "yes"
        other = fabric.create("By an update").task_id
        begun = mcp.ask("update", task_id=other, status="in-progress")
        assert "secret" not in f"{begun}"
        assert code_of(mcp.ask("progress", task_id=other, text="x", actor="bob")) == "actor_mismatch"


@contextmanager
def _mcp_over_http(fabric: Fabric, server: tuple[str, str], mode: str, **headers: str) -> Iterator[OverMcp]:
    with mcp_over_http(*server, mode, **headers) as session:
        yield OverMcp(root_of(fabric), fabric, *session)


def test_without_sessions_the_clients_program_gets_the_secret_and_sends_it(
    fabric: Fabric, server: tuple[str, str]
) -> None:
    task_id = fabric.create("No session").task_id
    with _mcp_over_http(fabric, server, "auto") as mcp:
        claimed = mcp.portal.call(mcp.client.call_tool, "aof_task_claim", {"taskId": task_id})
    assert claimed.meta is not None
    (secret,) = claimed.meta[SECRETS]
    random = secret.rpartition("/")[2]
    assert random not in f"{claimed.content} {claimed.structured_content}"
    with _mcp_over_http(fabric, server, "auto", **{"AOF-Run-Secret": _wrong(secret)[0]}) as forger:
        assert code_of(forger.ask("complete", task_id=task_id)) == "unauthenticated"
    with _mcp_over_http(fabric, server, "auto", **{"AOF-Run-Secret": secret}) as holder:
        assert code_of(holder.ask("complete", task_id=task_id)) == "yes"


def test_a_session_over_http_keeps_the_secret_too(fabric: Fabric, server: tuple[str, str]) -> None:
    task_id = fabric.create("With a session").task_id
    with _mcp_over_http(fabric, server, "legacy") as mcp:
        claimed = mcp.portal.call(mcp.client.call_tool, "aof_task_claim", {"taskId": task_id})
        assert claimed.meta is None or SECRETS not in claimed.meta
        assert "secret" not in f"{claimed.content} {claimed.structured_content}"
        assert code_of(mcp.ask("complete", task_id=task_id)) == "yes"


def test_a_token_of_an_agent_acts_for_no_other_run(fabric: Fabric, server: tuple[str, str]) -> None:
    url, token = server
    others, _ = _claimed(fabric, "bob")
    lease = present(fabric.get(others).lease)
    with httpx.Client(base_url=url, headers={"Authorization": f"Bearer {token}"}, timeout=30) as client:
        http = OverHttp(root_of(fabric), fabric, client)
        with _unchanged(fabric):
            for operation in ("complete", "heartbeat", "release", "fail"):
                assert code_of(http.ask(operation, task_id=others, run=lease.run_id)) == "actor_mismatch"
            assert code_of(http.ask("session_end", run=lease.run_id)) == "actor_mismatch"
        sent = http.ask("send", messages=[json.dumps(report(others, "bob"))])
    assert isinstance(sent, dict)
    assert [(row["outcome"], row["reason"]) for row in sent["results"]] == [("rejected", "actor_mismatch")]
    assert fabric.get(others).lease == lease


def test_only_the_owner_may_read_the_tokens(fabric: Fabric) -> None:
    new_token(root_of(fabric), "eve", "reader")
    assert (root_of(fabric) / "tokens.json").stat().st_mode & 0o777 == 0o600


def test_the_call_in_a_hint_is_one_that_works(fabric: Fabric) -> None:
    task_id, secret = _claimed(fabric)
    with aof.open(root_of(fabric), secret=secret) as ada:
        with pytest.raises(aof.errors.ActorMismatch) as refused:
            ada.heartbeat(task_id, agent="bob")
        call = present(refused.value.call)
        assert wire_names(Call(call.operation, call.arguments)) == {"taskId": task_id}
        assert getattr(ada, call.operation)(**call.arguments).task_id == task_id
