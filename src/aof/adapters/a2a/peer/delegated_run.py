"""What the run of a delegated task writes here: what is known of the remote task, progress, and how the run ends.

Every write is an operation for the run's own secret. Must not know how a peer is called.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import httpx
from a2a.types import Artifact, Message

from aof._support.hashing import hexdigest
from aof._support.printable import clean
from aof.adapters.a2a.content import text_of
from aof.adapters.a2a.peer.artifacts import take_in
from aof.adapters.a2a.peer.connection import PeerRefused
from aof.adapters.a2a.peer.remote import Remote, kept, remote_of
from aof.adapters.a2a.task_files import folder_of
from aof.app.fabric import Fabric
from aof.app.runs.claimed_run import ClaimedRun
from aof.core.errors.base import AofError
from aof.core.model.task import Task
from aof.core.validation.limits import PROGRESS, REASON

MOST_WRITES: Final = 10_000  # of one run
_SUMMARY: Final = 9_000  # characters


class DelegatedRun:
    """Writes for one run. `over` says that it has ended."""

    def __init__(self, fabric: Fabric, run: ClaimedRun, agent_ref: str, most: int = MOST_WRITES) -> None:
        self._fabric = fabric
        self._run = run
        self._left = most
        self.agent_ref = agent_ref
        self.over = False
        self._kept = self.remote
        self._told: set[str] = set()

    @property
    def task(self) -> Task:
        """The task as it is now."""
        return self._run.task

    @property
    def remote(self) -> Remote | None:
        """What is known of the remote task."""
        return remote_of(self.task, self.agent_ref, self._hop)

    @property
    def _hop(self) -> str | None:
        return self._run.hop if isinstance(self._run.hop, str) else None

    def keep(self, remote: Remote) -> None:
        """Store it; the same again writes nothing."""
        if remote != self._kept and not self.over:
            self._count()
            self._fabric.edit(self._run.task_id, metadata=kept(remote, self._hop))
            self._kept = remote

    def said(self, message: Message) -> None:
        """Record as progress what the peer says, each message once, also over several runs."""
        text = clean(text_of(message.parts))[:PROGRESS]
        if not text or message.message_id in self._told:
            return
        self._told.add(message.message_id)
        key = f"peer-{hexdigest(message.message_id.encode())[:40]}"
        if not any(one.value == key for one in self.task.requests):
            self._count()
            self._run.progress(text, key=key)

    def _count(self) -> None:
        """Every update of the peer is an event here: one that floods us must not fill the log."""
        if self._left <= 0:
            raise PeerRefused("the peer sends more updates than are taken in one run")
        self._left -= 1

    async def take_in(self, artifacts: Iterable[Artifact], http: httpx.AsyncClient) -> tuple[str, ...]:
        """Write the artifacts below the task's own folder."""
        return await take_in(artifacts, folder_of(self._fabric, self.task), http)

    def complete(self, text: str, paths: tuple[str, ...]) -> None:
        """End the run as done; while something that the task itself declares is open here, it waits for a person."""
        try:
            self._run.complete(clean(text)[:_SUMMARY] or "the peer is done", deliverables=paths[:50])
        except AofError as error:
            if error.kind not in ("refused", "invalid"):
                raise
            self.wait(f"the peer is done, but: {error.message}", asks=False)
        self.over = True

    def wait(self, reason: str, *, asks: bool) -> None:
        """End the run: somebody has to answer the peer, or to allow something."""
        if self._hop is not None:
            self._run.block(reason[:REASON])
        else:
            self._fabric.block(
                self._run.task_id, reason[:REASON], kind="waiting_input" if asks else "waiting_permission"
            )
        self.over = True

    def fail(self, code: str, message: str, *, retryable: bool = True, lost: bool = False) -> None:
        """End the run as failed, or as lost when nobody knows what became of it."""
        self._fabric.fail(
            self._run.task_id,
            run=self._run.run_id,
            code=code,
            message=message,
            cause="lost" if lost else "failed",
            retryable=retryable,
        )
        self.over = True
