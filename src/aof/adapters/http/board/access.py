"""Who is in the page: links, the login form, the cookie, and what every write must prove. Must not know any view.

The cookie is named after the data directory, because cookies do not tell ports apart and two pages of one machine would
take each other's place. A write needs the page's own Origin, the browser's word that it comes from there, and a token
that only the page has.
"""

from __future__ import annotations

import hmac
from hashlib import sha256
from typing import Protocol

from starlette.datastructures import FormData, Headers
from starlette.requests import Request, cookie_parser
from starlette.responses import Response

from aof.app.maintenance.page_sessions import NewSession
from aof.app.operations.call import Caller
from aof.core.errors.org import NotAllowed, Unauthenticated

PREFIX = "/board"
_LOCAL = ("127.0.0.1", "localhost", "[::1]")
_LONGEST_PATH = 2_000


class Sessions(Protocol):
    """Where sessions begin, are known and end."""

    def enter(self, key: str) -> NewSession | None:
        """Begin one with the key of a link."""
        ...

    def login(self, text: str) -> NewSession | None:
        """Begin one with a token."""
        ...

    def caller(self, text: str) -> Caller | None:
        """Whose it is."""
        ...

    def leave(self, text: str) -> None:
        """End one."""
        ...


class Access:
    """The sessions of one page, as cookies."""

    def __init__(self, sessions: Sessions, instance: str) -> None:
        self.sessions = sessions
        self._name = f"aof_{instance}"

    def caller(self, headers: Headers) -> Caller | None:
        """Whose cookie it is."""
        text = self._text(headers)
        return self.sessions.caller(text) if text is not None else None

    def _text(self, headers: Headers) -> str | None:
        """The session in the cookie; another page of this host may have set one of its name: the valid one counts."""
        given = [
            value
            for header in headers.getlist("cookie")
            for part in header.split(";")
            for name, value in cookie_parser(part).items()
            if name == self._name
        ]
        valid = [text for text in dict.fromkeys(given) if self.sessions.caller(text) is not None]
        return valid[0] if len(valid) == 1 else None

    def csrf(self, request: Request) -> str:
        """What every form of this session carries: only a page of ours can know it."""
        text = self._text(request.headers)
        return sha256(f"csrf {text}".encode()).hexdigest()[:40] if text is not None else ""

    def let_in(self, request: Request, response: Response, session: NewSession) -> Response:
        """Give the browser its cookie."""
        response.set_cookie(
            self._name,
            session.text,
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

    def check_write(self, request: Request, form: FormData) -> None:
        """Refuse a write that is not from a page of ours."""
        check_origin(request)
        given, own = request.headers.get("aof-csrf") or form.get("csrf"), self.csrf(request)
        if not own or not isinstance(given, str) or not hmac.compare_digest(given.encode(), own.encode()):
            raise NotAllowed("this form belongs to another session", "reload the page and send it again")


def check_origin(request: Request) -> None:
    """A form must come from a page of exactly this origin; browsers always say from where."""
    here = f"{request.url.scheme}://{request.headers.get('host', '')}"
    origin = request.headers.get("origin")
    if origin is None or origin.lower() != here.lower():
        raise NotAllowed(f"forms from {(origin or 'nowhere')[:80]!r} are not taken", f"send it from {here}")
    site = request.headers.get("sec-fetch-site")
    told = request.url.scheme == "https" or (request.url.hostname or "") in (name.strip("[]") for name in _LOCAL)
    if site != "same-origin" and (site is not None or told):
        raise NotAllowed("the browser does not say that this form is from this page", f"send it from {here}")


def onward(given: str | None) -> str:
    """Where to go afterwards: only to a page of ours."""
    path = given or f"{PREFIX}/"
    ours = path == PREFIX or path.startswith(f"{PREFIX}/")
    plain = path.isascii() and path.isprintable() and "\\" not in path and len(path) <= _LONGEST_PATH
    return path if ours and plain else f"{PREFIX}/"


def unknown_link() -> Unauthenticated:
    """Why a link does not work."""
    return Unauthenticated(
        "this link does not work: it is good once, for a minute", "make another one: aof board --web"
    )
