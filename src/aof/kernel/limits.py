"""How long and of what kind values may be: texts, numbers, paths into the project.

Also how text by others is shown: made visible, and fenced.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from typing import Any, Final

import msgspec

from aof.errors import AofError, InvalidInput, PayloadTooLarge
from aof.kernel import model
from aof.kernel.model import is_agent_name

TITLE: Final = 500
BODY: Final = 1_000_000
PROGRESS: Final = 1_000
NOTES: Final = 10_000
REASON: Final = 512
ITEM: Final = 256
ITEMS: Final = 50
BLOCKERS: Final = 20
DEPENDENCIES: Final = 500
FRONTMATTER_BYTES: Final = 65_536
# Progress and the rest together stay below FRONTMATTER_BYTES, with room for what AOF itself writes.
PROGRESS_BYTES: Final = 8_192
FIELDS_BYTES: Final = 40_960
_KEY: Final = 256  # YAML readers refuse keys of 1,024 characters
_DEPTH: Final = 16

Problem = InvalidInput | PayloadTooLarge

# Looked for only in what is not all printable, and not worth compiling before.
_UNSTORABLE: Final = "[\x00\ud800-\udfff]"
_LINE_BREAKING: Final = "[\x00-\x1f\x7f-\x9f\u2028\u2029]"


def text(name: str, value: object, limit: int, *, required: bool = False) -> Problem | None:
    """Refuse a text that is blank though required, too long, or not storable."""
    if value is not None and not isinstance(value, str):
        return InvalidInput(f"'{name}' must be a text", f"give a text for '{name}'")
    if value is None or not value.strip():
        return InvalidInput(f"'{name}' must not be empty", f"give a text for '{name}'") if required else None
    if len(value) > limit:
        return PayloadTooLarge(
            f"'{name}' has {len(value):,} characters, the limit is {limit:,}",
            "keep long text in a file under the task's inputs/ or outputs/ and refer to it",
        )
    if not value.isprintable() and re.search(_UNSTORABLE, value):
        return InvalidInput(f"'{name}' contains characters that no text file can hold", "send plain Unicode text")
    return None


def line(name: str, value: object, limit: int, *, required: bool = False) -> Problem | None:
    """Like `text`, for what stands on one line, such as a title."""
    if isinstance(value, str) and value.isprintable() and len(value) <= limit and value.strip():
        return None  # as most are
    if value is None and not required:
        return None
    problem = text(name, value, limit, required=required)
    if problem is None and isinstance(value, str) and re.search(_LINE_BREAKING, value):
        return InvalidInput(f"'{name}' must be a single line without control characters", "put the rest into the body")
    return problem


def items(name: str, values: object, most: int, *, single_line: bool = False) -> Problem | None:
    """Refuse a list that is too long or holds something blank or too long."""
    if not isinstance(values, list | tuple):
        return InvalidInput(f"'{name}' must be a list of texts", f"give '{name}' as a list")
    if len(values) > most:
        return PayloadTooLarge(f"'{name}' has {len(values)} items, the limit is {most}", f"send at most {most}")
    check = line if single_line else text
    for value in values:
        if problem := check(name, value, ITEM, required=True):
            return problem
    return None


def name(field: str, value: object) -> InvalidInput | None:
    """Refuse what cannot name an agent, role, team or resource."""
    if value is None or (isinstance(value, str) and is_agent_name(value)):
        return None
    return InvalidInput(
        f"'{field}' is not a valid name: {str(value)[:80]!r}",
        "names have up to 128 letters, digits and . _ - @ : +, and begin with a letter or digit",
    )


def names(**values: object) -> InvalidInput | None:
    """`name` for several fields; the first problem."""
    for field, value in values.items():
        if value is not None and not (isinstance(value, str) and is_agent_name(value)):
            return name(field, value)
    return None


def choice(field: str, value: object, allowed: Sequence[str]) -> InvalidInput | None:
    """Refuse a value outside an enumeration, with the values that there are."""
    if value in allowed:
        return None
    return InvalidInput(f"'{field}' cannot be {str(value)[:80]!r}", choices(field, allowed))


def choices(field: str, allowed: Sequence[str]) -> str:
    """The hint for a value outside an enumeration: the values that there are, in their order."""
    return f"{field}: one of {', '.join(allowed)}"


def whole(name: str, value: object, least: int, most: int | None = None) -> InvalidInput | None:
    """Refuse what is not a whole number in a range, with the range."""
    if isinstance(value, int) and not isinstance(value, bool) and least <= value and (most is None or value <= most):
        return None
    span = f"from {least} up" if most is None else f"from {least} to {most:,}"
    return InvalidInput(
        f"'{name}' is not a whole number {span}: {str(value)[:80]}", f"give a number {span}", parameter=name
    )


def moment(name: str, said: str, now: int) -> str | InvalidInput:
    """A day or a moment as AOF writes it, from how people say it; a refusal of what is neither."""
    try:
        return model.resolve_time(said, now)
    except (ValueError, OverflowError):
        hint = f"give a day, a moment, or how far from now it is: {model.MOMENTS}"
        return InvalidInput(f"'{name}' cannot be {said[:80]!r}", hint, parameter=name)


def data(name: str, value: object, most: int = FIELDS_BYTES) -> Problem | None:
    """Refuse what does not come back the same from every JSON and YAML reader, is nested too deep, or too big."""
    if not _is_plain(value):
        return InvalidInput(
            f"'{name}' holds something that is not plain JSON",
            "use texts, finite numbers of 64 bits, true, false, null, lists and objects, "
            f"at most {_DEPTH} deep, with keys of at most {_KEY} characters",
        )
    size = len(msgspec.json.encode(value))
    if size > most:
        return PayloadTooLarge(f"'{name}' takes {size:,} bytes, the limit is {most:,}", "keep large data in a file")
    return None


def _is_plain(data: Any) -> bool:  # noqa: C901 - one branch for each kind of value
    """Whether every JSON and YAML reader has such values; a loop, for a call for each of them takes longer."""
    waiting = [(data, _DEPTH)]
    while waiting:
        value, depth = waiting.pop()
        if isinstance(value, str):
            if not value.isprintable() and re.search(_UNSTORABLE, value):
                return False
        elif isinstance(value, dict | list | tuple):
            if depth <= 0:
                return False
            inside = value.values() if isinstance(value, dict) else value
            waiting += [(item, depth - 1) for item in inside]
            for key in value if isinstance(value, dict) else ():
                if (
                    not isinstance(key, str)
                    or len(key) > _KEY
                    or (not key.isprintable() and re.search(_UNSTORABLE, key))
                ):
                    return False
        elif isinstance(value, float):
            if not math.isfinite(value):
                return False
        elif value is not None and not (isinstance(value, int) and -(2**63) <= value < 2**64):  # also true and false
            return False
    return True


def key(value: str | None) -> Problem | None:
    """Refuse an idempotency key that is empty, too long or more than one line."""
    return None if value is None else line("key", value, ITEM, required=True)


WHOLE: Final = "."  # the project itself
_URI: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]{1,31}:\S", re.ASCII)
_DRIVE: Final = re.compile(r"[A-Za-z]:", re.ASCII)


def normalised(field: str, path: object) -> str | AofError:
    """The one spelling of a path below the project's folder; letters keep their case."""
    if problem := line(field, path, ITEM, required=True):
        return problem
    text = str(path).strip()
    if text.startswith(("/", "\\", "~")) or _DRIVE.match(text):
        return _outside(field, text)
    parts = [part for part in text.replace("\\", "/").split("/") if part not in ("", ".")]
    return _outside(field, text) if ".." in parts else "/".join(parts) or WHOLE


def _outside(field: str, text: str) -> InvalidInput:
    return InvalidInput(
        f"'{field}' leads out of the project: {text[:80]!r}",
        "use a path below the project's folder, such as src/api.py",
    )


def covers(path: str, other: str) -> bool:
    """Whether the first path is the other one, or a folder above it."""
    return path in (WHOLE, other) or other.startswith(f"{path}/")


def overlap(one: str, other: str) -> bool:
    """Whether two paths have a file in common, as far as their spelling tells."""
    return covers(one, other) or covers(other, one)


def is_uri(text: str) -> bool:
    """Whether a reference is a URI, such as `https://…`, and no path."""
    return _URI.match(text) is not None


def bad_reference(field: str, reference: object) -> AofError | None:
    """Refuse what is neither a path below the project's folder nor a URI that leads elsewhere than to local files."""
    if problem := line(field, reference, ITEM, required=True):
        return problem
    text = str(reference)
    if is_uri(text):
        return _outside(field, text) if text.lower().startswith("file:") else None
    path = normalised(field, text)
    return path if isinstance(path, AofError) else None


# Cc without tab and line feed; Cf and its kin that change the order, are not shown or hide data; line and paragraph
# separators; surrogates and private use. The joiners of scripts and emoji (U+200C, U+200D) stay.
_HIDDEN: Final = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180e\u200b\u200e\u200f\u2028-\u202e"
    "\u2060-\u206f\u3164\ud800-\udfff\ue000-\uf8ff\ufeff\uffa0\ufff9-\ufffb"
    "\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff\U000f0000-\U0010ffff]"
)


def visible(text: str) -> str:
    """The text with each hidden character as its escape in Python's form; CRLF is a plain line break."""
    return _HIDDEN.sub(_escaped, text.replace("\r\n", "\n"))


def visible_line(text: str) -> str:
    """Like `visible`, on one line."""
    return visible(text).replace("\n", "\\n").replace("\t", "\\t")


def _escaped(found: re.Match[str]) -> str:
    return found.group().encode("unicode_escape").decode("ascii")


_FENCES: Final = re.compile("`{3,}")
_LEAST: Final = 3


def fenced(text: str, label: str, whose: str = "others") -> str:
    """The text as a block that only its own fence closes, under a line that says whose it is."""
    shown = visible(text).strip("\n")
    longest = max((len(found.group()) for found in _FENCES.finditer(shown)), default=_LEAST - 1)
    fence = "`" * (longest + 1)
    label = visible_line(label).replace("`", "'")
    return f"Text by {whose} ({label}):\n\n{fence}text\n{shown}\n{fence}"


_SECRET = re.compile(
    r"KEY|TOKEN|SECRET|PASSW|PASSPHRASE|CREDENTIAL|COOKIE|PRIVATE|NONCE|(^|_)(PAT|PASS|AUTH|DSN)($|_)|DATABASE_URL"
)


def looks_secret(name: str) -> bool:
    """Whether a variable of this name usually holds a secret."""
    return _SECRET.search(name.upper()) is not None
