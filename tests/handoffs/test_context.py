"""What agents share: context, locks on files, and the history that they are told."""

from __future__ import annotations

import hashlib
import json
from typing import Any, get_args

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from aof.errors import AofError, ContextConflict, FileLocked, OutOfScope
from aof.handoffs.access import LockFiles, UnlockFiles
from aof.handoffs.context import (
    TaskStatus,
    Write,
    Writer,
    Written,
    context_of,
    digest,
    snapshot,
    write,
)
from aof.handoffs.model import HandoffType
from aof.handoffs.payload import (
    BYTES,
    DEFAULT_MODES,
    MESSAGE_KINDS,
    TRANSFER_MODES,
    ConversationMessage,
    HistoryInclude,
    HistoryPolicy,
    TransferredHistory,
    messages_from,
    policy_from,
    transferred,
)
from aof.kernel import commands
from aof.kernel.commands import Decision
from aof.kernel.events import Draft, Event
from aof.kernel.evolve import evolve
from aof.kernel.kinds import LockMode
from aof.kernel.limits import normalised, overlap
from aof.kernel.model import PRIORITIES, STATUSES
from aof.tasks.model import FileLock, Task
from aof.workflows.model import leases
from tests.support.world import MINUTE, World

# --- the shared context of a workflow: what a handoff takes along, and who may write what


TOP, SUB, OTHER = "TASK-2026-03-02-001", "TASK-2026-03-02-002", "TASK-2026-03-02-003"
NOON = "2026-03-02T12:00:00.000Z"
ADA, BOB, PM = Writer(agent="ada"), Writer(agent="bob", roles=frozenset({"reviewer"})), Writer(agent="pm", steers=True)


def task(task_id: str = TOP, **given: Any) -> Task:
    parts: dict[str, Any] = {"status": "in-progress", "priority": "high", "title": "Add refresh endpoint"} | given
    parts |= dict.fromkeys(("created_at", "updated_at", "last_transition_at"), NOON)
    return Task(schema_version=1, id=task_id, rev=1, created_by="pm", **parts)


def after(top: Task, drafts: tuple[Draft, ...]) -> Task:
    """The task once these are recorded."""
    for number, draft in enumerate(drafts, top.rev + 1):
        top = evolve(
            top,
            Event(
                seq=number,
                type=draft.type,
                timestamp=NOON,
                actor="ada",
                task_id=draft.task_id,
                payload=draft.payload,
                commit=(1, 1),
            ),
        )
    return top


def wrote(top: Task, writer: Writer, *writes: Write, on: str = TOP) -> Task:
    written = write(top, writes, writer=writer, task_id=on)
    assert not written.refusals, written.refusals
    return after(top, written.drafts)


def values(top: Task) -> dict[str, Any]:
    return {name: one.value for name, one in context_of(top).variables.items()}


def refused(written: Written) -> AofError:
    (refusal,) = written.refusals
    return refusal


def test_a_snapshot_states_the_task_and_its_hash_is_of_the_canonical_json() -> None:
    top = wrote(task(), ADA, Write(name="branch", value="main"))
    taken = snapshot(top, "sequential")
    told = taken.context_variables
    assert (told.task_id, told.task_status, told.task_priority) == (TOP, "in_progress", "high")
    assert told.custom == {"branch": "main"}
    plain = json.dumps(json.loads(msgspec.json.encode(told)), sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    assert taken.context_variables_hash == hashlib.sha256(plain.encode()).hexdigest()


@pytest.mark.parametrize("status", STATUSES)
def test_every_status_and_priority_is_told_in_the_words_of_a_handoff(status: str) -> None:
    for priority in PRIORITIES:
        told = snapshot(task(status=status, priority=priority), "sequential").context_variables
        assert told.task_status in get_args(TaskStatus)
        assert told.task_priority == priority


def test_the_files_that_agents_work_on_are_listed_with_owner_and_kind_of_lock() -> None:
    modes: tuple[LockMode, LockMode] = ("exclusive", "shared")
    locks = [
        FileLock(path=f"src/{mode}.py", mode=mode, agent="ada", run_id="RUN-2026-03-02-001-1", since=NOON)
        for mode in modes
    ]
    listed = snapshot(task(), "sequential", files=locks).context_variables.files_in_progress
    assert [msgspec.to_builtins(one) for one in listed] == [
        {"path": "src/exclusive.py", "owner": "ada", "lock_type": "exclusive"},
        {"path": "src/shared.py", "owner": "ada", "lock_type": "shared"},
    ]


def test_a_delegation_takes_along_what_concerns_the_subtask_and_the_others_take_all() -> None:
    top = task()
    for writer, name, scope, on in (
        (ADA, "private", "ada", TOP),
        (ADA, "named", "ada", TOP),
        (ADA, "open", "shared", TOP),
        (PM, "review", "role:reviewer", TOP),
        (ADA, "sub", "ada", SUB),
    ):
        top = wrote(top, writer, Write(name=name, value=1, scope=scope), on=on)
    sub = task(SUB, parent_id=TOP)
    kinds: tuple[HandoffType, ...] = ("sequential", "broadcast", "escalation")
    for kind in kinds:
        whole = snapshot(sub, kind, top=top, receiver=BOB).context_variables
        assert set(whole.custom) == {"private", "named", "open", "review", "sub"}
    scoped = snapshot(sub, "delegation", top=top, receiver=BOB, names=("named",)).context_variables
    assert set(scoped.custom) == {"named", "open", "review", "sub"}


def test_an_escalation_takes_its_rationale_along_and_nothing_else_does() -> None:
    assert snapshot(task(), "escalation", rationale="above my risk").escalation_rationale == "above my risk"
    assert snapshot(task(), "sequential", rationale="above my risk").escalation_rationale is None


def test_a_write_within_the_scope_is_stored_and_one_outside_changes_nothing() -> None:
    top = wrote(task(), ADA, Write(name="plan", value="a"))
    before = digest(snapshot(top, "sequential").context_variables)
    written = write(top, (Write(name="plan", value="b"),), writer=BOB, task_id=TOP)
    refusal = refused(written)
    assert isinstance(refusal, OutOfScope)
    assert refusal.details["scope"] == "ada"
    top = after(top, written.drafts)
    assert digest(snapshot(top, "sequential").context_variables) == before
    assert [(one.type, one.payload["reason"]) for one in written.drafts] == [("context.refused", "out_of_scope")]


def test_an_agent_writes_shared_variables_and_those_of_its_roles_and_the_orchestrator_all() -> None:
    top = wrote(task(), ADA, Write(name="open", value=1, scope="shared"), Write(name="mine", value=1))
    top = wrote(top, BOB, Write(name="open", value=2), Write(name="verdict", value="ok", scope="role:reviewer"))
    top = wrote(top, PM, Write(name="mine", value=3))
    assert values(top) == {"open": 2, "mine": 3, "verdict": "ok"}
    assert isinstance(
        refused(write(top, (Write(name="verdict", value=0),), writer=ADA, task_id=TOP)),
        OutOfScope,
    )
    assert isinstance(
        refused(write(top, (Write(name="new", value=0, scope="bob"),), writer=ADA, task_id=TOP)), OutOfScope
    )


def test_of_two_writes_from_one_version_the_first_holds_and_both_are_recorded() -> None:
    top = wrote(task(), ADA, Write(name="port", value=1, scope="shared"))
    top = wrote(top, ADA, Write(name="port", value=2, base=1))
    late = write(top, (Write(name="port", value=3, base=1),), writer=BOB, task_id=TOP)
    assert isinstance(refused(late), ContextConflict)
    (told,) = late.drafts
    assert told.type == "context.conflict"
    assert (told.payload["value"], told.payload["held"]["value"]) == (3, 2)
    assert (told.payload["rule"], told.payload["resolution"]) == ("first", "kept")
    assert values(after(top, late.drafts)) == {"port": 2}


def test_the_orchestrators_rule_may_let_the_last_write_hold() -> None:
    top = wrote(task(), ADA, Write(name="port", value=1, scope="shared"))
    top = after(top, (Draft(type="context.rule", task_id=TOP, payload={"rule": "last"}),))
    late = write(top, (Write(name="port", value=3, base=0),), writer=BOB, task_id=TOP)
    assert not late.refusals
    assert [one.type for one in late.drafts] == ["context.conflict", "context.set"]
    assert late.drafts[0].payload["resolution"] == "replaced"
    assert values(after(top, late.drafts)) == {"port": 3}


def test_the_orchestrator_decides_a_conflict_by_writing() -> None:
    top = wrote(task(), ADA, Write(name="port", value=1, scope="shared"))
    assert values(wrote(top, PM, Write(name="port", value=9, base=0))) == {"port": 9}


def test_a_return_changes_what_is_in_the_returning_agents_scope_and_records_the_rest() -> None:
    top = wrote(task(), ADA, Write(name="plan", value="a"), Write(name="open", value=1, scope="shared"))
    brought = {"open": 2, "plan": "b", "found": [1]}
    writes = tuple(Write(name=name, value=value) for name, value in brought.items())
    written = write(top, writes, writer=BOB, task_id=SUB)
    assert [one.code for one in written.refusals] == ["out_of_scope"]
    top = after(top, written.drafts)
    assert values(top) == {"plan": "a", "open": 2, "found": [1]}
    assert context_of(top) == msgspec.structs.replace(
        written.context,
        variables={
            name: msgspec.structs.replace(one, written_at=NOON) for name, one in written.context.variables.items()
        },
    )
    assert context_of(top).variables["found"].scope == "bob"


@pytest.mark.parametrize(
    ("name", "value", "scope"),
    [
        ("task_status", "stuck", None),
        ("", 1, None),
        ("a\nb", 1, None),
        ("a", float("nan"), None),
        ("a", b"\x00", None),
        ("a", "x" * 30_000, None),
        ("a", 1, "role:"),
        ("a", 1, "../x"),
    ],
)
def test_what_is_no_variable_is_refused_and_recorded(name: str, value: object, scope: str | None) -> None:
    written = write(task(), (Write(name=name, value=value, scope=scope),), writer=ADA, task_id=TOP)
    assert refused(written).kind == "invalid"
    assert [one.type for one in written.drafts] == ["context.refused"]
    msgspec.json.encode([one.payload for one in written.drafts])
    assert not context_of(after(task(), written.drafts)).variables


def test_the_same_value_again_writes_nothing() -> None:
    top = wrote(task(), ADA, Write(name="plan", value={"a": 1}))
    assert write(top, (Write(name="plan", value={"a": 1}),), writer=ADA, task_id=TOP).drafts == ()


def test_a_context_has_a_limit() -> None:
    top = task()
    for number in range(3):
        written = write(top, (Write(name=f"n{number}", value="x" * 10_000),), writer=ADA, task_id=TOP)
        top = after(top, written.drafts)
    assert refused(written).code == "payload_too_large"
    assert set(values(top)) == {"n0", "n1"}


# --- locks on files: who gets one, what is in the way, and that the dead hold none


def locking(world: World, task: str, agent: str, *paths: str, mode: str = "exclusive", **more: Any) -> Decision:
    return world.act(LockFiles, task, agent, paths=paths, mode=mode, **more)


def held(world: World, task: str) -> list[tuple[str, str, str]]:
    return sorted((lock.path, lock.mode, lock.agent) for lock in world.tasks[task].locks)


def two() -> tuple[World, str, str]:
    """Two running tasks, of ada and of bob."""
    world = World()
    first, second = world.create(), world.create()
    world.claim(first, "ada")
    world.claim(second, "bob")
    return world, first, second


def lock_refused(world: World, task: str, agent: str, *paths: str, mode: str = "exclusive") -> FileLocked:
    decision = locking(world, task, agent, *paths, mode=mode)
    assert isinstance(decision.refusal, FileLocked)
    assert [draft.type for draft in decision.drafts] == ["file.refused"]
    return decision.refusal


@pytest.mark.parametrize(
    ("path", "spelled"),
    [
        ("src/api.py", "src/api.py"),
        ("./src//api.py", "src/api.py"),
        ("src/", "src"),
        ("SRC/Api.py", "SRC/Api.py"),
        ("src\\api.py", "src/api.py"),
        (".", "."),
        ("a..b/c", "a..b/c"),
    ],
)
def test_a_path_has_one_spelling_and_keeps_its_case(path: str, spelled: str) -> None:
    assert normalised("path", path) == spelled


@pytest.mark.parametrize(
    "path", ["/etc/passwd", "..", "a/../../b", "a/..", "~/x", "C:\\x", "\\\\host\\x", "", " ", "a\nb", "x" * 300]
)
def test_a_path_that_leads_out_of_the_project_is_refused(path: str) -> None:
    world, first, _ = two()
    assert world.refuse(LockFiles, first, "ada", paths=(path,)).kind == "invalid"


def test_an_exclusive_lock_keeps_others_away_and_the_refusal_says_who_has_what_since_when() -> None:
    world, first, second = two()
    locking(world, first, "ada", "src/api.py")
    world.later(MINUTE)
    for mode in ("exclusive", "shared"):
        refusal = lock_refused(world, second, "bob", "src/api.py", mode=mode)
        told = refusal.details
        assert (told["holder"], told["holder_task"], told["since"]) == ("ada", first, "2026-03-02T09:00:00.000Z")
        assert told["holder_run"] == world.lease_run(first)
        assert all(word in refusal.message for word in ("ada", first, "since 2026-03-02T09:00:00.000Z"))
    assert held(world, second) == []


@pytest.mark.parametrize(("mine", "theirs"), [("src", "src/api.py"), ("src/api.py", "src"), (".", "a"), ("a", ".")])
def test_a_lock_on_a_folder_covers_what_is_below_it(mine: str, theirs: str) -> None:
    world, first, second = two()
    locking(world, first, "ada", mine)
    lock_refused(world, second, "bob", theirs)
    assert not overlap("src", "srcs/a")
    assert not overlap("src/a", "src/A")


def test_shared_locks_go_together_and_an_exclusive_one_waits_for_all_of_them() -> None:
    world, first, second = two()
    third = world.create()
    world.claim(third, "cem")
    locking(world, first, "ada", "src", mode="shared")
    locking(world, second, "bob", "src", mode="shared")
    lock_refused(world, third, "cem", "src")
    world.act(UnlockFiles, first, "ada", paths=("src",))
    lock_refused(world, third, "cem", "src")
    world.act(UnlockFiles, second, "bob")
    locking(world, third, "cem", "src")
    assert held(world, third) == [("src", "exclusive", "cem")]


def test_several_paths_are_locked_together_or_not_at_all() -> None:
    world, first, second = two()
    locking(world, first, "ada", "b")
    lock_refused(world, second, "bob", "a", "b")
    assert held(world, second) == []
    locking(world, second, "bob", "a", "c", "./a")
    assert held(world, second) == [("a", "exclusive", "bob"), ("c", "exclusive", "bob")]


def test_the_same_lock_again_changes_nothing_and_a_shared_one_may_become_exclusive() -> None:
    world, first, second = two()
    locking(world, first, "ada", "a", mode="shared")
    assert not locking(world, first, "ada", "a", mode="shared").drafts
    locking(world, first, "ada", "a")
    assert held(world, first) == [("a", "exclusive", "ada")]
    assert not locking(world, first, "ada", "a", mode="shared").drafts
    lock_refused(world, second, "bob", "a", mode="shared")


def test_only_the_holder_of_a_run_locks_and_gives_back_and_only_its_own() -> None:
    world, first, second = two()
    locking(world, first, "ada", "a")
    assert world.refuse(LockFiles, first, "bob", paths=("b",)).code == "not_lease_holder"
    assert world.refuse(UnlockFiles, first, "bob").code == "not_lease_holder"
    assert world.refuse(LockFiles, world.create(), "ada", paths=("b",)).code == "stale_lease"
    assert (
        world.refuse(LockFiles, first, "ada", paths=("b",), run="RUN-2026-03-02-001-9-00000000").code == "stale_lease"
    )
    assert world.refuse(LockFiles, first, "ada", paths=("b",), mode="advisory").kind == "invalid"
    assert not world.act(UnlockFiles, second, "bob", paths=("a",)).drafts
    assert held(world, first) == [("a", "exclusive", "ada")]


ENDS: dict[str, tuple[type[commands.OnTask], str, dict[str, Any]]] = {
    "complete": (commands.Complete, "ada", {}),
    "blocked": (commands.Complete, "ada", {"outcome": "blocked", "blockers": ("x",)}),
    "fail": (commands.Fail, "ada", {}),
    "release": (commands.Release, "ada", {}),
    "block": (commands.Block, "pm", {"reason": "x"}),
    "pause": (commands.Pause, "pm", {}),
    "cancel": (commands.CancelTask, "pm", {}),
    "back": (commands.Update, "ada", {"status": "ready"}),
}


@pytest.mark.parametrize("end", ENDS)
def test_whatever_ends_a_run_ends_its_locks_and_no_others(end: str) -> None:
    world, first, second = two()
    locking(world, first, "ada", "a")
    locking(world, second, "bob", "b")
    kind, actor, fields = ENDS[end]
    world.act(kind, first, actor, **fields)
    assert held(world, first) == []
    assert held(world, second) == [("b", "exclusive", "bob")]
    locking(world, second, "bob", "a")


def test_the_locks_of_a_run_that_expired_are_gone() -> None:
    world = World()
    task = world.create()
    world.claim(task, "ada")
    locking(world, task, "ada", "a")
    world.expire(task)
    assert held(world, task) == []


def test_a_holder_that_shows_no_life_loses_its_lock_to_the_next_that_asks() -> None:
    world, first, second = two()
    locking(world, first, "ada", "a", "b")
    world.later(world.policy.lease_ttl_ms - MINUTE)
    world.act(commands.RecordHeartbeat, second, "bob")
    lock_refused(world, second, "bob", "a")
    world.later(MINUTE)
    decision = locking(world, second, "bob", "a")
    assert [(one.type, one.task_id) for one in decision.drafts] == [("file.unlocked", first), ("file.locked", second)]
    assert decision.drafts[0].payload["reason"] == "holder_lost"
    world.act(commands.RecordHeartbeat, first, "ada")  # it lives after all, and keeps what nobody has asked for
    assert held(world, first) == [("b", "exclusive", "ada")]
    lock_refused(world, first, "ada", "a")


AGENTS = ("ada", "bob", "cem")
PATHS = st.sampled_from(("a", "a/b", "a/b/c", "d", "."))
WHATS = ("exclusive", "exclusive", "shared", "unlock", "later", "beat", "expire", *ENDS)
STEPS = st.tuples(st.sampled_from(WHATS), st.sampled_from(AGENTS), PATHS)


def step(world: World, what: str, task: str, agent: str, path: str) -> None:
    """Let one thing happen to the run of an agent."""
    match what:
        case "exclusive" | "shared":
            locking(world, task, agent, path, mode=what)
        case "unlock":
            world.act(UnlockFiles, task, agent, paths=(path,))
        case "beat":
            world.act(commands.RecordHeartbeat, task, agent)
        case "later":
            world.later(4 * MINUTE)
        case "expire":
            world.act(commands.Expire, task, "aof")
        case _:
            kind, actor, fields = ENDS[what]
            world.act(kind, task, agent if actor == "ada" else actor, **fields)


@given(st.lists(STEPS, max_size=25))
def test_whatever_happens_the_dead_hold_no_lock_and_no_two_runs_exclude_each_other(
    steps: list[tuple[str, str, str]],
) -> None:
    world = World()
    tasks = dict.fromkeys(AGENTS, "")
    for what, agent, path in steps:
        task = tasks[agent]
        if not task or not leases(world.tasks[task]):
            task = tasks[agent] = world.create()
            world.claim(task, agent)
        step(world, what, task, agent, path)
        locks = [(lock, one) for one in world.tasks.values() for lock in one.locks]
        for number, (lock, owner) in enumerate(locks):
            assert lock.run_id in {lease.run_id for lease in leases(owner)}
            for other, _ in locks[:number]:
                together = lock.run_id == other.run_id or lock.mode == other.mode == "shared"
                assert together or not overlap(lock.path, other.path)


# --- which part of a conversation a handoff takes along


FIFTY = tuple(ConversationMessage(content=f"message {number}") for number in range(50))
ONE_EACH = tuple(ConversationMessage(content=kind, kind=kind) for kind in MESSAGE_KINDS)


def sent(
    messages: tuple[ConversationMessage, ...], kind: HandoffType = "escalation", **policy: Any
) -> TransferredHistory:
    history = transferred(messages, kind, HistoryPolicy(**policy), task(body="Write the endpoint.\n"))
    assert isinstance(history, TransferredHistory), history
    return history


def test_full_delivers_every_message_and_the_other_modes_deliver_less() -> None:
    got = {mode: sent(FIFTY, transfer_mode=mode) for mode in TRANSFER_MODES}
    assert got["full"].messages == FIFTY
    assert (got["full"].omitted, len(got["relevant_only"].messages), got["relevant_only"].omitted) == (0, 10, 40)
    (summary,) = got["summary"].messages
    assert "50 messages" in summary.content
    assert "message 0" in summary.content
    assert "message 49" in summary.content
    unknown = policy_from({"transfer_mode": "none"})
    assert isinstance(unknown, AofError)
    assert unknown.kind == "invalid"


def test_relevant_is_what_is_marked_or_about_the_task() -> None:
    about = ConversationMessage(content="the port", task_id=TOP)
    named = ConversationMessage(content=f"see {TOP}")
    marked = ConversationMessage(content="the key", task_id=OTHER, relevant=True)
    others = (ConversationMessage(content="lunch"), ConversationMessage(content="the door", task_id=OTHER))
    assert sent((about, *others, named, marked), transfer_mode="relevant_only").messages == (about, named, marked)
    assert sent(others, transfer_mode="relevant_only").messages == ()


def test_the_senders_own_summary_is_delivered_as_it_is() -> None:
    (summary,) = sent(FIFTY, transfer_mode="summary", summary="All agreed on REST.").messages
    assert summary.content == "All agreed on REST."


@pytest.mark.parametrize("mode", TRANSFER_MODES)
@pytest.mark.parametrize("most", [0, 1, 10])
def test_no_more_than_max_messages_are_transferred_and_they_are_the_last(mode: str, most: int) -> None:
    got = sent(FIFTY, transfer_mode=mode, max_messages=most).messages
    assert len(got) <= most
    if mode == "full":
        assert got == FIFTY[len(FIFTY) - most :]
    assert len(sent(FIFTY, transfer_mode="full").messages) == len(FIFTY)


@pytest.mark.parametrize(
    ("switch", "kind"),
    [
        ("system_messages", "system"),
        ("tool_calls", "tool_call"),
        ("tool_results", "tool_result"),
        ("agent_reasoning", "reasoning"),
    ],
)
def test_each_switch_takes_out_exactly_its_kind(switch: str, kind: str) -> None:
    got = sent(ONE_EACH, transfer_mode="full", include=HistoryInclude(**{switch: False})).messages
    assert {one.kind for one in ONE_EACH} - {one.kind for one in got} == {kind}


def test_without_a_mode_the_type_of_the_handoff_decides() -> None:
    modes = {kind: sent(FIFTY, kind).transfer_mode for kind in DEFAULT_MODES}
    assert modes == DEFAULT_MODES
    assert (modes["sequential"], modes["delegation"], modes["escalation"]) == ("relevant_only", "summary", "full")
    assert sent(FIFTY, "escalation").messages == FIFTY
    assert sent(FIFTY, "delegation").subtask == "Add refresh endpoint\n\nWrite the endpoint."
    assert sent(FIFTY, "sequential").subtask is None


@pytest.mark.parametrize(
    "given",
    [
        "text",
        [{"kind": "message"}],
        [{"content": "a", "kind": "song"}],
        [{"content": "x" * 10_001}],
        [{"content": "a", "agent": "../x"}],
        [{"content": "a\x00b"}],
        ["a"] * 1_001,
        [3],
    ],
)
def test_what_is_no_conversation_is_refused(given: object) -> None:
    found = messages_from(given)
    assert isinstance(found, AofError)
    assert found.kind == "invalid"
    assert found.hint


@pytest.mark.parametrize(
    "given",
    [
        {"max_messages": -1},
        {"max_messages": True},
        {"include": {"jokes": True}},
        {"include": {"tool_calls": "no"}},
        {"mode": "full"},
        {"summary": "x" * 10_001},
    ],
)
def test_what_is_no_policy_is_refused(given: dict[str, Any]) -> None:
    found = policy_from(given)
    assert isinstance(found, AofError)
    assert found.hint


def test_texts_and_objects_are_messages() -> None:
    assert messages_from(["hello", {"content": "ls", "kind": "tool_call", "agent": "ada"}]) == (
        ConversationMessage(content="hello"),
        ConversationMessage(content="ls", kind="tool_call", agent="ada"),
    )
    assert policy_from({"transfer_mode": "full", "max_messages": 3}) == HistoryPolicy(
        transfer_mode="full", max_messages=3
    )


def test_a_history_has_a_limit_in_bytes_and_the_refusal_says_what_fits() -> None:
    long = tuple(ConversationMessage(content="x" * 9_000) for _ in range(BYTES // 9_000 + 1))
    refusal = transferred(long, "escalation", HistoryPolicy(), task())
    assert isinstance(refusal, AofError)
    assert "max_messages" in refusal.hint
    assert len(sent(long, max_messages=3).messages) == 3
