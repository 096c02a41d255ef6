"""The browser: Debian's chromium without a screen, and a proxy that notes whoever wants to leave the machine."""

from __future__ import annotations

import shutil
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from playwright.sync_api import Browser, sync_playwright

NAMES = ("chromium", "chromium-browser", "google-chrome")
# What the browser itself would fetch or look up, besides the list of playwright, which this one takes the place of.
OWN_TRAFFIC = (
    "AutofillServerCommunication",
    "AimEnabled",
    "HttpsFirstBalancedModeAutoEnable",
    "HttpsUpgrades",
    "MediaRouter",
    "NetworkTimeServiceQuerying",
    "OptimizationHints",
    "PaintHolding",
    "PreconnectToSearch",
    "Translate",
)
FLAGS = (
    "--no-sandbox",  # root has none, and the only pages are ours
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    f"--disable-features={','.join(OWN_TRAFFIC)}",
)


def found() -> str:
    """Where the browser is."""
    for name in NAMES:
        if path := shutil.which(name):
            return path
    raise AssertionError("there is no chromium here: 'make test-browser' installs it, or: apt-get install chromium")


@contextmanager
def started() -> Iterator[Browser]:
    """A browser until the end of the block."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=found(), args=list(FLAGS))
        try:
            yield browser
        finally:
            browser.close()


class Outside:
    """A proxy for everything that is not on this machine. It serves nothing: what it was asked for is in `asked`.

    Also workers go through it, which no event of a page tells about.
    """

    def __init__(self) -> None:
        self.asked: list[str] = []
        self._socket = socket.create_server(("127.0.0.1", 0))
        self._thread = threading.Thread(target=self._listen, daemon=True)
        self._thread.start()

    @property
    def address(self) -> str:
        """What the browser is told."""
        return f"http://127.0.0.1:{self._socket.getsockname()[1]}"

    def _listen(self) -> None:
        while True:
            try:
                client, _ = self._socket.accept()
            except OSError:
                return  # closed
            with client:
                client.settimeout(5)
                try:
                    self.asked.append(client.recv(2000).split(b"\r\n")[0].decode("latin-1"))
                except OSError:
                    self.asked.append("a connection that said nothing")

    def close(self) -> None:
        """Take no more."""
        self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()
        self._thread.join(5)
