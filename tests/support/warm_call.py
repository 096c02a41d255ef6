"""Stands for one process that forks elsewhere: hands its own words, environment and streams over, and ends as it does.

`python -I -S warm_call.py SOCKET MODULE WORDS…`; see `tests.support.warm`. It imports next to nothing: it is started
hundreds of times.
"""

from __future__ import annotations

import _signal  # type: ignore[import-not-found]  # `signal` takes longer to load than all the rest
import _socket
import os
import sys

FORWARDED = (_signal.SIGTERM, _signal.SIGINT, _signal.SIGHUP)


def main(address: str, *words: str) -> None:
    """Ask for the process, pass signals on, and end with its exit code or by its signal."""
    place = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM)
    place.connect(address)
    for number in FORWARDED:
        _signal.signal(number, lambda number, _frame: place.send(bytes([number])))
    mask = os.umask(0)
    said = [os.getcwdb(), str(mask).encode(), str(len(words)).encode(), *map(os.fsencode, words)]
    asked = b"\0".join([*said, *(name + b"=" + value for name, value in os.environb.items())])
    streams = b"".join(number.to_bytes(4, sys.byteorder) for number in (0, 1, 2))
    rights = [(_socket.SOL_SOCKET, _socket.SCM_RIGHTS, streams)]
    place.sendmsg([len(asked).to_bytes(4, sys.byteorder)], rights)
    place.sendall(asked)
    for number in (0, 1, 2):
        os.close(number)  # they end when the process does, not when this one does
    place.recv(4)  # its ID
    ended = place.recv(4)
    code = int.from_bytes(ended, sys.byteorder, signed=True) if ended else 1
    if code < 0:
        _signal.signal(-code, _signal.SIG_DFL)
        os.kill(os.getpid(), -code)
    os._exit(code)


main(*sys.argv[1:])
