"""Artifacts of a peer as files of the task: bounded, below its own folder, under names that we make.

Must not know what the peer says about its task.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import httpx
from a2a.types import Artifact, Message, Part

from aof.adapters.a2a.content import json_of, text_of
from aof.adapters.a2a.peer.connection import PeerRefused
from aof.adapters.a2a.task_files import safe_name, write

FOLDER: Final = "outputs/peer"
MOST_BYTES: Final = 32 * 1024 * 1024
_MOST: Final = 100  # artifacts
_OK: Final = 200


class ArtifactMissing(Exception):
    """The peer names an artifact that cannot be had now."""


class Gathered:
    """The artifacts that a peer has told of so far, whole or in chunks."""

    def __init__(self) -> None:
        self._known: dict[str, Artifact] = {}
        self._bytes = 0

    def add(self, artifact: Artifact, *, append: bool = False) -> None:
        """Take one, or a chunk of one; raises PeerRefused when it becomes too much."""
        self._bytes += artifact.ByteSize()
        known = self._known.get(artifact.artifact_id)
        if append and known is not None:
            _join(known, artifact)
        else:
            whole = Artifact()
            whole.CopyFrom(artifact)
            self._known[artifact.artifact_id] = whole
        if self._bytes > 2 * MOST_BYTES or len(self._known) > _MOST:
            raise PeerRefused(f"the peer sends more artifacts than are taken: {_MOST}, or {MOST_BYTES:,} bytes")

    def replace(self, artifacts: Iterable[Artifact]) -> None:
        """What the peer's task lists counts more than what was heard on a stream; what it leaves out is kept."""
        self._bytes = 0
        for artifact in artifacts:
            self.add(artifact)

    @property
    def all(self) -> tuple[Artifact, ...]:
        """Every artifact, in the order in which each was first told."""
        return tuple(self._known.values())


def _join(known: Artifact, chunk: Artifact) -> None:
    """Add a chunk: text to the text and bytes to the bytes before it, anything else as a part of its own."""
    for part in chunk.parts:
        last = known.parts[-1] if known.parts else None
        kind = part.WhichOneof("content")
        if last is not None and kind in ("text", "raw") and last.WhichOneof("content") == kind:
            if kind == "text":
                last.text += part.text
            else:
                last.raw += part.raw
        else:
            known.parts.append(part)


def says_something(message: Message) -> bool:
    """Whether there is anything in a message that could be a result."""
    return bool(text_of(message.parts)) or any(part.raw for part in message.parts)


def message_as_artifact(message: Message) -> Artifact:
    """The message of a peer that answers with no task: its text, then its files."""
    said = text_of(message.parts)
    files = [part for part in message.parts if part.WhichOneof("content") in ("raw", "url")]
    return Artifact(artifact_id="message", name="message.md", parts=[*([Part(text=said)] if said else []), *files])


async def take_in(artifacts: Iterable[Artifact], folder: str, http: httpx.AsyncClient) -> tuple[str, ...]:
    """Write every part below the task's folder; their paths there. Raises ArtifactMissing and PeerRefused."""
    left, paths = MOST_BYTES, []
    for artifact in artifacts:
        for number, part in enumerate(artifact.parts):
            data = await _content(part, http)
            left -= len(data)
            if left < 0:
                raise PeerRefused(f"the artifacts have more than {MOST_BYTES:,} bytes together")
            path = f"{FOLDER}/{_name(artifact, part, number)}"
            write(folder, path, data)
            paths.append(path)
    return tuple(paths)


async def _content(part: Part, http: httpx.AsyncClient) -> bytes:
    if "missing" in part.metadata:
        raise ArtifactMissing(str(part.metadata["missing"])[:200])
    match part.WhichOneof("content"):
        case "text":
            return part.text.encode()
        case "raw":
            return bytes(part.raw)
        case "data":
            if (data := json_of(part)) is None:
                raise ArtifactMissing("a part of an artifact is no JSON")
            return data.encode()
        case "url":
            return await _fetched(part.url, http)
    raise ArtifactMissing("a part of an artifact is empty")


async def _fetched(url: str, http: httpx.AsyncClient) -> bytes:
    """From the peer itself only, which the client sees to."""
    try:
        answer = await http.get(url)
    except (httpx.HTTPError, httpx.InvalidURL) as error:
        raise ArtifactMissing(f"{url[:200]} cannot be fetched: {error}") from None
    if answer.status_code != _OK:
        raise ArtifactMissing(f"{url[:200]} answers {answer.status_code}")
    return answer.content


def _name(artifact: Artifact, part: Part, number: int) -> str:
    given = part.filename or artifact.name or artifact.artifact_id
    return safe_name(given, f"{artifact.artifact_id} {number}")
