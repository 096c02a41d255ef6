"""How a person gets into the page: a link that works once, or a token, becomes a session. Must not know cookies.

Links and sessions are kept beside the tokens, as digests. So they outlive a restart of the server, the command line can
make a link without asking the server, 'aof admin token list' shows who is in, and 'aof admin token revoke' ends it.
"""

from __future__ import annotations

import secrets

import msgspec

from aof.app.maintenance import tokens as known
from aof.app.operations.call import Caller
from aof.app.operations.catalogue import Scope
from aof.core.model.times import iso, millis
from aof.core.validation import limits
from aof.ports.clock import Clock
from aof.ports.tokens import Token, Tokens

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
        if problem := limits.text("actor", actor, limits.ITEM, required=True) or limits.name("actor", actor):
            raise problem
        made = Token(
            id=secrets.token_hex(4),
            actor=actor,
            role=known.ROLE_OF[scope],
            scope=scope,
            created_at="",
            digest="",
        )
        return self._add("link", made, LINK_SECONDS)

    def enter(self, key: str) -> NewSession | None:
        """Begin a session with the key of a link; None when it is unknown, too old, or was used before."""
        link = known.found_by(self._tokens, key)
        if link is None or link.use != "link" or known.is_over(link, self._clock.now()):
            return None
        if not self._tokens.change(remove=link.id):
            return None  # of two who come at once, one is let in
        own = msgspec.structs.replace(link, id=secrets.token_hex(4))
        return NewSession(self._add("session", own, SESSION_SECONDS), SESSION_SECONDS)

    def login(self, text: str) -> NewSession | None:
        """Begin a session with a token; it ends with the token at the latest. None when that is not valid."""
        token, now = known.found_by(self._tokens, text), self._clock.now()
        if token is None or token.use is not None or known.is_over(token, now):
            return None
        left = SESSION_SECONDS if token.expires_at is None else (millis(token.expires_at) - now) // 1000
        seconds = max(min(SESSION_SECONDS, left), 1)
        own = msgspec.structs.replace(token, id=secrets.token_hex(4), of=token.id)
        return NewSession(self._add("session", own, seconds), seconds)

    def caller(self, text: str) -> Caller | None:
        """Whose session it is; None when it is nobody's, or is over."""
        session = known.found_by(self._tokens, text)
        if session is None or session.use != "session":
            return None
        return known.caller_of(session) if session.id in known.valid_ids(self._tokens, self._clock.now()) else None

    def leave(self, text: str) -> None:
        """End a session."""
        session = known.found_by(self._tokens, text)
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
            digest=known.digest_of(text),
        )
        ours, valid = [one for one in self._tokens.all() if one.use], known.valid_ids(self._tokens, now)
        over = [one.id for one in ours if one.id not in valid]
        alike = sorted((one for one in ours if one.use == use and one.id in valid), key=lambda one: one.created_at)
        self._tokens.change(
            add=made, remove=(*over, *(one.id for one in alike[: max(len(alike) - MOST_SESSIONS + 1, 0)]))
        )
        return text
