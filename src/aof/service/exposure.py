"""Who could reach a server: what serving beyond this machine means, and what must be said before it is done."""

from __future__ import annotations

import socket
from ipaddress import ip_address
from typing import TYPE_CHECKING

from aof.errors import InvalidInput, Unavailable

if TYPE_CHECKING:
    from aof.service.serve import Doors


def checked(doors: Doors) -> None:
    """Refuse a combination that would serve nobody, or everybody without anybody having said so."""
    if (doors.tls_cert is None) != (doors.tls_key is None):
        raise InvalidInput(
            "TLS needs a certificate and its key",
            "give both: --tls-cert CERT.pem --tls-key KEY.pem",
            parameter="tls_key",
        )
    if doors.tools is not None and doors.port is None and doors.socket is None:
        raise InvalidInput("--tools is about what is served over HTTP", "serve it: aof up --http 8420 --tools all")
    if doors.port is None:
        given = doors.tls_cert is not None or doors.insecure or doors.host != "127.0.0.1"
        if given:
            raise InvalidInput(
                "--host, --tls-cert, --tls-key and --insecure are about a port", "name one: aof up --http 8420"
            )
        return
    if doors.tls_cert is None and not doors.insecure and not is_loopback(doors.host):
        raise InvalidInput(
            f"--host {doors.host[:80]} serves other machines, and without TLS tokens and tasks would cross the network "
            "as plain text",
            "add TLS: --tls-cert CERT.pem --tls-key KEY.pem; or, on a network that you trust: --insecure",
            parameter="host",
        )


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach the address; a name counts when every address of it does."""
    try:
        return ip_address(host.partition("%")[0]).is_loopback
    except ValueError:
        pass
    try:
        found = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as error:
        raise Unavailable(
            f"the address {host[:80]!r} is not known: {error}", "name an address of this machine"
        ) from None
    return all(ip_address(str(one[4][0]).partition("%")[0]).is_loopback for one in found)


def warning(doors: Doors) -> str | None:
    """What to say about a server that other machines can reach."""
    if doors.port is None or is_loopback(doors.host):
        return None
    plain = "; without TLS everybody on the way can read and use the tokens" if doors.tls_cert is None else ""
    return f"other machines can reach this server: anybody with a token may use it{plain}"
