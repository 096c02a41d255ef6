"""Who calls over HTTP: a token says it, and nothing that a call claims can say otherwise."""

from __future__ import annotations

import json
from pathlib import Path

import httpx
import pytest

from aof.surfaces.http.responses import PREFIX
from tests.support.desk import contents
from tests.support.present import present
from tests.surfaces.doors import OnTheCommandLine, OverHttp, answer_of, http_door, new_token

_REFUSED = "http.authentication.failed"
FOREIGN = ("evil.example", "127.0.0.1.evil.example", "localhost.evil.example:80", "")


def _as(http: OverHttp, role: str, actor: str = "ada") -> httpx.Client:
    headers = {"Authorization": f"Bearer {new_token(http.root, actor, role)}"}
    return httpx.Client(base_url=http.client.base_url, headers=headers, timeout=30)


def _code(response: httpx.Response) -> tuple[int, str]:
    return response.status_code, response.json()["error"]["code"]


def _held(http: OverHttp) -> tuple[dict[str, str], list[tuple[str, str]]]:
    """What the data directory holds, without the server's own remarks on tokens that it refused: they come later."""
    files = {path: digest for path, digest in contents(http.root).items() if not path.startswith("events/")}
    return files, [(one.type, one.task_id) for one in http.elsewhere.events() if one.type != _REFUSED]


def test_without_a_known_token_nothing_is_answered_but_health_and_the_document(http: OverHttp) -> None:
    with httpx.Client(base_url=http.client.base_url) as nobody:
        assert nobody.get("/health").json()["status"] == "ok"
        assert nobody.get("/openapi.json").json()["openapi"] == "3.1.0"
        for path in (f"{PREFIX}/list", f"{PREFIX}/events", "/mcp", "/nowhere"):
            assert _code(nobody.get(path)) == (401, "unauthenticated")
            wrong = {"Authorization": "Bearer aof_00000000_wrong"}
            assert _code(nobody.get(path, headers=wrong)) == (401, "unauthenticated")


def test_the_token_says_who_acted(http: OverHttp) -> None:
    with _as(http, "agent") as ada:
        made = ada.post(f"{PREFIX}/create", json={"title": "Hers", "actor": "ada"}).json()
        assert http.elsewhere.get(made["taskId"]).created_by == "ada"
        assert ada.post(f"{PREFIX}/claim", json={"taskId": made["taskId"]}).json()["taskId"] == made["taskId"]
        assert present(http.elsewhere.get(made["taskId"]).lease).agent == "ada"


def test_an_actor_that_contradicts_the_token_is_refused(http: OverHttp) -> None:
    task_id = http.elsewhere.create("Whose").task_id
    with _as(http, "agent") as ada, _as(http, "admin") as admin:
        before = _held(http)
        for client in (ada, admin):
            forged = client.post(f"{PREFIX}/create", json={"title": "Forged", "actor": "bob"})
            assert _code(forged) == (403, "actor_mismatch")
        assert _code(ada.post(f"{PREFIX}/claim", json={"taskId": task_id, "agent": "bob"})) == (403, "actor_mismatch")
        assert _held(http) == before
        assert admin.post(f"{PREFIX}/claim", json={"taskId": task_id, "agent": "bob"}).status_code == 200
        event = next(one for one in http.elsewhere.events(task_id=task_id) if one.type == "task.attempt.started")
        assert (event.actor, event.agent) == ("ada", "bob")


def test_a_reader_reads_and_changes_nothing(http: OverHttp) -> None:
    with _as(http, "reader") as reader:
        before = _held(http)
        assert reader.get(f"{PREFIX}/list").status_code == 200
        for operation in ("create", "claim", "doctor", "sync"):
            body = {"title": "x"} if operation == "create" else {}
            assert _code(reader.post(f"{PREFIX}/{operation}", json=body)) == (403, "not_allowed")
        assert _held(http) == before


def test_a_revoked_token_is_no_longer_known(http: OverHttp) -> None:
    cli = OnTheCommandLine(http.root, http.elsewhere)
    made = answer_of(cli.run("token", "create", "--for", "eve", "--role", "agent"))
    headers = {"Authorization": f"Bearer {made['token']}"}
    assert httpx.get(f"{http.client.base_url}{PREFIX}/list", headers=headers).status_code == 200
    assert cli.run("token", "revoke", made["id"]) == {"id": made["id"], "revoked": True}
    assert httpx.get(f"{http.client.base_url}{PREFIX}/list", headers=headers).status_code == 401


def test_a_token_is_shown_once_and_kept_as_a_digest(http: OverHttp) -> None:
    cli = OnTheCommandLine(http.root, http.elsewhere)
    made = answer_of(cli.run("token", "create", "--for", "mallory"))
    _, _, secret = made["token"].split("_", 2)
    assert made["role"] == "agent"
    kept = [path for path in Path(http.root).rglob("*") if path.is_file() and secret.encode() in path.read_bytes()]
    assert kept == []
    listed = cli.run("token", "list")
    assert made["id"] in json.dumps(listed)
    assert secret not in json.dumps(listed)


@pytest.mark.parametrize("host", FOREIGN)
def test_a_foreign_host_is_turned_away(http: OverHttp, host: str) -> None:
    assert http.client.get(f"{PREFIX}/list", headers={"Host": host}).status_code in (400, 403)


@pytest.mark.parametrize("origin", ["http://evil.example", "null", "http://localhost.evil.example", "https://[", "x"])
def test_a_page_from_elsewhere_is_turned_away(http: OverHttp, origin: str) -> None:
    for path in (f"{PREFIX}/list", "/mcp", "/health"):
        assert _code(http.client.get(path, headers={"Origin": origin})) == (403, "not_allowed")


def test_a_page_of_this_server_gets_in_and_one_from_another_port_does_not(http: OverHttp) -> None:
    port = http.client.base_url.port
    assert http.client.get(f"{PREFIX}/list", headers={"Origin": f"http://localhost:{port}"}).status_code == 200
    other = http.client.get(f"{PREFIX}/list", headers={"Origin": "http://localhost:1"})
    assert _code(other) == (403, "not_allowed")


def test_a_body_that_is_too_big_is_refused_before_it_is_read(http: OverHttp) -> None:
    big = b'{"title": "%s"}' % (b"x" * 11_000_001)
    assert _code(http.client.post(f"{PREFIX}/create", content=big)) == (413, "payload_too_large")
    pieces = (big[start : start + 1_000_000] for start in range(0, len(big), 1_000_000))
    assert _code(http.client.post(f"{PREFIX}/create", content=pieces)) == (413, "payload_too_large")


def test_an_agents_token_gives_no_more_than_the_chart_gives_a_worker(tmp_path: Path) -> None:
    with http_door(tmp_path) as http:
        chart = http.root / "org/org-chart.yaml"
        chart.parent.mkdir(exist_ok=True)
        chart.write_text("schemaVersion: 1\nagents: [{id: bob}, {id: rev, roles: [reviewer]}]\n")
        running, reviewed = (http.elsewhere.create(title).task_id for title in ("Running", "Reviewed"))
        http.elsewhere.claim(running, agent="bob")
        http.elsewhere.complete(reviewed, agent="bob")
        with _as(http, "agent", "stray") as stray, _as(http, "admin", "rev") as person:
            before = _held(http)
            for operation, task_id in (("cancel", running), ("approve", reviewed), ("complete", reviewed)):
                assert _code(stray.post(f"{PREFIX}/{operation}", json={"taskId": task_id})) == (403, "not_allowed")
            assert _held(http) == before
            assert person.post(f"{PREFIX}/approve", json={"taskId": reviewed}).json()["status"] == "done"
