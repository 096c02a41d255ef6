"""By which names the server may be called, and from which pages. Must not know who calls."""

from __future__ import annotations

from starlette.datastructures import Headers
from starlette.types import Scope

from aof.core.errors.org import NotAllowed

_PORTS = {"http": "80", "https": "443"}


def check_names(scope: Scope, headers: Headers, hosts: tuple[str, ...]) -> None:
    """Turn away a foreign Host, and a page of another Origin.

    The address that a connection came in on is a name, too: no page can make a browser send it but one that comes from
    there itself.
    """
    host, port = _parts(headers.get("host", ""))
    server = scope.get("server")
    own = str(server[0]) if server and server[1] is not None else None
    known = (*hosts, f"[{own}]" if own and ":" in own else own or hosts[0])
    if host not in known:
        raise NotAllowed(
            f"this server is not called {host[:80]!r}",
            f"use one of: {', '.join(sorted(set(known)))}; [http] hosts in aof.toml adds names",
        )
    origin = headers.get("origin")
    if origin is None:
        return
    scheme, _, place = origin.partition("://")
    page, page_port = _parts(place)
    default = _PORTS.get(scheme.lower())
    if default is None or page not in known or (page_port or default) != (port or default):
        raise NotAllowed(f"pages from {origin[:80]!r} may not call this server", "call it from its own pages")


def _parts(host: str) -> tuple[str, str]:
    """The name in lower case, and the port or nothing."""
    name, colon, port = host.rpartition(":")
    return (name.lower(), port) if colon and port.isascii() and port.isdigit() else (host.lower(), "")
