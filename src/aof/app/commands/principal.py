"""On whose behalf calls are made: a name, the run that the caller works for, and what it has proven.

Must not know how a secret arrives or what a command does.
"""

from __future__ import annotations

from aof.app.commands import identity

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, Self

    from aof.app.commands.identity import Identity

_FIELDS = ("actor", "run", "secret", "known", "run_of", "conversation", "expect_rev")


class Principal:
    """The caller. `known` is what a surface knows of it; otherwise the `secret` of this process identifies it.

    `run_of` tells the run of a caller that may hold several tasks. `conversation` names the session or context that its
    calls belong to, where the surface was told one. `expect_rev` is the revision that the caller has seen of the task
    that it changes.
    """

    __slots__ = _FIELDS

    def __init__(
        self,
        actor: str,
        run: str | None = None,
        *,
        secret: str | None = None,
        known: Identity | None = None,
        run_of: Callable[[str], str | None] | None = None,
        conversation: str | None = None,
        expect_rev: int | None = None,
    ) -> None:
        self.actor = actor
        self.run = run
        self.secret = secret or None
        self.known = known
        self.run_of = run_of
        self.conversation = conversation
        self.expect_rev = expect_rev

    def but(self, **changes: Any) -> Self:
        """The same caller, except for these."""
        fields = {name: getattr(self, name) for name in _FIELDS} | changes
        return type(self)(fields.pop("actor"), **fields)

    def as_run(self, secret: str) -> Self:
        """The same caller, working for the run that the secret belongs to."""
        return self.but(secret=None, known=identity.Identity(secret=secret, behalf=self.actor))

    def as_service(self) -> Self:
        """The service that looks after everybody's runs."""
        return self.but(secret=None, known=identity.SERVICE)

    def passing_on(self, agent: str) -> Self:
        """The service, which passes on what a worker of this agent has printed."""
        return self.but(secret=None, known=identity.Identity(agent=agent, trusted=True))

    @property
    def identity(self) -> Identity | None:
        """What is known of the caller; None where nothing is."""
        if self.known is None and self.secret is not None:
            self.known = identity.Identity(secret=self.secret)
        return self.known
