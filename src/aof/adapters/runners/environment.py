"""Which variables a worker gets: a short list of the service's own, what the chart adds, and those of its run.

A service often runs in a shell that holds keys of its own; agents get those only by name. Must not know processes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from aof.core.validation.secret_names import looks_secret
from aof.ports.runner import PEER_TOKEN_NAME, PEER_URL, Work

_PASSED = frozenset({"PATH", "HOME", "LANG", "TERM", "TMPDIR"})
_OURS = "AOF_"
_SHORTEST_SECRET = 8  # shorter values are words that stand everywhere
_SHORTEST_LINE = 16


def variables(work: Work, service: Mapping[str, str], root: str) -> dict[str, str]:
    """The whole environment of a worker."""
    passed = {name: value for name, value in service.items() if _is_passed(name, _inherited(work))}
    return {
        **passed,
        **work.env,
        "AOF_DATA_DIR": root,
        "AOF_TASK_ID": work.task_id,
        "AOF_RUN_ID": work.run_id,
        "AOF_AGENT": work.agent,
        "AOF_ACTOR": work.agent,
        "AOF_EPOCH": str(work.epoch),
        "AOF_RUN_SECRET": work.secret,
        "AOF_MESSAGE_NONCE": work.nonce,
        **({"AOF_HOP": work.hop} if work.hop is not None else {}),
        **({PEER_URL: work.peer} if work.peer is not None else {}),
        **({PEER_TOKEN_NAME: work.token_env} if work.token_env is not None else {}),
    }


def _inherited(work: Work) -> tuple[str, ...] | str:
    """What the chart names, and the variable with the token for a peer."""
    if work.token_env is None or isinstance(work.inherit_env, str):
        return work.inherit_env
    return (*work.inherit_env, work.token_env)


def dropped(work: Work, service: Mapping[str, str]) -> tuple[str, ...]:
    """The names of the service's variables that a worker lacks because its chart says nothing of any; keys first."""
    if work.env or work.inherit_env or work.peer is not None:
        return ()
    names = (name for name in service if not _is_passed(name, ()) and not name.startswith(_OURS))
    return tuple(
        sorted((name for name in names if name not in _SHELL), key=lambda name: (not looks_secret(name), name))
    )


_SHELL = frozenset({"_", "PWD", "OLDPWD", "SHLVL"})  # a shell's own business, missed by nobody


def _is_passed(name: str, inherited: tuple[str, ...] | str) -> bool:
    """Nothing of AOF's own that names a run or proves who somebody is: that is set for this run, or not at all."""
    if name.startswith(_OURS):
        return name not in _OF_A_RUN and not looks_secret(name)
    return inherited == "all" or name in inherited or name in _PASSED or name.startswith("LC_")


_OF_A_RUN = frozenset({
    "AOF_DATA_DIR", "AOF_TASK_ID", "AOF_RUN_ID", "AOF_AGENT", "AOF_ACTOR", "AOF_EPOCH", "AOF_HOP", "AOF_RUN_SECRET",
    "AOF_MESSAGE_NONCE",
})  # fmt: skip


def secrets(environment: Mapping[str, str]) -> Iterable[bytes]:
    """What must not stand in an output log: the values of variables whose names look secret."""
    for name, value in environment.items():
        if looks_secret(name) and len(value) >= _SHORTEST_SECRET:
            yield value.encode("utf-8", "surrogateescape")
            if "\n" in value:
                yield from (
                    line.encode("utf-8", "surrogateescape")
                    for line in value.splitlines()
                    if len(line) >= _SHORTEST_LINE
                )
