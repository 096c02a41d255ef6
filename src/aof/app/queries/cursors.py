"""Cursors: the place in a list behind which the next page begins, as one word that surfaces pass on unread.

A place is what the list is ordered by and the ID of the last task that was shown, so what is created, changed or
finished between two pages neither repeats nor hides another task. Must not know how a store finds a page.
"""

from __future__ import annotations

from base64 import urlsafe_b64decode, urlsafe_b64encode

import msgspec

from aof._support.typed import prepare_type
from aof.core.errors.base import Call, InvalidInput
from aof.core.model.ids import is_task_id

TYPE_CHECKING = False
if TYPE_CHECKING:
    from aof.ports.lists import Place

_LONGEST = 2_000
_Cursor = tuple[str, bool, str | int, str]  # order, whether it is reversed, and the place in it


def made(place: Place, order: str, *, reverse: bool) -> str:
    """The cursor of a place in an order."""
    return urlsafe_b64encode(msgspec.json.encode((order, reverse, *place))).decode().rstrip("=")


def opened(cursor: str, order: str, *, reverse: bool) -> Place:
    """The place that a cursor stands for; refused where it is none, or is one of a list in another order."""
    try:
        word = cursor.encode("ascii") if len(cursor) <= _LONGEST else b""
        found = msgspec.json.decode(urlsafe_b64decode(word + b"=" * (-len(word) % 4)), type=prepare_type(_Cursor))
    except (ValueError, msgspec.DecodeError):
        raise _unknown("this is not a cursor of a list") from None
    made_for, made_reversed, key, task_id = found
    if (made_for, made_reversed) != (order, reverse):
        raise _unknown("this cursor belongs to a list in another order")
    if not is_task_id(task_id) or (isinstance(key, int) and not 0 <= key < _LONGEST):
        raise _unknown("this is not a cursor of a list")
    return key, task_id


def _unknown(what: str) -> InvalidInput:
    hint = "give 'nextCursor' of the page before, with the same filters and order; without a cursor, a list begins anew"
    return InvalidInput(what, hint, Call("list", {"limit": 50}), parameter="cursor")
