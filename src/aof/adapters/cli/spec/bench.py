"""The verb that measures. A part of the vocabulary."""

from __future__ import annotations

from aof.adapters.cli.spec.grammar import Option, Verb

VERBS: tuple[Verb, ...] = (
    Verb(
        "bench",
        "measure AOF on this machine, in a folder of its own",
        "bench:bench",
        options=(
            Option("--quick", "a few seconds, to see that it works; no figures to quote"),
            Option("--sizes", "how many tasks the directories have, such as 1000,10000; 0 for none", metavar="N,N"),
            Option("--dir", "measure below this folder, on its disk (else a temporary one)", metavar="DIR"),
        ),
        example="aof bench --sizes 1000",
    ),
)
