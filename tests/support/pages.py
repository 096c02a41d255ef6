"""What a page of the docs tells its reader to type and to write, done as a reader does it: in a shell.

A block of a page is one of these, by its language and by the comment `<!-- … -->` before it, which readers do not see:

- `console`: lines that begin with `$ ` are typed, and what stands below each is all that it prints. A line `…` stands
  for lines that the page leaves out. A command may only fail where the page shows its error.
- `sh`, `bash`: commands that are typed; what they print is not shown. None may fail.
- `python`: a program that is run; it may not fail.
- `<!-- file: PATH -->` before a block: the reader writes the block into that file, which the text before it names.
  `<!-- append: PATH -->` adds it at the end.
- `<!-- shows: PATH -->`: that file is now what the block shows.
- `<!-- another terminal -->`: typed in a second shell that goes on beside the page, once it has printed what is shown.
  With `<!-- another terminal until: COMMAND -->` the page goes on when the command succeeds, and what is shown has to
  be there in the end.
- `<!-- not run: REASON -->`: what no test can do. `text`, `mermaid` and blocks without a language hold no commands.

What differs from run to run is compared by rule. The day of all pages is 2026-02-21: dates near it are moved to the day
of the test and back. Times of day, durations and process IDs are only compared as such. Names that AOF draws (hashes,
tokens, the ends of the IDs of runs) are known by what the page shows for them: the same name stands for the same one
everywhere on the page, also in later commands and where it is shortened. The ports 8420 and 7171 stand for free ones,
the folder `/srv/project` for the page's own.
"""

from __future__ import annotations

import os
import re
import secrets
import shlex
import signal
import socket
import subprocess
import sys
import threading
from contextlib import suppress
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import NamedTuple, Self

from tests.support.waiting import BOUND, eventually
from tests.support.warm import warm

DAY = date(2026, 2, 21)
PORTS = ("8420", "7171")
PLACE = "/srv/project"
TYPED = ("console", "sh", "bash")
KINDS = ("file", "append", "shows", "another terminal", "another terminal until")
_BLOCK = re.compile(
    r"(?:^<!-- (?P<mark>[^\n]*) -->\n\n?)?^(?P<fence>`{3,})(?P<language>[a-z]*)\n(?P<text>.*?)^(?P=fence)$",
    re.MULTILINE | re.DOTALL,
)
_DATE = re.compile(r"(?<!\d)(20\d\d)(-?)(\d\d)\2(\d\d)(?!\d)")
_SHORT_ID = re.compile(r"(?<![\d-])(\d\d)(?=-\d{3}\b)")
_NAME = r"aofl?_[0-9a-f]{8}_[\w-]{20,}|[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"
_VARIES = re.compile(
    rf"(?P<name>(?<![\w])(?:{_NAME}|(?=[a-f]*\d)[0-9a-f]{{8,64}})(?![\w]))"
    r"|(?P<time>(?<=T)\d\d:\d\d(?::\d\d(?:\.\d+)?)?Z?|\b\d\d:\d\d(?::\d\d(?:\.\d+)?)?\b)"
    r"|(?P<span>\bjust now\b|(?<=pid )\d+|\b\d+(?:\.\d+)?(?:ms|[smhd])\b(?: (?:\d+[smhd]\b))?(?: ago\b)?)"
)
_FAILED = re.compile(r"^aof: |\berror: |^\d+ problems?$")


class Block(NamedTuple):
    """A fenced block, with what the comment before it says."""

    line: int
    mark: str
    language: str
    text: str
    before: str

    @property
    def kind(self) -> str:
        """What is done with it."""
        return self.mark.partition(":")[0]

    @property
    def path(self) -> str:
        """The file that its comment names."""
        return self.mark.partition(": ")[2]


class Command(NamedTuple):
    """What is typed, and the lines that come, or None where the page does not show them."""

    typed: str
    shown: list[str] | None


def blocks(text: str) -> list[Block]:
    """The blocks of a page."""
    return [
        Block(
            text.count("\n", 0, one.start("fence")) + 1,
            one["mark"] or "",
            one["language"],
            one["text"],
            text[: one.start()].rstrip().rpartition("\n\n")[2],
        )
        for one in _BLOCK.finditer(text)
    ]


def commands(block: Block) -> list[Command]:
    """The commands of a block, each with all of its lines."""
    found: list[Command] = []
    if block.language != "console":
        typed = ""
        for line in block.text.splitlines(keepends=True):
            typed += line
            if typed.strip() and _complete(typed):
                if not typed.lstrip().startswith("#"):
                    found.append(Command(typed.rstrip("\n"), None))
                typed = ""
        assert not typed.strip(), f"line {block.line}: no complete command: {typed}"
        return found
    goes_on = False
    for line in block.text.splitlines():
        if goes_on:
            found[-1] = Command(f"{found[-1].typed}\n{line}", found[-1].shown)
        elif line.startswith("$ "):
            found.append(Command(line[2:], []))
        else:
            assert found, f"line {block.line}: a console block begins with a command"
            shown = found[-1].shown
            assert shown is not None
            shown.append(line)
            continue
        goes_on = line.endswith("\\")
    return found


def _complete(typed: str) -> bool:
    """Whether a shell would not wait for more."""
    if typed.endswith("\\\n"):
        return False
    asked = subprocess.run(["bash", "-n"], input=typed, capture_output=True, text=True, check=False)
    return asked.returncode == 0 and "here-document" not in asked.stderr


class Mismatch(AssertionError):
    """A command did not do what its page shows."""


class Reader:
    """Somebody who follows a page in a folder of their own."""

    def __init__(self, place: Path, *, accepts: bool = False) -> None:
        self._accepts = accepts
        self.names: dict[str, str] = {}
        self._moved = datetime.now(tz=UTC).date() - DAY
        self._ports = {port: str(_free_port()) for port in PORTS}
        self.home, self.project, self._commands = place / "home", place / "project", place / "bin"
        for folder in (self.home, self.project, self._commands):
            folder.mkdir()
        command = self._commands / "aof"
        command.write_text(f'#!/bin/sh\nexec {shlex.join([*warm(), "aof"])} "$@"\n', encoding="utf-8")
        command.chmod(0o755)
        (self.home / ".gitconfig").write_text(
            "[user]\nname = You\nemail = you@example.org\n[init]\ndefaultBranch = main\n"
            "[advice]\ndetachedHead = false\nskippedCherryPicks = false\n"
        )
        self._shell = Shell(self)
        self._others: list[Shell] = []
        self._open: list[tuple[Command, Shell]] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for shell in (*self._others, self._shell):
            shell.end()

    def environment(self) -> dict[str, str]:
        """What a person has: a home, a name, and `aof` on the PATH."""
        return {
            "PATH": f"{self._commands}:{Path(sys.executable).parent}:/usr/local/bin:/usr/bin:/bin",
            "HOME": str(self.home),
            "LOGNAME": "you",
            "USER": "you",
            "LANG": "C.UTF-8",
            "TERM": "dumb",
            "BROWSER": "true",
        }

    def follow(self, block: Block) -> tuple[int, str]:
        """Do what a block says; how many commands were run, and the block with what is shown now."""
        if block.kind in {"file", "append"}:
            self._write(block)
        elif block.kind == "shows":
            shown = block.text.splitlines()
            real = (self._folder() / Path(block.path).expanduser()).read_text(encoding="utf-8")
            self._compare(block.path, shown, real.splitlines())
            return 0, "".join(f"{line}\n" for line in shown)
        elif block.language == "python":
            self._run(Command(f"python3 - <<'END'\n{block.text}END", None))
            return 1, block.text
        else:
            found = commands(block)
            if block.kind.startswith("another terminal"):
                self._beside(found, block.path)
            else:
                for command in found:
                    self._run(command)
            if block.language == "console":
                lines = (line for one in found for line in (f"$ {one.typed}", *(one.shown or [])))
                return len(found), "".join(f"{line}\n" for line in lines)
            return len(found), block.text
        return 0, block.text

    def _folder(self) -> Path:
        return Path(self._shell.ask("pwd")[0].strip())

    def _write(self, block: Block) -> None:
        path = self._folder() / Path(block.path).expanduser()
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("a" if block.kind == "append" else "w", encoding="utf-8") as file:
            file.write(self.filled(block.text))

    def _run(self, command: Command) -> None:
        excused = any(_FAILED.search(line) for line in command.shown or [])
        told, code = self._shell.ask(self.filled(command.typed))
        if command.shown is not None and (excused or not code):
            self._compare(command.typed, command.shown, told.splitlines())
        if code and not excused:
            raise Mismatch(f"$ {command.typed}\nended with {code}:\n{told}")

    def _beside(self, found: list[Command], until: str) -> None:
        shell = Shell(self)
        self._others.append(shell)
        shell.ask(f"cd '{self._folder()}'")
        (only,) = found
        shell.begin(self.filled(only.typed))
        if until:
            eventually(lambda: self._shell.ask(self.filled(until))[1] == 0, until)
            self._open.append((only, shell))
        else:
            self._printed(only, shell)

    def _printed(self, command: Command, shell: Shell) -> None:
        """Wait until a command beside the page has printed what is shown."""
        shown = command.shown or []
        with suppress(AssertionError):
            eventually(lambda: self._matched(shown, shell.text.splitlines(), self.names) is not None)
        self._compare(command.typed, shown, shell.text.splitlines())

    def finish(self) -> None:
        """What goes on beside the page has printed what is shown."""
        for command, shell in self._open:
            self._printed(command, shell)

    def _compare(self, what: str, shown: list[str], lines: list[str]) -> None:
        matched = self._matched(shown, lines, self.names)
        if matched is None and self._accepts:
            shown[:] = [self._recalled(self.told(line)) for line in lines]
            matched = self._matched(shown, lines, self.names)
        if matched is None:
            told = "\n".join(self.told(line) for line in lines)
            raise Mismatch(f"{what}\n--- the page shows\n" + "\n".join(shown) + f"\n--- it gave\n{told}\n---")
        self.names = matched

    def _matched(self, shown: list[str], lines: list[str], names: dict[str, str]) -> dict[str, str] | None:
        """The names known after the lines have been compared, or None where they differ."""
        if not shown:
            return None if lines else names
        if shown[0] == "…":
            rests = (self._matched(shown[1:], lines[at:], names) for at in range(1, len(lines) + 1))
            return next((rest for rest in rests if rest is not None), None)
        known = self._line(shown[0], self.told(lines[0]), names) if lines else None
        return None if known is None else self._matched(shown[1:], lines[1:], known)

    def _line(self, shown: str, told: str, names: dict[str, str]) -> dict[str, str] | None:
        ours, theirs = list(_VARIES.finditer(shown)), list(_VARIES.finditer(told))
        if _VARIES.sub("\0", shown).split() != _VARIES.sub("\0", told).split():
            return None
        if [one.lastgroup for one in ours] != [one.lastgroup for one in theirs]:
            return None
        known = dict(names)
        for one, other in zip(ours, theirs, strict=True):
            if one.lastgroup == "name":
                for name, real in ((one[0], other[0]), (_beginning(one[0]), _beginning(other[0]))):
                    if known.setdefault(name, real) != real:
                        return None
        return known

    def _recalled(self, text: str) -> str:
        """The text with the names that the page has for things."""
        for shown in sorted(self.names, key=len, reverse=True):
            text = text.replace(self.names[shown], shown)
        return text

    def told(self, text: str) -> str:
        """What AOF said, as on the day and in the folder of the pages."""
        text = text.rstrip().replace(str(self.project), PLACE).replace(str(self.home), "~")
        for port, real in self._ports.items():
            text = text.replace(real, port)
        tomorrow = DAY + self._moved + timedelta(days=1)
        if (
            datetime.now(tz=UTC) + timedelta(hours=1)
        ).date() == tomorrow:  # before midnight, a lease ends on the next day
            text = text.replace(f"{tomorrow}T00:", f"{DAY + self._moved}T00:")
        # shortly after midnight, what runs at night has its next run on the same day
        text = re.sub(rf"{DAY + self._moved}(?=T0[01]:00:00\.000Z)", f"{tomorrow}", text)
        today = f"{DAY + self._moved:%d}"
        text = _SHORT_ID.sub(lambda one: f"{DAY:%d}" if one[1] == today else one[1], text)
        return _shifted(text, -self._moved)

    def filled(self, text: str) -> str:
        """What a page has typed or written, for today, and with the names and the ports that there are."""
        for shown in sorted(self.names, key=len, reverse=True):
            text = re.sub(rf"(?<!\w){re.escape(shown)}(?!\w)", self.names[shown], text)
        for port, real in self._ports.items():
            text = text.replace(port, real)
        return _shifted(text.replace(PLACE, str(self.project)), self._moved)


def _beginning(name: str) -> str:
    """What a name goes by in short: the first eight digits of a handoff, the ID of a token."""
    return name.removeprefix("aofl_").removeprefix("aof_")[:8]


def _shifted(text: str, days: timedelta) -> str:
    """The text with its dates moved, other than those that are far from the day of the pages on both calendars."""

    def moved(one: re.Match[str]) -> str:
        try:
            then = date(int(one[1]), int(one[3]), int(one[4]))
        except ValueError:
            return one[0]
        near = abs((then - (DAY if days.days >= 0 else DAY - days)).days) < 100
        return f"{then + days:%Y{one[2]}%m{one[2]}%d}" if near else one[0]

    return _DATE.sub(moved, text)


def _free_port() -> int:
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        return int(listening.getsockname()[1])


class Shell:
    """A bash that stays: folders and variables last from one command to the next."""

    def __init__(self, reader: Reader) -> None:
        self._process = subprocess.Popen(
            ["bash", "--noprofile", "--norc"],
            cwd=reader.project,
            env=reader.environment(),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        self.text = ""
        self._listening = threading.Thread(target=self._listen, daemon=True)
        self._listening.start()

    def _listen(self) -> None:
        assert self._process.stdout is not None
        while fresh := os.read(self._process.stdout.fileno(), 65_536):
            self.text += fresh.decode(errors="replace")

    def begin(self, typed: str, after: str = "") -> None:
        """Type a command, and wait for nothing."""
        assert self._process.stdin is not None
        self.text = ""
        self._process.stdin.write(f"{{ {typed}\n}} </dev/null; {after}\n".encode())
        self._process.stdin.flush()

    def ask(self, typed: str) -> tuple[str, int]:
        """Type a command; what it said, and how it ended."""
        mark = f"end-{secrets.token_hex(8)}"
        end = re.compile(rf"{mark} (\d+)\n")
        self.begin(typed, f"printf '%s %s\\n' {mark} $?")
        eventually(lambda: end.search(self.text) or self._process.poll() is not None, f"end of {typed}")
        found = end.search(self.text)
        assert found, f"the shell ended with {typed}: {self.text}"
        return self.text[: found.start()], int(found[1])

    def end(self) -> None:
        """End the shell with all that it started: first as a person does it."""
        for number in (signal.SIGTERM, signal.SIGKILL):
            with suppress(ProcessLookupError):
                os.killpg(self._process.pid, number)
            self._listening.join(BOUND / 6)
        self._process.wait()
