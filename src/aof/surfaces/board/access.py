"""Who is signed in on the board: links and the login form, the session, and what every form must prove."""

from __future__ import annotations

from typing import Any
from urllib.parse import parse_qsl

import anyio.to_thread
from starlette.datastructures import FormData, Headers
from starlette.requests import Request, cookie_parser
from starlette.responses import Response

from aof.api.call import Caller
from aof.errors import AofError, InvalidInput, NotAllowed, Unauthenticated
from aof.maintenance.tokens import NewSession, PageSessions
from aof.surfaces.board.view import HEADERS, problem_of, render
from aof.surfaces.http.guard import FailedAuthentications, Traffic, network_of, too_many_failures
from aof.surfaces.http.responses import status_of
from aof.surfaces.http.routes import bounded_body

PREFIX = "/board"
_HALF_HEADER = "AOF-Page"  # the header with the half of the session that the page keeps
_HALF = 22  # characters of it: 132 bits, and the cookie has as good as as many
_LOCAL = ("127.0.0.1", "localhost", "::1")
_LONGEST_PATH = 2_000
_LONGEST = 500  # characters of a token or a key
_MOST_BODY = 10_000
_MOST_FIELDS = 2_000
_FORM = "application/x-www-form-urlencoded"


class Access:
    """The sessions of one board. Of the text that names one, half is in a cookie, and half is kept by the page."""

    def __init__(self, sessions: PageSessions, instance: str) -> None:
        self.sessions = sessions
        self._name = f"aof_{instance}"

    def caller(self, headers: Headers) -> Caller | None:
        """The owner of the session; the cookie alone is not enough."""
        text = self._text(headers)
        return self.sessions.caller(text) if text is not None else None

    def _text(self, headers: Headers) -> str | None:
        """The text of the session. Another page of this host may have set a cookie of the same name: one is valid."""
        kept = headers.getlist(_HALF_HEADER)
        if len(kept) != 1:
            return None
        given = [f"{value}{kept[0]}" for value in self._cookies(headers)]
        valid = [text for text in dict.fromkeys(given) if self.sessions.caller(text) is not None]
        return valid[0] if len(valid) == 1 else None

    def _cookies(self, headers: Headers) -> list[str]:
        return [
            value
            for header in headers.getlist("cookie")
            for part in header.split(";")
            for name, value in cookie_parser(part).items()
            if name == self._name
        ]

    def shell(self, headers: Headers) -> Response | None:
        """An empty page that loads itself again, for a browser that can send no header when it goes to a page."""
        if _HALF_HEADER in headers or "text/html" not in headers.get("accept", "") or not self._cookies(headers):
            return None
        return render("shell.html", title="AOF", session=self._name)

    def let_in(self, request: Request, path: str, session: NewSession) -> Response:
        """Give the browser both halves on a page that leads on: after a redirect, it would not send a strict cookie."""
        half = session.text[-_HALF:]
        response = render("go_on.html", path=path, title="Signed in", session=self._name, half=half)
        response.set_cookie(
            self._name,
            session.text[:-_HALF],
            max_age=session.seconds,
            path=PREFIX,
            secure=request.url.scheme == "https",
            httponly=True,
            samesite="strict",
        )
        return response

    def leave(self, request: Request, response: Response) -> Response:
        """End the session, and take the cookie back."""
        if (text := self._text(request.headers)) is not None:
            self.sessions.leave(text)
        response.delete_cookie(self._name, path=PREFIX, httponly=True, samesite="strict")
        return response


def check_origin(request: Request) -> None:
    """Refuse a form that is not from a page of exactly this origin; browsers always say from where."""
    here = f"{request.url.scheme}://{request.headers.get('host', '')}"
    origin = request.headers.get("origin")
    if origin is None or origin.lower() != here.lower():
        raise NotAllowed(f"forms from {(origin or 'nowhere')[:80]!r} are not taken", f"send it from {here}")
    site = request.headers.get("sec-fetch-site")
    must_say = request.url.scheme == "https" or (request.url.hostname or "") in _LOCAL
    if site != "same-origin" and (site is not None or must_say):
        raise NotAllowed("the browser does not say that this form is from this page", f"send it from {here}")


def _onward(given: str | None) -> str:
    """Where to go after signing in: only to a page of ours."""
    path = given or f"{PREFIX}/"
    ours = path == PREFIX or path.startswith(f"{PREFIX}/")
    plain = path.isascii() and path.isprintable() and "\\" not in path and len(path) <= _LONGEST_PATH
    return path if ours and plain else f"{PREFIX}/"


class Entrance:
    """Signs people in and out; what fails is slowed down like any wrong token."""

    def __init__(
        self, access: Access, failures: FailedAuthentications, traffic: Traffic, frame: dict[str, Any]
    ) -> None:
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
            return self._access.let_in(request, _onward(_one(form, "next")), session)
        wrong = Unauthenticated("this token is not valid", "make one: aof admin token create NAME --scope lead")
        return self._form(_one(form, "next"), await self._slowed(request, wrong))

    async def enter(self, request: Request) -> Response:
        """Begin a session with the key of a link; the person is asked first where another site's page led here."""
        if request.method == "POST":
            check_origin(request)
            key = _one(await read_form(request, _MOST_BODY), "key")
        else:
            key = request.query_params.get("key", "")
            if request.headers.get("sec-fetch-site", "none") not in ("none", "same-origin"):
                return render("enter.html", **self._frame, title="Open the board", key=key[:_LONGEST])
        session = await anyio.to_thread.run_sync(self._access.sessions.enter, key[:_LONGEST])
        if session is None:
            spent = Unauthenticated(
                "this link does not work: it is good once, for a minute", "make another one: aof board --web"
            )
            return self._form(None, await self._slowed(request, spent))
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
        problem = problem_of(error) if error is not None else None
        status = status_of(error) if error is not None else 200
        return render("login.html", status, **self._frame, title="Sign in", onward=_onward(after), problem=problem)


def _one(form: FormData, name: str) -> str:
    value = form.get(name)
    return value if isinstance(value, str) else ""


async def read_form(request: Request, most: int) -> FormData:
    """The fields, in order; only forms as browsers send them by themselves, and as our own scripts do."""
    if request.headers.get("content-type", "").partition(";")[0].strip().lower() != _FORM:
        raise InvalidInput("this is not a form of the page", "send it from the page")
    body = await bounded_body(request, most)
    try:
        pairs = parse_qsl(body.decode("ascii"), keep_blank_values=True, errors="strict", max_num_fields=_MOST_FIELDS)
    except ValueError:
        raise InvalidInput("the form cannot be read", "reload the page and send it again") from None
    return FormData([(name, value.replace("\r\n", "\n")) for name, value in pairs])
