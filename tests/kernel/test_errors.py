"""The tree of errors: stable codes, one kind each."""

from __future__ import annotations

from collections.abc import Iterator

from aof import errors
from aof.errors import AofError

KINDS = {"not_found", "conflict", "refused", "invalid", "unavailable", "internal"}


def _below(kind: type[AofError]) -> Iterator[type[AofError]]:
    for sub in kind.__subclasses__():
        yield sub
        yield from _below(sub)


def _own() -> set[str]:
    return {kind.__name__ for kind in _below(AofError) if kind.__module__ == "aof.errors"}


def test_every_error_has_one_of_the_six_kinds() -> None:
    assert {kind.kind for kind in _below(AofError)} == KINDS


def test_every_leaf_has_a_code_of_its_own() -> None:
    leaves = [kind for kind in _below(AofError) if not kind.__subclasses__()]
    assert len({leaf.code for leaf in leaves}) == len(leaves)


def test_the_drawing_of_the_tree_names_every_error() -> None:
    drawing = errors.__doc__ or ""
    assert [name for name in _own() if name not in drawing] == []


def test_the_public_module_exports_every_error() -> None:
    assert set(errors.__all__) == {*_own(), "AofError", "Call"}
    assert all(hasattr(errors, name) for name in errors.__all__)


def test_an_error_carries_what_helps() -> None:
    error = errors.AlreadyClaimed("taken", "take another", errors.Call("ready", {}), holder="ada")
    assert (str(error), error.hint, error.details) == ("taken", "take another", {"holder": "ada"})
