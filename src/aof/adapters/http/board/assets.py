"""The files that the page loads besides itself: styles, modules and what others wrote. Must not know any view.

They are read once, and a browser that has one asks whether it is still the same.
"""

from __future__ import annotations

import gzip
from functools import cache
from hashlib import sha256
from importlib.resources import files

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from aof.core.errors.base import NotFound

_TYPES = {
    "css": "text/css; charset=utf-8",
    "js": "text/javascript; charset=utf-8",
    "svg": "image/svg+xml",
    "txt": "text/plain; charset=utf-8",
    "json": "application/json",
}
_FOLDERS = ("", "vendor/")
_HEADERS = {
    "Cache-Control": "no-cache",
    "X-Content-Type-Options": "nosniff",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Content-Security-Policy": "default-src 'none'; connect-src 'self'; frame-ancestors 'none'",
}


class Asset(msgspec.Struct, frozen=True):
    """One file as it is sent."""

    data: bytes
    packed: bytes
    tag: str
    kind: str


@cache
def assets() -> dict[str, Asset]:
    """Every file by its name below `static`."""
    return {
        f"{folder}{one.name}": _asset(one.name, one.read_bytes())
        for folder in _FOLDERS
        for one in files(__package__).joinpath("static", folder).iterdir()
        if one.is_file()
    }


def _asset(name: str, data: bytes) -> Asset:
    kind = _TYPES.get(name.rpartition(".")[2], "application/octet-stream")
    return Asset(data, gzip.compress(data, 9, mtime=0), f'"{sha256(data).hexdigest()[:20]}"', kind)


async def asset(request: Request) -> Response:
    """The endpoint; a name that is none of ours reaches no file at all."""
    found = assets().get(request.path_params["name"])
    if found is None:
        raise NotFound("the page has no such file", "reload the page")
    headers = _HEADERS | {"ETag": found.tag, "Vary": "Accept-Encoding"}
    if request.headers.get("if-none-match") == found.tag:
        return Response(status_code=304, headers=headers)
    if "gzip" in request.headers.get("accept-encoding", ""):
        return Response(found.packed, media_type=found.kind, headers=headers | {"Content-Encoding": "gzip"})
    return Response(found.data, media_type=found.kind, headers=headers)
