"""What people write down for new tasks: `templates/<name>.md`, and the workflows in `workflows/<name>.yaml`."""

from __future__ import annotations

import os
from contextlib import suppress
from typing import Any, Final

import msgspec

from aof.errors import UnreadableTask
from aof.kernel.findings import Finding
from aof.kernel.model import is_agent_name
from aof.store.directory import WorkflowReport
from aof.store.files import markdown, strict_yaml
from aof.store.files.disk import read, refuse_link
from aof.workflows import templates

TEMPLATES_FOLDER: Final = "templates"
_TASK_TEMPLATES_ENDING: Final = ".md"
_TASK_TEMPLATES_LIMIT: Final = 262_144


def template_names(root: str) -> tuple[str, ...]:
    """The names of the files that can be templates."""
    with suppress(FileNotFoundError, NotADirectoryError):
        found = (
            name.removesuffix(_TASK_TEMPLATES_ENDING)
            for name in sorted(os.listdir(f"{root}/{TEMPLATES_FOLDER}"))
            if name.endswith(_TASK_TEMPLATES_ENDING)
        )
        return tuple(name for name in found if is_agent_name(name))
    return ()


def load_template(root: str, name: str) -> tuple[dict[str, Any], str] | None:
    """The keys and the text of one; None where there is none. A link is not followed. Raises UnreadableTask."""
    if not is_agent_name(name):
        return None
    try:
        refuse_link(f"{root}/{TEMPLATES_FOLDER}")
        content = read(f"{root}/{TEMPLATES_FOLDER}/{name}{_TASK_TEMPLATES_ENDING}", limit=_TASK_TEMPLATES_LIMIT)
    except OSError as error:
        hint = f"put a text file of at most {_TASK_TEMPLATES_LIMIT:,} bytes there"
        raise UnreadableTask(f"the file cannot be read: {error.strerror}", hint) from None
    if content is None:
        return None
    found, body, _ = markdown.take_apart(content)
    return found or {}, body


WORKFLOWS_FOLDER: Final = "workflows"
_WORKFLOWS_ENDING: Final = ".yaml"
_WORKFLOWS_LIMIT: Final = 65_536


class WorkflowFiles:
    """The templates of one data directory. Keeps the contract of `ports.workflows.WorkflowSource`."""

    def __init__(self, root: str) -> None:
        self._folder = f"{root}/{WORKFLOWS_FOLDER}"

    def names(self) -> tuple[str, ...]:
        """The names of the files."""
        with suppress(FileNotFoundError, NotADirectoryError):
            found = sorted(os.listdir(self._folder))
            return tuple(name.removesuffix(_WORKFLOWS_ENDING) for name in found if name.endswith(_WORKFLOWS_ENDING))
        return ()

    def report(self, name: str) -> WorkflowReport | None:
        """Read and check one."""
        path = f"{WORKFLOWS_FOLDER}/{name}{_WORKFLOWS_ENDING}"
        if not is_agent_name(name):
            return None
        try:
            refuse_link(self._folder)
            content = read(f"{self._folder}/{name}{_WORKFLOWS_ENDING}", limit=_WORKFLOWS_LIMIT)
        except OSError as error:
            detail = f"the file cannot be read: {error.strerror}"
            return _unreadable(name, path, detail, f"put a text file of at most {_WORKFLOWS_LIMIT:,} bytes there", None)
        return None if content is None else _checked(name, path, content)


def _checked(name: str, path: str, content: bytes) -> WorkflowReport:

    try:
        text = content.decode("utf-8-sig")
        text = f"#--{text[3:]}" if text.startswith(("---\n", "---\r\n")) else text
        document: dict[str, Any] = strict_yaml.load_yaml(strict_yaml.scan_yaml(text, 1).text, 1, "the workflow")
    except UnicodeDecodeError as error:
        return _unreadable(name, path, f"the file is not UTF-8: {error.reason}", "save it as UTF-8", None)
    except UnreadableTask as error:
        return _unreadable(name, path, error.message, error.hint, error.details.get("line"))
    checked = templates.validate_template(document, name)
    where = strict_yaml.yaml_places(text) if checked.findings else {}
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
