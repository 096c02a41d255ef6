"""Tokens: made, listed, revoked and recognised; and how a person's token or link becomes a session of the page.

Must not know cookies.
"""

from __future__ import annotations

import hmac
import secrets
from hashlib import sha256

import msgspec

from aof.api.call import ROLES, Caller, Role
from aof.api.catalogue import SCOPES, Scope, tiers_of
from aof.errors import InvalidInput, NotFound
from aof.kernel import limits as kernel_limits
from aof.kernel.model import duration_ms, iso, millis
from aof.kernel.ports import Token, Tokens
from aof.kernel.results import Result
from aof.store.port import Clock

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


def create_token(
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
    if problem := kernel_limits.text("actor", actor, kernel_limits.ITEM, required=True) or kernel_limits.name(
        "actor", actor
    ):
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
    if role is not None and (problem := kernel_limits.choice("role", role, ROLES)):
        raise problem
    if scope is not None and (problem := kernel_limits.choice("scope", scope, SCOPES)):
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


def known_tokens(tokens: Tokens, now: int) -> tuple[KnownToken, ...]:
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


def revoke_token(tokens: Tokens, token_id: str) -> None:
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


LINK_SECONDS = 60
SESSION_SECONDS = 12 * 3_600
MOST_SESSIONS = 32  # of one data directory, and as many links: a further one takes the place of the oldest
_PREFIXES = {"link": "aofl", "session": "aofs"}


class NewSession(msgspec.Struct, frozen=True):
    """A session that has just begun; `text` is what proves it, and can be read only here."""

    text: str
    seconds: int

    def __repr__(self) -> str:
        return f"NewSession(seconds={self.seconds})"


class PageSessions:
    """The sessions of the board of one data directory."""

    def __init__(self, tokens: Tokens, clock: Clock) -> None:
        self._tokens = tokens
        self._clock = clock

    def link(self, actor: str, scope: Scope) -> str:
        """A key that signs its holder in once, as this actor, within a minute."""
        if problem := kernel_limits.text("actor", actor, kernel_limits.ITEM, required=True) or kernel_limits.name(
            "actor", actor
        ):
            raise problem
        made = Token(
            id=secrets.token_hex(4),
            actor=actor,
            role=ROLE_OF[scope],
            scope=scope,
            created_at="",
            digest="",
        )
        return self._add("link", made, LINK_SECONDS)

    def enter(self, key: str) -> NewSession | None:
        """Begin a session with the key of a link; None when it is unknown, too old, or was used before."""
        link = found_by(self._tokens, key)
        if link is None or link.use != "link" or is_over(link, self._clock.now()):
            return None
        if not self._tokens.change(remove=link.id):
            return None  # of two who come at once, one is let in
        own = msgspec.structs.replace(link, id=secrets.token_hex(4))
        return NewSession(self._add("session", own, SESSION_SECONDS), SESSION_SECONDS)

    def login(self, text: str) -> NewSession | None:
        """Begin a session with a token; it ends with the token at the latest. None when that is not valid."""
        token, now = found_by(self._tokens, text), self._clock.now()
        if token is None or token.use is not None or is_over(token, now):
            return None
        left = SESSION_SECONDS if token.expires_at is None else (millis(token.expires_at) - now) // 1000
        seconds = max(min(SESSION_SECONDS, left), 1)
        own = msgspec.structs.replace(token, id=secrets.token_hex(4), of=token.id)
        return NewSession(self._add("session", own, seconds), seconds)

    def caller(self, text: str) -> Caller | None:
        """Whose session it is; None when it is nobody's, or is over."""
        session = found_by(self._tokens, text)
        if session is None or session.use != "session":
            return None
        return caller_of(session) if session.id in valid_ids(self._tokens, self._clock.now()) else None

    def leave(self, text: str) -> None:
        """End a session."""
        session = found_by(self._tokens, text)
        if session is not None and session.use == "session":
            self._tokens.change(remove=session.id)

    def _add(self, use: str, like: Token, seconds: int) -> str:
        """Keep one more of its kind; what is over goes, and the oldest beyond the limit."""
        now = self._clock.now()
        text = f"{_PREFIXES[use]}_{like.id}_{secrets.token_urlsafe(32)}"
        made = msgspec.structs.replace(
            like,
            use=use,
            created_at=iso(now),
            expires_at=iso(now + seconds * 1000),
            digest=digest_of(text),
        )
        ours, valid = [one for one in self._tokens.all() if one.use], valid_ids(self._tokens, now)
        over = [one.id for one in ours if one.id not in valid]
        alike = sorted((one for one in ours if one.use == use and one.id in valid), key=lambda one: one.created_at)
        self._tokens.change(
            add=made, remove=(*over, *(one.id for one in alike[: max(len(alike) - MOST_SESSIONS + 1, 0)]))
        )
        return text
