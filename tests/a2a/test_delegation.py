"""A task that is given to a peer: what is kept of the remote one, what comes back, and what counts as done."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from aof.api.fabric import Fabric
from tests.support.delegated import fabric_of, output, portable, run_at
from tests.support.present import present
from tests.support.requirements import requirement
from tests.support.scripted_peer import ScriptedPeer, serving


@pytest.fixture
def fabric(tmp_path: Path) -> Iterator[Fabric]:
    with fabric_of(tmp_path) as opened:
        yield opened


def status(state: str, text: str = "", message_id: str = "s-1", task_id: str = "remote-1") -> dict[str, Any]:
    """One update of a stream."""
    message = {"messageId": message_id, "role": "ROLE_AGENT", "parts": [{"text": text}]}
    said = {"message": message} if text else {}
    told = {"state": f"TASK_STATE_{state.upper()}", **said}
    return {"statusUpdate": {"taskId": task_id, "contextId": "context-1", "status": told}}


def chunk(text: str, *, append: bool, last: bool = False) -> dict[str, Any]:
    """One piece of an artifact."""
    artifact = {"artifactId": "a-1", "name": "report.txt", "parts": [{"text": text}]}
    update = {"taskId": "remote-1", "contextId": "context-1", "artifact": artifact, "append": append}
    return {"artifactUpdate": update | {"lastChunk": last}}


def remote(fabric: Fabric, task_id: str) -> dict[str, Any]:
    """What the task keeps of the remote one."""
    kept: dict[str, Any] = fabric.get(task_id).metadata["remote"]
    return kept


def mechanisms(fabric: Fabric, task_id: str) -> list[str]:
    """Every delivery mechanism that the log has recorded, in order."""
    found: list[str] = []
    for event in fabric.events(task_id=task_id):
        kept = (event.payload.get("changes", {}).get("metadata") or {}).get("remote", {})
        name = kept.get("deliveryMechanism")
        if name and found[-1:] != [name]:
            found.append(name)
    return found


@requirement("task.a2a.agent-ref")
def test_the_refs_name_the_peer_and_the_card_that_were_used(fabric: Fabric) -> None:
    with serving(ScriptedPeer("completed")) as one, serving(ScriptedPeer("completed")) as other:
        task_id = fabric.create("Which?").task_id
        run_at(fabric, task_id, other.address)
        shown = portable(fabric, task_id)
        assert shown["remoteAgentRef"] == f"pia {other.address}"
        assert shown["agentCardRef"].startswith(f"{other.address}/.well-known/agent-card.json#sha256=")
        assert shown["nativeProtocol"] == "a2a"
        assert (shown["remoteTaskId"], shown["remoteContextId"]) == ("remote-1", "context-1")
        assert not one.calls


@requirement("task.a2a.delivery-mechanism")
def test_the_mechanism_is_the_one_in_use_and_a_broken_stream_changes_it(fabric: Fabric) -> None:
    with serving(ScriptedPeer("working", "completed")) as plain:
        asked = fabric.create("By asking").task_id
        run_at(fabric, asked, plain.address)
    assert mechanisms(fabric, asked) == ["polling"]
    assert not plain.called("SubscribeToTask")
    with serving(ScriptedPeer("completed", streams=True)) as whole:
        whole.stream = [status("working"), status("completed")]
        followed = fabric.create("By following").task_id
        run_at(fabric, followed, whole.address)
    assert portable(fabric, followed)["deliveryMechanism"] == "subscription"
    with serving(ScriptedPeer("working", "completed", streams=True)) as broken:
        broken.stream = [status("working")]
        cut = fabric.create("By both").task_id
        run_at(fabric, cut, broken.address)
    assert mechanisms(fabric, cut) == ["polling", "subscription", "polling"]
    assert fabric.get(cut).status == "review"


@requirement("task.a2a.remote-status")
@pytest.mark.parametrize(
    ("state", "word", "ours"),
    [
        ("submitted", "submitted", "running"),
        ("working", "working", "running"),
        ("completed", "completed", "waiting_permission"),
        ("failed", "failed", "queued"),
        ("canceled", "canceled", "failed"),
        ("rejected", "rejected", "failed"),
        ("input_required", "input-required", "waiting_input"),
        ("auth_required", "auth-required", "waiting_permission"),
        ("celebrating", "unknown", "unknown"),
    ],
)
def test_the_peers_own_word_stands_beside_ours(fabric: Fabric, state: str, word: str, ours: str) -> None:
    goes_on = ours in ("running", "unknown")
    seen: list[tuple[str, str]] = []
    with serving(ScriptedPeer(*([state, state, "failed"] if goes_on else [state]))) as peer:
        task_id = fabric.create("Say your state").task_id
        tell = peer.answer

        def watched(method: str, params: dict[str, Any]) -> dict[str, Any]:
            if method == "GetTask":
                seen.append((remote(fabric, task_id)["remoteStatus"], portable(fabric, task_id)["status"]))
            return tell(method, params)

        peer.answer = watched  # type: ignore[method-assign]
        assert run_at(fabric, task_id, peer.address, patience=5.0).status != "done"
    if goes_on:
        assert seen[-1] == (word, ours)
    else:
        assert (remote(fabric, task_id)["remoteStatus"], portable(fabric, task_id)["status"]) == (word, ours)


@requirement("task.a2a.artifact-refs")
def test_an_artifact_in_chunks_is_whole_here_when_the_peer_is_gone(fabric: Fabric) -> None:
    with serving(ScriptedPeer("completed", streams=True)) as peer:
        peer.stream = [
            status("working"),
            chunk("first ", append=False),
            chunk("second ", append=True),
            chunk("third", append=True, last=True),
            status("completed"),
        ]
        task_id = fabric.create("Write a report").task_id
        run_at(fabric, task_id, peer.address)
    (path,) = remote(fabric, task_id)["remoteArtifactRefs"]
    assert path.startswith("outputs/peer/")
    assert output(fabric, task_id, path) == b"first second third"
    ref = f"aof://tasks/{task_id}/{path}"
    shown = portable(fabric, task_id)
    assert shown["remoteArtifactRefs"] == [ref]
    edges = [one for one in shown["relationships"] if one["kind"] == "produced_artifact"]
    assert [one["targetId"] for one in edges] == [ref]


def test_chunks_are_joined_with_what_is_of_their_kind(fabric: Fabric) -> None:
    def piece(*parts: dict[str, Any], append: bool = True) -> dict[str, Any]:
        update = {"taskId": "remote-1", "artifact": {"artifactId": "a-1", "parts": list(parts)}, "append": append}
        return {"artifactUpdate": update}

    with serving(ScriptedPeer("completed", streams=True)) as peer:
        peer.stream = [
            piece({"text": "one, "}, append=False),
            piece({"text": "two"}, {"raw": "AAE="}),
            piece({"raw": "Ag=="}),
            piece({"data": {"three": 3}}),
            piece({"text": "four"}),
            status("completed"),
        ]
        task_id = fabric.create("Piece by piece").task_id
        run_at(fabric, task_id, peer.address)
    paths = remote(fabric, task_id)["remoteArtifactRefs"]
    found = [output(fabric, task_id, path) for path in paths]
    assert found == [b"one, two", b"\x00\x01\x02", b'{\n  "three": 3\n}', b"four"]


@requirement("task.a2a.messages")
def test_a_question_of_the_peer_waits_for_an_answer_that_then_reaches_it(fabric: Fabric) -> None:
    with serving(ScriptedPeer("working", "input_required", "working", "completed")) as peer:
        peer.said = "Which colour?"
        task_id = fabric.create("Paint it", brief="The door.").task_id
        run_at(fabric, task_id, peer.address)
        shown = portable(fabric, task_id)
        assert (shown["status"], shown["remoteStatus"]) == ("waiting_input", "input-required")
        assert fabric.get(task_id).blocked.reason == "Which colour?"  # type: ignore[union-attr]
        fabric.edit(task_id, description="The door.\n\nBlue, please.\n")
        fabric.unblock(task_id)
        run_at(fabric, task_id, peer.address)
        first, second = peer.messages()
        assert "taskId" not in first
        assert (second["taskId"], second["parts"][0]["text"]) == ("remote-1", "Blue, please.")
    said = [event.payload.get("text") for event in fabric.events(task_id=task_id) if event.type == "task.progress"]
    assert "Which colour?" in said
    reasons = [event.payload.get("reason") for event in fabric.events(task_id=task_id)]
    assert "Which colour?" in reasons
    assert fabric.get(task_id).status == "review"


@requirement("task.a2a.completion")
def test_success_does_not_count_before_every_artifact_is_here(fabric: Fabric) -> None:
    with serving(ScriptedPeer("completed")) as peer:
        part = {"url": f"{peer.address}/result.bin", "filename": "result.bin"}
        peer.artifacts = [{"artifactId": "a-1", "name": "result", "parts": [part]}]
        task_id = fabric.create("Bring it", review=False).task_id
        for _ in range(2):
            task = run_at(fabric, task_id, peer.address, patience=2.0)
            assert task.status == "ready"
            assert present(task.last_error).code == "artifact_missing"
            assert portable(fabric, task_id)["remoteStatus"] == "completed"
        assert not [event for event in fabric.events(task_id=task_id) if event.type == "task.completed"]
        peer.files["/result.bin"] = (200, b"\x00\x01")
        assert run_at(fabric, task_id, peer.address).status in ("review", "done")
        (path,) = remote(fabric, task_id)["remoteArtifactRefs"]
        assert output(fabric, task_id, path) == b"\x00\x01"
        assert len(peer.messages()) == 1


@requirement("task.a2a.completion")
def test_success_of_the_peer_does_not_count_while_something_that_the_task_declares_is_open(fabric: Fabric) -> None:
    with serving(ScriptedPeer("completed")) as peer:
        task_id = fabric.create("Prove it", constraints={"output": {"evidence": ["tests"]}}).task_id
        task = run_at(fabric, task_id, peer.address)
    assert task.status == "blocked"
    assert present(task.blocked).reason.startswith("the peer is done, but: ")
    assert portable(fabric, task_id)["remoteStatus"] == "completed"


@requirement("task.a2a.once")
def test_repeated_and_late_updates_change_nothing_more(fabric: Fabric) -> None:
    twice = [status("working", "halfway", "s-1"), chunk("all", append=False), status("completed", "done", "s-2")]
    late = status("working", "still at it", "s-3")
    with serving(ScriptedPeer("completed", streams=True)) as peer:
        peer.said = ""
        peer.stream = [twice[0], twice[0], twice[1], twice[1], status("working", "not ours", "s-9", "other"),
                       twice[2], twice[2], late]  # fmt: skip
        task_id = fabric.create("Once").task_id
        task = run_at(fabric, task_id, peer.address)
    told = list(fabric.events(task_id=task_id))
    assert [event.payload["text"] for event in told if event.type == "task.progress"] == ["halfway"]
    assert len([event for event in told if event.type == "task.completed"]) == 1
    assert (task.status, remote(fabric, task_id)["remoteStatus"]) == ("review", "completed")
    assert output(fabric, task_id, remote(fabric, task_id)["remoteArtifactRefs"][0]) == b"all"


@requirement("task.a2a.once")
def test_a_message_that_was_told_in_an_earlier_run_is_recorded_once(fabric: Fabric) -> None:
    with serving(ScriptedPeer("working", "celebrating")) as peer:
        task_id = fabric.create("Once over two runs").task_id
        run_at(fabric, task_id, peer.address, patience=0.3)
        peer.states = ["working", "completed"]
        run_at(fabric, task_id, peer.address)
    said = [event for event in fabric.events(task_id=task_id) if event.type == "task.progress"]
    assert len(said) == 2, "one per message: while it worked, and while it was in a state that nobody knows"
    assert len(peer.messages()) == 1


def test_a_send_in_doubt_is_looked_for_before_it_is_sent_again(fabric: Fabric) -> None:
    with serving(ScriptedPeer("completed")) as peer:
        task_id = fabric.create("Sent, but was it heard?").task_id
        kept = {
            "nativeProtocol": "a2a",
            "remoteAgentRef": f"pia {peer.address}",
            "remoteContextId": "context-1",
            "messageId": "m-7",
        }
        fabric.edit(task_id, metadata={"remote": kept})
        found = peer.task("working") | {
            "history": [{"messageId": "m-7", "role": "ROLE_USER", "parts": [{"text": "x"}]}]
        }
        tell = peer.answer

        def listed(method: str, params: dict[str, Any]) -> dict[str, Any]:
            answer = tell(method, params)
            return answer | {"tasks": [found], "totalSize": 1} if method == "ListTasks" else answer

        peer.answer = listed  # type: ignore[method-assign]
        assert run_at(fabric, task_id, peer.address).status == "review"
        assert not peer.messages()
        assert remote(fabric, task_id)["remoteTaskId"] == "remote-1"


def test_a_peer_that_failed_is_given_the_task_anew(fabric: Fabric) -> None:
    with serving(ScriptedPeer("failed")) as peer:
        task_id = fabric.create("Try again").task_id
        assert run_at(fabric, task_id, peer.address).status == "ready"
        peer.states, peer.task_id = ["completed"], "remote-2"
        assert run_at(fabric, task_id, peer.address).status == "review"
        assert len({one["messageId"] for one in peer.messages()}) == 2
        assert remote(fabric, task_id)["remoteTaskId"] == "remote-2"
