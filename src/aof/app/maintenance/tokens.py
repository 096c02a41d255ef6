"""Tokens: made, listed, revoked and recognised. Must not know where they are kept or how they arrive.

A token is random and long, so a plain digest of it is enough to recognise it and useless to readers of the file.
"""

from __future__ import annotations

import hmac
import secrets
from hashlib import sha256

from aof.app.operations.call import ROLES, Caller, Role
from aof.app.operations.catalogue import SCOPES, Scope, tiers_of
from aof.app.operations.results import Result
from aof.core.errors.base import InvalidInput, NotFound
from aof.core.model.times import duration_ms, iso, millis
from aof.core.validation import limits
from aof.ports.tokens import Token, Tokens

_PREFIX = "aof"
ROLE_OF: dict[Scope, Role] = {"read": "reader", "work": "agent", "lead": "agent", "admin": "admin"}
_WIDEST: dict[Role, Scope] = {"reader": "read", "agent": "lead", "admin": "admin"}
_USUAL: Scope = "work"
_LONGEST = 10 * 365 * 86_400_000  # milliseconds


class NewToken(Result, frozen=True, kw_only=True):
    """A token that was just made; this is the only time that it can be read."""

    id: str
    actor: str
    role: str
    scope: str
    expires_at: str | None
    tools: str | None
    token: str


class KnownToken(Result, frozen=True, kw_only=True):
    """What is known of a token afterwards. `use` is None unless it is a link or a session of the page for people."""

    id: str
    actor: str
    role: str
    scope: str
    created_at: str
    expires_at: str | None
    expired: bool
    tools: str | None
    use: str | None


def create(
    tokens: Tokens,
    actor: str,
    role: str | None,
    now: int,
    *,
    scope: str | None = None,
    expires: str | None = None,
    tools: str | None = None,
) -> NewToken:
    """Make a token for an actor: with a scope or, as it was done before there were scopes, with a role.

    `tools` are the tiers that MCP lists for it.
    """
    if problem := limits.text("actor", actor, limits.ITEM, required=True) or limits.name("actor", actor):
        raise problem
    allowed = _scope(role, scope)
    as_role = role or ROLE_OF[allowed]
    until = _until(expires, now)
    listed = ",".join(tiers_of(tools)) if tools is not None else None
    name, secret = secrets.token_hex(4), secrets.token_urlsafe(32)
    text = f"{_PREFIX}_{name}_{secret}"
    tokens.change(
        add=Token(
            id=name,
            actor=actor,
            role=as_role,
            scope=allowed,
            created_at=iso(now),
            expires_at=until,
            digest=digest_of(text),
            tools=listed,
        )
    )
    return NewToken(id=name, actor=actor, role=as_role, scope=allowed, expires_at=until, tools=listed, token=text)


def _scope(role: str | None, scope: str | None) -> Scope:
    """What the token allows; a role allows no more than it ever did."""
    if role is not None and (problem := limits.choice("role", role, ROLES)):
        raise problem
    if scope is not None and (problem := limits.choice("scope", scope, SCOPES)):
        raise problem
    widest = next((_WIDEST[one] for one in ROLES if one == role), None)
    given = next((one for one in SCOPES if one == scope), widest or _USUAL)
    if widest is not None and SCOPES.index(given) > SCOPES.index(widest):
        raise InvalidInput(
            f"the role {role} allows no more than the scope {widest}", f"leave --role out: --scope {scope}"
        )
    return given


def _until(expires: str | None, now: int) -> str | None:
    """When the token ends: after a duration such as 30d, or at a moment."""
    if expires is None:
        return None
    span = duration_ms(expires)
    end = now + span if span is not None else _moment(expires)
    if not now < end <= now + _LONGEST:
        raise InvalidInput(
            f"a token cannot expire at {expires[:40]!r}",
            "give a time to come, such as --expires 30d or --expires 2030-01-31T12:00:00Z",
        )
    return iso(end)


def known(tokens: Tokens, now: int) -> tuple[KnownToken, ...]:
    """Every token, without what would let anybody use it."""
    return tuple(
        KnownToken(
            id=token.id,
            actor=token.actor,
            role=token.role,
            scope=token.scope or next((_WIDEST[one] for one in ROLES if one == token.role), "read"),
            created_at=token.created_at,
            expires_at=token.expires_at,
            expired=is_over(token, now),
            tools=token.tools,
            use=token.use,
        )
        for token in tokens.all()
    )


def valid_ids(tokens: Tokens, now: int) -> frozenset[str]:
    """The tokens that are neither revoked nor expired, by their IDs; a session is valid as long as its token is."""
    valid = {token.id: token for token in tokens.all() if not is_over(token, now)}
    return frozenset(name for name, token in valid.items() if token.of is None or token.of in valid)


def is_over(token: Token, now: int) -> bool:
    """Whether its time is over."""
    return token.expires_at is not None and _moment(token.expires_at) <= now


def _moment(text: str) -> int:
    """A moment in milliseconds; what is none lies in the past, so that an edited file never prolongs a token."""
    try:
        return millis(text)
    except ValueError:
        return -1


def revoke(tokens: Tokens, token_id: str) -> None:
    """Let a token no longer be valid."""
    if not tokens.change(remove=token_id):
        raise NotFound(f"there is no token {token_id[:40]!r}", "see the tokens with 'aof admin token list'")


def recognise(tokens: Tokens, text: str, now: int) -> Caller | None:
    """Whose token this is; None when it is nobody's, or its time is over."""
    found = found_by(tokens, text)
    return caller_of(found) if found is not None and found.use is None and not is_over(found, now) else None


def found_by(tokens: Tokens, text: str) -> Token | None:
    """The token that has this text, whatever it is for and whether or not its time is over."""
    digest = digest_of(text)
    return next((token for token in tokens.all() if hmac.compare_digest(token.digest, digest)), None)


def caller_of(token: Token) -> Caller:
    """The caller that a token stands for; raises InvalidInput for a damaged entry."""
    role = next((one for one in ROLES if one == token.role), None)
    if role is None:
        raise InvalidInput(f"token {token.id} has no role that there is", "revoke it and make another")
    scope = next((one for one in SCOPES if one == token.scope), _WIDEST[role] if token.scope is None else None)
    if scope is None:
        raise InvalidInput(f"token {token.id} has no scope that there is", "revoke it and make another")
    tools = tiers_of(token.tools) if token.tools is not None else ()
    return Caller(token.actor, role, proven=True, scope=scope, token=token.id, tools=tools)


def digest_of(text: str) -> str:
    """What is kept of a token's text."""
    return sha256(text.encode("utf-8", "surrogateescape")).hexdigest()
