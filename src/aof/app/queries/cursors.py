"""Cursors: the place in a list behind which the next page begins, as one word that surfaces pass on unread.

A place is what the list is ordered by and the ID of the last task that was shown, so what is created, changed or
finished between two pages neither repeats nor hides another task. Must not know how a store finds a page.
"""

from __future__ import annotations

from base64 import urlsafe_b64decode, urlsafe_b64encode

import msgspec

from aof._support import nesting
from aof._support.typed import prepare_type
from aof.core.errors.base import Call, InvalidInput
from aof.core.model.ids import is_task_id

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import TypeVar

    from aof.ports.lists import Place

    _Item = TypeVar("_Item")

_LONGEST = 2_000
_DIGITS = 15  # of the number of an event
_Cursor = tuple[str, bool, str | int, str]  # order, whether it is reversed, and the place in it


def made(place: Place, order: str, *, reverse: bool) -> str:
    """The cursor of a place in an order."""
    return urlsafe_b64encode(msgspec.json.encode((order, reverse, *place))).decode().rstrip("=")


def opened(cursor: str, order: str, *, reverse: bool) -> Place:
    """The place that a cursor stands for; refused where it is none, or is one of a list in another order."""
    try:
        word = cursor.encode("ascii") if len(cursor) <= _LONGEST else b""
        text = urlsafe_b64decode(word + b"=" * (-len(word) % 4))
        nesting.refuse_nesting(text)
        found = msgspec.json.decode(text, type=prepare_type(_Cursor))
    except (ValueError, msgspec.DecodeError):
        raise _unknown("this is not a cursor of a list") from None
    made_for, made_reversed, key, task_id = found
    if (made_for, made_reversed) != (order, reverse):
        raise _unknown("this cursor belongs to a list in another order")
    if not is_task_id(task_id) or (isinstance(key, int) and not 0 <= key < _LONGEST):
        raise _unknown("this is not a cursor of a list")
    return key, task_id


def place_in(listing: str, *place: str | int) -> str:
    """The cursor of a place in a list of something else than tasks, such as `inbox`."""
    return urlsafe_b64encode(msgspec.json.encode((listing, False, *place))).decode().rstrip("=")


def found_in(listing: str, cursor: str, parts: int) -> tuple[str, ...]:
    """The place in such a list, as so many texts; refused where it is none, or one of another list."""
    try:
        word = cursor.encode("ascii") if len(cursor) <= _LONGEST else b""
        found = nesting.decode(urlsafe_b64decode(word + b"=" * (-len(word) % 4)), list[str | bool])
    except (ValueError, msgspec.DecodeError):
        raise _unknown("this is not a cursor of this list", listing) from None
    place = tuple(part for part in found[2:] if isinstance(part, str))
    if found[:2] != [listing, False] or len(place) != parts:
        raise _unknown("this cursor belongs to another list", listing)
    return place


def number_in(listing: str, cursor: str) -> int:
    """The place in a list that is ordered by the numbers of events."""
    (text,) = found_in(listing, cursor, 1)
    if not (text.isascii() and text.isdecimal() and len(text) <= _DIGITS):
        raise _unknown("this is not a cursor of this list", listing)
    return int(text)


def paged(
    listing: str,
    items: Iterable[_Item],
    place: Callable[[_Item], tuple[str, ...]],
    *,
    limit: int | None,
    cursor: str | None,
    newest_first: bool = False,
) -> tuple[tuple[_Item, ...], str | None]:
    """A page of a list that is at hand, in the order of its places, and the cursor of the next page where there is one.

    The last part of a place is unique, so a page begins behind the same item also when others came or went.
    """
    rest = list(items)
    if cursor is not None and rest:
        behind = found_in(listing, cursor, len(place(rest[0])))
        rest = [one for one in rest if (place(one) < behind if newest_first else place(one) > behind)]
    page = tuple(rest if limit is None else rest[:limit])
    return page, place_in(listing, *place(page[-1])) if page and len(rest) > len(page) else None


def _unknown(what: str, listing: str = "list") -> InvalidInput:
    hint = "give 'nextCursor' of the page before, with the same filters and order; without a cursor, a list begins anew"
    return InvalidInput(what, hint, Call(listing, {"limit": 50}), parameter="cursor")
