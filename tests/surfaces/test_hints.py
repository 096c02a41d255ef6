"""Every error, on every surface and in every tier of tools: the hint names only what its reader has, and it works.

The call that a hint shows is made on the surface that showed it. It succeeds, or is refused with another hint that
leads on, or the hint says in words what it takes.
"""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import httpx
import pytest

from aof.api.call import wire_names
from aof.api.catalogue import BY_NAME, TIERS, listed_in
from aof.errors import AofError, Call
from aof.service import serve
from aof.surfaces.cli.main import main
from tests.support.service import definition
from tests.surfaces.doors import (
    OnTheCommandLine,
    OverHttp,
    Refusal,
    errors_below,
    mcp_over_http,
    of_response,
    of_tool,
    room,
)
from tests.surfaces.provocations import CHART, CHARTED, NOT_BY_A_CALL, PLAIN, WHO, Asked, Scene

_BOUND = 60.0
_MOST_STEPS = 3
_OR = "; or "
_HELP = re.compile(r"\baof_help\((\{\"topic\":\"aof_\w+\"\})\) shows how$")
_TWO_WAYS = {"children_open", "reserved", "question_open"}
_TOOL = re.compile(r"\b(aof_\w+)\((\{.*\})\)$", re.DOTALL)
_ROUTE = re.compile(r"\b(GET|POST) (/api/v1/\S+)(?: (\{.*\}))?$", re.DOTALL)
_VERB = re.compile(r"(?:^|: )(aof (?:-|[a-z]).*)$", re.DOTALL)
_NAMED = re.compile(r"\baof_\w+|/api/v1/\w+")


class Surface:
    """One way to ask, and how a hint is read there: whatever it names is `had`, and `shown` makes the call in it."""

    def __init__(
        self, name: str, ask: Callable[..., Any], shown: Callable[[str], Callable[[], Any] | None], had: set[str]
    ) -> None:
        self.name, self.ask, self.shown, self.had = name, ask, shown, had


def _filled(scene: Scene, given: dict[str, Any]) -> dict[str, Any]:
    """The arguments of a hint, with something for what it leaves to be filled in."""
    some = {"taskId": scene.task()} if given.get("taskId") == "…" else {}
    return {key: ["x"] if one == ["…"] else "x" if one == "…" else one for key, one in given.items()} | some


def _mcp(scene: Scene, address: str, tier: str, stack: ExitStack) -> Surface:
    token = serve.create_token(str(scene.root), WHO, None, scope="lead", tools=tier).token
    portal, client = stack.enter_context(mcp_over_http(address, token))
    listed = {tool.name for tool in portal.call(client.list_tools).tools}
    assert listed == {"aof_help", *(operation.tool for operation in listed_in((tier,)))}

    def call(tool: str, given: dict[str, Any]) -> Any:
        return of_tool(portal.call(client.call_tool, tool, given))

    def explained(given: dict[str, Any]) -> str:
        (content,) = portal.call(client.call_tool, "aof_help", given).content
        assert given["topic"] in content.text
        return str(content.text)

    def shown(hint: str) -> Callable[[], Any] | None:
        if (helped := _HELP.search(hint)) is not None:
            return lambda: explained(json.loads(helped.group(1)))
        found = _TOOL.search(hint)
        return (lambda: call(found.group(1), _filled(scene, json.loads(found.group(2))))) if found else None

    def ask(operation: str, **given: Any) -> Any:
        return call(BY_NAME[operation].tool, wire_names(Call(operation, given)))

    return Surface(f"mcp {tier}", ask, shown, listed)


def _http(scene: Scene, address: str, scope: str, stack: ExitStack) -> Surface:
    token = serve.create_token(str(scene.root), WHO, None, scope=scope).token
    headers = {"Authorization": f"Bearer {token}"}
    client = stack.enter_context(httpx.Client(base_url=address, headers=headers, timeout=_BOUND))

    def shown(hint: str) -> Callable[[], Any] | None:
        found = _ROUTE.search(hint)
        if found is None:
            return None
        method, target, body = found.groups()
        if method == "POST":
            return lambda: of_response(client.post(target, json=_filled(scene, json.loads(body))))
        asked = urlsplit(target)
        return lambda: of_response(client.get(asked.path, params=_filled(scene, dict(parse_qsl(asked.query)))))

    return Surface(f"http {scope}", OverHttp(scene.root, scene.fabric, client).ask, shown, set())


def _command_line(scene: Scene, capsys: pytest.CaptureFixture[bytes]) -> Surface:
    words_of = OnTheCommandLine(scene.root, scene.fabric).words
    at = ["--data-dir", str(scene.root), "--actor", WHO]

    def run(words: list[str]) -> Any:
        capsys.readouterr()
        main([*words, "--json"])
        said = json.loads(capsys.readouterr().out)
        if "data" in said:
            return said["data"]
        return Refusal(said["error"]["code"], said["error"]["message"], said["error"]["hint"])

    def shown(hint: str) -> Callable[[], Any] | None:
        found = _VERB.search(hint)
        if found is None:
            return None
        words = shlex.split(found.group(1))[1:]
        assert words[:4] == at, hint
        return lambda: run(["x" if word == "…" else word for word in words])

    return Surface("cli", lambda operation, **given: run([*at, *words_of(operation, given)]), shown, set())


@contextmanager
def _surfaces(
    folder: Path, chart: dict[str, Any] | None, capsys: pytest.CaptureFixture[bytes]
) -> Iterator[tuple[Scene, list[Surface]]]:
    """All of them on one data directory."""
    with ExitStack() as stack:
        root, fabric = stack.enter_context(room(folder))
        if chart is not None:
            definition(root, "org/org-chart.yaml", chart)
        scene = Scene(root, fabric)
        (address,) = stack.enter_context(serve.serving(str(root), serve.ServeOptions(port=0)))
        found = [_mcp(scene, address, tier, stack) for tier in TIERS]
        found += [_http(scene, address, scope, stack) for scope in ("work", "lead")]
        yield scene, [*found, _command_line(scene, capsys)]


def _follow(surface: Surface, code: str, asked: Asked, way: int = 0, meanwhile: Callable[[], Any] | None = None) -> int:
    """Provoke the error, and do what the hints show until nothing is refused any more.

    The first hint may show several ways on, of which one is taken; the answer is how many. What somebody else does
    meanwhile is done before that.
    """
    said = surface.ask(asked[0], **asked[1])
    if meanwhile is not None:
        meanwhile()
    ways = said.hint.split(_OR) if isinstance(said, Refusal) and said.code in _TWO_WAYS else [""]
    assert isinstance(said, Refusal), (surface.name, code, said)
    assert said.code in (code, "not_allowed"), (surface.name, code, said)  # a scope is checked before anything else
    steps = []
    while isinstance(said, Refusal):
        steps.append((said.code, said.message, said.hint))
        assert said.hint, (surface.name, steps)
        if surface.name != "cli":
            routes = {f"/api/v1/{name}" for name in BY_NAME} if surface.name.startswith("http") else set()
            told = " ".join(_HELP.sub("aof_help", part) for part in said.hint.split(_OR))
            assert {*_NAMED.findall(told)} <= surface.had | routes, (surface.name, steps)
        hint = ways[way] if len(steps) == 1 and len(ways) > 1 else said.hint
        call = surface.shown(hint)
        if call is None:
            assert not re.search(r"\baof_\w+\(|/api/v1/", _HELP.sub("aof_help", hint)), (surface.name, steps)
            break
        assert len(steps) < _MOST_STEPS, (surface.name, steps)
        said = call()
        if isinstance(said, Refusal):
            assert said.code not in ("usage", "actor_mismatch"), (surface.name, steps, said)
            assert "needs a token with the scope" not in said.message, (surface.name, steps, said)
    return len(ways)


def _answer_to(scene: Scene, code: str, asked: Asked) -> Callable[[], Any] | None:
    """Somebody answers the question that the caller is told to wait for."""
    return (lambda: scene.fabric.answer(asked[1]["task_id"], text="yes")) if code == "question_open" else None


@pytest.mark.parametrize("charted", [False, True], ids=["plain", "charted"])
def test_every_error_has_a_hint_that_its_reader_can_follow(
    tmp_path: Path, capsysbinary: pytest.CaptureFixture[bytes], monkeypatch: pytest.MonkeyPatch, *, charted: bool
) -> None:
    for name in ("AOF_DATA_DIR", "AOF_ACTOR", "AOF_RUN_ID", "AOF_RUN_SECRET"):
        monkeypatch.delenv(name, raising=False)
    provocations = CHARTED if charted else PLAIN
    with _surfaces(tmp_path, CHART if charted else None, capsysbinary) as (scene, surfaces):
        for code, provoke in provocations.items():
            for surface in surfaces:
                asked = provoke(scene)
                ways = _follow(surface, code, asked, meanwhile=_answer_to(scene, code, asked))
                assert ways == (2 if code in _TWO_WAYS else 1), (surface.name, code)
                for way in range(1, ways):
                    _follow(surface, code, provoke(scene), way)


def test_every_error_is_provoked_or_has_a_reason_why_no_call_provokes_it() -> None:
    provoked = PLAIN.keys() | CHARTED.keys()
    assert provoked | NOT_BY_A_CALL.keys() == {kind.code for kind in errors_below(AofError)}
    assert not provoked & NOT_BY_A_CALL.keys()
