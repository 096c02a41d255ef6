"""Artifacts of a peer as files of the task: bounded, below its own folder, under names that we make.

Must not know what the peer says about its task.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import groupby
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
_JOINED: Final = ("text", "raw")


class ArtifactMissing(Exception):
    """The peer names an artifact that cannot be had now."""


class Gathered:
    """The artifacts that a peer has told of so far, whole or in chunks."""

    def __init__(self) -> None:
        self._known: dict[str, Artifact] = {}
        self._chunks: dict[str, list[Part]] = {}  # what came after, joined when somebody looks: there may be many
        self._bytes = 0

    def add(self, artifact: Artifact, *, append: bool = False) -> None:
        """Take one, or a chunk of one; raises PeerRefused when it becomes too much."""
        self._bytes += artifact.ByteSize()
        if append and artifact.artifact_id in self._known:
            self._chunks[artifact.artifact_id] += artifact.parts
        else:
            self._known[artifact.artifact_id] = artifact
            self._chunks[artifact.artifact_id] = []
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
        return tuple(_joined(one, self._chunks[name]) for name, one in self._known.items())


def _joined(artifact: Artifact, chunks: list[Part]) -> Artifact:
    """The whole: text goes to the text and bytes to the bytes before it, anything else is a part of its own."""
    whole = Artifact()
    whole.CopyFrom(artifact)
    for kind, group in groupby(chunks, key=_kind):
        alike = list(group)
        last = whole.parts.pop() if kind in _JOINED and whole.parts and _kind(whole.parts[-1]) == kind else None
        if last is not None:
            alike.insert(0, last)
        if kind in _JOINED:
            first = Part()
            first.CopyFrom(alike[0])
            if kind == "text":
                first.text = "".join(part.text for part in alike)
            else:
                first.raw = b"".join(part.raw for part in alike)
            alike = [first]
        whole.parts.extend(alike)
    return whole


def _kind(part: Part) -> str | None:
    kind: str | None = part.WhichOneof("content")
    return kind


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
