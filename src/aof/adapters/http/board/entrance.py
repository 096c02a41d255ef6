"""The ways into the page and out of it: a link from the command line, a token in a form. Must not know any view."""

from __future__ import annotations

from typing import Any

import anyio.to_thread
from starlette.datastructures import FormData
from starlette.requests import Request
from starlette.responses import Response

from aof.adapters.http.board.access import PREFIX, Access, check_origin, onward, unknown_link
from aof.adapters.http.board.forms import read_form
from aof.adapters.http.board.rendering import HEADERS, render
from aof.adapters.http.limits.failures import Failures
from aof.adapters.http.limits.screen import too_many_failures
from aof.adapters.http.limits.traffic import Traffic, network_of
from aof.core.errors.base import AofError
from aof.core.errors.org import Unauthenticated

_LONGEST = 500  # characters of a token or a key
_MOST_BODY = 10_000


class Entrance:
    """Lets people in and out; what fails is slowed down like any wrong token."""

    def __init__(self, access: Access, failures: Failures, traffic: Traffic, frame: dict[str, Any]) -> None:
        self._access = access
        self._failures = failures
        self._traffic = traffic
        self._frame = frame

    async def form(self, request: Request) -> Response:
        """The form for somebody with a token in hand."""
        return self._form(request.query_params.get("next"))

    async def login(self, request: Request) -> Response:
        """A session for a valid token."""
        check_origin(request)
        form = await read_form(request, _MOST_BODY)
        text = _one(form, "token").strip()[:_LONGEST]
        session = await anyio.to_thread.run_sync(self._access.sessions.login, text) if text else None
        if session is not None:
            return self._access.let_in(request, onward(_one(form, "next")), session)
        wrong = Unauthenticated("this token is not valid", "make one: aof admin token create NAME --scope lead")
        return self._form(_one(form, "next"), await self._slowed(request, wrong))

    async def enter(self, request: Request) -> Response:
        """A session for a link. A page of somebody else must not sign anybody in: then the person is asked first."""
        if request.method == "POST":
            check_origin(request)
            key = _one(await read_form(request, _MOST_BODY), "key")
        else:
            key = request.query_params.get("key", "")
            if request.headers.get("sec-fetch-site", "none") not in ("none", "same-origin"):
                return self._asked(key[:_LONGEST])
        session = await anyio.to_thread.run_sync(self._access.sessions.enter, key[:_LONGEST])
        if session is None:
            return self._form(None, await self._slowed(request, unknown_link()))
        return self._access.let_in(request, f"{PREFIX}/", session)

    async def leave(self, request: Request) -> Response:
        """End the session."""
        check_origin(request)
        return self._access.leave(request, Response("", headers=HEADERS | {"HX-Redirect": f"{PREFIX}/login"}))

    async def _slowed(self, request: Request, error: AofError) -> AofError:
        address = network_of(request.client.host if request.client else None)
        self._traffic.note("failed_authentication", address)
        return error if await self._failures.slowed(address) else too_many_failures()

    def _form(self, after: str | None, error: AofError | None = None) -> Response:
        problem = {"message": error.message, "hint": error.hint} if error is not None else None
        status = 200 if error is None else 429 if error.code == "too_many_requests" else 401
        return render("login.html", status, **self._frame, title="Sign in", onward=onward(after), problem=problem)

    def _asked(self, key: str) -> Response:
        return render("enter.html", **self._frame, title="Open the board", key=key)


def _one(form: FormData, name: str) -> str:
    value = form.get(name)
    return value if isinstance(value, str) else ""
