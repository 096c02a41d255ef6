"""A file that a person wrote and no task was ever written to: what of it a new task begins with. Reads only."""

from __future__ import annotations

from typing import Any

from aof.core.errors.tasks import UnreadableTask
from aof.core.model.events import SCHEMA_VERSION
from aof.core.tasks.manual_edit import THEIRS
from aof.core.validation import limits
from aof.stores.filesystem.working_copy import markdown


def read(data: bytes, task_id: str) -> tuple[dict[str, Any], str | None]:
    """The fields that are a person's to give, their own keys and the body; and how they laid the frontmatter out."""
    if not data.strip():
        raise UnreadableTask("it is empty", "write something, or remove the file")
    fields, body, layout = markdown.parse_foreign(data)
    refuse_newer(fields.get("schemaVersion"))
    if fields.get("id") == task_id and isinstance(fields.get("rev"), int):
        raise UnreadableTask("the log knows nothing of it", "'aof doctor --fix' puts it into the log again")
    created: dict[str, Any] = {name: fields[name] for name in fields.keys() & markdown.KEYS & THEIRS}
    extra = {name: value for name, value in fields.items() if name not in markdown.KEYS}
    created.setdefault("title", _title(body) or task_id)
    if extra:
        created["extra"] = extra
    return created | {"body": body}, layout


def refuse_newer(version: object) -> None:
    """A file of a later format may mean what we do not know."""
    if isinstance(version, int) and version > SCHEMA_VERSION:
        what = f"it has schemaVersion {version}, and this AOF reads up to {SCHEMA_VERSION}"
        raise UnreadableTask(what, "use a newer AOF")


def _title(body: str) -> str:
    """The first line that says something."""
    for line in body.splitlines():
        if text := " ".join("".join(c if c.isprintable() else " " for c in line.lstrip("#")).split()):
            return text[: limits.TITLE]
    return ""
