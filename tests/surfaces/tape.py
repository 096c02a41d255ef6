"""Records what a door answers to a script of calls, in a form that can be compared with another door's."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from aof.api.fabric import Fabric
from tests.surfaces.doors import Answer, Door, Refusal

_SPAN = re.compile(  # how long something took, or has left
    r'("(?:duration_ms|age|left|working|waiting|p50|p75|p90|p95)": ?|"timeout": ?")-?\d+'
)
_TIME = re.compile(  # entries of the WORKLOG have minutes only
    r"\d{4}-\d\d-\d\d(T\d\d:\d\d(:\d\d\.\d{3})?Z| \d\d:\d\d UTC)"
)
_ENTRY = re.compile(r"\bWL-[0-9a-f]{16}\b")  # named by what is in it, its time too
_HASH = re.compile(r"\b[0-9a-f]{64}\b")
_ID = re.compile(r"\b(TASK|RUN|HO)-(\d{4}-\d\d-\d\d-\d{3,})")
TAG = re.compile(r"\b(RUN-\d{4}-\d\d-\d\d-\d{3,}-\d+)-[0-9a-f]{8}\b")
_UUID = re.compile(
    r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}|(?<=escalation )[0-9a-f]{8}(?=:)|(?<=goes on as )[0-9a-f]{8}"
)
_HANDOFF = re.compile(r"\b(HO-\d{4}-\d\d-\d\d-\d{3,})-\d+")
_REV = re.compile(r'^(rev: |\s*"(?:rev|seq|sequence)": )\d+', re.MULTILINE)
_REF = re.compile(r"(aof://log/|[?]at=|EVT-)[0-9-]+")
_CURSOR = re.compile(r'("nextCursor": ?)"[^"]+"')  # a place in a list, which may be a moment
_FOLDER = re.compile(r'("(?:project|workspaceId|sessionId)": )"[^"]+"')


def _without_secret(answer: Answer) -> Answer:
    """A session of MCP keeps the secret of what it claims; on the other surfaces the caller does."""
    if isinstance(answer, Refusal):
        return answer
    return {name: value for name, value in answer.items() if name != "secret"}


class Tape:
    """One door under one script."""

    def __init__(self, door: Door) -> None:
        self._door = door
        self._said: list[tuple[str, Answer]] = []
        self._made: set[str] = set()
        self._ids: dict[str, str] = {}

    @property
    def elsewhere(self) -> Fabric:
        """The same data directory, used by somebody else."""
        return self._door.elsewhere

    @property
    def surface(self) -> str:
        """Which door this is."""
        return self._door.name

    def ask(self, operation: str, **given: Any) -> dict[str, Any]:
        """A call that succeeds."""
        answer = self._door.ask(operation, **given)
        assert isinstance(answer, dict), f"{self.surface} {operation}: {answer}"
        self._said.append((operation, answer))
        if operation == "create":
            self._made.add(answer["taskId"])
        return answer

    def knows_me(self) -> None:
        """Every surface says who calls; what the name comes from is different on each."""
        answer = self._door.ask("whoami")
        assert isinstance(answer, dict), f"{self.surface}: {answer}"
        assert answer["actor"], self.surface

    def refused(self, operation: str, code: str, **given: Any) -> Refusal:
        """A call that is refused with this code."""
        answer = self._door.ask(operation, **given)
        assert isinstance(answer, Refusal), f"{self.surface} {operation}: {answer}"
        assert answer.code == code, f"{self.surface} {operation}: {answer}"
        self._said.append((operation, answer))
        return answer

    def task(self, title: str = "Do it", **given: Any) -> str:
        """A new task's ID."""
        return str(self.ask("create", title=title, **({"brief": "All of it.\n"} | given))["taskId"])

    def made(self, *task_ids: str) -> None:
        """Tasks that were made beside the script, and whose files count as well."""
        self._made |= set(task_ids)

    def edit(self, path: str, old: str, new: str) -> None:
        """What a person does to a file of the data directory."""
        file = self._door.root / path
        text = file.read_text()
        assert old in text
        file.write_text(text.replace(old, new))

    def said(self) -> list[Any]:
        """Every answer, without what differs from run to run."""
        return [[operation, self._comparable(_without_secret(answer))] for operation, answer in self._said]

    def _comparable(self, answer: Answer) -> Any:
        """Of a call that is wrong in itself only the code counts: each surface meets it at another depth."""
        if isinstance(answer, Refusal):
            return [answer.code, "" if answer.code == "invalid" else self._same(answer.message)]
        return self.comparable(answer)

    def comparable(self, value: Any) -> Any:
        """Plain data without what differs from run to run."""
        return json.loads(self._same(json.dumps(value, indent=0)))

    def files(self) -> dict[str, str]:
        """The files of the tasks that the script has made, as they are now."""
        everywhere = [path for part in ("tasks", "archive/tasks") for path in (self._door.root / part).rglob("*.md")]
        found = [path for path in everywhere if path.stem in self._made]
        by_name = sorted(found, key=lambda path: path.name)
        return {self._same(self._inside(path)): self._same(path.read_text()) for path in by_name}

    def _inside(self, path: Path) -> str:
        return path.relative_to(self._door.root).as_posix()

    def _same(self, text: str) -> str:
        text = _CURSOR.sub(r'\1"(cursor)"', _ENTRY.sub("(entry)", _SPAN.sub(r"\g<1>0", text)))
        text = _FOLDER.sub(r'\1"(here)"', _REF.sub(r"\g<1>0", TAG.sub(r"\1", text)))
        text = _UUID.sub(lambda found: f"(handoff {self._ids.setdefault(found.group(), _letter(self._ids))})", text)
        text = _HANDOFF.sub(r"\1", _REV.sub(r"\g<1>0", _HASH.sub("(hash)", _TIME.sub("(time)", text))))
        return _ID.sub(
            lambda found: f"{found.group(1)}-{self._ids.setdefault(found.group(2), _letter(self._ids))}", text
        )


def _letter(known: dict[str, str]) -> str:
    return f"#{len(known) + 1}"
