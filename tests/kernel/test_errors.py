"""The tree of errors: stable codes, one kind each."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby

from aof import errors
from aof.errors import AofError

KINDS = {"not_found", "conflict", "refused", "invalid", "unavailable", "internal"}


def _below(kind: type[AofError]) -> Iterator[type[AofError]]:
    for sub in kind.__subclasses__():
        yield sub
        yield from _below(sub)


def test_every_error_has_one_of_the_six_kinds() -> None:
    assert {kind.kind for kind in _below(AofError)} == KINDS


def test_every_leaf_has_a_code_of_its_own() -> None:
    leaves = [kind for kind in _below(AofError) if not kind.__subclasses__()]
    assert len({leaf.code for leaf in leaves}) == len(leaves)


def test_the_file_of_errors_goes_by_kind() -> None:
    defined = [one for one in vars(errors).values() if isinstance(one, type) and one in set(_below(AofError))]
    assert len([kind for kind, _ in groupby(one.kind for one in defined)]) == len(KINDS)


def test_an_error_carries_what_helps() -> None:
    error = errors.AlreadyClaimed("taken", "take another", errors.Call("ready", {}), holder="ada")
    assert (str(error), error.hint, error.details) == ("taken", "take another", {"holder": "ada"})
