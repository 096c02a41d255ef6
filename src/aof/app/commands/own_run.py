"""What a run may not do for itself: while its secret is in the environment, nothing that would widen its rights.

One check for every verb that hands out rights or changes settings: tokens, trust, `init`, `import`, `up`.
Must not know any verb, nor where settings are kept.
"""

from __future__ import annotations

from collections.abc import Mapping

from aof.core.errors.org import NotAllowed

SECRET = "AOF_RUN_SECRET"  # noqa: S105 - the name of the variable


def refuse_in_run(what: str, environment: Mapping[str, str]) -> None:
    """Refuse `what` (such as "make tokens") in a process that works for a run; raises NotAllowed.

    Any run's secret counts, also that of another data directory and of a run that has ended.
    """
    if not environment.get(SECRET):
        return
    raise NotAllowed(
        f"a run may not {what}: {SECRET} is set, so this process works for an agent's run",
        "let a person do it in a shell of their own, where no run's secret is set",
        reason="inside_a_run",
    )
