"""Tokens: made, listed, revoked and recognised. Must not know where they are kept or how they arrive.

A token is random and long, so a plain digest of it is enough to recognise it and useless to whoever reads the file.
"""

from __future__ import annotations

import hmac
import secrets
from hashlib import sha256

from aof.app.calling import ROLES, Caller
from aof.app.results import Result
from aof.core import limits
from aof.core.errors import InvalidInput, NotFound
from aof.core.times import iso
from aof.ports.tokens import Token, Tokens

_PREFIX = "aof"


class NewToken(Result, frozen=True, kw_only=True):
    """A token that was just made; this is the only time that it can be read."""

    id: str
    actor: str
    role: str
    token: str


class KnownToken(Result, frozen=True, kw_only=True):
    """What is known of a token afterwards."""

    id: str
    actor: str
    role: str
    created_at: str


def create(tokens: Tokens, actor: str, role: str, now: int) -> NewToken:
    """Make a token for an actor."""
    if problem := limits.text("actor", actor, limits.ITEM, required=True) or limits.name("actor", actor):
        raise problem
    if problem := limits.choice("role", role, ROLES):
        raise problem
    name, secret = secrets.token_hex(4), secrets.token_urlsafe(32)
    text = f"{_PREFIX}_{name}_{secret}"
    tokens.change(add=Token(id=name, actor=actor, role=role, created_at=iso(now), digest=_digest(text)))
    return NewToken(id=name, actor=actor, role=role, token=text)


def known(tokens: Tokens) -> tuple[KnownToken, ...]:
    """Every valid token, without what would let anybody use it."""
    return tuple(
        KnownToken(id=token.id, actor=token.actor, role=token.role, created_at=token.created_at)
        for token in tokens.all()
    )


def revoke(tokens: Tokens, token_id: str) -> None:
    """Let a token no longer be valid."""
    if not tokens.change(remove=token_id):
        raise NotFound(f"there is no token {token_id[:40]!r}", "see the tokens with 'aof token list'")


def recognise(tokens: Tokens, text: str) -> Caller | None:
    """Whose token this is; None when it is nobody's."""
    digest = _digest(text)
    for token in tokens.all():
        if hmac.compare_digest(token.digest, digest):
            role = next((one for one in ROLES if one == token.role), None)
            if role is None:
                raise InvalidInput(f"token {token.id} has no role that there is", "revoke it and make another")
            return Caller(token.actor, role, proven=True)
    return None


def _digest(text: str) -> str:
    return sha256(text.encode("utf-8", "surrogateescape")).hexdigest()
