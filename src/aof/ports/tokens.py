"""Where tokens are kept: who may call from outside, and as whom. Above: app. Below: the filesystem store.

A store keeps digests only; a token itself is shown once, to the caller that created it.
"""

from __future__ import annotations

from typing import Protocol

import msgspec


class Token(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """One token: whose it is, what it allows, until when, and how it is recognised.

    `tools` are the tiers that MCP lists for it, such as `core,handoff`; None: those that the server lists.
    One without a scope is from before there were any: its role says what it allows.
    """

    id: str
    actor: str
    role: str
    created_at: str
    digest: str
    scope: str | None = None
    expires_at: str | None = None
    tools: str | None = None


class Tokens(Protocol):
    """All tokens of a data directory."""

    def all(self) -> tuple[Token, ...]:
        """Every token that is valid."""
        ...

    def change(self, *, add: Token | None = None, remove: str | None = None) -> bool:
        """Add one or remove one, durably; returns whether something changed."""
        ...
