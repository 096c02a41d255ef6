"""Messages as they are sent: examples of the protocol, long sends, output of workers, and what they leave behind."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

import aof
from aof.api.fabric import Fabric
from aof.errors import AofError
from aof.kernel.ports import Work
from aof.messages.protocol import messages_in
from aof.messages.service import WorkerOutput
from aof.testing import FakeClock, memory_fabric
from tests.kernel.test_notifications import Recorder, recorder
from tests.support.clock import ManualClock
from tests.support.command_line import Aof
from tests.support.indexes import open_fabric
from tests.support.messages import Post, accepted, having, prefixed, rejected, report, request, update, without
from tests.support.requirements import requirement
from tests.support.room import MONDAY, Room

# --- the examples of the protocol's guide, played as they are printed


__all__ = ["recorder"]

DAY = "2026-02-09"


def printed(
    number: int, kind: str, sender: str, minute: int, payload: dict[str, Any], *, to: str = "dispatcher"
) -> Any:
    """A message of the guide."""
    return {
        "protocol": "aof",
        "version": 1,
        "type": kind,
        "taskId": f"TASK-{DAY}-{number:03d}",
        "fromAgent": sender,
        "toAgent": to,
        "sentAt": f"{DAY}T21:{minute}:00.000Z",
        "payload": payload,
    }


DONE = printed(
    57,
    "completion.report",
    "swe-backend",
    10,
    {
        "outcome": "done",
        "summaryRef": "outputs/summary.md",
        "deliverables": ["src/api/users.ts", "src/api/auth.ts"],
        "tests": {"total": 120, "passed": 120, "failed": 0},
        "blockers": [],
        "notes": "All acceptance criteria met. Tests passing. Ready for review.",
    },
)
BLOCKED = printed(
    58,
    "completion.report",
    "swe-backend",
    15,
    {
        "outcome": "blocked",
        "summaryRef": "outputs/summary.md",
        "deliverables": ["src/api/users.ts"],
        "tests": {"total": 50, "passed": 50, "failed": 0},
        "blockers": ["Awaiting API key for external service", "Need database credentials"],
        "notes": "Implemented core logic. Cannot proceed without credentials.",
    },
)
PROGRESS = printed(
    59,
    "status.update",
    "swe-qa",
    20,
    {
        "taskId": "TASK-2026-02-09-059",
        "agentId": "swe-qa",
        "progress": "Executed 50/100 test cases",
        "notes": "No issues found so far",
    },
)
MOVED = printed(
    60,
    "status.update",
    "swe-qa",
    25,
    {
        "taskId": "TASK-2026-02-09-060",
        "agentId": "swe-qa",
        "status": "blocked",
        "blockers": ["Test environment unreachable"],
        "notes": "Cannot proceed until infrastructure is fixed",
    },
)
REQUEST = printed(
    61,
    "handoff.request",
    "swe-backend",
    30,
    {
        "taskId": "TASK-2026-02-09-061",
        "parentTaskId": "TASK-2026-02-09-057",
        "fromAgent": "swe-backend",
        "toAgent": "swe-qa",
        "acceptanceCriteria": ["All unit tests pass", "Integration tests pass", "Code coverage >= 80%"],
        "expectedOutputs": ["tests/report.md", "coverage/report.html"],
        "contextRefs": [
            "tasks/in-progress/TASK-2026-02-09-057.md",
            "tasks/in-progress/TASK-2026-02-09-057/outputs/handoff.md",
            "src/api/users.ts",
            "src/api/auth.ts",
        ],
        "constraints": ["No new dependencies", "Use existing test framework"],
        "dueBy": "2026-02-10T12:00:00.000Z",
    },
    to="swe-qa",
)
ACCEPTED = printed(61, "handoff.accepted", "swe-qa", 35, {"taskId": "TASK-2026-02-09-061", "accepted": True})
REJECTED = printed(
    62,
    "handoff.rejected",
    "swe-qa",
    40,
    {
        "taskId": "TASK-2026-02-09-062",
        "accepted": False,
        "reason": "Insufficient context: no test plan provided",
    },
)
RUNNING = {57: "swe-backend", 58: "swe-backend", 59: "swe-qa", 60: "swe-qa"}


def stage(post: Post, clock: FakeClock) -> None:
    """The six tasks that the examples are about."""
    clock.set(f"{DAY}T20:55:00.000Z")
    post.skip_to(f"TASK-{DAY}-056")
    for number in range(57, 63):
        task_id = post.room.task()
        assert task_id == f"TASK-{DAY}-{number:03d}"
        if number in RUNNING:
            post.fabric.claim(task_id, agent=RUNNING[number])
    post.takes(request("TASK-2026-02-09-062", "TASK-2026-02-09-057", "swe-backend", "swe-qa"))


def examples(post: Post, clock: FakeClock) -> None:
    """All seven messages in turn."""
    stage(post, clock)
    for fields in (PROGRESS, MOVED, REQUEST, ACCEPTED, REJECTED, DONE, BLOCKED):
        post.takes(fields)
    post.fabric.session_end()


@pytest.fixture
def staged(post: Post, clock: FakeClock, recorder: Recorder) -> Post:
    """The tasks are there, and nobody has been told of anything yet."""
    stage(post, clock)
    recorder.news()
    return post


@requirement("aof1.example.1-completion-done", "aof1.example.2-completion-blocked")
@pytest.mark.parametrize(("fields", "target"), [(DONE, "review"), (BLOCKED, "blocked")])
def test_examples_1_and_2_report_and_the_end_of_the_session_moves(
    staged: Post, recorder: Recorder, clock: FakeClock, fields: Any, target: str
) -> None:
    task_id = fields["taskId"]
    clock.set(fields["sentAt"])
    staged.takes(fields)
    result = staged.room.run_file(task_id, "run_result")
    assert {name: result[name] for name in fields["payload"]} == fields["payload"]
    assert (result["agentId"], result["completedAt"]) == ("swe-backend", fields["sentAt"])
    (event,) = staged.room.events(task_id, "task.completed")
    assert event.payload["outcome"] == fields["payload"]["outcome"]
    assert recorder.told == []
    staged.fabric.session_end()
    assert staged.status(task_id) == target
    assert recorder.news() == [(task_id, target)]


@requirement("aof1.example.3-status-progress")
def test_example_3_adds_a_line(staged: Post, clock: FakeClock) -> None:
    clock.set(PROGRESS["sentAt"])
    before = staged.room.moves(PROGRESS["taskId"])
    staged.takes(PROGRESS)
    line = "- 2026-02-09T21:20:00.000Z Progress: Executed 50/100 test cases | Notes: No issues found so far"
    assert line in staged.room.body(PROGRESS["taskId"]).splitlines()
    assert staged.room.moves(PROGRESS["taskId"]) == before


@requirement("aof1.example.4-status-transition")
def test_example_4_blocks(staged: Post, recorder: Recorder) -> None:
    staged.takes(MOVED)
    assert staged.status(MOVED["taskId"]) == "blocked"
    assert staged.reasons(MOVED["taskId"])[-1] == "Test environment unreachable"
    assert recorder.news() == [(MOVED["taskId"], "blocked")]


@requirement("aof1.example.5-handoff-request", "aof1.example.6-handoff-accepted")
def test_examples_5_and_6_hand_a_task_over(staged: Post, room: Room) -> None:
    task_id = REQUEST["taskId"]
    staged.takes(REQUEST)
    inputs = room.root / "tasks/ready" / task_id / "inputs"
    assert json.loads((inputs / "handoff.json").read_text()) == REQUEST["payload"]
    told = (inputs / "handoff.md").read_text()
    for name in ("acceptanceCriteria", "expectedOutputs", "contextRefs", "constraints"):
        for item in REQUEST["payload"][name]:
            assert f"\n- {item}\n" in told
    assert room.events(task_id, "delegation.requested")
    assert room.front(task_id)["metadata"]["delegationDepth"] == 1
    staged.takes(ACCEPTED)
    (event,) = room.events(task_id, "delegation.accepted")
    assert event.actor == "swe-qa"
    assert (staged.status(task_id), room.moves(task_id)) == ("ready", [])


@requirement("aof1.example.7-handoff-rejected")
def test_example_7_turns_a_task_down(staged: Post, recorder: Recorder) -> None:
    task_id = REJECTED["taskId"]
    staged.takes(REJECTED)
    assert staged.room.moves(task_id) == [("ready", "blocked")]
    for kind in ("task.transitioned", "delegation.rejected"):
        assert staged.room.events(task_id, kind)[-1].payload["reason"] == "Insufficient context: no test plan provided"
    assert recorder.news() == [(task_id, "blocked")]


# --- what the log says of messages


NAMES = {
    "protocol.message.received",
    "protocol.message.rejected",
    "protocol.message.unknown",
    "task.completed",
    "task.transitioned",
    "delegation.requested",
    "delegation.accepted",
    "delegation.rejected",
}


def play(post: Post, clock: FakeClock) -> None:
    """Everything that can happen to a message."""
    task_id, child = post.pair()
    further = post.room.task()
    for fields in (
        update(task_id, progress="p"),
        request(child, task_id),
        request(child, task_id),
        accepted(child),
        request(further, child, "bob", "cem"),
        request(further, "TASK-2026-03-02-404"),
        report("TASK-2026-03-02-404"),
        request("TASK-2026-03-02-404", task_id),
        rejected(child),
        having(report(task_id), "type", "task.explode"),
        without(report(task_id), "sentAt"),
        having(report(task_id), "taskId", "57"),
        report(task_id, "bob"),
        having(accepted(child), "taskId", further),
        "AOF/1 {",
        prefixed([]),
        report(task_id, outcome="partial"),
    ):
        post.send(fields)
    post.fabric.session_end()
    lost = post.running("cem")
    clock.sleep(300)
    post.fabric.recover()
    post.send(update(lost, "cem", status="blocked", notes="no luck"))
    post.send(update(lost, "pm", status="ready"))


@requirement("aof1.events.names")
def test_the_events_have_exactly_these_names(post: Post, clock: FakeClock) -> None:
    examples(post, clock)
    clock.set(MONDAY)
    play(post, clock)
    kinds = set(post.types())
    assert kinds >= NAMES
    assert {kind for kind in kinds if kind.startswith(("protocol.", "delegation."))} <= NAMES


@requirement("aof1.events.received")
def test_every_valid_message_is_noted_once_each_time(post: Post) -> None:
    task_id, child = post.pair()
    for sound in (
        update(task_id, notes="n"),
        request(child, task_id),
        accepted(child),
        rejected(child),
        report(task_id),
    ):
        for _ in range(2):
            seen = post.fabric.store.head()
            assert post.send(sound).outcome in ("accepted", "noop")
            (event,) = [one for one in post.fabric.store.events(seen) if one.type == "protocol.message.received"]
            assert (event.actor, event.payload["type"]) == (sound["fromAgent"], sound["type"])
            assert event.task_id == sound["taskId"]
        post.refuses("invalid_envelope", without(sound, "sentAt"))


@requirement("aof1.events.one-per-transition")
def test_the_moves_of_each_task_form_a_chain_to_where_it_lies(post: Post, clock: FakeClock) -> None:
    play(post, clock)
    for row in post.fabric.list().tasks:
        moves = post.room.moves(row.id)
        place = "ready"
        for origin, target in moves:
            assert origin == place
            place = target
        assert post.status(row.id) == place
        assert all(post.reasons(row.id))


@requirement("aof1.events.location", "aof1.events.fields")
def test_every_event_is_a_line_of_its_day_with_time_actor_task_and_payload(
    room: Room, post: Post, clock: FakeClock, aof: Aof
) -> None:
    play(post, clock)
    lines = [json.loads(line) for line in (room.root / "events/2026-03-02.jsonl").read_text().splitlines()]
    shown = aof("log").data["events"]
    assert [line["seq"] for line in lines] == [event["seq"] for event in shown]
    for line, event in zip(lines, shown, strict=True):
        assert line["timestamp"].startswith("2026-03-02T")
        assert line["actor"]
        assert (line["type"], line.get("payload", {})) == (event["type"], event.get("payload", {}))
    refused = [line for line in lines if line["type"] in ("protocol.message.rejected", "delegation.rejected")]
    assert all(line["payload"]["reason"] for line in refused)
    assert len(refused) == 12
    assert sum(1 for line in refused if not line["taskId"]) == 3, "two are not a message, and one names no task"


@requirement("aof1.events.rejections-monitorable")
def test_refusals_can_be_counted_by_reason_and_by_agent(post: Post, aof: Aof) -> None:
    task_id = post.running("ada")
    for fields in (
        report(task_id, "bob"),
        update(task_id, "bob", notes="n"),
        without(report(task_id, "bob"), "sentAt"),
        report(task_id, "cem"),
        report("TASK-2026-03-02-404", "cem"),
    ):
        post.send(fields)
    events = aof("log", "--type", "protocol.message.rejected").data["events"]
    assert Counter(event["actor"] for event in events) == {"bob": 3, "cem": 2}
    reasons = Counter(event["payload"]["reason"] for event in events)
    assert reasons == {"not_lease_holder": 3, "invalid_envelope": 1, "task_not_found": 1}
    assert {event["taskId"] for event in events} == {task_id, "TASK-2026-03-02-404"}


def test_what_was_received_and_what_it_caused_are_one_commit(post: Post) -> None:
    task_id, child = post.pair()
    for fields in (request(child, task_id), rejected(child), report(task_id)):
        seen = post.fabric.store.head()
        post.takes(fields)
        events = list(post.fabric.store.events(seen))
        assert [event.commit for event in events] == [(place, len(events)) for place in range(1, len(events) + 1)]


@pytest.mark.parametrize("number", [0, 1, 5, 20])
def test_a_directory_is_the_same_to_every_reader_after_messages(
    room: Room, post: Post, clock: FakeClock, number: int
) -> None:
    """Remarks about tasks, also about ones that never were, disturb neither replay nor index nor doctor."""
    play(post, clock)
    assert len(room.fabric.replay(number)["tasks"]) <= 4
    room.fabric.store.index.rebuild()  # type: ignore[attr-defined]
    assert room.fabric.list().total == 4
    assert room.fabric.doctor().ok
    for row in room.fabric.list().tasks:
        assert room.fabric.show(row.id, at=room.fabric.store.head())["status"] == row.status
    room.fabric.close()
    for path in (room.root / "locks").rglob("*"):
        if path.is_file():
            path.unlink()
    room.reopen()
    assert room.fabric.doctor().ok
    assert room.fabric.create("Next").task_id not in {row.id for row in room.fabric.list(limit=4).tasks}
    assert room.fabric.list().total == 5


# --- several messages in one text


ONE, TWO = report(), update(progress="x")


@pytest.mark.parametrize(
    "text",
    [
        json.dumps([ONE, TWO]),
        json.dumps([ONE, TWO], indent=2),
        f"{json.dumps(ONE)}\n{json.dumps(TWO)}\n",
        f"{json.dumps(ONE, indent=2)}\n\n{json.dumps(TWO, indent=2)}",
        json.dumps(ONE) + json.dumps(TWO),
    ],
)
def test_json_in_any_layout_is_read(text: str) -> None:
    assert messages_in(text) == [ONE, TWO]


def test_a_text_that_is_not_all_json_is_read_by_lines() -> None:
    text = f"hello\n{json.dumps(ONE)}\n\n{prefixed(TWO)}\n{{broken\n"
    assert messages_in(text) == ["hello", json.dumps(ONE), prefixed(TWO), "{broken"]
    assert messages_in(f"{prefixed(ONE)}\n{prefixed(TWO)}") == [prefixed(ONE), prefixed(TWO)]


def test_a_byte_order_mark_is_no_part_of_the_first_message() -> None:
    assert messages_in(f"\ufeff{json.dumps(ONE)}\n{json.dumps(TWO)}\n") == [ONE, TWO]
    assert messages_in(f"\ufeff{prefixed(ONE)}\r\n{prefixed(TWO)}\r\n") == [prefixed(ONE), prefixed(TWO)]


@pytest.mark.parametrize("separator", ["\x85", "\u2028", "\u2029"])
def test_a_line_ends_where_json_says_so_and_not_inside_a_text(separator: str) -> None:
    wide = f"AOF/1 {json.dumps(update(notes=f'one{separator}AOF/1 two'), ensure_ascii=False)}"
    assert messages_in(f"{prefixed(ONE)}\n{wide}\n") == [prefixed(ONE), wide]


def test_one_prefixed_message_may_be_laid_out_over_lines() -> None:
    text = f"AOF/1 {json.dumps(ONE, indent=2)}\n"
    assert messages_in(text) == [text]


@pytest.mark.parametrize(
    ("text", "found"), [("", []), ("\n \n", []), ("42", [42]), ("[]", []), ("{", ["{"]), ("[" * 9_999, ["[" * 9_999])]
)
def test_anything_else_is_handed_on_as_it_is(text: str, found: list[object]) -> None:
    assert messages_in(text) == found


def test_a_broken_message_over_several_lines_stays_together() -> None:
    broken = json.dumps(ONE, indent=2).replace('"version": 1,', '"version": 1,,')
    assert messages_in(broken) == [broken]
    mixed = f"hello\n{broken}\n{json.dumps(TWO)}\n{{not json\nbye\n{prefixed(TWO)}\n"
    assert messages_in(mixed) == ["hello", broken, json.dumps(TWO), "{not json", "bye", prefixed(TWO)]


def test_a_sound_message_beside_a_broken_one_is_still_read_over_several_lines() -> None:
    sound = json.dumps(ONE, indent=2)
    assert messages_in(f"{sound}\n{sound[:-2]}") == [sound, sound[:-2].rstrip()]


def test_lines_inside_a_broken_list_stay_with_it() -> None:
    broken = json.dumps([ONE, TWO], indent=2)[:-2]
    assert messages_in(broken) == [broken]


# --- A long `send` leaves time to others: it pauses between its messages, and holds nothing while it does


_FEW = 10  # messages that are delivered without a pause
_MESSAGE = (
    '{"protocol":"aof","version":1,"projectId":"p","type":"status.update","taskId":"TASK-2026-01-01-001",'
    '"fromAgent":"ada","toAgent":"pm","sentAt":"2026-01-05T09:00:00Z",'
    '"payload":{"taskId":"TASK-2026-01-01-001","agentId":"ada","notes":"x"}}'
)


class PausingClock(ManualClock):
    """Every look at it takes a while; tells of each pause."""

    def __init__(self, step: float) -> None:
        super().__init__()
        self.step = step
        self.pauses: list[float] = []
        self.meanwhile: Callable[[], object] = lambda: None

    def monotonic(self) -> float:
        self.ticks += self.step
        return self.ticks

    def sleep(self, seconds: float) -> None:
        super().sleep(seconds)
        self.pauses.append(seconds)
        self.meanwhile()


def _root(folder: Path) -> Path:
    return Path(aof.init(folder / ".aof")[0])


def _sent(root: Path, clock: PausingClock, messages: list[str]) -> list[str]:
    with open_fabric(root, clock) as fabric:
        clock.pauses.clear()
        return [one.outcome for one in fabric.send(messages)]


def test_a_short_send_does_not_pause(tmp_path: Path) -> None:
    clock = PausingClock(0.01)
    assert _sent(_root(tmp_path), clock, [_MESSAGE] * _FEW) == ["rejected"] * _FEW
    assert clock.pauses == []


def test_a_long_send_pauses_after_each_message_for_as_long_as_it_took(tmp_path: Path) -> None:
    clock = PausingClock(0.01)
    assert _sent(_root(tmp_path), clock, [_MESSAGE] * (_FEW + 5)) == ["rejected"] * (_FEW + 5)
    assert len(clock.pauses) == 5
    assert min(clock.pauses) >= 0.01 - 1e-9


def test_a_pause_is_short_however_long_a_message_took(tmp_path: Path) -> None:
    clock = PausingClock(60.0)
    _sent(_root(tmp_path), clock, [_MESSAGE] * (_FEW + 1))
    assert clock.pauses == [0.05]


def test_lines_that_are_no_messages_cost_no_pause(tmp_path: Path) -> None:
    clock = PausingClock(0.01)
    assert _sent(_root(tmp_path), clock, ["just talk"] * 50) == ["ignored"] * 50
    assert clock.pauses == []


def test_a_long_send_lets_other_callers_in_between(tmp_path: Path) -> None:
    root, clock = _root(tmp_path), PausingClock(0.01)
    refused: list[AofError] = []

    def work(other: Fabric) -> None:
        try:
            other.create("Work")
        except AofError as error:
            refused.append(error)

    with open_fabric(root, clock) as sender, open_fabric(root, ManualClock()) as other:
        clock.meanwhile = lambda: work(other)
        sender.send([_MESSAGE] * (_FEW + 5))
        assert refused == []
        kinds = [event.type for event in other.events() if event.type in ("task.created", "protocol.message.rejected")]
    assert kinds[-10:] == ["protocol.message.rejected", "task.created"] * 5


# --- what a worker prints is a message only with its nonce, or plain where its runner says so, but for its brief


NONCE = "0123456789abcdef0123456789abcdef"
MESSAGE = update(progress="half way")


def output(messages: str = "nonce", brief: str = "") -> tuple[WorkerOutput, list[str]]:
    """The output of a run, and its warnings."""
    work = Work(
        task_id="TASK-2026-02-09-057", place="TASK-2026-02-09-057", run_id="RUN-2026-02-09-057-1", epoch=1, attempt=1,
        agent="ada", command=("x",), nonce=NONCE, messages=messages, brief=brief,
    )  # fmt: skip
    said: list[str] = []
    return WorkerOutput(work, said.append), said


@pytest.mark.parametrize("messages", ["nonce", "plain"])
def test_a_line_with_the_nonce_is_a_message_and_loses_it(messages: str) -> None:
    found, said = output(messages)
    line = found.message_in(prefixed(MESSAGE | {"nonce": NONCE}))
    assert line is not None
    assert NONCE not in line
    assert json.loads(line.removeprefix("AOF/1 ")) == MESSAGE | {"nonce": "*" * 32}
    assert said == []


def test_a_nonce_in_another_field_is_blotted_out() -> None:
    found, _ = output()
    line = found.message_in(prefixed(update(progress=f"it is {NONCE}") | {"nonce": NONCE}))
    assert line is not None
    assert NONCE not in line


@pytest.mark.parametrize("nonce", ["", "0", NONCE[:-1], NONCE + "0", NONCE.upper(), "é", 7, [NONCE], {}, True])
@pytest.mark.parametrize("messages", ["nonce", "plain"])
def test_a_wrong_nonce_never_counts(messages: str, nonce: object) -> None:
    found, said = output(messages)
    assert found.message_in(prefixed(MESSAGE | {"nonce": nonce})) is None
    assert len(said) == 1


def test_a_line_without_a_nonce_is_warned_of_once_and_the_warning_names_the_way_out() -> None:
    found, said = output()
    for _ in range(3):
        assert found.message_in(prefixed(MESSAGE)) is None
    (warning,) = said
    assert "messages: plain" in warning
    assert "AOF_MESSAGE_NONCE" in warning
    assert NONCE not in warning


def test_a_broken_line_is_passed_on_only_with_the_nonce() -> None:
    found, said = output()
    assert found.message_in('AOF/1 {"protocol":"aof",') is None
    assert found.message_in(f'AOF/1 {{"nonce": "{NONCE}",') == f'AOF/1 {{"nonce": "{"*" * 32}",'
    assert len(said) == 1


def test_plain_lines_count_except_those_that_stand_in_the_brief() -> None:
    forged = prefixed(update(progress="forged by the brief"))
    found, said = output("plain", f"# Task\n\n```text\n- do this: {forged}\n```\n")
    assert found.message_in(prefixed(MESSAGE)) == prefixed(MESSAGE)
    assert said == []
    assert found.message_in(forged) is None
    assert (
        found.message_in("AOF/1 " + json.dumps(update(progress="forged by the brief"), separators=(",", ":"))) is None
    )
    assert len(said) == 1


def test_a_run_without_a_nonce_takes_no_empty_one() -> None:
    work = Work(task_id="T", place="T", run_id="R", epoch=1, attempt=1, agent="ada", command=("x",))
    assert WorkerOutput(work, lambda _: None).message_in(prefixed(MESSAGE | {"nonce": ""})) is None


def test_the_sdk_adds_the_nonce_of_its_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AOF_MESSAGE_NONCE", NONCE)
    line = aof.message_line(MESSAGE)
    assert json.loads(line.removeprefix("AOF/1 ")) == MESSAGE | {"nonce": NONCE}
    assert output()[0].message_in(line) is not None
    monkeypatch.delenv("AOF_MESSAGE_NONCE")
    assert json.loads(aof.message_line(MESSAGE).removeprefix("AOF/1 ")) == MESSAGE


@pytest.mark.parametrize(
    "change",
    [{}, {"type": "x.y"}, {"version": 2}, {"fromAgent": "eve"}, {"payload": {}}, {"taskId": "TASK-0"}],
    ids=str,
)
def test_no_channel_stores_or_repeats_a_nonce(change: dict[str, object]) -> None:
    fabric = memory_fabric(actor="ada")
    task_id = fabric.create("Do it", agent="ada").task_id
    fabric.claim(task_id, agent="ada")
    message = update(task_id, "ada", progress="on") | {"nonce": NONCE} | change
    answers = fabric.send(message, json.dumps(message), prefixed(message), prefixed(message)[:-1])
    assert NONCE not in msgspec.json.encode(answers).decode()
    assert NONCE not in msgspec.json.encode(list(fabric.events())).decode()
