"""Which session entries belong to: the one that the charter names. Must not know anything else about the charter."""

from __future__ import annotations

from aof.documents import markdown
from aof.documents.worklog.model import UNKNOWN

_KEY = "session id"


def session_id(charter: str) -> str:
    """The session's ID as the charter has it, in a table or in a field line; unknown where it has none."""
    lines = markdown.scan(charter)
    for table in markdown.tables(lines):
        for row in table.rows:
            if len(row.cells) > 1 and row.cells[0].strip("*: ").lower() == _KEY:
                return row.cells[1].strip("`* ") or UNKNOWN
    for line in lines:
        text = line.text.lstrip("-* ") if not line.text.startswith("**") else line.text
        found = markdown.bold_field(text) or markdown.plain_field(text)
        if line.kind == "text" and found is not None and found[0].lower() == _KEY:
            return found[1].strip("`* ") or UNKNOWN
    return UNKNOWN
