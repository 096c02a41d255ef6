"""Dicts and lists that cannot be changed any more, so that several answers can share them.

They compare, print and encode like their plain kinds, and a copy of one is plain. Must not know what they hold.
"""

from __future__ import annotations

from copy import deepcopy
from typing import Any, NoReturn


def _refuse(*_: object, **__: object) -> NoReturn:
    raise TypeError("this is shared with others and cannot be changed; make a copy first, such as with copy.deepcopy")


class FrozenDict(dict[str, Any]):
    """A dict that stays as it is."""

    __slots__ = ()
    __setitem__ = __delitem__ = __ior__ = _refuse
    clear = pop = popitem = setdefault = update = _refuse

    def __copy__(self) -> dict[str, Any]:
        return dict(self)

    def __deepcopy__(self, memo: dict[int, Any]) -> dict[str, Any]:
        return {name: deepcopy(value, memo) for name, value in self.items()}

    def __reduce__(self) -> tuple[type[dict[str, Any]], tuple[dict[str, Any]]]:
        return dict, (dict(self),)


class FrozenList(list[Any]):
    """A list that stays as it is."""

    __slots__ = ()
    __setitem__ = __delitem__ = __iadd__ = __imul__ = _refuse
    append = clear = extend = insert = pop = remove = reverse = sort = _refuse

    def __copy__(self) -> list[Any]:
        return list(self)

    def __deepcopy__(self, memo: dict[int, Any]) -> list[Any]:
        return [deepcopy(value, memo) for value in self]

    def __reduce__(self) -> tuple[type[list[Any]], tuple[list[Any]]]:
        return list, (list(self),)


_EMPTY_DICT, _EMPTY_LIST = FrozenDict(), FrozenList()


def freeze(value: Any) -> Any:
    """The same value, with every dict, list and tuple in it as one that cannot be changed."""
    kind = type(value)
    if kind is dict:
        return FrozenDict({name: freeze(one) for name, one in value.items()}) if value else _EMPTY_DICT
    if kind is list or kind is tuple:
        return FrozenList([freeze(one) for one in value]) if value else _EMPTY_LIST
    return value
