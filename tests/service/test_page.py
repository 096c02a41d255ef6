"""`aof board --web`: it finds the service that runs, or is one, and prints a link that works once."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path
from urllib.request import Request, urlopen

import pytest

import aof
from aof.service import serve
from aof.service.bootstrap import init_data_dir
from aof.store.files.service_files import ServiceAddresses
from tests.support.service import Up
from tests.support.waiting import BOUND


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return Path(init_data_dir(tmp_path / ".aof", actor="pm")[0])


def _command(root: Path, *words: str) -> list[str]:
    return [sys.executable, "-m", "aof", "--data-dir", str(root), "--actor", "pm", *words]


def _environment(**more: str) -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if not name.startswith("AOF_")} | more


def _contents(root: Path) -> dict[str, bytes]:
    """What belongs to the tasks and their history; caches, locks and sign-ins aside."""
    parts = ("tasks", "runs", "events", "archive")
    found = [path for part in parts for path in (root / part).rglob("*") if path.is_file()]
    return {str(path.relative_to(root)): path.read_bytes() for path in (*found, *root.glob("*.md"))}


def _opened(url: str) -> str:
    return _signed_in(url)["Cookie"]


def _signed_in(url: str) -> dict[str, str]:
    """Both halves of the session that a link gives."""
    with urlopen(url, timeout=BOUND) as answer:
        half = re.search(r'data-half="([^"]+)"', answer.read().decode())
        assert half is not None
        return {"Cookie": str(answer.headers["set-cookie"]).partition(";")[0], "AOF-Page": half[1]}


def test_the_link_leads_to_the_service_that_runs(root: Path) -> None:
    with Up(root, "--http", "0") as up:
        address = up.wait("http")["reason"].split()[0]
        said = subprocess.run(
            _command(root, "--json", "board", "--web"),
            capture_output=True,
            check=True,
            env=_environment(),
            timeout=BOUND,
        )
        told = json.loads(said.stdout)["data"]
        assert told["url"].startswith(f"{address}/board/enter?key=")
        assert told["opened"] is False
        assert _opened(told["url"]).startswith("aof_")


def test_without_a_service_the_command_is_one_until_it_is_told_to_stop(root: Path) -> None:
    command = _command(root, "board", "--web", "--port", "0", "--scope", "read")
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env=_environment()
    ) as it:
        assert it.stdout is not None
        url = it.stdout.readline().strip()
        assert _opened(url).startswith("aof_")
        assert serve.served_at(str(root)) == url.partition("/board/")[0]
        it.send_signal(signal.SIGTERM)
        assert it.wait(BOUND) == 0
    assert serve.served_at(str(root)) is None


def test_of_several_that_open_the_board_at_once_one_serves_it_and_all_lead_there(root: Path) -> None:
    command, out, quiet = _command(root, "board", "--web", "--no-open"), subprocess.PIPE, subprocess.DEVNULL
    several = [subprocess.Popen(command, stdout=out, stderr=quiet, text=True, env=_environment()) for _ in range(3)]
    try:
        urls = [one.stdout.readline().strip() for one in several if one.stdout is not None]
        (address,) = {url.partition("/board/")[0] for url in urls}
        assert serve.served_at(str(root)) == address
        assert len({_opened(url) for url in urls}) == 3
        over = [one for one in several if not (root / f"locks/service-{one.pid}").exists()]
        assert [one.wait(BOUND) for one in over] == [0, 0]
    finally:
        for one in several:
            one.kill()
            one.communicate(timeout=BOUND)


def test_a_port_that_is_asked_for_leads_to_the_service_that_serves_it(root: Path) -> None:
    addresses = ServiceAddresses(str(root))
    with addresses.announced(("http://127.0.0.1:8420", "http://127.0.0.1:8421")):
        assert serve.served_at(str(root), 8421) == "http://127.0.0.1:8421"
        assert serve.served_at(str(root), 8422) is None


def test_whoever_waits_to_open_the_board_is_let_on_once_it_is_served_or_its_starter_is_gone(root: Path) -> None:
    let_on_when: list[str] = []
    with serve.starting(str(root)) as let_on:
        let_on()
        with serve.starting(str(root)):
            let_on_when.append("it is served")
    with serve.starting(str(root)):
        let_on_when.append("its starter is gone")
    assert let_on_when == ["it is served", "its starter is gone"]


def test_a_service_of_another_user_is_not_believed(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with ServiceAddresses(str(root)).announced(("http://127.0.0.1:8420",)):
        assert serve.served_at(str(root)) is not None
        monkeypatch.setattr(os, "geteuid", lambda: os.getuid() + 1)
        assert serve.served_at(str(root)) is None


def test_opening_the_board_changes_nothing(root: Path) -> None:
    with aof.open(root, actor="pm") as fabric:
        fabric.create("Kept for later", backlog=True)
        blocker = fabric.create("First", review=False).task_id
        fabric.create("BlockerTable", depends_on=[blocker], backlog=True)
        fabric.complete(blocker, summary="done", agent="ada")
    edited = next((root / "tasks/backlog").glob("*.md"))
    edited.write_text(f"{edited.read_text('utf-8')}\nA person's line.\n", "utf-8")
    before = _contents(root)
    command = _command(root, "board", "--web", "--port", "0")
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=_environment()) as it:
        try:
            assert it.stdout is not None
            session = _signed_in(it.stdout.readline().strip())
            request = Request(f"{serve.served_at(str(root))}/board/tasks", headers=session)
            with urlopen(request, timeout=BOUND) as shown:
                assert "Kept for later" in shown.read().decode()
            it.send_signal(signal.SIGTERM)
            _, said = it.communicate(timeout=BOUND)
        finally:
            it.kill()
    assert "this serves the board only" in said
    assert _contents(root) == before


def test_a_service_that_died_is_not_believed(root: Path) -> None:
    with Up(root, "--http", "0") as up:
        up.wait("http")
        assert serve.served_at(str(root)) is not None
        up.process.kill()
        up.finish()
    assert serve.served_at(str(root)) is None
    assert not list((root / "locks").glob("service-*"))


def test_a_file_that_claims_to_be_a_service_is_not_believed(root: Path) -> None:
    (root / "locks/service-1").write_text('["http://127.0.0.1:1"]', "utf-8")
    assert serve.served_at(str(root)) is None


def test_only_addresses_for_browsers_are_opened() -> None:
    assert serve.browsable_address(("unix:/tmp/s",)) is None
    assert serve.browsable_address(("unix:/tmp/s", "http://0.0.0.0:8420")) == "http://127.0.0.1:8420"
    assert serve.browsable_address(("https://[::]:8420",)) == "https://[::1]:8420"


def test_a_damaged_file_of_a_service_hides_no_other(root: Path) -> None:
    addresses = ServiceAddresses(str(root))
    with addresses.announced(("http://127.0.0.1:8420",)):
        (root / "locks/service-0").write_bytes(b"\xff")
        assert addresses.known() == ("http://127.0.0.1:8420",)


def test_the_browser_is_started_only_where_there_is_one(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in ("DISPLAY", "WAYLAND_DISPLAY", "BROWSER"):
        monkeypatch.delenv(name, raising=False)
    if sys.platform != "darwin":
        assert serve.open_browser("http://127.0.0.1:1/") is False


@pytest.mark.parametrize("words", [("--port", "8420"), ("--scope", "read"), ("--no-open",)])
def test_options_of_the_page_are_refused_without_it(root: Path, words: tuple[str, ...]) -> None:
    said = subprocess.run(_command(root, "board", *words), capture_output=True, check=False, env=_environment())
    assert said.returncode == 2
    assert b"aof board --web" in said.stderr


def test_a_run_cannot_open_the_page(root: Path) -> None:
    said = subprocess.run(
        _command(root, "board", "--web"), capture_output=True, check=False, env=_environment(AOF_RUN_SECRET="x/ada/y")
    )
    assert said.returncode == 1
    assert b"http://" not in said.stdout
