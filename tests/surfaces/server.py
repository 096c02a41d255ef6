"""Serves a data directory over HTTP until it is terminated; prints its address once it takes requests.

`open` lets everybody in: for clients that know no tokens. `fixtures` adds what the conformance suite wants to find.
"""

from __future__ import annotations

import sys

from aof import serving
from aof.app.calling import Caller


def main(root: str, *words: str) -> None:
    """Serve."""
    anybody = Caller("anybody")
    app = serving.make_http(root, authenticate=(lambda _token: anybody) if "open" in words else None)

    def started() -> None:
        sys.stdout.write(f"http://127.0.0.1:{port}\n")
        sys.stdout.flush()

    server, port = serving.http_server(app, "127.0.0.1", 0, started)
    server.run()


if __name__ == "__main__":
    main(*sys.argv[1:])
