"""Peers that lie, flood or stay silent: the task of ours ends in a clear state, in bounded time and memory."""

from __future__ import annotations

import gzip
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from aof.api.fabric import Fabric
from tests.support.delegated import IMPATIENT, PATIENT, fabric_of, output, portable, run_at
from tests.support.requirements import requirement
from tests.support.scripted_peer import ScriptedPeer, serving

Answer = dict[str, Any]


@pytest.fixture
def fabric(tmp_path: Path) -> Iterator[Fabric]:
    with fabric_of(tmp_path) as opened:
        yield opened


def update(state: str, task_id: str = "remote-1", **message: Any) -> Answer:
    """One update of a stream."""
    told = {"message": {"role": "ROLE_AGENT", **message}} if message else {}
    status = {"state": f"TASK_STATE_{state.upper()}", **told}
    return {"statusUpdate": {"taskId": task_id, "contextId": "context-1", "status": status}}


def says(peer: ScriptedPeer, method: str, *answers: Answer) -> None:
    """Let the peer answer this method so; the last answer stays."""
    tell, left = peer.answer, list(answers)

    def told(asked: str, params: Answer) -> Answer:
        usual = tell(asked, params)
        if asked != method:
            return usual
        return left.pop(0) if len(left) > 1 else left[0]

    setattr(peer, "answer", told)  # noqa: B010 - a method that is replaced for one peer


def end(fabric: Fabric, peer: ScriptedPeer, **more: Any) -> tuple[str, str]:
    """How a task ends at this peer: the code and the cause of its error."""
    task_id = fabric.create("Deal with it").task_id
    task = run_at(fabric, task_id, peer.address, **more)
    assert not [event for event in fabric.events(task_id=task_id) if event.type == "task.completed"]
    assert task.last_error is not None
    return task.last_error.code, task.last_error.cause


def lost(fabric: Fabric, peer: ScriptedPeer, patience: float = IMPATIENT) -> bool:
    """Whether the task is lost at this peer, from which nothing is to come."""
    return end(fabric, peer, patience=patience) == ("peer_unreachable", "lost")


@pytest.mark.parametrize("fault", ["garbage", "silent", "broken"])
@pytest.mark.parametrize("where", ["card", "SendMessage", "GetTask"])
def test_a_peer_that_sends_garbage_or_nothing_or_fails_itself_is_lost(fabric: Fabric, where: str, fault: str) -> None:
    with serving(ScriptedPeer("completed")) as peer:
        setattr(peer, fault, {where})
        assert lost(fabric, peer, 0.2 if fault == "silent" else IMPATIENT)


def test_a_peer_that_is_not_there_is_lost(fabric: Fabric) -> None:
    with serving(ScriptedPeer("completed")) as peer:
        pass
    assert lost(fabric, peer)


def test_a_peer_that_answers_about_another_task_when_asked_is_lost(fabric: Fabric) -> None:
    with serving(ScriptedPeer("completed")) as peer:
        says(peer, "GetTask", peer.task("completed") | {"id": "another"})
        assert lost(fabric, peer)


@pytest.fixture
def other() -> Iterator[ScriptedPeer]:
    """Another host, which nobody is to call."""
    with serving(ScriptedPeer("completed")) as there:
        there.files["/x"] = (200, b"x")
        yield there
        assert not there.calls
        assert not there.cards


def test_a_card_that_leads_to_another_host_is_refused(fabric: Fabric, other: ScriptedPeer) -> None:
    with serving(ScriptedPeer("completed")) as peer:
        peer.interface = f"{other.address}/rpc"
        assert end(fabric, peer) == ("peer_refused", "failed")


@pytest.mark.parametrize("where", ["card", "SendMessage", "GetTask"])
def test_a_peer_that_redirects_to_another_host_is_lost(fabric: Fabric, other: ScriptedPeer, where: str) -> None:
    with serving(ScriptedPeer("completed")) as peer:
        peer.redirects = {where: f"{other.address}/rpc"}
        assert lost(fabric, peer)


@pytest.mark.parametrize("redirected", [True, False])
def test_an_artifact_on_another_host_is_not_fetched(fabric: Fabric, other: ScriptedPeer, *, redirected: bool) -> None:
    with serving(ScriptedPeer("completed")) as peer:
        if redirected:
            peer.redirects = {"/x": f"{other.address}/x"}
        address = peer.address if redirected else other.address
        peer.artifacts = [{"artifactId": "a", "parts": [{"url": f"{address}/x"}]}]
        code = "artifact_missing" if redirected else "peer_refused"
        assert end(fabric, peer, patience=IMPATIENT if redirected else PATIENT) == (code, "failed")


def test_a_peer_that_says_done_on_its_stream_and_not_when_asked_is_not_believed(fabric: Fabric) -> None:
    with serving(ScriptedPeer("failed", streams=True)) as peer:
        peer.stream = [update("working"), update("completed", messageId="s-2", parts=[{"text": "all done"}])]
        assert end(fabric, peer) == ("peer_failed", "failed")


def test_a_peer_that_sends_nonsense_on_its_stream_is_asked_instead(fabric: Fabric) -> None:
    with serving(ScriptedPeer("working", "rejected", streams=True)) as peer:
        peer.stream = [{"statusUpdate": {"taskId": 7, "status": "soon"}}, {"nothing": "known"}]
        assert end(fabric, peer) == ("peer_rejected", "failed")


def test_a_peer_that_sends_too_much_is_refused(fabric: Fabric) -> None:
    with serving(ScriptedPeer("completed")) as peer:
        peer.artifacts = [{"artifactId": "a", "parts": [{"text": "x" * 200_000}]}]
        assert end(fabric, peer, most=100_000) == ("peer_refused", "failed")


def test_artifacts_that_are_named_like_paths_write_nothing_elsewhere(fabric: Fabric, tmp_path: Path) -> None:
    with serving(ScriptedPeer("completed")) as peer:
        name = "../../../../escaped"
        peer.artifacts = [{"artifactId": name, "name": name, "parts": [{"text": "x", "filename": name}]}]
        task_id = fabric.create("Escape").task_id
        run_at(fabric, task_id, peer.address)
        (path,) = fabric.get(task_id).metadata["remote"]["remoteArtifactRefs"]
        assert output(fabric, task_id, path) == b"x"
        assert not [one for one in tmp_path.rglob("*escaped*") if one.parent.name != "peer"]


@pytest.mark.parametrize("where", ["card", "SendMessage", "GetTask"])
def test_an_answer_that_unpacks_to_much_more_than_was_sent_is_refused(fabric: Fabric, where: str) -> None:
    with serving(ScriptedPeer("completed")) as peer:
        peer.encoded[where] = ("gzip", gzip.compress(b" " * 4_000_000))
        assert end(fabric, peer, most=100_000) == ("peer_refused", "failed")


@pytest.mark.parametrize("where", ["card", "SendMessage", "GetTask"])
def test_an_answer_that_is_nested_without_end_is_none(fabric: Fabric, where: str) -> None:
    with serving(ScriptedPeer("completed")) as peer:
        peer.encoded[where] = ("identity", b"[" * 1_000_000)
        assert lost(fabric, peer)


@pytest.mark.parametrize("message", [{}, {"messageId": "m"}, {"messageId": "m", "parts": [{"text": " "}]}])
def test_a_message_that_says_nothing_is_no_result(fabric: Fabric, message: Answer) -> None:
    with serving(ScriptedPeer("completed")) as peer:
        says(peer, "SendMessage", {"message": message})
        assert lost(fabric, peer)


@requirement("task.a2a.artifact-refs")
def test_the_files_of_a_message_that_is_the_result_are_here(fabric: Fabric) -> None:
    parts = [{"text": "See the file."}, {"raw": "AAE=", "filename": "data.bin"}]
    with serving(ScriptedPeer("completed")) as peer:
        says(peer, "SendMessage", {"message": {"messageId": "m", "role": "ROLE_AGENT", "parts": parts}})
        task_id = fabric.create("Do it at once").task_id
        assert run_at(fabric, task_id, peer.address).status == "review"
    refs = portable(fabric, task_id)["remoteArtifactRefs"]
    found = [output(fabric, task_id, ref.split(f"{task_id}/", 1)[1]) for ref in refs]
    assert found == [b"See the file.", b"\x00\x01"]


@requirement("task.a2a.completion")
def test_a_message_in_answer_to_ours_does_not_complete_a_task_that_the_peer_has_not_ended(fabric: Fabric) -> None:
    message = {"messageId": "m", "role": "ROLE_AGENT", "parts": [{"text": "All done, trust me."}]}
    with serving(ScriptedPeer("input_required")) as peer:
        says(peer, "SendMessage", {"task": peer.task("submitted")}, {"message": message})
        task_id = fabric.create("Paint it").task_id
        assert run_at(fabric, task_id, peer.address).status == "blocked"
        fabric.unblock(task_id)
        assert run_at(fabric, task_id, peer.address).status == "blocked"
    assert portable(fabric, task_id)["remoteStatus"] == "input-required"
    told = [event.payload.get("text") for event in fabric.events(task_id=task_id) if event.type == "task.progress"]
    assert "All done, trust me." in told


@pytest.mark.parametrize(
    "wrong",
    [{"id": "\x00\x1b[2J"}, {"id": "x" * 5_000}, {"id": 7}, {"status": {"state": 2**70}}, {"history": [{"\ud800": 1}]}],
    ids=["control characters", "too long", "a number", "too large a state", "half a character"],
)
def test_a_task_that_cannot_be_one_is_no_answer(fabric: Fabric, wrong: Answer) -> None:
    with serving(ScriptedPeer("completed")) as peer:
        says(peer, "SendMessage", {"task": peer.task("submitted") | wrong})
        assert lost(fabric, peer)


def test_a_context_that_cannot_be_kept_leaves_ours_in_place(fabric: Fabric) -> None:
    with serving(ScriptedPeer("completed")) as peer:
        says(peer, "SendMessage", {"task": peer.task("submitted") | {"contextId": "\x00"}})
        task_id = fabric.create("Keep it").task_id
        assert run_at(fabric, task_id, peer.address).status == "review"
        assert portable(fabric, task_id)["remoteContextId"] == peer.messages()[0]["contextId"]


def test_an_answer_about_another_task_than_ours_is_none(fabric: Fabric) -> None:
    with serving(ScriptedPeer("input_required")) as peer:
        other = peer.task("completed") | {"id": "another"}
        says(peer, "SendMessage", {"task": peer.task("submitted")}, {"task": other})
        task_id = fabric.create("Paint it").task_id
        assert run_at(fabric, task_id, peer.address).status == "blocked"
        fabric.unblock(task_id)
        task = run_at(fabric, task_id, peer.address, patience=IMPATIENT)
    assert task.last_error is not None
    assert (task.last_error.code, task.last_error.cause) == ("peer_unreachable", "lost")
    assert task.metadata["remote"]["remoteTaskId"] == "remote-1"


@pytest.mark.parametrize("told", [[], [update("completed", "another")], [update("celebrating")]])
def test_a_stream_that_says_nothing_of_our_task_is_not_followed_for_ever(fabric: Fabric, told: list[Answer]) -> None:
    with serving(ScriptedPeer("completed", streams=True)) as peer:
        peer.stream, peer.stays = told, True
        task_id = fabric.create("Follow it").task_id
        assert run_at(fabric, task_id, peer.address, patience=0.3).status == "review"


def test_a_stream_that_is_quiet_is_followed_again_while_the_task_is_worked_on(fabric: Fabric) -> None:
    with serving(ScriptedPeer("working", "working", "completed", streams=True)) as peer:
        peer.stream, peer.stays = [update("working")], True
        task_id = fabric.create("Take your time").task_id
        assert run_at(fabric, task_id, peer.address, patience=0.2).status == "review"
        assert len(peer.called("SubscribeToTask")) == 3
    assert portable(fabric, task_id)["deliveryMechanism"] == "subscription"


def test_a_state_that_nobody_knows_on_a_stream_without_end_is_lost(fabric: Fabric) -> None:
    with serving(ScriptedPeer("celebrating", streams=True)) as peer:
        peer.stream, peer.stays = [update("celebrating")], True
        assert lost(fabric, peer, 0.3)


def test_a_part_that_cannot_be_written_down_is_no_crash(fabric: Fabric) -> None:
    with serving(ScriptedPeer("completed")) as peer:
        peer.artifacts = [{"artifactId": "a", "parts": [{"data": float("inf")}]}]
        assert end(fabric, peer, patience=IMPATIENT) == ("artifact_missing", "failed")


@pytest.mark.parametrize(
    "stream",
    [
        [update("working"), update("submitted")] * 100,
        [update("working", messageId=f"m-{number}", parts=[{"text": "on it"}]) for number in range(200)],
    ],
    ids=["states", "messages"],
)
def test_a_peer_that_floods_us_is_refused_before_it_has_filled_the_log(fabric: Fabric, stream: list[Answer]) -> None:
    with serving(ScriptedPeer("completed", streams=True)) as peer:
        peer.stream = stream
        assert end(fabric, peer, writes=50) == ("peer_refused", "failed")
    assert fabric.store.head() < 80
