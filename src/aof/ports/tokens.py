"""Where tokens are kept: who may call from outside, and as whom. Above: app. Below: the filesystem store.

A store keeps digests only; a token itself is shown once, to the caller that created it.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Protocol

import msgspec


class Token(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """One token: whose it is, what it allows, until when, and how it is recognised.

    `tools` are the tiers that MCP lists for it, such as `core,handoff`; None: those that the server lists.
    One without a scope is from before there were any: its role says what it allows.
    `use` is None for tokens that come with calls; the page for people has links that are used once (`link`) and
    sessions (`session`), which end with the token that they are `of`.
    """

    id: str
    actor: str
    role: str
    created_at: str
    digest: str
    scope: str | None = None
    expires_at: str | None = None
    tools: str | None = None
    use: str | None = None
    of: str | None = None


class Tokens(Protocol):
    """All tokens of a data directory."""

    def all(self) -> tuple[Token, ...]:
        """Every token that is valid."""
        ...

    def change(self, *, add: Token | None = None, remove: str | Collection[str] | None = None) -> bool:
        """Add one, remove one or some, durably; returns whether something changed."""
        ...
