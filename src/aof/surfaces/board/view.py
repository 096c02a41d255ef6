"""What one view of the board declares, what it works with, and what a page is made of.

Operations in a person's name, the page's address, templates, Markdown by others as safe HTML, and the files it loads.
"""

from __future__ import annotations

import gzip
import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from functools import cache
from hashlib import sha256
from html import escape as html_escape
from importlib.resources import files
from typing import Any, Final
from urllib.parse import urlencode

import msgspec
from jinja2 import Environment, PackageLoader
from markdown_it import MarkdownIt
from markdown_it.token import Token
from markupsafe import Markup, escape
from starlette.datastructures import ImmutableMultiDict
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response

from aof.api.call import Caller, parameters, perform
from aof.api.catalogue import BY_NAME, SCOPES
from aof.api.fabric import Fabric
from aof.errors import AofError, InvalidInput, NotFound
from aof.kernel.model import iso, millis

_LONGEST: Final = 500  # characters of a parameter in an address
_DIGITS: Final = 9
_MOST_AGENTS: Final = 500
_MOST_TAGS: Final = 100
_ALONE: Final = "if you work alone, allow it for all your work: 'aof init --solo'"  # the board's callers are people


class Operations:
    """The operations, called in the name of one caller; results are plain data with the names of the wire."""

    def __init__(self, fabric: Fabric, caller: Caller) -> None:
        self._fabric = fabric
        self.caller = caller

    def __call__(self, operation: str, /, **given: Any) -> Any:
        """The result of an operation; what is None is left out. Raises AofError."""
        row = BY_NAME[operation]
        names = _wire_names(operation)
        wire = {names.get(name, name): value for name, value in given.items() if value is not None}
        return msgspec.to_builtins(perform(self._fabric, row, parameters(row, wire), self.caller))

    def task(self, given: str | None) -> str | None:
        """The ID of the task that a filter names. Raises TaskNotFound, so that a wrong ID is not taken for silence."""
        return str(self("show", task_id=given, full=False)["id"]) if given is not None else None

    def may(self, operation: str) -> bool:
        """Whether the caller's token allows it; the rules of the chart are asked when it is done."""
        row = BY_NAME.get(operation)
        return row is not None and SCOPES.index(self.caller.scope) >= SCOPES.index(row.scope)

    def has_workflows(self) -> bool:
        """Whether the project has any workflow."""
        source = self._fabric.services.environment.workflows
        return source is not None and bool(source.names())

    def now(self) -> int:
        """The time, in UTC milliseconds."""
        return self._fabric.now()

    def head(self) -> int:
        """The number of the last event; what is read after this call includes it."""
        return self._fabric.store.head()


@cache
def _wire_names(operation: str) -> dict[str, str]:
    """The names that the parameters of an operation have over the wire."""
    return {field.name: field.encode_name for field in msgspec.structs.fields(BY_NAME[operation].parameters)}


class PageAddress:
    """What the address of a page says: the parts of its path, and its filters."""

    def __init__(self, path: Mapping[str, str], query: ImmutableMultiDict[str, str], location: str) -> None:
        self.path = path
        self._location = location
        self._query = query

    def text(self, name: str) -> str | None:
        """A filter; None where it is not set."""
        value = self._query.get(name, "").strip()
        if len(value) > _LONGEST:
            raise InvalidInput(f"the filter {name!r} has more than {_LONGEST} characters", "give a few words")
        return value or None

    def number(self, name: str, usual: int, *, least: int = 0, most: int = 10**_DIGITS) -> int:
        """A number, within bounds; what is none counts as the usual one."""
        value = self._query.get(name, "")
        given = int(value) if value.isascii() and value.isdigit() and len(value) <= _DIGITS else usual
        return min(max(given, least), most)

    def flag(self, name: str) -> bool:
        """Whether it is switched on."""
        return self._query.get(name) in ("1", "on", "true")

    def words(self, name: str) -> tuple[str, ...]:
        """The values of a list such as `done,cancelled`."""
        return tuple(filter(None, (self.text(name) or "").split(",")))

    def used(self, *names: str) -> int:
        """How many of these filters are set."""
        return sum(self.text(name) is not None for name in names)

    def address(self, **changes: Any) -> str:
        """The same page with some parameters changed; None takes one away."""
        kept = [(name, value) for name, value in self._query.multi_items() if name not in changes and value]
        kept += [(name, str(value)) for name, value in changes.items() if value is not None]
        return f"{self._location}?{urlencode(kept)}" if kept else self._location


Context = Callable[[Operations, PageAddress], dict[str, Any]]


class PageView(msgspec.Struct, frozen=True, kw_only=True):
    """One view. `path` is below `/board`; `context` gets what it shows, by calling operations.

    `key` goes to it after `g`, and puts it into the navigation where it is `wanted`; a view without one is reached by
    links. A context may set `live_task` (only events of this task refresh the page), `live` to False (the past does
    not change), and `title`.
    """

    name: str
    path: str
    template: str
    title: str
    context: Context
    key: str = ""
    wanted: Callable[[Operations], bool] = lambda _ask: True


def agent_names(ask: Operations) -> list[str]:
    """The agents; none for somebody who may not ask for them."""
    return [one["id"] for one in ask("agents", limit=_MOST_AGENTS)["agents"]] if ask.may("agents") else []


def tag_names(tasks: Iterable[Mapping[str, Any]]) -> list[str]:
    """The tags of what is shown."""
    return sorted({tag for task in tasks for tag in task.get("tags", ())})[:_MOST_TAGS]


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
_STAMP: Final = re.compile(r"(?<=<li>)\d{4}-\d\d-\d\dT[\d:.]{8,15}Z")  # at the beginning of an entry
_LONGEST_SUMMARY: Final = 240  # characters
_LONGEST_MARKDOWN: Final = 200_000  # characters that are rendered; a longer text is shown as it is
_WORDS: Final = {"in-progress": "in progress", "deadletter": "given up"}  # where a status is no word of its own
_STEPS: Final = ((86_400, "d"), (3_600, "h"), (60, "min"), (1, "s"))
_TYPES: Final = {
    "css": "text/css; charset=utf-8",
    "js": "text/javascript; charset=utf-8",
    "svg": "image/svg+xml",
    "txt": "text/plain; charset=utf-8",
    "json": "application/json",
}
_ASSET_HEADERS: Final = {
    "Cache-Control": "no-cache",
    "X-Content-Type-Options": "nosniff",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Content-Security-Policy": "default-src 'none'; connect-src 'self'; frame-ancestors 'none'",
}


@cache
def environment() -> Environment:
    """The templates."""
    made = Environment(
        loader=PackageLoader("aof.surfaces.board"),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        auto_reload=False,
    )
    made.filters |= {
        "markdown": markdown,
        "entries": entries,
        "span": span,
        "moment": moment,
        "short": short,
        "data": data,
        "summary": summary,
        "linked": linked,
        "words": words,
    }
    return made


def render(template: str, status: int = 200, **context: Any) -> Response:
    """A template as an answer."""
    text = environment().get_template(template).render(context)
    return HTMLResponse(text, status_code=status, headers=HEADERS)


def problem_of(error: AofError) -> dict[str, str]:
    """An error as templates show it: in sentences, for a person."""
    hint = f"{error.hint}; {_ALONE}" if error.code == "own_work" else error.hint
    return {"code": error.code, "message": _sentence(error.message), "hint": _sentence(hint)}


def _sentence(text: str) -> str:
    """With a full stop where it has no end; a name or a command keeps its small letter."""
    return f"{text}." if text and text[-1] not in ".?!…:" else text


def span(milliseconds: float) -> str:
    """A length of time in its largest unit: 5 min, 3 h, 2 d."""
    seconds = abs(int(milliseconds)) // 1000
    for size, unit in _STEPS:
        if seconds >= size:
            return f"{seconds // size} {unit}"
    return "0 s"


def moment(text: str | None, now: int) -> Markup:
    """A moment as how long ago it was, with the exact one beside; the page keeps it up to date."""
    if not text:
        return Markup("")
    try:
        at = millis(text)
    except ValueError:
        return Markup("<span>{}</span>").format(text)
    ago = f"{span(now - at)} ago" if at <= now else f"in {span(at - now)}"
    exact = datetime.fromtimestamp(at / 1000, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
    return Markup('<time datetime="{}" title="{}" data-ago>{}</time>').format(iso(at), exact, ago)


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
    return text if len(text) <= _LONGEST_SUMMARY else f"{text[:_LONGEST_SUMMARY]}…"


def _plain(value: Any) -> str:
    if isinstance(value, list | tuple) and all(isinstance(one, str) for one in value):
        text = ", ".join(value)
    else:
        text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return " ".join(text[: _LONGEST_SUMMARY * 2].split())


def data(value: Any) -> Markup:
    """Data for a script element of the type application/json: nothing in it can end the element."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    for mark in "<>&\u2028\u2029":
        text = text.replace(mark, f"\\u{ord(mark):04x}")
    return Markup(text)  # noqa: S704 - escaped above


def markdown(text: str) -> Markup:
    """Markdown by others as safe HTML."""
    if len(text) > _LONGEST_MARKDOWN:
        return Markup(f"<pre>{html_escape(text)}</pre>")  # noqa: S704 - escaped here
    return Markup(_parser().render(text))  # noqa: S704 - made by a parser that lets no HTML of the text through


def entries(text: str, now: int) -> Markup:
    """A work log as safe HTML: when each entry was made is told as an age."""
    return Markup(_STAMP.sub(lambda found: moment(found[0], now), markdown(text)))  # noqa: S704 - safe, and a moment is


@cache
def _parser() -> MarkdownIt:
    parser = MarkdownIt("commonmark", {"html": False, "maxNesting": 20}).enable(["table", "strikethrough"])
    parser.disable(["image"])  # a picture from elsewhere would tell somebody who reads this, and when
    parser.add_render_rule("link_open", _link)
    parser.add_render_rule("heading_open", _heading)
    parser.add_render_rule("heading_close", _heading)
    return parser


def _link(self: Any, tokens: Sequence[Token], index: int, options: Any, _env: Any) -> str:
    """A link that tells the other side nothing about this page."""
    tokens[index].attrSet("rel", "noopener noreferrer nofollow ugc")
    return str(self.renderToken(tokens, index, options, _env))


def _heading(self: Any, tokens: Sequence[Token], index: int, options: Any, _env: Any) -> str:
    """Headings of a text stand below those of the page: the text's first level is the page's fourth."""
    level = min(int(tokens[index].tag[1]) + 3, 6)
    tokens[index].tag = f"h{level}"
    return str(self.renderToken(tokens, index, options, _env))


class Asset(msgspec.Struct, frozen=True):
    """One file as it is sent."""

    data: bytes
    packed: bytes
    tag: str
    kind: str


@cache
def assets() -> dict[str, Asset]:
    """Every file by its name below `static`."""
    found: dict[str, Asset] = {}
    for folder in ("", "vendor/"):
        for file in files(__package__).joinpath("static", folder).iterdir():
            if file.is_file():
                content = file.read_bytes()
                kind = _TYPES.get(file.name.rpartition(".")[2], "application/octet-stream")
                tag = f'"{sha256(content).hexdigest()[:20]}"'
                found[f"{folder}{file.name}"] = Asset(content, gzip.compress(content, 9, mtime=0), tag, kind)
    return found


async def asset(request: Request) -> Response:
    """The endpoint of files; a name that is none of ours reaches no file at all."""
    found = assets().get(request.path_params["name"])
    if found is None:
        raise NotFound("the page has no such file", "reload the page")
    headers = _ASSET_HEADERS | {"ETag": found.tag, "Vary": "Accept-Encoding"}
    if request.headers.get("if-none-match") == found.tag:
        return Response(status_code=304, headers=headers)
    if "gzip" in request.headers.get("accept-encoding", ""):
        return Response(found.packed, media_type=found.kind, headers=headers | {"Content-Encoding": "gzip"})
    return Response(found.data, media_type=found.kind, headers=headers)
