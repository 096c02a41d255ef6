"""Who is in the page: links, the login form, the session, and what every write must prove. Must not know any view.

Cookies do not tell ports apart: whatever listens on another port of this machine gets ours, too. So the cookie is half
of a session; the other half is in the page's storage, which belongs to host and port, and the page sends it as a header
with each request. The cookie is named after the data directory, so that two pages do not take each other's place. A
write also needs the page's own Origin, and the browser's word that it comes from there.
"""

from __future__ import annotations

from typing import Protocol

from starlette.datastructures import Headers
from starlette.requests import Request, cookie_parser
from starlette.responses import Response

from aof.adapters.http.board.rendering import render
from aof.app.maintenance.page_sessions import NewSession
from aof.app.operations.call import Caller
from aof.core.errors.org import NotAllowed, Unauthenticated

PREFIX = "/board"
HALF = "AOF-Page"  # the header with the half that the page keeps
_HALF = 22  # characters of it: 132 bits, and the cookie has as good as as many
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
    """The sessions of one page: half a cookie, half what the page keeps."""

    def __init__(self, sessions: Sessions, instance: str) -> None:
        self.sessions = sessions
        self._name = f"aof_{instance}"

    def caller(self, headers: Headers) -> Caller | None:
        """Whose session it is; the cookie alone is nobody's."""
        text = self._text(headers)
        return self.sessions.caller(text) if text is not None else None

    def _text(self, headers: Headers) -> str | None:
        """The session; another page of this host may have set a cookie of its name: the valid one counts."""
        kept = headers.getlist(HALF)
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
        """For a browser that goes to a page, and can send no header with that: an empty page that asks for itself."""
        if HALF in headers or "text/html" not in headers.get("accept", "") or not self._cookies(headers):
            return None
        return render("shell.html", title="AOF", session=self._name)

    def let_in(self, request: Request, path: str, session: NewSession) -> Response:
        """Give the browser both halves, and lead it on: after a redirect, it would keep a strict cookie back."""
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
