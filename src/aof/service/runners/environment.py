"""The environment of a worker: what it inherits from the service, what is set for its run, and what is secret in it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from aof.kernel.limits import looks_secret
from aof.kernel.ports import PEER_TOKEN_NAME, PEER_URL, Work

_PASSED: Final = frozenset({"PATH", "HOME", "LANG", "TERM", "TMPDIR"})
_OURS: Final = "AOF_"
_OF_A_RUN: Final = frozenset({
    "AOF_DATA_DIR", "AOF_TASK_ID", "AOF_RUN_ID", "AOF_AGENT", "AOF_ACTOR", "AOF_EPOCH", "AOF_HOP", "AOF_RUN_SECRET",
    "AOF_MESSAGE_NONCE",
})  # fmt: skip
_SHELL: Final = frozenset({"_", "PWD", "OLDPWD", "SHLVL"})  # a shell's own business, missed by nobody
_SHORTEST_SECRET: Final = 8  # shorter values are words that stand everywhere
_SHORTEST_LINE: Final = 16


def worker_variables(work: Work, service: Mapping[str, str], root: str) -> dict[str, str]:
    """The whole environment of a worker: what the chart lets it inherit, and what is set for its run."""
    inherited = work.inherit_env
    if work.token_env is not None and not isinstance(inherited, str):
        inherited = (*inherited, work.token_env)
    return {
        **{name: value for name, value in service.items() if _is_passed(name, inherited)},
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


def dropped_variables(work: Work, service: Mapping[str, str]) -> tuple[str, ...]:
    """The names of the service's variables that a worker lacks because its chart says nothing of any; keys first."""
    if work.env or work.inherit_env or work.peer is not None:
        return ()
    names = (name for name in service if not _is_passed(name, ()) and not name.startswith(_OURS) and name not in _SHELL)
    return tuple(sorted(names, key=lambda name: (not looks_secret(name), name)))


def _is_passed(name: str, inherited: tuple[str, ...] | str) -> bool:
    """Whether a worker inherits a variable. What names a run or proves who somebody is, is set for this run only."""
    if name.startswith(_OURS):
        return name not in _OF_A_RUN and not looks_secret(name)
    return inherited == "all" or name in inherited or name in _PASSED or name.startswith("LC_")


def worker_secrets(environment: Mapping[str, str]) -> Iterable[bytes]:
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
