"""Serves a data directory over HTTP until it is terminated; prints its address once it takes requests.

`open` lets everybody in: for clients that know no tokens. `fixtures` adds what the conformance suite wants to find,
and `streamed` answers everything as a stream, also what nobody asked to have streamed.
"""

from __future__ import annotations

import sys

from starlette.types import ASGIApp

from aof.api.call import Caller
from aof.service import serve
from aof.service.bootstrap import open_fabric
from aof.surfaces.http.app import HttpSettings, make_app

ANYBODY = Caller("anybody")


def main(root: str, *words: str) -> None:
    """Serve."""
    fixtures = {"fixtures", "streamed"} & {*words}
    app = _with_fixtures(root, *fixtures) if fixtures else _as_ever(root, everybody="open" in words)

    def started() -> None:
        sys.stdout.write(f"http://127.0.0.1:{port}\n")
        sys.stdout.flush()

    server, port = serve.http_server(app, "127.0.0.1", 0, started)
    server.run()


def _as_ever(root: str, *, everybody: bool) -> ASGIApp:
    return serve.make_http(root, authenticate=(lambda _token: ANYBODY) if everybody else None)


def _with_fixtures(root: str, how: str) -> ASGIApp:
    from tests.interop.conformance import Streamed, WithFixtures  # noqa: PLC0415 - only where the suite is run

    settings = HttpSettings(authenticate=lambda _token: ANYBODY)
    mcp = (Streamed if how == "streamed" else WithFixtures)(lambda _request: ANYBODY, ("core",), "0", settings.max_body)
    return make_app(lambda: open_fabric(root), settings, {"/mcp": mcp})


if __name__ == "__main__":
    main(*sys.argv[1:])
