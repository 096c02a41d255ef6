"""What the page for people costs: the board of many tasks beside that of few, a commit on its way to the page, idling.

The first is the server's CPU per request, over HTTP with a session, in turns. For the others a real browser has the
board open: each change of one task's title carries a number, and a number counts as shown once the page shows it or a
later one. Where there is no chromium or no playwright, these rows are left out.
"""

from __future__ import annotations

import http.client
import importlib.util
import re
import shutil
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager
from http.cookies import SimpleCookie
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import urlencode

import aof
from aof.bench import processes as bench_processes
from aof.bench.report import Need, Part, TableRow, seconds_text
from aof.bench.rounds import Figure
from aof.bench.sizes import written
from bench.tools import Server, serving_on

if TYPE_CHECKING:
    from playwright.sync_api import Page

_FEW, _MANY = 100, 10_000
_PATHS = ("/board/tasks", "/board/")
_PER_SECOND = 100
_SHOWN_WITHIN = 0.25  # seconds
_IDLE_SHARE = 0.02  # of a core
_BROWSERS = ("chromium", "chromium-browser", "google-chrome")
_FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking"]
_BOUND = 60.0
_LIVE = "#connection[data-state=live]"
_TITLE = "gust"
_WATCH = """([task, word]) => {
  window.shown = [];
  const look = () => {
    const text = document.querySelector(`#card-${task} .card-title`)?.textContent ?? "";
    const number = text.startsWith(word) ? Number(text.slice(word.length)) : -1;
    if (number > (window.shown.at(-1)?.[0] ?? -1)) window.shown.push([number, Date.now() / 1000]);
  };
  new MutationObserver(look).observe(document.body, {subtree: true, childList: true, characterData: true});
}"""


class Amount(NamedTuple):
    """How much is measured: tasks in both directories, requests a round, rounds, seconds of changes and of idling."""

    few: int = _FEW
    many: int = _MANY
    requests: int = 40
    rounds: int = 5
    seconds: float = 20.0
    idle: float = 20.0

    @staticmethod
    def quick() -> Amount:
        """A few seconds, to see that it works."""
        return Amount(few=20, many=40, requests=2, rounds=1, seconds=0.5, idle=0.5)


def measured(folder: Path, *, amount: Amount, say: Callable[[str], object], browser: bool = True) -> Part:
    """All of it, as a part of the table; `browser` says whether one may be started."""
    say(f"board: writing {amount.many:,} tasks")
    roots = [written(folder / f"board-{count}", count) for count in (amount.few, amount.many)]
    with ExitStack() as stack:
        servers = [stack.enter_context(serving_on(root, 1)) for root in roots]
        rows = _served(servers, amount, say)
        if browser and (program := _browser()) is not None:
            rows += _in_browser(servers[1], roots[1], program, amount, say)
    return Part("Board: the page for people", tuple(rows))


def _served(servers: list[Server], amount: Amount, say: Callable[[str], object]) -> list[TableRow]:
    """The server's CPU for one page, many tasks beside few."""
    rows = []
    for path in _PATHS:
        times: list[list[float]] = [[], []]
        for number in range(-1, amount.rounds):  # the first round warms up
            say(f"board: {path}, round {number + 1} of {amount.rounds}")
            for place, server in enumerate(servers):
                used = _cpu_per_request(server, path, amount.requests)
                if number >= 0:
                    times[place].append(used)
        shown, unit = seconds_text(Figure.of(times[1]))
        grown = Figure.ratio(times[1], [max(value, 1e-6) for value in times[0]])
        name = f"{path} at {amount.many:,} tasks, server's CPU"
        rows.append(TableRow(name, shown, unit, grown, f"the same at {amount.few:,}", Need(5.0, at_most=True)))
    return rows


def _cpu_per_request(server: Server, path: str, requests: int) -> float:
    with closing(http.client.HTTPConnection("127.0.0.1", server.port, timeout=_BOUND)) as connection:
        session = _session(connection, server)
        before = bench_processes.cpu_used(server.pid)
        for _ in range(requests):
            connection.request("GET", path, headers=session | {"AOF-Part": "view"})
            answer = connection.getresponse()
            if answer.status != http.client.OK or not answer.read():
                raise RuntimeError(f"{path} was refused: {answer.status}")
        return (bench_processes.cpu_used(server.pid) - before) / requests


def _session(connection: http.client.HTTPConnection, server: Server) -> dict[str, str]:
    """Both halves of a session, as the form gives them to whoever has a token."""
    headers = {
        "Content-Type": "application/x-www-form-urlencoded",
        "Origin": f"http://127.0.0.1:{server.port}",
        "Sec-Fetch-Site": "same-origin",
    }
    connection.request("POST", "/board/login", urlencode({"token": server.tokens[0]}), headers)
    answer = connection.getresponse()
    half = re.search(r'data-half="([^"]+)"', answer.read().decode())
    given = SimpleCookie(answer.headers.get("Set-Cookie", ""))
    if not given or half is None:
        raise RuntimeError(f"the token was refused: {answer.status}")
    return {"Cookie": "; ".join(f"{name}={one.value}" for name, one in given.items()), "AOF-Page": half[1]}


def _browser() -> str | None:
    """The browser's program; None where it or its driver is missing."""
    if importlib.util.find_spec("playwright") is None:
        return None
    return next(filter(None, map(shutil.which, _BROWSERS)), None)


def _in_browser(
    server: Server, root: str, program: str, amount: Amount, say: Callable[[str], object]
) -> list[TableRow]:
    """How long a change takes to the page, and what the page costs while nothing happens."""
    with aof.open(root, actor="bench") as fabric:
        task = fabric.create("calm", priority="critical", agent="bench").task_id
        with _page(server, program) as page:
            say("board: an idle page")
            share = _idle(server, amount.idle)
            say(f"board: {_PER_SECOND} events per second")
            page.evaluate(_WATCH, [task, f"{_TITLE} "])
            late = sorted(_until_shown(fabric, task, page, amount.seconds))
    p95 = late[min(int(len(late) * 0.95), len(late) - 1)]
    spread = Figure(p95, late[len(late) // 2], late[-1])
    shown, unit = seconds_text(spread)
    to_limit = Figure(*(value / _SHOWN_WITHIN for value in spread))
    idle, of_limit = Figure.of([share * 100]), Figure.of([share / _IDLE_SHARE])
    limit = Need(1.0, at_most=True)
    return [
        TableRow("from a commit to the page, p95 (median..longest)", shown, unit, to_limit, "250 ms", limit),
        TableRow("an open page while nothing happens", idle, "%", of_limit, f"{_IDLE_SHARE:.0%} of a core", limit),
    ]


@contextmanager
def _page(server: Server, program: str) -> Iterator[Page]:
    """The board in a browser, connected."""
    from playwright.sync_api import sync_playwright  # noqa: PLC0415 - only where it is installed

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=_FLAGS)
        try:
            page = browser.new_page()
            page.goto(f"http://127.0.0.1:{server.port}/board/login?next=/board/tasks")
            page.get_by_label("Token").fill(server.tokens[0])
            page.get_by_role("button", name="Sign in").click()
            page.wait_for_selector(_LIVE)
            yield page
        finally:
            browser.close()


def _idle(server: Server, length: float) -> float:
    """The share of a core that the service uses."""
    pause = threading.Event()
    before, begin = bench_processes.cpu_used(server.pid), time.monotonic()
    pause.wait(length)
    return (bench_processes.cpu_used(server.pid) - before) / (time.monotonic() - begin)


def _until_shown(fabric: aof.Fabric, task: str, page: Page, length: float) -> list[float]:
    """Seconds from each commit until the page shows it, or a later one."""
    commits: list[float] = []
    begin, pause = time.monotonic(), threading.Event()
    while time.monotonic() - begin < length:
        pause.wait(max(begin + len(commits) / _PER_SECOND - time.monotonic(), 0))
        fabric.edit(task, title=f"{_TITLE} {len(commits)}")
        commits.append(time.time())
    last = len(commits) - 1
    page.wait_for_function("last => (window.shown.at(-1)?.[0] ?? -1) >= last", arg=last, timeout=_BOUND * 1000)
    shown: list[tuple[int, float]] = page.evaluate("window.shown")
    late, place = [], 0
    for number, at in enumerate(commits):
        while shown[place][0] < number:
            place += 1
        late.append(max(shown[place][1] - at, 0.0))
    return late
