"""A runner as the application needs it: it executes runs. Above: hosting. Below: processes.

A runner starts a worker, passes on what it says and tells how it ended. It never decides what that means for a task.
"""

from __future__ import annotations

from typing import Any, Literal, Protocol

import msgspec

PEER_URL = "AOF_PEER_URL"
PEER_TOKEN_NAME = "AOF_PEER_TOKEN_NAME"  # noqa: S105 - the variable with the name of the one that holds the token
PEER_PATIENCE = "AOF_PEER_PATIENCE"  # seconds


class Work(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that a worker needs: whose run it is, its secret, the command as an argument list, and the brief.

    `nonce` proves that what the worker prints is meant as a message. It goes into the worker's environment only.
    Where `peer` is an address the peer does the work, and `token_env` names the variable with the token for it.
    `place` is what the files of the run go by: the task, or the hop that the run is about.
    """

    task_id: str
    hop: str | None = None
    place: str
    run_id: str
    epoch: int
    attempt: int
    agent: str
    command: tuple[str, ...]
    env: dict[str, str] = {}
    inherit_env: tuple[str, ...] | Literal["all"] = ()
    cwd: str | None = None
    brief: str = ""
    grace: float = 5.0
    secret: str = ""
    nonce: str = ""
    messages: str = "nonce"
    peer: str | None = None
    token_env: str | None = None

    def __repr__(self) -> str:
        return f"Work(run_id={self.run_id!r}, agent={self.agent!r})"


class Ended(msgspec.Struct, frozen=True, kw_only=True):
    """How a worker ended: its exit code or the signal, why it was stopped if it was, and where its output lies."""

    work: Work
    exit_code: int | None = None
    signal: int | None = None
    stopped: str | None = None
    output: dict[str, Any] = {}

    @property
    def how(self) -> str:
        """How it ended, for people."""
        how = f"was ended by signal {self.signal}" if self.signal is not None else f"exited with code {self.exit_code}"
        return f"{how} ({self.stopped})" if self.stopped else how


class Listener(Protocol):
    """Receives what workers do."""

    def said(self, work: Work, text: str) -> None:
        """A worker has sent a protocol message."""
        ...

    def ended(self, ended: Ended) -> None:
        """A worker has ended, and nothing of it is left."""
        ...


class Orphans(Protocol):
    """Ends what is left of runs that nobody hosts."""

    def end(self, place: str, attempt: int, run_id: str) -> str | None:
        """End every process of the run; None when none is left, else why that is not so."""
        ...


class Runner(Orphans, Protocol):
    """Executes runs."""

    def reserve(self, place: str) -> str | None:
        """Keep every other worker from a place until one is started there; why it is not free, if so."""
        ...

    def give_back(self, place: str) -> None:
        """Let go of a place where no worker was started after all."""
        ...

    def start(self, work: Work) -> None:
        """Begin, in a place that is reserved or free; raises RunnerFailed when there is nothing to run."""
        ...

    def dropped(self, work: Work) -> tuple[str, ...]:
        """The names of variables that the worker does not get because its chart entry names none."""
        ...

    def stop(self, run_id: str, why: str, *, hard: bool = False) -> None:
        """Ask the worker to end, and make it when it does not; `hard` at once. The first reason counts."""
        ...

    def poll(self) -> float | None:
        """Do what is due, and tell in how many seconds something will be; None: nothing."""
        ...

    def orphaned(self, place: str, attempt: int) -> bool:
        """Whether the worker of a run was started on this machine by a host that has died."""
        ...
