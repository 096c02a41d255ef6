"""A task as bytes, both ways.

The file that people read, with canonical frontmatter, and the record that the index keeps.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import cache
from itertools import compress
from operator import add, attrgetter, ne
from typing import Any, Final

import msgspec

from aof.errors import PayloadTooLarge, UnreadableTask
from aof.kernel import findings
from aof.kernel.limits import FRONTMATTER_BYTES
from aof.store.files import frontmatter
from aof.support import nesting
from aof.support.typed import prepare_type
from aof.tasks.model import NOT_FRONTMATTER, Task

LIMIT: Final = FRONTMATTER_BYTES  # a larger one is refused unread
FIELDS: Final = tuple(field for field in msgspec.structs.fields(Task) if field.name not in NOT_FRONTMATTER)
KEYS: Final = frozenset(field.encode_name for field in FIELDS)
_NAMES: Final = {key.encode(): key for key in KEYS}

encode_lines = msgspec.json.Encoder().encode_lines
_decode_lines = msgspec.json.Decoder().decode_lines
_decode_key = msgspec.json.Decoder(str).decode

# What JSON allows in a string but YAML forbids there or takes for a line break.
_SUSPECT = (b"\xc2", *(char.encode() for char in "\x7f\u2028\u2029\ufeff\ufffe\uffff"))  # c2: U+0080 to U+00BF
# Rarely needed, so compiled when they are.
_NOT_YAML: Final = "[\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff]"
_PLAIN_KEY: Final = r"[A-Za-z_][A-Za-z0-9_-]*\Z"
_YAML_WORDS = frozenset({"y", "n", "yes", "no", "on", "off", "true", "false", "null"})
_astuple = msgspec.structs.astuple
_put = msgspec.structs.force_setattr
_encode = msgspec.json.Encoder().encode
_pack = msgspec.msgpack.Encoder().encode
_REQUIRED: Final = sum(field.required for field in FIELDS)
_REV: Final = [field.name for field in FIELDS].index("rev")
_REQUIRED_LINES: Final = [f"{field.encode_name}: ".encode() for field in FIELDS[:_REQUIRED]]
_OPTIONAL_LINES: Final = [f"{field.encode_name}: ".encode() for field in FIELDS[_REQUIRED:]]
_DEFAULTS: Final = [
    field.default if field.default is not msgspec.NODEFAULT else field.default_factory() for field in FIELDS[_REQUIRED:]
]
_REV_DIGITS: Final = 20
_OTHERS: Final = tuple(map(attrgetter, NOT_FRONTMATTER))
_OPENING = re.compile(rb"(?:\xef\xbb\xbf)?---[ \t]*(?:\r?\n|\Z)")
_CLOSING = re.compile(rb"^---[ \t]*(\r?\n|\Z)", re.MULTILINE)


def escape_yaml(encoded: bytes) -> bytes:
    """Make JSON valid YAML as well. Such characters stand only inside strings, so an escape is always right."""
    if encoded.isascii():
        if b"\x7f" not in encoded:
            return encoded
    elif not any(map(encoded.__contains__, _SUSPECT)):
        return encoded
    return re.sub(_NOT_YAML, lambda found: f"\\u{ord(found[0]):04x}", encoded.decode()).encode()


def encode_value(value: Any) -> str:
    """One value as it stands behind its key."""
    return escape_yaml(_encode(value)).decode()


def key_text(key: str) -> str:
    """A key as it stands at the start of its line: quoted unless every YAML reader takes it for a plain text."""
    if re.match(_PLAIN_KEY, key, re.ASCII) and key.lower() not in _YAML_WORDS:
        return key
    return encode_value(key).replace(": ", ":\\u0020")  # so that the first ": " of a line always ends the key


def decode_canonical(front: bytes) -> dict[str, Any] | None:
    """The values by key, or None when the lines (without the last line break) are not canonical."""
    if not front:
        return {}
    try:
        if front.count(b"[") + front.count(b"{") > nesting.MOST_NESTED:
            nesting.refuse_nesting(front)
        keys, texts = zip(*[line.split(b": ", 1) for line in front.split(b"\n")], strict=True)
        text = b"\n".join(texts) + b"\n"
        values = _decode_lines(text)
        if escape_yaml(encode_lines(values)) != text:
            return None
        _pack(values)  # fails for integers beyond 64 bits, which JSON knows and few readers do
        try:
            names = [_NAMES[key] for key in keys]
        except KeyError:
            names = [_NAMES.get(key) or _name(key) for key in keys]
    except (ValueError, OverflowError, RecursionError, msgspec.DecodeError):
        return None
    found = dict(zip(names, values, strict=True))
    return found if len(found) == len(values) else None


def _name(text: bytes) -> str:
    """The key that canonical key text stands for."""
    key = _decode_key(text) if text.startswith(b'"') else text.decode()
    if key_text(key).encode() != text:
        raise ValueError(key)
    return key


@cache
def _decoder() -> Callable[[bytes], Task]:
    """Takes a millisecond to build, which a command that only writes does not need."""
    return msgspec.json.Decoder(prepare_type(Task)).decode


@cache
def _many_decoder() -> Callable[[bytes], list[Task]]:
    return msgspec.json.Decoder(prepare_type(list[Task])).decode


class Prepared(msgspec.Struct, frozen=True):
    """A task's file but for its `rev`, which is only known under the log's lock."""

    head: bytes
    tail: bytes

    def fill(self, rev: int) -> bytes:
        """The whole file."""
        return b"%b%d%b" % (self.head, rev, self.tail)


def render(task: Task) -> bytes:
    """The bytes of the task's file."""
    return prepare(task).fill(task.rev)


def prepare(task: Task) -> Prepared:
    """All the work of `render` that does not need the final `rev`."""
    if task.layout is None:
        head, tail = _canonical(task)
    else:
        before, after = _laid_out(task, task.layout)
        head, tail = before.encode(), after.encode()
    if len(head) + len(tail) + _REV_DIGITS > LIMIT:
        raise PayloadTooLarge(
            f"the frontmatter of {task.id} would be larger than 64 KB", "Move long texts to the body or to a file."
        )
    return Prepared(b"---\n" + head, b"".join((tail, b"---\n\n" if task.body else b"---\n", task.body.encode())))


def layout_after(task: Task) -> str | None:
    """The frontmatter that `render` writes, or None when that is canonical."""
    if task.layout is None:
        return None
    before, after = _laid_out(task, task.layout)
    text = f"{before}{task.rev}{after}"
    return text if decode_canonical(text[:-1].encode()) is None else None


def parse(data: bytes, *, archived: bool = False) -> Task:
    """The task that a file holds."""
    own = parse_own(data)
    if own is not None:
        if archived:
            _put(own[0], "archived", archived)  # frozen for others; nobody has it yet
        return own[0]
    found, body, text = take_apart(data)
    if found is None:
        raise UnreadableTask("no frontmatter: the first line is not ---", "Start the file with `---` and `key: value`.")
    extra = {key: value for key, value in found.items() if key not in KEYS}
    known = {key: value for key, value in found.items() if key in KEYS}
    try:
        return msgspec.convert(
            {**known, "extra": extra, "body": body, "layout": text, "archived": archived}, prepare_type(Task)
        )
    except msgspec.ValidationError as error:
        raise UnreadableTask(
            findings.complaint(str(error), known, Task, noun="key").whole, "Correct the frontmatter."
        ) from None


def parse_foreign(data: bytes) -> tuple[dict[str, Any], str, str | None]:
    """What a file holds that no task was ever written to: frontmatter (perhaps none), body and layout."""
    found, body, text = take_apart(data)
    return found or {}, body, text


def _canonical(task: Task) -> tuple[bytes, bytes]:
    """The lines up to the value of `rev`, and from there on."""
    every = _astuple(task)
    optional = every[_REQUIRED : len(FIELDS)]
    present = list(map(ne, optional, _DEFAULTS))
    values = [*every[:_REQUIRED], *compress(optional, present)]
    keys = [*_REQUIRED_LINES, *compress(_OPTIONAL_LINES, present)]
    if task.extra:
        values.extend(task.extra.values())
        keys.extend(f"{key_text(key)}: ".encode() for key in task.extra)
    lines = list(map(add, keys, escape_yaml(encode_lines(values)).splitlines(keepends=True)))
    return b"".join(lines[:_REV]) + b"rev: ", b"\n" + b"".join(lines[_REV + 1 :])


def _laid_out(task: Task, text: str) -> tuple[str, str]:
    """The same in a person's layout. What they wrote stays if it means what the task says, also a default."""

    def means(written: Any, kind: Any, value: Any) -> bool:
        try:
            return frontmatter.same(msgspec.convert(written, prepare_type(kind)), value)
        except msgspec.ValidationError:
            return False

    written = frontmatter.read(text)
    values: dict[str, Any] = {}
    for field, value, default in zip(FIELDS, _astuple(task), [msgspec.NODEFAULT] * _REQUIRED + _DEFAULTS, strict=False):
        key = field.encode_name
        if key in written and means(written[key], field.type, value):
            values[key] = written[key]
        elif value != default:
            values[key] = msgspec.to_builtins(value)
    return frontmatter.rewrite_around(text, {**values, **task.extra}, "rev")


def parse_own(data: bytes) -> tuple[Task, bytes] | None:
    """The short way for what `render` wrote without foreign keys: all lines as one JSON object, decoded once.

    Gives that object as well. None for what has to be read the long way.

    Encoding the task again must give that object: so no key was foreign, doubled or out of order, in any depth.
    """
    found = _as_json(data)
    if found is None:
        return None
    whole, start = found
    try:
        task = _decoder()(whole)
        if escape_yaml(_encode(task)) != whole or task.body or task.extra or task.layout is not None or task.archived:
            return None
        _pack(task)  # fails for integers beyond 64 bits
        _put(task, "body", data[start + data.startswith(b"\n", start) :].decode())
    except (ValueError, OverflowError, RecursionError, msgspec.DecodeError):
        return None
    return task, whole


def parse_heads(files: Sequence[bytes]) -> list[tuple[Task, bytes]] | None:
    """The same for many files that `render` surely wrote, without the bodies. None when one needs the long way."""
    found = list(map(_as_json, files))
    if None in found:
        return None
    wholes = [one[0] for one in found if one is not None]
    together = b"[%b]" % b",".join(wholes)
    try:
        tasks = _many_decoder()(together)
    except (ValueError, RecursionError, msgspec.DecodeError):
        return None
    if (
        escape_yaml(_encode(tasks)) != together
        or len(tasks) != len(wholes)
        or any(any(map(get, tasks)) for get in _OTHERS)
    ):
        return None
    return list(zip(tasks, wholes, strict=True))


def _as_json(data: bytes) -> tuple[bytes, int] | None:
    """The lines of canonical frontmatter as one JSON object, and where they end; None when that cannot be."""
    end = data.find(b"\n---\n", 3)
    if not 0 <= end <= LIMIT or not data.startswith(b"---\n"):
        return None
    front = data[4:end]
    inner = front.replace(b"\n", b',"')
    if front.count(b": ") == len(inner) - len(front) + 1:  # one in each line, so that none stands inside a value
        inner = inner.replace(b": ", b'":')
    else:
        inner = b',"'.join([line.replace(b": ", b'":', 1) for line in front.split(b"\n")])
    return b'{"%b}' % inner, end + 5


def take_apart(data: bytes) -> tuple[dict[str, Any] | None, str, str | None]:
    """Frontmatter (None when there is none), body, and the frontmatter's text if it is a person's."""
    try:
        opening = _OPENING.match(data)
        if opening is None:
            return None, data.decode("utf-8-sig"), None
        closing = _CLOSING.search(data, opening.end())
        if closing is None:
            raise UnreadableTask("the frontmatter has no end", "Put a line `---` behind it.")
        if closing.start() - opening.end() > LIMIT:
            raise UnreadableTask("the frontmatter is larger than 64 KB", "Move long texts to the body or to a file.")
        text = data[opening.end() : closing.start()].decode()
        body = data[closing.end() :].decode().removeprefix(closing[1].decode())
    except UnicodeDecodeError as error:
        raise UnreadableTask(f"not UTF-8: {error.reason} at byte {error.start}", "Save the file as UTF-8.") from None
    found = decode_canonical(text[:-1].encode())
    if found is not None:
        return found, body, None

    return frontmatter.read(text), body, text


encode_record = msgspec.json.Encoder().encode
decode_record = msgspec.json.Decoder(prepare_type(Task)).decode


def encode_task(task: Task) -> bytes:
    """A task without what only its file holds."""
    return encode_record(msgspec.structs.replace(task, body="", layout=None))
