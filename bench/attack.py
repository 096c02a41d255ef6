"""An attack on one port of the loopback, as a process of its own: half-open connections and wrong tokens.

Bounded in time, connections and rate. Prints a line once everything is under way.
"""

from __future__ import annotations

import http.client
import selectors
import socket
import sys
import threading
import time
from contextlib import suppress

_ASKERS = 75  # so many that the rate holds although each may wait for a late answer
_PATIENCE = 0.2  # seconds that one waits for an answer
_FIRST, _AGAIN = 100, 5  # connections that are opened between two looks
_LOOK = 0.05  # seconds


def main(port: int, seconds: float, half_open: int, wrong_per_second: int) -> None:
    """Attack for so many seconds."""
    end = time.monotonic() + seconds
    under_way = threading.Barrier(_ASKERS + 2, timeout=seconds)
    threads = [threading.Thread(target=_hold, args=(port, end, half_open, under_way))]
    first, every = 1 / wrong_per_second, _ASKERS / wrong_per_second
    threads += [
        threading.Thread(target=_guess, args=(port, end, place * first, every, under_way)) for place in range(_ASKERS)
    ]
    for thread in threads:
        thread.start()
    under_way.wait()
    sys.stdout.write("under way\n")
    sys.stdout.flush()
    for thread in threads:
        thread.join()


def _hold(port: int, end: float, count: int, under_way: threading.Barrier) -> None:
    """Open so many connections that send half of a header, then a hundred per second for those that are closed."""
    waiting = selectors.DefaultSelector()
    opened = 0
    while time.monotonic() < end:
        for _ in range(min(count - len(waiting.get_map()), _FIRST if opened < count else _AGAIN)):
            with suppress(OSError):
                client = socket.create_connection(("127.0.0.1", port), timeout=5)
                client.settimeout(0)
                client.send(b"POST /api/v1/claim HTTP/1.1\r\nHost: loc")
                waiting.register(client, selectors.EVENT_READ)
            opened += 1
            if opened == count:
                under_way.wait()
        for key, _ in waiting.select(_LOOK):
            waiting.unregister(key.fileobj)
            key.fileobj.close()  # type: ignore[union-attr]
    for key in list(waiting.get_map().values()):
        key.fileobj.close()  # type: ignore[union-attr]


def _guess(port: int, end: float, first: float, every: float, under_way: threading.Barrier) -> None:
    """Ask with wrong tokens at a steady rate, without waiting for late answers."""
    pause = threading.Event()
    under_way.wait()
    due = time.monotonic() + first
    while due < end:
        pause.wait(max(0.0, due - time.monotonic()))
        with suppress(OSError, http.client.HTTPException):
            client = http.client.HTTPConnection("127.0.0.1", port, timeout=_PATIENCE)
            client.request("GET", "/api/v1/status", headers={"Authorization": f"Bearer aof_00000000_{due}"})
            client.getresponse().read()
            client.close()
        due += every


if __name__ == "__main__":
    main(int(sys.argv[1]), float(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4]))
