"""Secrets of runs in Python: asked for by a setting, missing in older data, and found nowhere on the disk."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from threading import Barrier, Thread
from typing import Any

import pytest

import aof
from aof.api.fabric import Fabric
from aof.errors import AlreadyClaimed, AofError, NotAllowed, Unauthenticated
from aof.kernel.commands import Claim
from aof.kernel.identity import refuse_in_run
from aof.kernel.model import Policy
from aof.kernel.results import Claimed
from aof.runs.authentication import secret_of, understood
from aof.service.bootstrap import init_data_dir, open_fabric, own_secret
from aof.service.runners.process_runner import KeptStream, Redaction
from aof.testing import FakeClock, memory_fabric
from tests.support.messages import report, update
from tests.support.service import Up, directory, scripted
from tests.support.warm import warm
from tests.surfaces.doors import OnTheCommandLine, environment

ASKED = Policy(require_secret=True)
REVIEW = {"name": "review", "hops": [{"id": "implement", "role": "developer"}]}


@pytest.fixture
def fabric() -> Fabric:
    """A fabric whose settings ask for proof."""
    return memory_fabric(policy=ASKED, workflows=[REVIEW])


def _secret(work: Claimed) -> str:
    assert isinstance(work.secret, str)
    return work.secret


WRITES: dict[str, Callable[[Fabric, str], Any]] = {
    "heartbeat": lambda by, task: by.heartbeat(task),
    "progress": lambda by, task: by.progress(task, text="half"),
    "update": lambda by, task: by.update(task, body="# New\n"),
    "release": lambda by, task: by.release(task),
    "fail": lambda by, task: by.fail(task),
    "complete": lambda by, task: by.complete(task, outcome="complete"),
    "move": lambda by, task: by.update(task, status="ready"),
}


@pytest.mark.parametrize("workflow", [None, "review"])
@pytest.mark.parametrize("write", WRITES)
def test_where_the_settings_ask_for_it_a_name_is_no_proof(fabric: Fabric, write: str, workflow: str | None) -> None:
    task_id = fabric.create("Work", workflow=workflow).task_id
    work = fabric.claim(task_id, agent="ada")
    before = fabric.get(task_id), fabric.store.head()
    for caller in (fabric.as_actor("ada"), fabric.as_actor("ada", work.run_id)):
        with pytest.raises(Unauthenticated):
            WRITES[write](caller, task_id)
    assert (fabric.get(task_id), fabric.store.head()) == before
    WRITES[write](fabric.as_run(_secret(work)), task_id)


def test_the_end_of_a_session_and_messages_need_the_proof_too(fabric: Fabric) -> None:
    task_id = fabric.create("Work").task_id
    work = fabric.claim(task_id, agent="ada")
    with pytest.raises(Unauthenticated):
        fabric.session_end(run=work.run_id)
    assert [sent.reason for sent in fabric.send(report(task_id, "ada"))] == ["unauthenticated"]
    assert [sent.outcome for sent in work.send(report(task_id, "ada"))] == ["accepted"]
    assert [applied.outcome for applied in fabric.as_run(_secret(work)).session_end(run=work.run_id)] == ["done"]


def test_a_block_of_python_keeps_its_secret_by_itself(fabric: Fabric) -> None:
    fabric.create("Work")
    with fabric.claim(agent="ada") as work:
        work.progress("half", percent=50)
        work.complete("done")
    assert fabric.get(work.task_id).status == "review"


def test_a_run_that_a_message_begins_has_a_secret(fabric: Fabric) -> None:
    task_id = fabric.create("Work").task_id
    (sent,) = fabric.send(update(task_id, "ada", status="in-progress"))
    assert isinstance(sent.secret, str)
    assert fabric.as_run(sent.secret).complete(task_id).status == "review"


def test_what_recovers_runs_needs_no_secret() -> None:
    clock = FakeClock()
    fabric = memory_fabric(policy=ASKED, clock=clock)
    task_id = fabric.create("Lost").task_id
    fabric.claim(task_id, agent="ada", ttl=60)
    clock.sleep(61)
    assert [one.task_id for one in fabric.recover()] == [task_id]


def test_a_lease_without_a_digest_is_of_an_older_version_and_goes_on() -> None:
    fabric = memory_fabric(policy=ASKED)
    task_id = fabric.create("Old").task_id
    fabric.services.dispatcher.dispatch_trusted(Claim(actor="ada", agent="ada", task_id=task_id))
    lease = fabric.get(task_id).lease
    assert lease is not None
    assert lease.secret_digest is None
    with pytest.raises(Unauthenticated):
        fabric.as_run(secret_of(lease.run_id, "ada", "0" * 64)).heartbeat(task_id)
    assert fabric.as_actor("ada").complete(task_id).status == "review"


def test_an_expired_secret_is_stale_once_the_run_was_recovered() -> None:
    clock = FakeClock()
    fabric = memory_fabric(clock=clock)
    task_id = fabric.create("Slow").task_id
    ada = fabric.as_run(_secret(fabric.claim(task_id, agent="ada", ttl=60)))
    clock.sleep(61)
    ada.heartbeat(task_id)  # nobody has reclaimed it
    clock.sleep(301)
    fabric.recover()
    for write in (ada.heartbeat, ada.complete, ada.release):
        with pytest.raises(aof.errors.StaleLease):
            write(task_id)


def test_a_report_may_be_repeated_with_the_secret_of_the_run_that_made_it() -> None:
    fabric = memory_fabric()
    task_id = fabric.create("Twice").task_id
    ada = fabric.as_run(_secret(fabric.claim(task_id, agent="ada")))
    assert ada.complete(task_id).status == ada.complete(task_id).status == "review"


def test_of_many_claims_at_once_one_gets_a_secret(tmp_path: Path) -> None:
    root, _ = init_data_dir(tmp_path / ".aof")
    with open_fabric(root, actor="pm") as fabric:
        task_id = fabric.create("One winner").task_id
        gate, won = Barrier(8), list[str]()

        def claim(name: str) -> None:
            with open_fabric(root, actor=name) as own:
                gate.wait()
                with suppress(AlreadyClaimed):
                    won.append(_secret(own.claim(task_id, agent=name)))

        threads = [Thread(target=claim, args=(f"agent-{number}",)) for number in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(won) == 1
        assert fabric.as_run(won[0]).heartbeat(task_id).run_id == won[0].partition("/")[0]


def test_nothing_shows_a_secret_by_itself(fabric: Fabric) -> None:
    fabric.create("Work")
    work = fabric.claim(agent="ada")
    random = _secret(work).rpartition("/")[2]
    parts = understood(_secret(work))
    view = fabric.as_run(_secret(work))
    shown = (work, parts, view, view.services.principal.identity, fabric.show(work.task_id), list(fabric.events()))
    assert random not in repr(shown)


@pytest.mark.parametrize("split", [1, 7, 20, 64, 200])
def test_a_secret_that_a_worker_prints_is_blotted_out_however_it_is_cut(tmp_path: Path, split: int) -> None:
    hidden = b"ab" * 32
    text = b"before " + hidden + b" between " + hidden + b" " + hidden[:40]
    read, write = os.pipe()
    kept = KeptStream(
        read, os.open(tmp_path / "output.log", os.O_CREAT | os.O_WRONLY), "output.log", 1 << 20, Redaction([hidden])
    )
    for start in range(0, len(text), split):
        os.write(write, text[start : start + split])
        assert kept.read() == text[start : start + split]
    os.close(write)
    assert kept.read() is None
    kept.close()
    assert (tmp_path / "output.log").read_bytes() == text.replace(hidden, b"*" * 64)
    assert kept.report()["bytes"] == kept.report()["kept"] == len(text)


def _with_secret(root: Path, fabric: Fabric, secret: str) -> OnTheCommandLine:
    return OnTheCommandLine(root, fabric, {"AOF_ACTOR": "", "AOF_RUN_SECRET": secret})


@pytest.fixture
def on_disk(tmp_path: Path) -> Iterator[Fabric]:
    """A data directory whose settings ask for proof."""
    root, _ = init_data_dir(tmp_path / ".aof")
    Path(root, "aof.toml").write_text("[identity]\nrequireSecret = true\n")
    with open_fabric(root, actor="pm") as fabric:
        yield fabric


def test_no_file_ever_holds_a_secret(on_disk: Fabric, tmp_path: Path) -> None:
    root, secrets = tmp_path / ".aof", list[str]()
    nobody = OnTheCommandLine(root, on_disk)
    for how in ("complete", "release", "fail"):
        task_id = on_disk.create("Work").task_id
        claimed = nobody.run("claim", task_id, "--agent", "ada")
        assert isinstance(claimed, dict)
        secrets.append(claimed["secret"])
        ada = _with_secret(root, on_disk, claimed["secret"])
        assert isinstance(ada.run("progress", task_id, "--text", "half"), dict)
        assert isinstance(ada.run(how, task_id), dict)
        secrets.append(_secret(on_disk.claim(on_disk.create("Held").task_id, agent="bob")))
    on_disk.doctor()
    assert isinstance(nobody.run("export", str(tmp_path / "all.tar")), dict)
    said = json.dumps([nobody.run("log"), nobody.run("list"), nobody.run("show", task_id)])
    randoms = [secret.rpartition("/")[2] for secret in secrets]
    assert not [random for random in randoms if random in said]
    held = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    assert len(held) > len(secrets)
    assert not [path for path, data in held.items() for random in randoms if random.encode() in data]


def test_a_started_agent_finds_its_secret_in_its_environment_and_nobody_else_does(tmp_path: Path) -> None:
    code = (
        "import os, sys, subprocess; print(os.environ['AOF_RUN_SECRET'], flush=True); "
        "command = [sys.executable, '-m', 'aof', 'complete', os.environ['AOF_TASK_ID']]; "
        "sys.exit(subprocess.call(command))"
    )
    settings = '[storage]\ndurability = "relaxed"\n[identity]\nrequireSecret = true\n'
    agents = {"ada": [sys.executable, "-c", code], "bob": scripted("report=done")}
    root = directory(tmp_path, agents, settings)
    with open_fabric(root, actor="pm") as fabric:
        tasks = [fabric.create("Work", agent=name).task_id for name in ("ada", "bob")]
        with Up(root, "--once") as up:
            up.process.wait(60)
        assert [fabric.get(task_id).status for task_id in tasks] == ["review", "review"], up.lines
        printed = (root / f"runs/{tasks[0]}/attempts/1/output.log").read_text()
        first = json.loads((root / f"runs/{tasks[0]}/run.json").read_text())["runId"]
        assert printed.startswith("*" * len(f"{first}/ada/{'0' * 64}") + "\n")


def test_a_repeated_claim_by_key_has_no_secret(fabric: Fabric) -> None:
    fabric.create("Work")
    first, again = (fabric.claim(agent="ada", key="once") for _ in range(2))
    assert first.run_id == again.run_id
    assert not isinstance(again.secret, str)
    with pytest.raises(AofError):
        again.complete("without it")


def test_a_view_for_another_caller_knows_the_same_workflows(fabric: Fabric) -> None:
    made = fabric.as_actor("ada").create("Gated", workflow="review")
    assert fabric.get(made.task_id).gated


def test_a_person_is_shown_the_secret_only_where_it_is_needed(on_disk: Fabric, tmp_path: Path) -> None:
    root = tmp_path / ".aof"
    shown = []
    for _ in range(2):
        task_id = on_disk.create("By hand").task_id
        words = [*warm(), "aof", "claim", task_id, "--agent", "ada"]
        done = subprocess.run(words, env=environment(root), capture_output=True, text=True, check=True, timeout=60)
        shown.append(f"AOF_RUN_SECRET={on_disk.get(task_id).last_run}/ada/" in done.stdout)
        (root / "aof.toml").write_text("schemaVersion = 1\n")
    assert shown == [True, False]


def test_a_process_with_a_runs_secret_is_refused_what_would_widen_its_rights() -> None:
    with pytest.raises(NotAllowed) as refused:
        refuse_in_run("make tokens", {"AOF_RUN_SECRET": "RUN-2026-01-01-001-1/ada/00"})
    assert refused.value.code == "not_allowed"
    assert "make tokens" in refused.value.message
    assert "ada" not in refused.value.message


@pytest.mark.parametrize("environment", [{}, {"AOF_RUN_SECRET": ""}, {"AOF_ACTOR": "ada"}])
def test_a_process_without_a_runs_secret_is_not_refused(environment: dict[str, str]) -> None:
    try:
        refuse_in_run("make tokens", environment)
    except NotAllowed as error:
        pytest.fail(f"it was refused: {error}")


@pytest.mark.parametrize("where", [None, "", "here"])
def test_a_process_of_a_run_is_known_also_where_its_data_directory_is_not_named(
    tmp_path: Path, where: str | None
) -> None:
    named = str(tmp_path) if where == "here" else where
    variables = {"AOF_RUN_SECRET": "s"} | ({} if named is None else {"AOF_DATA_DIR": named})
    assert own_secret(str(tmp_path), variables) == "s"
