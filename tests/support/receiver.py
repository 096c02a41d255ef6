"""A service on the loopback that takes JSON, from Apprise (`json://`) or a webhook: it keeps it, refuses or hangs."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from tests.support.waiting import BOUND


class Receiver:
    """What was received, and how it answers: with `status`, once it is not `held`."""

    def __init__(self) -> None:
        self.received: list[dict[str, Any]] = []
        self.headers: list[dict[str, str]] = []
        self.status = 200
        self.location: str | None = None
        self.held = threading.Event()
        self.held.set()
        self.news = threading.Condition()
        self.port = 0

    def url(self, secret: str = "s3cr3t") -> str:
        """Its address for Apprise."""
        return f"json://127.0.0.1:{self.port}/{secret}"

    def hook(self, secret: str = "s3cr3t") -> str:
        """Its address as a webhook."""
        return f"http://127.0.0.1:{self.port}/{secret}"

    def wait(self, count: int) -> list[dict[str, Any]]:
        """Everything received, once it is that much."""
        with self.news:
            assert self.news.wait_for(lambda: len(self.received) >= count, BOUND), self.received
        return self.received


@contextmanager
def receiver() -> Iterator[Receiver]:
    """One that listens."""
    made = Receiver()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            with made.news:
                made.received.append(json.loads(body))
                made.headers.append({name.lower(): value for name, value in self.headers.items()})
                made.news.notify_all()
            made.held.wait(BOUND)
            self.send_response(made.status)
            if made.location is not None:
                self.send_header("Location", made.location)
            self.end_headers()

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the name is the base's
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    made.port = int(server.server_address[1])
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield made
    finally:
        made.held.set()
        server.shutdown()
        server.server_close()
        thread.join(BOUND)
