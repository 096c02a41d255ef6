"""What is wrong with a document that a person wrote, as data. Must not know what is in it, nor how it is shown."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from typing import Any, Literal

import msgspec

Step = str | int
Severity = Literal["error", "warning", "note"]
_TOLD = ("code", "severity", "line", "column", "detail", "fix")


class Finding(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """One problem. With an `error` the document cannot be used; a `note` may be intended."""

    code: str
    severity: Severity
    at: tuple[Step, ...]
    detail: str
    fix: str
    line: int | None = None
    column: int | None = None

    @property
    def where(self) -> str:
        """The place as a person would write it: `agents[2].runner.command`."""
        text = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in self.at)
        return text.removeprefix(".") or "the document"

    def told(self) -> dict[str, Any]:
        """The problem as every surface shows it."""
        return {"path": self.where} | {name: getattr(self, name) for name in _TOLD}


def similar(name: str, known: Iterable[str]) -> str | None:
    """The known name that was probably meant."""
    close = difflib.get_close_matches(name, sorted(known), n=1, cutoff=0.6)
    return close[0] if close else None


def suggestion(name: str, known: Iterable[str], otherwise: str) -> str:
    """`did you mean …?`, else the given advice."""
    there = sorted(known)
    close = similar(name, there)
    return f"did you mean '{close}'?" if close is not None else otherwise
