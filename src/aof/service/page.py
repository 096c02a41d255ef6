"""Opens the page for people: finds the service that serves it, makes a link that works once, starts the browser."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from contextlib import AbstractContextManager
from urllib.parse import urlsplit

from aof.kernel import limits as kernel_limits
from aof.kernel.declarations import SCOPES
from aof.maintenance.tokens import PageSessions
from aof.service.bootstrap import find_data_dir
from aof.service.clock import SystemClock
from aof.service.serve import tokens_of
from aof.store.files.service_files import ServiceAddresses

_ANY = {"0.0.0.0": "127.0.0.1", "[::]": "[::1]"}  # noqa: S104 - names that are replaced
_DISPLAYS = ("DISPLAY", "WAYLAND_DISPLAY", "BROWSER")


def served_at(data_dir: str | None, port: int | None = None) -> str | None:
    """Where a browser reaches the page of a data directory, or on this port; None where no service serves it so."""
    return browsable(ServiceAddresses(find_data_dir(data_dir)).known(), port)


def starting(data_dir: str | None) -> AbstractContextManager[Callable[[], None]]:
    """Keeps others from starting a service meanwhile; what it gives lets them on before the context ends."""
    return ServiceAddresses(find_data_dir(data_dir)).starting()


def browsable(addresses: tuple[str, ...], wanted: int | None = None) -> str | None:
    """The first address that a browser on this machine can open, or that has this port."""
    for address in addresses:
        parts = urlsplit(address)
        if parts.scheme in ("http", "https") and wanted in (None, parts.port):
            host, _, port = parts.netloc.rpartition(":")
            return f"{parts.scheme}://{_ANY.get(host, host)}:{port}"
    return None


def make_link(data_dir: str | None, actor: str, scope: str, address: str) -> str:
    """A link that lets this actor in once, within the minute."""
    if problem := kernel_limits.choice("scope", scope, SCOPES):
        raise problem
    allowed = next(one for one in SCOPES if one == scope)
    key = PageSessions(tokens_of(data_dir), SystemClock()).link(actor, allowed)
    return f"{address}/board/enter?key={key}"


def open_browser(url: str) -> bool:
    """Have the person's browser open it, where there is one; a browser in the terminal would take the terminal away."""
    if sys.platform != "darwin" and not any(os.environ.get(name) for name in _DISPLAYS):
        return False
    import webbrowser

    try:
        return webbrowser.open(url)
    except webbrowser.Error:
        return False
