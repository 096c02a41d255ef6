"""What is wrong with a document that people write, by its line. Must not know any single document."""

from __future__ import annotations

from typing import Literal

import msgspec


class DocumentFinding(msgspec.Struct, frozen=True, omit_defaults=True):
    """One thing; an error makes a check fail, a warning does not."""

    line: int
    code: str
    detail: str
    severity: Literal["error", "warning"] = "error"
