"""Four ways to the same operations: Python, the command line, MCP on stdio, HTTP. Each has a data directory of its own.

A door takes an operation by its name and answers what came back, or the code of the refusal. The others are real
processes: nothing of them runs here but their clients.
"""

from __future__ import annotations

import json
import os
import shlex
import subprocess
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from pathlib import Path
from typing import Any, Protocol

import httpx
import httpx2
import msgspec
from anyio.from_thread import BlockingPortal, start_blocking_portal
from mcp.client.client import Client
from mcp.client.stdio import StdioServerParameters, stdio_client
from mcp.client.streamable_http import streamable_http_client
from mcp_types import CallToolResult

import aof
from aof.api.call import Caller, parameters, perform, wire_names
from aof.api.catalogue import BY_NAME, Operation
from aof.api.fabric import Fabric
from aof.errors import AofError, Call
from aof.service import serve
from aof.service.bootstrap import init_data_dir, open_fabric
from aof.surfaces.cli.hints import spell
from aof.surfaces.cli.main import EXIT_BY_CODE, EXIT_BY_KIND
from aof.surfaces.http.responses import PREFIX, STATUS_BY_CODE, STATUS_BY_KIND, method_of
from tests.support.warm import warm

WHO = "tester"


class Refusal(msgspec.Struct, frozen=True):
    """What a call was refused with."""

    code: str
    message: str
    hint: str


Answer = dict[str, Any] | Refusal


def answer_of(answer: Answer) -> dict[str, Any]:
    """The answer, which is no refusal."""
    assert isinstance(answer, dict), answer
    return answer


def refusal_of(answer: Answer, code: str) -> Refusal:
    """The refusal, which has this code and a hint."""
    assert isinstance(answer, Refusal), answer
    assert answer.code == code, answer
    assert answer.hint
    return answer


def code_of(answer: Answer) -> str:
    """The code of a refusal; else that there was none."""
    return answer.code if isinstance(answer, Refusal) else "yes"


def root_of(fabric: Fabric) -> Path:
    """Its data directory."""
    return Path(fabric.store.paths.root)  # type: ignore[attr-defined]


class Door(Protocol):
    """One surface on a data directory."""

    name: str
    root: Path
    elsewhere: Fabric

    def ask(self, operation: str, **given: Any) -> Answer:
        """Make a call."""
        ...


def environment(root: Path, actor: str = WHO) -> dict[str, str]:
    """What a child process sees: this data directory, this actor, and no run."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("AOF_")}
    return kept | {"AOF_DATA_DIR": str(root), "AOF_ACTOR": actor}


@contextmanager
def room(folder: Path, settings: str = "") -> Iterator[tuple[Path, Fabric]]:
    root, _ = init_data_dir(folder / ".aof")
    if not settings.startswith("maintainers"):
        settings = f'maintainers = ["elsewhere"]\n{settings}'
    maintainers, _, tables = settings.partition("\n")
    Path(root, "aof.toml").write_text(f"{maintainers}\n[storage]\nlockTimeout = 1\n{tables}")
    with open_fabric(root, actor="elsewhere") as fabric:
        yield Path(root), fabric


class InPython:
    """The fabric itself, asked by its methods where they are plain, and as a script would ask it."""

    name = "python"

    def __init__(self, root: Path, elsewhere: Fabric) -> None:
        self.root, self.elsewhere = root, elsewhere
        self._fabric = aof.open(root, actor=WHO)

    def ask(self, operation: str, **given: Any) -> Answer:
        row = BY_NAME[operation]
        values = dict(given)
        actor = values.pop("actor", WHO)
        try:
            view = self._fabric.as_actor(actor)
            if row.ask is None:
                return _plain(getattr(view, operation)(**values))
            params = parameters(row, wire_names(Call(operation, values)))
            return _plain(perform(self._fabric, row, params, Caller(actor)))
        except AofError as error:
            return Refusal(error.code, error.message, error.hint)


class OnTheCommandLine:
    """`aof VERB --json`, one process per call."""

    name = "cli"

    def __init__(self, root: Path, elsewhere: Fabric, variables: dict[str, str] | None = None) -> None:
        self.root, self.elsewhere = root, elsewhere
        self.variables = variables or {}

    def ask(self, operation: str, **given: Any) -> Answer:
        if operation == "send":
            file = self.root.parent / "messages.txt"
            file.write_text("\n".join(given["messages"]))
            return self.run("send", str(file))
        if operation == "import_tasks":
            (one,) = given["files"]
            file = self.root.parent / one["name"]
            file.write_text(one["text"])
            return self.run(
                "import", str(file), "--from", given["source"], *["--dry-run"] * given.get("dry_run", False)
            )
        return self.run(*self.words(operation, given))

    def words(self, operation: str, given: dict[str, Any]) -> list[str]:
        """The command that makes the call."""
        values = dict(given)
        actor, compact = values.pop("actor", None), values.pop("compact", False)
        said = shlex.split(spell(Call(operation, values)))[1:]
        return [*said, *(["--actor", actor] if actor else []), *(["--compact"] if compact else [])]

    def run(self, *words: str) -> Answer:
        """Run a command line; the exit code must fit what it says."""
        done = subprocess.run(
            [*warm(), "aof", *words, "--json"],
            env=environment(self.root) | self.variables,
            capture_output=True,
            check=False,
            timeout=60,
        )
        said = json.loads(done.stdout)
        if "data" in said:  # also where an error beside it tells scripts that it is not what they hoped for
            assert done.returncode in (0, 1, 5), done.stderr  # some answers say more than that they are one
            return dict(said["data"])
        error = said["error"]
        assert done.returncode == expected_exit(error["code"]), (error, done.returncode)
        return Refusal(error["code"], error["message"], error["hint"])


class OverMcp:
    """Tools of a server process on stdio."""

    name = "mcp"

    def __init__(self, root: Path, elsewhere: Fabric, portal: BlockingPortal, client: Client) -> None:
        self.root, self.elsewhere = root, elsewhere
        self.portal, self.client = portal, client

    def ask(self, operation: str, **given: Any) -> Answer:
        row = BY_NAME[operation]
        usual = {field.name: field.default for field in msgspec.structs.fields(row.parameters)}
        like_others = {name: usual[name] for name, _ in row.tool_defaults}
        return self.call(row.tool, wire_names(Call(operation, like_others | given)))

    def call(self, tool: str, arguments: dict[str, Any]) -> Answer:
        """Call a tool by its own name and with the names of its own parameters."""
        return of_tool(self.portal.call(self.client.call_tool, tool, arguments))


class OverHttp:
    """Routes of a server process on the loopback."""

    name = "http"

    def __init__(self, root: Path, elsewhere: Fabric, client: httpx.Client) -> None:
        self.root, self.elsewhere = root, elsewhere
        self.client = client

    def ask(self, operation: str, **given: Any) -> Answer:
        return self.call(BY_NAME[operation], wire_names(Call(operation, given)))

    def call(self, operation: Operation, arguments: dict[str, Any]) -> Answer:
        """Make the call with the names that it has over the wire."""
        path = f"{PREFIX}/{operation.name}"
        if method_of(operation) == "GET":
            query = {name: str(one).lower() if isinstance(one, bool) else one for name, one in arguments.items()}
            return of_response(self.client.get(path, params=query))
        return of_response(self.client.post(path, content=msgspec.json.encode(arguments)))

    def mcp(self, mode: str = "auto") -> AbstractContextManager[tuple[BlockingPortal, Client]]:
        """A session of MCP with the same server, by the same token."""
        token = self.client.headers["authorization"].removeprefix("Bearer ")
        return mcp_over_http(str(self.client.base_url), token, mode)


def of_tool(result: CallToolResult) -> Answer:
    """What a tool said; text and structured content say the same."""
    (content,) = result.content
    assert content.type == "text"
    said = json.loads(content.text)
    if result.is_error:
        assert result.structured_content is None
        error = said["error"]
        assert error["kind"] in EXIT_BY_KIND
        return Refusal(error["code"], error["message"], error["hint"])
    assert said == result.structured_content
    return dict(said)


def of_response(response: httpx.Response) -> Answer:
    """What a route said; the status fits it."""
    said = response.json()
    if response.status_code == 200:
        return dict(said)
    error = said["error"]
    assert response.status_code == STATUS_BY_CODE.get(error["code"], STATUS_BY_KIND[error["kind"]])
    return Refusal(error["code"], error["message"], error["hint"])


def expected_exit(code: str) -> int:
    """The exit code of an error by its code."""
    if code == "usage":
        return 2
    kinds = {kind.code: kind.kind for kind in errors_below(AofError)}
    return EXIT_BY_CODE.get(code, EXIT_BY_KIND[kinds[code]])


def errors_below(kind: type[AofError]) -> Iterator[type[AofError]]:
    for sub in kind.__subclasses__():
        yield sub
        yield from errors_below(sub)


def _plain(result: Any) -> dict[str, Any]:
    return dict(msgspec.json.decode(msgspec.json.encode(result)))


@contextmanager
def python_door(folder: Path, settings: str = "") -> Iterator[InPython]:
    """The fabric in this process."""
    with room(folder, settings) as (root, fabric):
        yield InPython(root, fabric)


@contextmanager
def cli_door(folder: Path, settings: str = "") -> Iterator[OnTheCommandLine]:
    """The command line."""
    with room(folder, settings) as (root, fabric):
        yield OnTheCommandLine(root, fabric)


@contextmanager
def mcp_door(
    folder: Path, settings: str = "", *, tools: str = "all", mode: str = "auto", actor: str = WHO
) -> Iterator[OverMcp]:
    """A server process on stdio and a session with it."""
    session = partial(mcp_session, tools=tools, mode=mode, actor=actor)
    with room(folder, settings) as (root, fabric), session(root) as (portal, client):
        yield OverMcp(root, fabric, portal, client)


@contextmanager
def mcp_session(
    root: Path,
    *,
    tools: str = "core",
    mode: str = "auto",
    actor: str = WHO,
    run: str | None = None,
    secret: str | None = None,
    words: Sequence[str] = (),
) -> Iterator[tuple[BlockingPortal, Client]]:
    """A session with a new server process on a data directory."""
    with start_blocking_portal() as portal:
        transport = mcp_process(root, tools=tools, actor=actor, run=run, secret=secret, words=words)
        client: AbstractContextManager[Client] = portal.wrap_async_context_manager(Client(transport, mode=mode))
        with client as connected:
            yield portal, connected


@contextmanager
def mcp_on(fabric: Fabric, **given: Any) -> Iterator[OverMcp]:
    """A session of its own on somebody's data directory."""
    root = root_of(fabric)
    with mcp_session(root, **given) as (portal, client):
        yield OverMcp(root, fabric, portal, client)


def mcp_process(
    root: Path,
    *,
    tools: str = "core",
    actor: str = WHO,
    run: str | None = None,
    secret: str | None = None,
    words: Sequence[str] = (),
) -> Any:
    """The transport to a new server process on stdio; `words` are more options of the command."""
    command, *begun = warm()
    words = [*begun, "aof", "mcp", "--tools", tools, *words]
    started_for = {"AOF_RUN_ID": run, "AOF_RUN_SECRET": secret}
    seen = environment(root, actor) | {name: value for name, value in started_for.items() if value}
    return stdio_client(StdioServerParameters(command=command, args=words, env=seen))


@contextmanager
def http_server(root: Path, *words: str) -> Iterator[str]:
    """A server process on a free port of the loopback; its address."""
    process = subprocess.Popen(
        [*warm(), "tests.surfaces.server", str(root), *words],
        env=environment(root),
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stdout is not None
        yield process.stdout.readline().strip()
    finally:
        process.terminate()
        process.wait(timeout=20)


@contextmanager
def http_door(folder: Path, settings: str = "", role: str = "admin") -> Iterator[OverHttp]:
    """A server process on the loopback, and a client with a token."""
    with room(folder, settings) as (root, fabric):
        headers = {"Authorization": f"Bearer {new_token(root, WHO, role)}"}
        with http_server(root) as url, httpx.Client(base_url=url, headers=headers, timeout=30) as client:
            yield OverHttp(root, fabric, client)


@contextmanager
def mcp_over_http(url: str, token: str, mode: str = "auto", **headers: str) -> Iterator[tuple[BlockingPortal, Client]]:
    """A session with a server on the loopback, by a token."""
    sent = {"Authorization": f"Bearer {token}", **headers}
    transport = streamable_http_client(f"{url}/mcp", http_client=httpx2.AsyncClient(headers=sent, timeout=60))
    with start_blocking_portal() as portal:
        client: AbstractContextManager[Client] = portal.wrap_async_context_manager(Client(transport, mode=mode))
        with client as connected:
            yield portal, connected


DOORS: dict[str, Callable[[Path, str], AbstractContextManager[Door]]] = {
    "python": python_door,
    "cli": cli_door,
    "mcp": mcp_door,
    "http": http_door,
}


def new_token(root: Path, actor: str, role: str) -> str:
    """A token as `aof admin token create` gives it."""
    return serve.create_token(str(root), actor, role).token
