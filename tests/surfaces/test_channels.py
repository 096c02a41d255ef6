"""A message has the same outcome, events, reason and files by whichever channel it comes; none ends by its size."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from aof.api.fabric import Fabric
from tests.support.messages import (
    Fields,
    accepted,
    having,
    message,
    prefixed,
    rejected,
    report,
    request,
    update,
    without,
)
from tests.support.requirements import requirement
from tests.support.service import Up, chart, scripted
from tests.support.warm import warm
from tests.surfaces.conftest import Doors
from tests.surfaces.doors import (
    DOORS,
    WHO,
    Door,
    OnTheCommandLine,
    OverHttp,
    Refusal,
    answer_of,
    cli_door,
    environment,
    http_door,
    python_door,
    refusal_of,
)
from tests.surfaces.tape import Tape

LIMIT = 10_000_000
_SAID = ("protocol.", "delegation.", "task.warning", "task.transitioned")
# Who speaks for several agents has to be a maintainer where there is a chart.
MAINTAINED = f'maintainers = ["elsewhere", "{WHO}"]\n'


def table(own: str, child: str, other: str) -> list[str]:
    """Good and bad messages of ada, who works on `own`; `other` is held by nobody."""
    good: list[Fields] = [
        update(own, progress="half of it"),
        request(child, own, acceptanceCriteria=["it works"], dueBy="2030-01-01T00:00:00.000Z"),
        request(child, own, acceptanceCriteria=["it works"], dueBy="2030-01-01T00:00:00.000Z"),
        accepted(child),
        request(other, own, to_agent="eve"),
        rejected(other, "eve", "No time for it"),
    ]
    bad: list[Fields] = [
        update(own, "eve", progress="not mine"),
        update("TASK-2026-02-09-999", progress="of nothing"),
        update(own, progress="x" * 1_001),
        accepted(child, "eve"),
        request(own, child),
        without(update(own, progress="unsigned"), "fromAgent"),
        having(update(own, progress="from the future"), "version", 2),
        message("coffee.request", own, "ada", {}),
        report(own, outcome="splendid"),
        report(other),
    ]
    broken = ['AOF/1 {"protocol":"aof",', "AOF/1 nonsense", "AOF/1 [1]", "just a line that an agent prints"]
    return [*map(prefixed, good), *map(prefixed, bad), *broken, prefixed(report(own, notes="All done"))]


def by_ada(lines: list[str]) -> list[str]:
    """What a worker of ada's can say: its output never speaks for another agent."""
    return [line for line in lines if '"fromAgent": "bob"' not in line and '"fromAgent": "eve"' not in line]


Answers = list[dict[str, Any]]
Send = Callable[[list[str], str], Answers]


class Outcome(NamedTuple):
    """What came of the table: in the log, in the task files, and as answers where the channel gives any."""

    events: list[Any]
    files: dict[str, str]
    answers: list[tuple[str, str | None]] | None


class Channel:
    """A way for messages to come in, on a new data directory."""

    def __init__(self, root: Path, fabric: Fabric, send: Send | None) -> None:
        self.root, self.fabric = root, fabric
        self._send = send
        self.answers: list[tuple[str, str | None]] | None = None

    def run(self, only: Callable[[list[str]], list[str]] = list) -> Outcome:
        """Ada works on a task, says all of the table and ends; what the log and the task files have of it."""
        own = self.fabric.create("Own", agent="ada", brief="All of it.\n").task_id
        child, other = (
            self.fabric.create(title, agent=agent, brief="All of it.\n", parent_id=own).task_id
            for title, agent in (("Child", "bob"), ("Other", "eve"))
        )
        lines = only(table(own, child, other))
        pulling: dict[str, Any] = {"bob": {}, "eve": {}}
        if self._send is None:
            chart(self.root, {"ada": {"runner": plain(scripted(*(f"say={line}" for line in lines)))}} | pulling)
            with Up(self.root, "--once", "--actor", WHO) as up:
                assert up.finish() == 0, up.lines
        else:
            chart(self.root, {"ada": {}} | pulling)
            run = self.fabric.claim(own, agent="ada").run_id
            self.answers = [(one["outcome"], one.get("reason")) for one in self._send(lines, run)]
            self.fabric.session_end(run=run)
        tape = Tape(_Seen(self.root, self.fabric))
        tape.made(own, child, other)
        files = {path: _RAN_BY.sub("", text) for path, text in tape.files().items()}  # whose session it was, too
        return Outcome(self._events(tape), files, self.answers)

    def _events(self, tape: Tape) -> list[Any]:
        """What was said of messages, in order. Who carried a message differs: that is the channel itself."""
        return [
            tape.comparable([event.type, event.task_id, event.actor, _without_caller(event.payload)])
            for event in self.fabric.events()
            if event.type.startswith(_SAID) and event.payload.get("to") not in ("ready", "in-progress")
        ]


_RAN_BY = re.compile(r',"ranBy":\[[^]]*\]')


class _Seen:
    """A data directory that is only looked at."""

    name = "seen"

    def __init__(self, root: Path, elsewhere: Fabric) -> None:
        self.root, self.elsewhere = root, elsewhere

    def ask(self, operation: str, **given: Any) -> Refusal:
        raise AssertionError((operation, given))


def _without_caller(payload: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in payload.items() if name not in ("calledBy", "ranBy")}


@contextmanager
def channel(name: str, folder: Path) -> Iterator[Channel]:
    """One of the five."""
    if name == "stdout":
        with python_door(folder, MAINTAINED) as door:
            yield Channel(door.root, door.elsewhere, None)
        return
    with DOORS[name](folder, MAINTAINED) as door:
        yield Channel(door.root, door.elsewhere, lambda lines, run: sent(door, lines, run))


def sent(door: Door, lines: list[str], run: str) -> Answers:
    """Say all of it at once, for a run."""
    if isinstance(door, OnTheCommandLine):
        return by_cli(door.root, "\n".join(lines), "--run", run)
    answer = answer_of(door.ask("send", messages=lines, run=run))
    return list(answer["results"])


def by_cli(root: Path, text: str, *words: str) -> Answers:
    """What `aof send` answers to its standard input."""
    done = subprocess.run(
        [*warm(), "aof", "send", "-", *words, "--json"],
        env=environment(root), input=text.encode(), capture_output=True, check=False, timeout=60,
    )  # fmt: skip
    assert done.returncode in (0, 1), done.stderr
    said = json.loads(done.stdout)
    return list(said["data"]["results"])


@pytest.fixture(scope="module")
def expected(tmp_path_factory: pytest.TempPathFactory) -> Outcome:
    """What comes of the table in Python."""
    with channel("python", tmp_path_factory.mktemp("python")) as python:
        return python.run()


def test_the_table_has_every_kind_of_outcome(expected: Outcome) -> None:
    events, files, answers = expected
    reasons = {event[3]["reason"] for event in events if event[0].endswith(".rejected")}
    assert reasons == {
        "invalid_json", "invalid_envelope", "payload_too_large", "task_not_found", "not_lease_holder", "stale_lease",
        "nested_delegation", "No time for it",
    }  # fmt: skip
    assert {"protocol.message.received", "protocol.message.unknown", "delegation.accepted"} <= {
        one[0] for one in events
    }
    assert [path.split("/")[1] for path in files] == ["review", "ready", "blocked"]
    assert answers is not None
    assert {outcome for outcome, _ in answers} == {"accepted", "noop", "rejected", "unknown", "ignored"}


@requirement("aof1.detect.channels-agree")
@pytest.mark.parametrize("name", ["cli", "http", "mcp"])
def test_every_channel_leaves_the_same_events_reasons_and_files(name: str, tmp_path: Path, expected: Outcome) -> None:
    with channel(name, tmp_path) as one:
        came = one.run()
    assert came.events == expected.events
    assert came.files == expected.files
    assert came.answers == expected.answers


@requirement("aof1.detect.channels-agree")
def test_what_a_worker_prints_leaves_the_same_as_far_as_it_may_say_it(tmp_path: Path) -> None:
    with channel("python", tmp_path / "python") as python, channel("stdout", tmp_path / "stdout") as stdout:
        said, printed = python.run(by_ada), stdout.run(by_ada)
    assert printed.events == said.events
    assert printed.files == said.files


def plain(command: list[str]) -> dict[str, Any]:
    """A runner whose lines count as they are, as those of every other channel do."""
    return {"kind": "process", "command": command, "messages": "plain"}


def padded(task_id: str, size: int) -> str:
    """A status update whose envelope has this many bytes, and with which nothing else is wrong."""
    fields = update(task_id, progress="large")
    room = size - len(json.dumps(fields | {"more": ""}))
    return prefixed(fields | {"more": "x" * room})


def held(fabric: Fabric) -> str:
    """A task that ada works on."""
    task_id = fabric.create("Own", agent="ada").task_id
    fabric.claim(task_id, agent="ada")
    return task_id


def texts(root: Path) -> dict[str, str]:
    """The task files."""
    return {path.name: path.read_text() for path in (root / "tasks").rglob("*.md")}


def refusals(fabric: Fabric) -> list[str]:
    """Why messages were refused, in order."""
    return [event.payload["reason"] for event in fabric.events() if event.type == "protocol.message.rejected"]


@requirement("aof1.validate.size-envelope")
class TestTooLargeAnEnvelope:
    """A byte more than 10 MB is refused, and nothing else happens."""

    @pytest.mark.parametrize("prefix", ["AOF/1 ", ""], ids=["prefixed", "bare"])
    def test_the_command_line_refuses_it_and_takes_the_next_one(self, tmp_path: Path, prefix: str) -> None:
        with cli_door(tmp_path) as door:
            task_id = held(door.elsewhere)
            before = texts(door.root)
            text = prefix + padded(task_id, LIMIT + 1).removeprefix("AOF/1 ")
            (answer,) = by_cli(door.root, text)
            assert (answer["outcome"], answer["reason"]) == ("rejected", "payload_too_large")
            assert texts(door.root) == before
            small = prefix + json.dumps(update(task_id, progress="small"))
            first, second = by_cli(door.root, f"{text}\n{small}")
            assert (first["reason"], second["outcome"]) == ("payload_too_large", "accepted")
            assert refusals(door.elsewhere) == ["payload_too_large", "payload_too_large"]
            assert "Progress: small" in door.elsewhere.get(task_id).body

    def test_the_server_refuses_it_and_takes_the_next_one(self, tmp_path: Path) -> None:
        with http_door(tmp_path) as door:
            task_id = held(door.elsewhere)
            before = texts(door.root)
            answer = answer_of(door.ask("send", messages=[padded(task_id, LIMIT + 1)]))
            assert [one["reason"] for one in answer["results"]] == ["payload_too_large"]
            assert refusals(door.elsewhere) == ["payload_too_large"]
            refusal_of(door.ask("send", messages=[padded(task_id, 2 * LIMIT)]), "payload_too_large")
            assert texts(door.root) == before
            assert streamed(door, padded(task_id, 2 * LIMIT)) == "payload_too_large"
            assert texts(door.root) == before
            next_one = answer_of(door.ask("send", messages=[prefixed(update(task_id, progress="small"))]))
            assert next_one["results"][0]["outcome"] == "accepted"

    @pytest.mark.parametrize("size", [LIMIT + 1, 2 * LIMIT])
    def test_the_service_refuses_it_from_a_worker_and_takes_the_next_one(self, tmp_path: Path, size: int) -> None:
        with python_door(tmp_path) as door:
            task_id = door.elsewhere.create("Own", agent="ada").task_id
            large = tmp_path / "large.txt"
            large.write_text(padded(task_id, size))
            chart(door.root, {"ada": {"runner": plain(scripted(f"print={large}", "update=small", "report=done"))}})
            with Up(door.root, "--once") as up:
                assert up.finish() == 0, up.lines
            assert refusals(door.elsewhere) == ["payload_too_large"]
            task = door.elsewhere.get(task_id)
            assert "Progress: small" in task.body
            assert "large" not in task.body
            assert (task.status, task.retry.failures) == ("review", 0)

    def test_the_limit_itself_is_not_too_large(self, tmp_path: Path) -> None:
        with python_door(tmp_path) as door:
            task_id = held(door.elsewhere)
            (exact,) = door.elsewhere.send(padded(task_id, LIMIT))
            (over,) = door.elsewhere.send(padded(task_id, LIMIT + 1))
            assert (exact.outcome, over.reason) == ("accepted", "payload_too_large")


def streamed(door: OverHttp, text: str) -> str:
    """The code of the answer to a body whose length nobody said beforehand."""
    body = json.dumps({"messages": [text]}).encode()
    parts = (body[at : at + 1_000_000] for at in range(0, len(body), 1_000_000))
    return str(door.client.post("/api/v1/send", content=parts).json()["error"]["code"])


@pytest.mark.parametrize("name", DOORS)
def test_what_comes_after_the_limit_of_one_send_is_refused_with_one_answer(tmp_path: Path, name: str) -> None:
    with DOORS[name](tmp_path, "[messages]\nperSend = 3\n") as door:
        task_id = door.elsewhere.create("Talk").task_id
        notes = [json.dumps(update(task_id, WHO, notes=f"note {number}")) for number in range(5)]
        head = door.elsewhere.store.head()
        *taken, last = answer_of(door.ask("send", messages=["just talk", *notes, "talk"]))["results"]
        assert [one["outcome"] for one in taken] == ["ignored", *["accepted"] * 3], taken
        assert (last["outcome"], last["reason"]) == ("rejected", "too_many_messages")
        assert "3 messages; 3 more" in last["detail"]
        assert "perSend" in last["hint"]
        refused = [event for event in door.elsewhere.events(after=head) if event.type == "protocol.message.rejected"]
        assert [event.payload["reason"] for event in refused] == ["too_many_messages"]


def test_a_thousand_is_the_limit_of_one_send_unless_the_settings_say_otherwise(doors: Doors) -> None:
    assert doors["python"].elsewhere.services.environment.policy.messages_per_send == 1000
