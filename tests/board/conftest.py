"""The application of a data directory, and somebody who is in."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

from aof.api.fabric import Fabric
from aof.service import serve
from aof.service.bootstrap import init_data_dir, open_fabric

Response = Any  # of the client library that starlette chooses
ORIGIN = "http://127.0.0.1:8420"
SAME = {"Origin": ORIGIN, "Sec-Fetch-Site": "same-origin"}
SETTINGS = 'maintainers = ["pm"]\nschemaVersion = 1\n[storage]\ndurability = "relaxed"\n'


class Browser:
    """A browser as far as the server can tell; `send` is a form of a page that it has."""

    def __init__(self, client: TestClient) -> None:
        self.client = client

    def get(self, path: str, **headers: str) -> Response:
        """Go to a page."""
        return self.client.get(f"/board{path}", headers=headers, follow_redirects=False)

    def kept(self, answer: Response) -> Response:
        """Keep the page's half of the session, as the script of the answer does, and send it from now on."""
        if found := re.search(r'data-half="([^"]+)"', answer.text):
            self.client.headers["AOF-Page"] = found[1]
        return answer

    def send(self, path: str, headers: Any = None, **fields: Any) -> Response:
        """Send a form as the page does."""
        told = SAME | {"HX-Request": "true", "HX-Target": "dialog#dialog"} | (headers or {})
        return self.client.post(f"/board{path}", data={"sent": "now"} | fields, headers=told, follow_redirects=False)

    def login(self, token: str, **headers: str) -> Response:
        """Sign in with a token."""
        told = SAME | headers
        return self.kept(self.client.post("/board/login", data={"token": token}, headers=told, follow_redirects=False))


@pytest.fixture
def root(tmp_path: Path) -> str:
    made = init_data_dir(tmp_path / "lighthouse/.aof", actor="pm")[0]
    Path(made, "aof.toml").write_text(SETTINGS, "utf-8")
    return made


@pytest.fixture
def fabric(root: str) -> Iterator[Fabric]:
    with open_fabric(root, actor="pm") as one:
        yield one


@pytest.fixture
def visitor(root: str) -> Iterator[Callable[[], Browser]]:
    """Browsers that nobody is in with; each keeps its own cookies."""
    app = serve.make_http(root)
    with TestClient(app, base_url=ORIGIN) as first:
        yield lambda: Browser(TestClient(first.app, base_url=ORIGIN, cookies={}))


@pytest.fixture
def browser(visitor: Callable[[], Browser], root: str) -> Browser:
    """One that `pm` is in with."""
    one = visitor()
    assert one.login(serve.create_token(root, "pm", None, scope="admin").token).status_code == 200
    return one
