"""Workflow templates as the application needs them. Above: app. Below: files in the data directory, or fixed ones.

A source reads and checks; it never decides what a task may do.
"""

from __future__ import annotations

from typing import Any, Protocol

import msgspec

from aof.core.validation.findings import Finding


class WorkflowReport(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """One template that is written down, and everything that is wrong with it; `document` is None if unreadable."""

    name: str
    path: str
    ok: bool
    findings: tuple[Finding, ...] = ()
    document: dict[str, Any] | None = None


class WorkflowSource(Protocol):
    """Where templates come from."""

    def names(self) -> tuple[str, ...]:
        """Every workflow that is written down, in order."""
        ...

    def report(self, name: str) -> WorkflowReport | None:
        """A close look at one of them, read again; None when there is none of that name."""
        ...
