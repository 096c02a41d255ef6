"""Which addresses push notifications may go to: hosts that the settings list, encrypted or on this machine.

Addresses are taken apart by the library that sends to them, so that both see the same host; it is loaded with the first
one. Must not call anybody.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterable
from typing import Final

from aof.core.errors.storage import SettingsUnusable

_LONGEST: Final = 2_000  # characters of an address
_ENTRY: Final = re.compile(r"(?P<host>\[[0-9a-f:.]+\]|[a-z0-9._-]+)(?::(?P<port>[0-9]{1,5}))?")
_USUAL: Final = {"https": 443, "http": 80}
_HINT: Final = "the operator lists hosts as pushHosts under [a2a] in aof.toml"


class PushHosts:
    """The hosts that peers may have notified; without any, push notifications are off."""

    def __init__(self, listed: Iterable[str]) -> None:
        self._listed = tuple(_entry(one) for one in listed)

    def __bool__(self) -> bool:
        return bool(self._listed)

    def refusal(self, url: str) -> str | None:
        """Why nothing is sent to this address; None when it may be."""
        import httpx

        try:
            parsed = httpx.URL(url)
        except (httpx.InvalidURL, ValueError, TypeError):
            return "the address is no URL"
        if len(url) > _LONGEST or not url.isascii() or not url.isprintable() or parsed.userinfo or parsed.fragment:
            return f"the address has more than {_LONGEST} characters, unusual ones, a password or a fragment"
        if parsed.scheme not in _USUAL or not parsed.host:
            return "the address must begin with https://"
        name, port = host_of(url), parsed.port or _USUAL[parsed.scheme]
        if not any(host == name and (only is None or only == port) for host, only in self._listed):
            return f"push notifications to {name[:80]} are not allowed; {_HINT}"
        if parsed.scheme == "http" and not _is_here(name):
            return "the address must begin with https://; plain http is for this machine only"
        return None


def host_of(url: str) -> str:
    """The part of an address that may be told to people: its path may be a secret."""
    import httpx

    try:
        return httpx.URL(url).raw_host.decode("ascii")
    except (httpx.InvalidURL, ValueError):
        return "?"


def _entry(text: str) -> tuple[str, int | None]:
    found = _ENTRY.fullmatch(text.lower())
    if found is None:
        raise SettingsUnusable(
            f"aof.toml cannot be used: {text[:80]!r} in pushHosts of [a2a] is no host",
            'list names or addresses, perhaps with a port: pushHosts = ["hooks.example.org", "127.0.0.1:9000"]',
        )
    port = found["port"]
    return found["host"].strip("[]"), int(port) if port else None


def _is_here(host: str) -> bool:
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
