"""A peer for tests that says exactly what it is told to: JSON-RPC of A2A on a port of the loopback, with faults."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from tests.support.waiting import BOUND

Json = dict[str, Any]
Message = Callable[["ScriptedPeer"], None]


class ScriptedPeer:
    """What the peer says. `states` are those that `GetTask` goes through; the last one stays."""

    def __init__(self, *states: str, streams: bool = False) -> None:
        self.states = list(states)
        self.streams = streams
        self.stream: list[Json] = []
        self.stays = False  # after its updates the stream stays open, and says no more
        self.calls: list[tuple[str, Json]] = []
        self.artifacts: list[Json] = []
        self.files: dict[str, tuple[int, bytes]] = {}
        self.said = "said by the peer"
        self.interface: str | None = None
        self.garbage: set[str] = set()
        self.broken: set[str] = set()  # answered with an error of the server
        self.silent: set[str] = set()  # never answered
        self.redirects: dict[str, str] = {}  # by the method or the path, where they lead
        self.encoded: dict[str, tuple[str, bytes]] = {}  # the content encoding and the bytes of an answer
        self.cards = 0
        self.closed = threading.Event()
        self.task_id = "remote-1"
        self.address = ""
        self.asked = threading.Event()

    def called(self, method: str) -> list[Json]:
        """The parameters of every call of a method."""
        return [params for name, params in self.calls if name == method]

    def messages(self) -> list[Json]:
        """Every message that was sent to the peer."""
        return [params["message"] for params in self.called("SendMessage")]

    def card(self) -> Json:
        url = self.interface or f"{self.address}/rpc"
        return {
            "name": "scripted", "description": "A peer", "version": "1", "defaultInputModes": ["text/plain"],
            "defaultOutputModes": ["text/plain"], "capabilities": {"streaming": self.streams}, "skills": [],
            "supportedInterfaces": [{"url": url, "protocolBinding": "JSONRPC", "protocolVersion": "1.0"}],
        }  # fmt: skip

    def task(self, state: str) -> Json:
        status: Json = {"state": f"TASK_STATE_{state.upper()}"}
        if self.said:
            message = {"messageId": f"peer-{state}", "role": "ROLE_AGENT", "parts": [{"text": self.said}]}
            status["message"] = message
        told = {"artifacts": self.artifacts} if state == "completed" else {}
        return {"id": self.task_id, "contextId": "context-1", "status": status, **told}

    def answer(self, method: str, params: Json) -> Json:
        """The result of one call."""
        self.calls.append((method, params))
        if method == "SendMessage":
            return {"task": self.task("submitted")}
        if method == "GetTask":
            self.asked.set()
            return self.task(self.states.pop(0) if len(self.states) > 1 else self.states[0])
        if method == "CancelTask":
            return self.task("canceled")
        return {"tasks": [], "nextPageToken": "", "pageSize": 50, "totalSize": 0}


def _handler(peer: ScriptedPeer) -> type[BaseHTTPRequestHandler]:  # noqa: C901 - one fault after the other
    class Handler(BaseHTTPRequestHandler):
        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the library's name
            """Nothing on the terminal."""

        def do_GET(self) -> None:
            is_card = self.path == "/.well-known/agent-card.json"
            peer.cards += is_card
            if self._fails("card" if is_card else self.path):
                return
            if is_card:
                self._send(200, b"{}{{" if "card" in peer.garbage else json.dumps(peer.card()).encode())
            else:
                peer.calls.append(("file", {"path": self.path}))
                self._send(*peer.files.get(self.path, (404, b"")))

        def do_POST(self) -> None:
            asked = json.loads(self.rfile.read(int(self.headers["content-length"])))
            method, params = asked["method"], asked.get("params", {})
            if self._fails(method):
                return
            if method in peer.garbage:
                peer.calls.append((method, params))
                self._send(200, b'{"jsonrpc": "2.0", "id": "?", "result": {"task": [1, 2')
            elif method == "SubscribeToTask":
                peer.calls.append((method, params))
                self._stream(asked["id"])
            else:
                said = {"jsonrpc": "2.0", "id": asked["id"], "result": peer.answer(method, params)}
                self._send(200, json.dumps(said).encode())

        def _stream(self, call_id: object) -> None:
            frames = (json.dumps({"jsonrpc": "2.0", "id": call_id, "result": one}) for one in peer.stream)
            body = "".join(f"data: {one}\n\n" for one in frames).encode()
            if not peer.stays:
                self._send(200, body, "text/event-stream")
                return
            self.send_response(200)
            self.send_header("content-type", "text/event-stream")
            self.end_headers()
            with suppress(OSError):  # the follower has left
                self.wfile.write(body)
                while not peer.closed.wait(0.05):
                    self.wfile.write(b": still here\n\n")

        def _fails(self, what: str) -> bool:
            """Whether this is not answered as it should be."""
            if what in peer.silent:
                peer.closed.wait(BOUND)
            elif what in peer.broken:
                self._send(500, b"{}")
            elif what in peer.redirects:
                self.send_response(307)
                self.send_header("location", peer.redirects[what])
                self.send_header("content-length", "0")
                self.end_headers()
            elif what in peer.encoded:
                encoding, body = peer.encoded[what]
                self._send(200, body, encoding=encoding)
            else:
                return False
            return True

        def _send(
            self, status: int, body: bytes, kind: str = "application/json", *, encoding: str | None = None
        ) -> None:
            self.send_response(status)
            self.send_header("content-type", kind)
            if encoding is not None:
                self.send_header("content-encoding", encoding)
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

    return Handler


@contextmanager
def serving(peer: ScriptedPeer, port: int = 0) -> Iterator[ScriptedPeer]:
    """Let the peer answer on the loopback."""
    server = ThreadingHTTPServer(("127.0.0.1", port), _handler(peer))
    peer.address = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    try:
        yield peer
    finally:
        peer.closed.set()
        server.shutdown()
        server.server_close()
        thread.join()
