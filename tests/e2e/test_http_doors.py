"""`aof up` as others reach it: beyond this machine only with TLS or a word for it, and on a socket of one's own."""

from __future__ import annotations

import json
import re
import socket
import ssl
import stat
import subprocess
from pathlib import Path
from typing import Any

import httpx
import pytest

from aof.errors import Unavailable
from aof.service import serve
from aof.service.serve import is_loopback
from aof.surfaces.http.server import listen_unix, remove_unix
from tests.support.served import events
from tests.support.service import Up, directory
from tests.support.warm import warm

_PATIENCE = 60.0
_FAILED = re.compile(r"\d+ failed authentications?; from 127\.0\.0\.1 ")


def _refused(root: Path, *words: str) -> dict[str, Any]:
    command = [*warm(), "aof", "--data-dir", str(root), "up", "--once", "--json", *words]
    done = subprocess.run(command, capture_output=True, timeout=_PATIENCE, check=False)
    assert done.returncode != 0, done.stdout
    return dict(json.loads(done.stdout.splitlines()[-1])["error"])


@pytest.mark.parametrize("host", ["0.0.0.0", "::"])
def test_other_machines_are_served_only_with_tls_or_a_word_for_it(tmp_path: Path, host: str) -> None:
    error = _refused(directory(tmp_path, {}), "--http", "0", "--host", host)
    assert "plain text" in error["message"]
    assert "--tls-cert" in error["hint"]
    assert "--insecure" in error["hint"]


def test_half_of_a_certificate_is_refused(tmp_path: Path) -> None:
    root = directory(tmp_path, {})
    assert "--tls-key" in _refused(root, "--http", "0", "--tls-cert", "x.pem")["hint"]
    assert "cannot be used" in _refused(root, "--http", "0", "--tls-cert", "x.pem", "--tls-key", "y.pem")["message"]


def test_which_addresses_are_of_this_machine_alone() -> None:
    assert all(is_loopback(host) for host in ("127.0.0.1", "127.8.9.1", "::1", "localhost"))
    assert not any(is_loopback(host) for host in ("0.0.0.0", "::", "192.0.2.1", "10.0.0.1", "fe80::1%lo"))


def test_who_says_insecure_is_told_what_that_means_and_served_by_address(tmp_path: Path) -> None:
    root = directory(tmp_path, {})
    with Up(root, "--http", "0", "--host", "0.0.0.0", "--insecure") as up:
        port = str(up.wait("http")["reason"]).split()[0].rpartition(":")[2]
        assert "other machines can reach this server" in up.wait("warning")["reason"]
        assert httpx.get(f"http://127.0.0.1:{port}/health", timeout=_PATIENCE).status_code == 200
        foreign = httpx.get(f"http://127.0.0.1:{port}/health", headers={"Host": "evil.example"}, timeout=_PATIENCE)
        assert foreign.status_code == 403
        assert up.end() == 0


def test_tls_is_served_with_a_certificate_and_plain_http_is_not(tmp_path: Path) -> None:
    certificate, key = tmp_path / "cert.pem", tmp_path / "key.pem"
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes",
         "-keyout", str(key), "-out", str(certificate), "-days", "2", "-subj", "/CN=localhost",
         "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1"],
        check=True, capture_output=True, timeout=_PATIENCE,
    )  # fmt: skip
    root = directory(tmp_path, {})
    with Up(root, "--http", "0", "--tls-cert", str(certificate), "--tls-key", str(key)) as up:
        address = str(up.wait("http")["reason"]).split()[0]
        assert address.startswith("https://127.0.0.1:")
        trusted = ssl.create_default_context(cafile=str(certificate))
        assert httpx.get(f"{address}/health", verify=trusted, timeout=_PATIENCE).status_code == 200
        with pytest.raises(httpx.HTTPError):
            httpx.get(f"{address}/health".replace("https", "http"), timeout=_PATIENCE)
        assert httpx.get(f"{address}/health", verify=trusted, timeout=_PATIENCE).status_code == 200
        assert up.end() == 0


def test_a_socket_is_served_for_its_owner_alone_and_taken_away_at_the_end(tmp_path: Path) -> None:
    root, path = directory(tmp_path, {}), tmp_path / "aof.sock"
    token = serve.create_token(str(root), "ada", None).token
    with Up(root, "--socket", str(path)) as up:
        assert str(path) in up.wait("http")["reason"]
        assert stat.S_IMODE(path.lstat().st_mode) == 0o600
        with httpx.Client(transport=httpx.HTTPTransport(uds=str(path)), timeout=_PATIENCE) as client:
            assert client.get("http://localhost/health").status_code == 200
            assert client.get("http://localhost/api/v1/status").status_code == 401
            headers = {"Authorization": f"Bearer {token}"}
            assert client.get("http://localhost/api/v1/status", headers=headers).status_code == 200
        error = _refused(root, "--socket", str(path))
        assert "a server is listening" in error["message"]
        assert up.end() == 0
    assert not path.exists()


def test_a_socket_that_nobody_listens_on_is_replaced_and_nothing_else_is(tmp_path: Path) -> None:
    path = tmp_path / "aof.sock"
    with socket.socket(socket.AF_UNIX) as dead:
        dead.bind(str(path))
    with listen_unix(str(path)) as bound:
        assert stat.S_IMODE(path.lstat().st_mode) == 0o600
        with pytest.raises(Unavailable, match="a server is listening"):
            listen_unix(str(path))
        made = path.lstat()
        path.unlink()
        with listen_unix(str(path)):
            remove_unix(bound, str(path), made)
            assert path.exists(), "another server's socket was taken away"
    path.unlink()
    path.write_text("mine")
    with pytest.raises(Unavailable, match="not a socket"):
        listen_unix(str(path))
    link = tmp_path / "link.sock"
    link.symlink_to(path)
    with pytest.raises(Unavailable, match="not a socket"):
        listen_unix(str(link))
    assert path.read_text() == "mine"
    with pytest.raises(Unavailable, match="too long"):
        listen_unix(str(tmp_path / ("x" * 120)))
    with pytest.raises(Unavailable, match="cannot be made"):
        listen_unix(str(tmp_path / "nowhere" / "aof.sock"))


def test_failed_authentications_are_told_counted_and_in_the_log(tmp_path: Path) -> None:
    root = directory(tmp_path, {})
    token = serve.create_token(str(root), "ada", None, scope="read").token
    with Up(root, "--http", "0") as up:
        address = str(up.wait("http")["reason"]).split()[0]
        for _ in range(10):
            assert httpx.get(f"{address}/api/v1/status", timeout=_PATIENCE).status_code == 401
        assert _FAILED.match(up.wait("auth")["reason"])  # of the first of them: it does not wait for the others
        assert httpx.get(f"{address}/metrics", timeout=_PATIENCE).status_code == 401
        shown = httpx.get(f"{address}/metrics", headers={"Authorization": f"Bearer {token}"}, timeout=_PATIENCE)
        assert shown.status_code == 200
        assert "\naof_http_failed_authentications_total 11\n" in shown.text
        assert up.end() == 0
    first = events(root, "http.authentication.failed")[0]
    assert first.payload["addresses"] == {"127.0.0.1": first.payload["count"]}


def test_revoking_a_token_ends_its_stream_its_session_and_its_runs(tmp_path: Path) -> None:
    root = directory(tmp_path, {})
    made = serve.create_token(str(root), "ada", None, scope="work")
    other = serve.create_token(str(root), "bert", None, scope="work")
    with Up(root, "--http", "0") as up, httpx.Client(timeout=_PATIENCE) as client:
        address = str(up.wait("http")["reason"]).split()[0]
        headers = {"Authorization": f"Bearer {made.token}", "Accept": "application/json, text/event-stream"}
        task = client.post(f"{address}/api/v1/create", json={"title": "x"}, headers=headers).json()["taskId"]
        hello = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}
        opened = client.post(f"{address}/mcp", json=_rpc("initialize", hello), headers=headers)
        headers["mcp-session-id"] = opened.headers["mcp-session-id"]
        client.post(f"{address}/mcp", json={"jsonrpc": "2.0", "method": "notifications/initialized"}, headers=headers)
        call = {"name": "aof_task_claim", "arguments": {"taskId": task}}
        claimed = client.post(f"{address}/mcp", json=_rpc("tools/call", call), headers=headers).json()
        assert not claimed["result"].get("isError"), claimed
        stolen = headers | {"Authorization": f"Bearer {other.token}"}
        assert client.post(f"{address}/mcp", json=_rpc("tools/list", {}), headers=stolen).status_code == 404
        with client.stream("GET", f"{address}/api/v1/events", headers=headers) as stream:
            lines = stream.iter_lines()
            assert next(lines) == ": connected"
            serve.revoke_token(str(root), made.id)
            for _ in lines:
                pass
        assert client.get(f"{address}/api/v1/status", headers=headers).status_code == 401
        with httpx.stream(
            "GET",
            f"{address}/api/v1/events?type=task.attempt.failed",
            headers={"Authorization": f"Bearer {other.token}"},
            timeout=_PATIENCE,
        ) as stream:
            assert next(line for line in stream.iter_lines() if line.startswith("event:"))
        assert up.end() == 0
    (failed,) = events(root, "task.attempt.failed", task)
    assert failed.payload["error"]["code"] == "no_completion_report"


def test_a_running_server_refuses_all_tokens_once_others_can_reach_their_file(tmp_path: Path) -> None:
    root = directory(tmp_path, {})
    headers = {"Authorization": f"Bearer {serve.create_token(str(root), 'ada', None, scope='work').token}"}
    with Up(root, "--http", "0") as up, httpx.Client(timeout=_PATIENCE) as client:
        address = str(up.wait("http")["reason"]).split()[0]
        with client.stream("GET", f"{address}/api/v1/events", headers=headers) as stream:
            lines = stream.iter_lines()
            assert next(lines) == ": connected"
            (root / "tokens.json").chmod(0o644)
            for _ in lines:
                pass
        told = up.wait("tokens")["reason"]
        assert "others can reach it (mode 644" in told
        assert "chmod 600" in told
        refused = httpx.get(f"{address}/api/v1/status", headers=headers, timeout=_PATIENCE)
        assert refused.status_code == 400
        assert "others can reach it" in refused.json()["error"]["message"]
        (root / "tokens.json").chmod(0o600)
        assert httpx.get(f"{address}/api/v1/status", headers=headers, timeout=_PATIENCE).status_code == 200
        assert up.end() == 0
        assert len([line for line in up.lines if line["action"] == "tokens"]) == 1


def _rpc(method: str, params: dict[str, Any]) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
