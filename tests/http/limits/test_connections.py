"""Connections that come faster than they can be served: what is being served gets its turn all the same."""

from __future__ import annotations

import asyncio
import errno
import os
import resource
import socket
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager

import pytest

from aof.surfaces.http.connections import AT_ONCE, Accepted, Acceptor, Connections, ListeningSocket, affordable
from aof.surfaces.http.guard import Traffic
from aof.surfaces.http.server import listen

_BOUND = 30
_FLOOD = AT_ONCE * 10
_SOON = 0.2


@contextmanager
def _flooded() -> Iterator[ListeningSocket]:
    """A listener on which many connections are waiting."""
    with ExitStack() as stack:
        bound = stack.enter_context(listen())
        bound.listen(_FLOOD * 2)
        for _ in range(_FLOOD):
            stack.enter_context(socket.create_connection(bound.getsockname(), timeout=_BOUND))
        traffic = Traffic()
        yield ListeningSocket.of(bound, Connections(_FLOOD * 2, _FLOOD * 2, traffic), traffic)


class Turns:
    """Counts the turns of the loop, and what is accepted in each."""

    def __init__(self, enough: int) -> None:
        self.number = 0
        self.accepted: Counter[int] = Counter()
        self.there = asyncio.Event()
        self._enough = enough

    async def serve(self, connection: Accepted) -> None:
        connection.close()
        self.accepted[self.number] += 1
        if self.accepted.total() == self._enough:
            self.there.set()

    async def go_on(self, until: Callable[[], bool]) -> None:
        while not until():
            self.number += 1
            await asyncio.sleep(0)


def test_the_connections_of_a_flood_are_accepted_a_few_per_turn_of_the_loop() -> None:
    async def scenario() -> Counter[int]:
        with _flooded() as listener:
            turns = Turns(enough=_FLOOD)
            acceptor = Acceptor(listener, turns.serve, pause=0.0)
            await asyncio.wait_for(turns.go_on(turns.there.is_set), _BOUND)
            acceptor.close()
            return turns.accepted

    accepted = asyncio.run(scenario())
    assert accepted.total() == _FLOOD
    assert max(accepted.values()) <= AT_ONCE


def test_between_two_turns_a_flood_waits_in_the_kernel_and_costs_nothing() -> None:
    async def scenario() -> int:
        with _flooded() as listener:
            turns = Turns(enough=AT_ONCE)
            acceptor = Acceptor(listener, turns.serve, pause=_BOUND * 2)
            await asyncio.wait_for(turns.there.wait(), _BOUND)
            end = turns.number + 100
            await turns.go_on(lambda: turns.number >= end)
            acceptor.close()
            return turns.accepted.total()

    assert asyncio.run(scenario()) == AT_ONCE


def test_an_acceptor_that_is_closed_while_it_rests_never_comes_back() -> None:
    async def scenario() -> list[dict[str, object]]:
        trouble: list[dict[str, object]] = []
        asyncio.get_running_loop().set_exception_handler(lambda _, context: trouble.append(context))
        with _flooded() as listener:
            turns = Turns(enough=AT_ONCE)
            acceptor = Acceptor(listener, turns.serve, pause=_SOON)
            await asyncio.wait_for(turns.there.wait(), _BOUND)
            acceptor.close()
            await asyncio.sleep(_SOON)  # begun after the rest, so it ends after it
            return trouble

    assert asyncio.run(scenario()) == []


def test_a_server_asks_for_the_descriptors_that_its_connections_need() -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    few, many = 1_024, 1_500
    resource.setrlimit(resource.RLIMIT_NOFILE, (few, hard))
    try:
        assert affordable(many) == many
        assert resource.getrlimit(resource.RLIMIT_NOFILE)[0] > many
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_a_listener_that_lost_its_spare_descriptor_closes_nobody_elses(monkeypatch: pytest.MonkeyPatch) -> None:
    def exhausted(*_given: object, **_named: object) -> int:
        raise OSError(errno.EMFILE, "too many open files")

    with _flooded() as listener:
        with monkeypatch.context() as broken:
            broken.setattr(ListeningSocket, "accept", exhausted)
            broken.setattr("aof.surfaces.http.connections.os.open", exhausted)
            with pytest.raises(OSError, match="too many"):
                listener.take()  # accepts nothing, and cannot keep a descriptor back again
        mine = [os.dup(0) for _ in range(3)]  # one of them has the number of the one that was kept
        with monkeypatch.context() as broken:
            broken.setattr(ListeningSocket, "accept", exhausted)
            with pytest.raises(OSError, match="too many"):
                listener.take()
        listener.close()
        for fd in mine:
            os.close(fd)  # raises where somebody else has closed it
