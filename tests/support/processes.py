"""Real processes that begin at the same moment, report what came of it, and can be stopped and killed.

Nothing here sleeps: whoever waits, waits for a message, with a deadline. The clock that the processes share runs like
the real one, and a test can put it forward for all of them at once.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import signal
import time
import traceback
from collections.abc import Callable, Iterator
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from typing import Any, TypeVar

from aof.errors import AofError
from aof.runs.model import Boot
from aof.service.clock import SystemClock

DEADLINE = 120.0
_T = TypeVar("_T")


class SharedClock(SystemClock):
    """The real clock plus an offset that all processes see."""

    def __init__(self) -> None:
        self._ahead = multiprocessing.get_context("fork").Value("q", 0)

    def now(self) -> int:
        """The wall clock, put forward."""
        return super().now() + int(self._ahead.value)

    def boot(self) -> Boot | None:
        """The machine's count, as far ahead."""
        boot = super().boot()
        return Boot(boot.id, boot.at + int(self._ahead.value)) if boot is not None else None

    def put_forward(self, seconds: float) -> None:
        """Let time pass for everybody."""
        with self._ahead.get_lock():
            self._ahead.value += int(seconds * 1000)


def together(count: int, work: Callable[[int], _T], *, method: str = "fork") -> list[_T]:
    """Let `count` processes do the work at once; what each returned, in their order. Any failure fails the test.

    With the method `spawn` the work must be something that can be pickled.
    """
    context: Any = multiprocessing.get_context(method)
    barrier = context.Barrier(count)
    pipes = [context.Pipe() for _ in range(count)]
    processes: list[BaseProcess] = [
        context.Process(target=_report, args=(pipes[number][1], barrier, work, number)) for number in range(count)
    ]
    for process in processes:
        process.start()
    for _, theirs in pipes:
        theirs.close()
    try:
        return [_answer(mine, process) for (mine, _), process in zip(pipes, processes, strict=True)]
    finally:
        for process in processes:
            if process.is_alive() and process.pid:
                process.join(5)
                process.kill()
            process.join()


def _report(pipe: Connection, barrier: Any, work: Callable[[int], Any], number: int) -> None:
    try:
        barrier.wait(DEADLINE)
        pipe.send((True, work(number)))
    except BaseException:  # noqa: BLE001 - the other side raises it
        pipe.send((False, traceback.format_exc()))


def _answer(pipe: Connection, process: BaseProcess) -> Any:
    if not pipe.poll(DEADLINE):
        raise AssertionError(f"process {process.pid} has not answered")
    try:
        well, answer = pipe.recv()
    except EOFError:
        raise AssertionError(f"process {process.pid} ended without an answer") from None
    assert well, answer
    return answer


def outcome(operation: Callable[..., object], *given: Any, **named: Any) -> str:
    """`ok`, or the code of the refusal."""
    try:
        operation(*given, **named)
    except AofError as error:
        return error.code
    return "ok"


class Worker:
    """One process that does something while the test watches, and talks with it over a pipe."""

    def __init__(self, work: Callable[[Connection], None]) -> None:
        context = multiprocessing.get_context("fork")
        self.pipe, theirs = context.Pipe()
        self._process = context.Process(target=_serve, args=(theirs, work))
        self._process.start()
        theirs.close()
        assert self._process.pid is not None
        self.pid = self._process.pid

    def hear(self) -> Any:
        """The next thing that the process says."""
        assert self.pipe.poll(DEADLINE), f"process {self.pid} says nothing"
        return self.pipe.recv()

    def say(self, message: Any) -> None:
        """Tell the process something."""
        self.pipe.send(message)

    def until_stopped(self) -> None:
        """Wait until the process has been stopped by a signal."""
        _, status = os.waitpid(self.pid, os.WUNTRACED)
        assert os.WIFSTOPPED(status), f"process {self.pid} ended"

    def stop(self) -> None:
        """Stop it in the middle of what it does."""
        os.kill(self.pid, signal.SIGSTOP)
        self.until_stopped()

    def go_on(self) -> None:
        """Let it go on."""
        os.kill(self.pid, signal.SIGCONT)

    def kill(self) -> None:
        """Kill it, without a chance to tidy up."""
        self._process.kill()
        self._process.join(DEADLINE)

    def end(self) -> None:
        """Wait for it to end."""
        self._process.join(DEADLINE)
        if self._process.is_alive():
            self.kill()
            raise AssertionError(f"process {self.pid} does not end")


def _serve(pipe: Connection, work: Callable[[Connection], None]) -> None:
    with contextlib.suppress(BrokenPipeError):
        try:
            work(pipe)
        except BaseException:  # noqa: BLE001 - the other side sees it
            pipe.send(traceback.format_exc())


def hear_any(workers: list[Worker], seconds: float) -> Iterator[tuple[Worker, Any]]:
    """Everything that is said within that time, at least until somebody says something."""
    pipes = {worker.pipe: worker for worker in workers}
    for ready in wait(list(pipes), timeout=seconds):
        assert isinstance(ready, Connection)
        worker = pipes[ready]
        with contextlib.suppress(EOFError, ConnectionResetError):
            while ready.poll():
                yield worker, ready.recv()


def moment() -> int:
    """A moment that is the same in all processes, in nanoseconds."""
    return time.monotonic_ns()
