"""`workflows/<name>.yaml`: read again whenever one is asked for, which is at the creation of a task only.

Must not know what a template means; the core checks it, and here each finding gets its line.
"""

from __future__ import annotations

import os
from contextlib import suppress
from typing import Any, Final

import msgspec

from aof.core.errors.tasks import UnreadableTask
from aof.core.model.ids import is_agent_name
from aof.core.validation.findings import Finding
from aof.core.workflows import template_validation
from aof.ports.workflows import WorkflowReport
from aof.stores.filesystem.io.read import read, refuse_link
from aof.stores.filesystem.records import strict_yaml, yaml_places

FOLDER: Final = "workflows"
_ENDING: Final = ".yaml"
_LIMIT: Final = 65_536


class WorkflowFiles:
    """The templates of one data directory. Keeps the contract of `ports.workflows.WorkflowSource`."""

    def __init__(self, root: str) -> None:
        self._folder = f"{root}/{FOLDER}"

    def names(self) -> tuple[str, ...]:
        """The names of the files."""
        with suppress(FileNotFoundError, NotADirectoryError):
            found = sorted(os.listdir(self._folder))
            return tuple(name.removesuffix(_ENDING) for name in found if name.endswith(_ENDING))
        return ()

    def report(self, name: str) -> WorkflowReport | None:
        """Read and check one."""
        path = f"{FOLDER}/{name}{_ENDING}"
        if not is_agent_name(name):
            return None
        try:
            refuse_link(self._folder)
            content = read(f"{self._folder}/{name}{_ENDING}", limit=_LIMIT)
        except OSError as error:
            detail = f"the file cannot be read: {error.strerror}"
            return _unreadable(name, path, detail, f"put a text file of at most {_LIMIT:,} bytes there", None)
        return None if content is None else _checked(name, path, content)


def _checked(name: str, path: str, content: bytes) -> WorkflowReport:

    try:
        text = content.decode("utf-8-sig")
        text = f"#--{text[3:]}" if text.startswith(("---\n", "---\r\n")) else text
        document: dict[str, Any] = strict_yaml.load(strict_yaml.scan(text, 1).text, 1, "the workflow")
    except UnicodeDecodeError as error:
        return _unreadable(name, path, f"the file is not UTF-8: {error.reason}", "save it as UTF-8", None)
    except UnreadableTask as error:
        return _unreadable(name, path, error.message, error.hint, error.details.get("line"))
    checked = template_validation.check(document, name)
    where = yaml_places.places(text) if checked.findings else {}
    findings = tuple(_placed(finding, where) for finding in checked.findings)
    return WorkflowReport(name=name, path=path, ok=checked.template is not None, findings=findings, document=document)


def _placed(finding: Finding, where: dict[tuple[str | int, ...], tuple[int, int]]) -> Finding:
    """The finding with the line of its place, or of the nearest one around it."""
    for length in range(len(finding.at), 0, -1):
        if (place := where.get(finding.at[:length])) is not None:
            return msgspec.structs.replace(finding, line=place[0], column=place[1])
    return msgspec.structs.replace(finding, line=1)


def _unreadable(name: str, path: str, detail: str, fix: str, line: int | None) -> WorkflowReport:
    finding = Finding(code="unreadable", severity="error", at=(), detail=detail, fix=fix, line=line)
    return WorkflowReport(name=name, path=path, ok=False, findings=(finding,))
