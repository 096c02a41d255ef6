"""Reads what people write down for new tasks: `templates/<name>.md`, and the workflows in `workflows/<name>.yaml`."""

from __future__ import annotations

import os
from contextlib import suppress
from typing import Any

from aof.errors import UnreadableTask
from aof.kernel.findings import Finding
from aof.kernel.model import is_agent_name
from aof.store.directory import WorkflowReport
from aof.store.files import markdown, strict_yaml
from aof.store.files.disk import read, refuse_link
from aof.workflows import templates

_FOLDER, _ENDING = "templates", ".md"
_TEMPLATE_BYTES = 262_144
_WORKFLOW_BYTES = 65_536


def template_names(root: str) -> tuple[str, ...]:
    """The names of the files that can be templates."""
    with suppress(FileNotFoundError, NotADirectoryError):
        files = [name for name in sorted(os.listdir(f"{root}/{_FOLDER}")) if name.endswith(_ENDING)]
        return tuple(name for file in files if is_agent_name(name := file.removesuffix(_ENDING)))
    return ()


def load_template(root: str, name: str) -> tuple[dict[str, Any], str] | None:
    """The keys and the text of one; None where there is none. A link is not followed. Raises UnreadableTask."""
    if not is_agent_name(name):
        return None
    try:
        refuse_link(f"{root}/{_FOLDER}")
        content = read(f"{root}/{_FOLDER}/{name}{_ENDING}", limit=_TEMPLATE_BYTES)
    except OSError as error:
        hint = f"put a text file of at most {_TEMPLATE_BYTES:,} bytes there"
        raise UnreadableTask(f"the file cannot be read: {error.strerror}", hint) from None
    if content is None:
        return None
    found, body, _ = markdown.take_apart(content)
    return found or {}, body


def check_workflow(root: str, name: str) -> WorkflowReport | None:
    """Read and check a workflow; None where there is none of that name."""
    path = f"workflows/{name}.yaml"
    if not is_agent_name(name):
        return None

    def unreadable(detail: str, fix: str, line: int | None = None) -> WorkflowReport:
        finding = Finding(code="unreadable", severity="error", at=(), detail=detail, fix=fix, line=line)
        return WorkflowReport(name=name, path=path, ok=False, findings=(finding,))

    try:
        refuse_link(f"{root}/workflows")
        content = read(f"{root}/{path}", limit=_WORKFLOW_BYTES)
        if content is None:
            return None
        text = strict_yaml.document_text(content)
        document = strict_yaml.load_document(text, "the workflow")
    except OSError as error:
        fix = f"put a text file of at most {_WORKFLOW_BYTES:,} bytes there"
        return unreadable(f"the file cannot be read: {error.strerror}", fix)
    except UnicodeDecodeError as error:
        return unreadable(f"the file is not UTF-8: {error.reason}", "save it as UTF-8")
    except UnreadableTask as error:
        return unreadable(error.message, error.hint, error.details.get("line"))
    checked = templates.validate_template(document, name)
    findings = strict_yaml.with_places(checked.findings, text, otherwise=1) if checked.findings else ()
    return WorkflowReport(name=name, path=path, ok=checked.template is not None, findings=findings, document=document)
