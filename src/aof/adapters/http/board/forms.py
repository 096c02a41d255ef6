"""What a form of the page sends, read within bounds. Must not know any single form."""

from __future__ import annotations

from urllib.parse import parse_qsl

from starlette.datastructures import FormData
from starlette.requests import Request

from aof.adapters.http.api.routes import bounded_body
from aof.core.errors.base import InvalidInput

_MOST_FIELDS = 2_000
_KIND = "application/x-www-form-urlencoded"


async def read_form(request: Request, most: int) -> FormData:
    """The fields, in order; only forms as browsers send them by themselves, and as our own scripts do."""
    if request.headers.get("content-type", "").partition(";")[0].strip().lower() != _KIND:
        raise InvalidInput("this is not a form of the page", "send it from the page")
    body = await bounded_body(request, most)
    try:
        pairs = parse_qsl(body.decode("ascii"), keep_blank_values=True, errors="strict", max_num_fields=_MOST_FIELDS)
    except ValueError:
        raise InvalidInput("the form cannot be read", "reload the page and send it again") from None
    return FormData([(name, value.replace("\r\n", "\n")) for name, value in pairs])
