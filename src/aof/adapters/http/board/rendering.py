"""Templates become answers: escaping, filters, and the headers that keep a page to itself. Must not know any view."""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime
from functools import cache
from typing import Any, Final

from jinja2 import Environment, PackageLoader
from markupsafe import Markup, escape
from starlette.responses import HTMLResponse, Response

from aof.adapters.http.board.markup import markdown
from aof.core.model.times import iso, millis

CSP: Final = (
    "default-src 'none'; script-src 'self'; worker-src 'self'; style-src 'self'; img-src 'self'; font-src 'self'; "
    "connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
# A referrer of the same origin is needed: without one, browsers send forms with the Origin "null".
HEADERS: Final = {
    "Content-Security-Policy": CSP,
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=(), payment=(), usb=()",
    "Cache-Control": "no-store",
}
_NOTHING: Final[tuple[Any, ...]] = (None, "", [], {})
_NOISE: Final = frozenset({"digest", "schemaVersion", "secretDigest"})  # of no use to a person
_ID: Final = re.compile(r"\bTASK-\d{4}-(\d\d-\d\d-\d+)\b")
_LONGEST: Final = 240  # characters of a summary
_WORDS: Final = {"in-progress": "in progress", "deadletter": "given up"}  # where a status is no word of its own
_STEPS: Final = ((86_400, "d"), (3_600, "h"), (60, "min"), (1, "s"))


@cache
def environment() -> Environment:
    """The templates."""
    made = Environment(
        loader=PackageLoader("aof.adapters.http.board"),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        auto_reload=False,
    )
    made.filters |= {
        "markdown": markdown,
        "span": span,
        "moment": moment,
        "short": short,
        "data": data,
        "summary": summary,
        "linked": linked,
        "words": words,
    }
    return made


def render(template: str, status: int = 200, headers: dict[str, str] | None = None, **context: Any) -> Response:
    """A template as an answer."""
    text = environment().get_template(template).render(context)
    return HTMLResponse(text, status_code=status, headers=HEADERS | (headers or {}))


def span(milliseconds: float) -> str:
    """A length of time in its largest unit: 5 min, 3 h, 2 d."""
    seconds = abs(int(milliseconds)) // 1000
    for size, unit in _STEPS:
        if seconds >= size:
            return f"{seconds // size} {unit}"
    return "0 s"


def moment(said: str | None, now: int) -> Markup:
    """A moment as how long ago it was, with the exact one beside; the page keeps it up to date."""
    if not said:
        return Markup("")
    try:
        at = millis(said)
    except ValueError:
        return Markup("<span>{}</span>").format(said)
    ago = f"{span(now - at)} ago" if at <= now else f"in {span(at - now)}"
    shown = datetime.fromtimestamp(at / 1000, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
    return Markup('<time datetime="{}" title="{}" data-ago>{}</time>').format(iso(at), shown, ago)


def short(task_id: str) -> str:
    """The end of an ID, which tells the tasks of some weeks apart."""
    return task_id[len("TASK-2026-") :] if task_id.startswith("TASK-") else task_id


def words(status: str) -> str:
    """A status as people say it."""
    return _WORDS.get(status, status.replace("_", " "))


def linked(text: str) -> Markup:
    """A text in which every task's ID is a short link to that task."""
    link = r'<a href="/board/tasks/\g<0>">\g<1></a>'
    return Markup(_ID.sub(link, str(escape(text))))  # noqa: S704 - escaped, and an ID has nothing but digits and letters


def summary(value: Any) -> str:
    """A small object as one line: what it says, without its punctuation, cut where it gets long."""
    if isinstance(value, dict):
        text = " · ".join(
            f"{name} {_plain(one)}" for name, one in value.items() if one not in _NOTHING and name not in _NOISE
        )
    else:
        text = _plain(value)
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"


def _plain(value: Any) -> str:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return " ".join(text[: _LONGEST * 2].split())


def data(value: Any) -> Markup:
    """Data for a script element of the type application/json: nothing in it can end the element."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    for mark in "<>&\u2028\u2029":
        text = text.replace(mark, f"\\u{ord(mark):04x}")
    return Markup(text)  # noqa: S704 - escaped above
