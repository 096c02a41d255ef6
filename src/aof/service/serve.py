"""Puts the surfaces together that others connect to, and opens the page for people.

What serving beyond this machine means is said here as well. Knows the adapters; loaded only when something is served.
"""

from __future__ import annotations

import os
import socket
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from functools import partial
from hashlib import sha256
from importlib.util import find_spec
from ipaddress import ip_address
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import urlsplit

from aof import __version__
from aof.api.call import Caller
from aof.api.catalogue import tiers_of
from aof.config import HttpBounds, load_settings
from aof.errors import InvalidInput, SettingsUnusable, Unavailable
from aof.kernel import limits as kernel_limits
from aof.kernel.declarations import SCOPES
from aof.kernel.ports import Tokens
from aof.maintenance import tokens
from aof.maintenance.tokens import PageSessions
from aof.service.bootstrap import default_actor, find_data_dir, open_fabric, own_secret
from aof.service.clock import SystemClock
from aof.service.extras import install_hint
from aof.store.files.service_files import ServiceAddresses
from aof.store.port import Clock
from aof.support import lazy_imports

if TYPE_CHECKING:
    from starlette.applications import Starlette
    from starlette.requests import Request
    from starlette.types import ASGIApp

    from aof.surfaces.http.app import Mounted
    from aof.surfaces.http.guard import Authenticate, Traffic
    from aof.surfaces.http.server import HttpServer


_STARTING, _STOPPING = 30.0, 10.0  # seconds


def serve_mcp(data_dir: str | None, actor: str | None, tools: str | None, *, keep: bool = False) -> None:
    """Serve MCP on standard input and output until the client goes."""
    lazy_imports.settle()
    tiers = tiers_of(tools)
    try:
        from aof.surfaces.mcp.stdio import serve_stdio
    except ModuleNotFoundError as error:
        raise missing(error, "mcp") from None
    secret = own_secret(find_data_dir(data_dir))
    with open_fabric(data_dir, actor=actor, secret=secret or "") as fabric:
        named = bool(actor or os.environ.get("AOF_ACTOR"))
        run, by_client = os.environ.get("AOF_RUN_ID"), actors_by_client(os.environ.get("AOF_ACTOR_BY_CLIENT", ""))
        serve_stdio(fabric, tiers, run, __version__, secret, named=named, keep=keep, by_client=by_client)


def actors_by_client(given: str) -> dict[str, str]:
    """Actors of clients that share their settings, such as `copilot=ada`: by a part of the client's own name."""
    actors: dict[str, str] = {}
    for pair in filter(None, given.split(",")):
        part, _, actor = pair.partition("=")
        if not part.strip() or kernel_limits.name("actor", actor) is not None:
            raise InvalidInput(
                "AOF_ACTOR_BY_CLIENT cannot be understood", "name clients and actors: AOF_ACTOR_BY_CLIENT=copilot=ada"
            )
        actors[part.strip().lower()] = actor
    return actors


def missing(error: ModuleNotFoundError, *extras: str) -> Unavailable:
    """What to say when a part was not installed."""
    return Unavailable(f"{error.name} is not installed", install_hint(*extras))


def tokens_of(data_dir: str | None) -> Tokens:
    """The tokens of a data directory."""
    from aof.store.files.service_files import TokenFile

    root = find_data_dir(data_dir)
    return TokenFile(root, SystemClock(), load_settings(root).storage.lock_timeout)


def create_token(
    data_dir: str | None,
    actor: str | None,
    role: str | None,
    *,
    scope: str | None = None,
    expires: str | None = None,
    tools: str | None = None,
) -> tokens.NewToken:
    """A new token for an actor."""
    now, name = SystemClock().now(), actor or default_actor()
    return tokens.create_token(tokens_of(data_dir), name, role, now, scope=scope, expires=expires, tools=tools)


def list_tokens(data_dir: str | None) -> tuple[tokens.KnownToken, ...]:
    """The tokens that there are."""
    return tokens.known_tokens(tokens_of(data_dir), SystemClock().now())


def revoke_token(data_dir: str | None, token_id: str) -> None:
    """Let a token no longer be valid."""
    tokens.revoke_token(tokens_of(data_dir), token_id)


def make_http(
    data_dir: str | None,
    *,
    hosts: tuple[str, ...] = (),
    authenticate: Authenticate | None = None,
    traffic: Traffic | None = None,
    tell: Callable[[str, str], None] | None = None,
    tools: str | None = None,
) -> Starlette:
    """The HTTP application of a data directory, with MCP at /mcp and, where its library is installed, A2A at /a2a.

    `hosts` are names beside those of the loopback. `tools` names the tiers that MCP lists, unless a token names others.
    """
    tiers = tiers_of(tools)
    try:
        from aof.surfaces.a2a.endpoint import CARD_PATHS, PATHS, A2aOverHttp, PushParts
        from aof.surfaces.board.app import Board
        from aof.surfaces.http.app import LOOPBACK, HttpSettings, log_it, make_app
        from aof.surfaces.http.guard import CALLER
        from aof.surfaces.mcp.http import McpOverHttp
    except ModuleNotFoundError as error:
        raise missing(error, "server") from None
    root, clock = find_data_dir(data_dir), SystemClock()
    known, bounds, given = tokens_of(root), http_bounds(root), load_settings(root)

    def by_token(token: str | None) -> Caller | None:
        return tokens.recognise(known, token, clock.now()) if token else None

    settings = HttpSettings(
        authenticate=authenticate or by_token,
        hosts=(*LOOPBACK, *hosts, *(name.lower() for name in bounds.hosts)),
        body_seconds=bounds.body_seconds,
        requests_per_second=bounds.requests_per_second,
        streams_per_token=bounds.streams_per_token,
        failures_per_minute=bounds.failures_per_minute,
        valid_tokens=None if authenticate else lambda: tokens.valid_ids(known, clock.now()),
        tell=tell or log_it,
        version=__version__,
        open_paths=tuple(CARD_PATHS),
    )

    def caller_of(request: Request) -> Caller:
        caller: Caller = request.scope[CALLER]
        return caller

    mcp = McpOverHttp(caller_of, tiers, settings.version, settings.max_body)
    mounts: dict[str, Mounted] = {"/mcp": mcp}
    if find_spec("a2a") is not None:
        from aof.store.files.service_files import PushTargetFiles
        from aof.surfaces.a2a.push import PushHosts

        push = PushParts(
            hosts=PushHosts(given.a2a.push_hosts),
            targets=PushTargetFiles(root, clock, given.storage.lock_timeout),
            is_known=(lambda _actor: True) if authenticate else partial(_is_known, known, clock),
            tell=settings.tell,
        )
        mounts |= dict.fromkeys(PATHS, A2aOverHttp(caller_of, settings.version, push))
    project = given.policy(os.path.basename(os.path.dirname(root)) or "AOF").project
    board = Board(PageSessions(known, clock), instance_of(root), project, __version__)
    return make_app(lambda: open_fabric(data_dir, secret=""), settings, mounts, traffic, board)


def instance_of(root: str) -> str:
    """What tells the page of one data directory from those of others on this machine; says nothing about its path."""
    return sha256(os.path.realpath(root).encode("utf-8", "surrogateescape")).hexdigest()[:12]


def _is_known(known: Tokens, clock: Clock, actor: str) -> bool:
    valid = tokens.valid_ids(known, clock.now())
    return any(token.actor == actor and token.id in valid for token in known.all())


def http_bounds(root: str) -> HttpBounds:
    """The bounds that the settings give; raises SettingsUnusable for one that would let nobody in."""
    bounds = load_settings(root).http
    for name in (name for name in HttpBounds.__annotations__ if name != "hosts"):
        if getattr(bounds, name) <= 0:
            raise SettingsUnusable(
                f"aof.toml cannot be used: the bounds of [http] must be greater than 0, and {name} is not",
                "correct it, or leave it out: every setting has a default",
            )
    return bounds


def http_server(
    app: ASGIApp, host: str, port: int, started: Callable[[], None] | None = None
) -> tuple[HttpServer, int]:
    """A server for the application, bound already, and its port."""
    from aof.surfaces.http.server import HttpServer, listen

    bound = listen(host, port)
    return HttpServer(app, bound, started), int(bound.getsockname()[1])


class ServeOptions(NamedTuple):
    """Where and how to serve: on a port, on a Unix socket, or on both."""

    port: int | None = None
    host: str = "127.0.0.1"
    socket: str | None = None
    tls_cert: str | None = None
    tls_key: str | None = None
    insecure: bool = False
    tools: str | None = None


def check_options(options: ServeOptions) -> None:
    """Refuse a combination that would serve nobody, or everybody without anybody having said so."""
    if (options.tls_cert is None) != (options.tls_key is None):
        raise InvalidInput(
            "TLS needs a certificate and its key",
            "give both: --tls-cert CERT.pem --tls-key KEY.pem",
            parameter="tls_key",
        )
    if options.tools is not None and options.port is None and options.socket is None:
        raise InvalidInput("--tools is about what is served over HTTP", "serve it: aof up --http 8420 --tools all")
    if options.port is None:
        given = options.tls_cert is not None or options.insecure or options.host != "127.0.0.1"
        if given:
            raise InvalidInput(
                "--host, --tls-cert, --tls-key and --insecure are about a port", "name one: aof up --http 8420"
            )
        return
    if options.tls_cert is None and not options.insecure and not is_loopback(options.host):
        raise InvalidInput(
            f"--host {options.host[:80]} serves other machines, and without TLS tokens and tasks would cross the "
            "network as plain text",
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


def exposure_warning(options: ServeOptions) -> str | None:
    """What to say about a server that other machines can reach."""
    if options.port is None or is_loopback(options.host):
        return None
    plain = "; without TLS everybody on the way can read and use the tokens" if options.tls_cert is None else ""
    return f"other machines can reach this server: anybody with a token may use it{plain}"


@contextmanager
def serving(
    data_dir: str, options: ServeOptions, tell: Callable[[str, str], None] | None = None
) -> Iterator[tuple[str, ...]]:
    """Serve HTTP and MCP in a thread of its own for as long as the caller needs; returns the addresses.

    `tell` is called in that thread with what was turned away, once a minute.
    """
    lazy_imports.settle()
    check_options(options)
    try:
        from aof.surfaces.http import server as server_module
        from aof.surfaces.http.connections import Times
        from aof.surfaces.http.guard import Traffic
    except ModuleNotFoundError as error:
        raise missing(error, "server") from None
    bounds, traffic, running = http_bounds(data_dir), Traffic(), threading.Event()
    limits = server_module.ServerLimits(
        connections=bounds.connections,
        per_address=bounds.connections_per_address,
        times=Times(
            headers=bounds.header_seconds,
            body=bounds.body_seconds,
            idle=bounds.idle_seconds,
            stall=bounds.stall_seconds,
        ),
    )
    encrypted = server_module.tls(options.tls_cert, options.tls_key) if options.tls_cert and options.tls_key else None
    app = make_http(data_dir, hosts=(options.host.lower(),), traffic=traffic, tell=tell, tools=options.tools)
    with ExitStack() as stack:
        bound, addresses = [], []
        if options.port is not None:
            bound.append(server_module.listen(options.host, options.port))
            stack.callback(bound[-1].close)
            shown = f"[{options.host}]" if ":" in options.host else options.host
            addresses.append(f"{'https' if encrypted else 'http'}://{shown}:{bound[-1].getsockname()[1]}")
        if options.socket is not None:
            bound.append(server_module.listen_unix(options.socket))
            stack.callback(
                server_module.remove_unix, bound[-1], os.path.abspath(options.socket), os.lstat(options.socket)
            )
            addresses.append(f"unix:{os.path.abspath(options.socket)}")
        server = server_module.HttpServer(
            app,
            bound,
            running.set,
            limits=limits,
            traffic=traffic,
            encrypted=encrypted,
            refuse=app.state.refuse,
        )
        thread = threading.Thread(target=server.run, name="http", daemon=True)
        thread.start()
        stack.callback(thread.join, _STOPPING)
        stack.callback(server.stop)
        if not running.wait(_STARTING):
            raise Unavailable("the HTTP server did not start", "try again, or run 'aof up' without --http")
        stack.enter_context(ServiceAddresses(data_dir).announced(tuple(addresses)))
        yield tuple(addresses)


_ANY = {"0.0.0.0": "127.0.0.1", "[::]": "[::1]"}  # noqa: S104 - names that are replaced
_DISPLAYS = ("DISPLAY", "WAYLAND_DISPLAY", "BROWSER")


def served_at(data_dir: str | None, port: int | None = None) -> str | None:
    """Where a browser reaches the page of a data directory, or on this port; None where no service serves it so."""
    return browsable_address(ServiceAddresses(find_data_dir(data_dir)).known(), port)


def starting(data_dir: str | None) -> AbstractContextManager[Callable[[], None]]:
    """Keeps others from starting a service meanwhile; what it gives lets them on before the context ends."""
    return ServiceAddresses(find_data_dir(data_dir)).starting()


def browsable_address(addresses: tuple[str, ...], wanted: int | None = None) -> str | None:
    """The first address that a browser on this machine can open, or that has this port."""
    for address in addresses:
        parts = urlsplit(address)
        if parts.scheme in ("http", "https") and wanted in (None, parts.port):
            host, _, port = parts.netloc.rpartition(":")
            return f"{parts.scheme}://{_ANY.get(host, host)}:{port}"
    return None


def make_link(data_dir: str | None, actor: str, scope: str, address: str) -> str:
    """A link that lets this actor in once, within the minute."""
    if problem := kernel_limits.choice("scope", scope, SCOPES):
        raise problem
    allowed = next(one for one in SCOPES if one == scope)
    key = PageSessions(tokens_of(data_dir), SystemClock()).link(actor, allowed)
    return f"{address}/board/enter?key={key}"


def open_browser(url: str) -> bool:
    """Have the person's browser open it, where there is one; a browser in the terminal would take the terminal away."""
    if sys.platform != "darwin" and not any(os.environ.get(name) for name in _DISPLAYS):
        return False
    import webbrowser

    try:
        return webbrowser.open(url)
    except webbrowser.Error:
        return False
