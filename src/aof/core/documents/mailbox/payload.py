"""What is sent for review: five fields and the content itself, under a revision token that fits the content.

The token is `REV-YYYYMMDD-<topic>-<seq>-h<8 hex digits>`, with `-p1of3` where the content comes in parts. Must not know
how a payload is written in a body.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Final

import msgspec

from aof._support.hashing import hexdigest
from aof.core.documents.mailbox.message import NONE, SCOPES
from aof.core.errors.base import AofError
from aof.core.errors.mail import MalformedPayload, MissingPart, RevisionMismatch

FORMATS: Final = ("full-text", "unified-diff")
ASKS: Final = ("apply-or-counter", "review-only", "fyi")
BYTES: Final = 16 * 1024
LINES: Final = 300
RESEND: Final = "needs-resend"
_TOKEN: Final = re.compile(r"(REV-[0-9]{8}-[a-z0-9]+(?:-[a-z0-9]+)*)-h([0-9a-f]{8})(?:-p([0-9]{1,3})of([0-9]{1,3}))?")
_TOPIC: Final = 40
_WORD: Final = re.compile(r"REV-[0-9]{8}-[A-Za-z0-9-]+")
_BLOCK: Final = """Revision: REV-YYYYMMDD-<topic>-01-h<8 hex digits of the content's SHA-256>
Format: full-text | unified-diff
Review scope: full | critical-only | interface-only
Ask: apply-or-counter | review-only | fyi
Files:
  - path/of/a/file

```text
the content
```"""


class ReviewPayload(msgspec.Struct, frozen=True, kw_only=True):
    """The block as it stands in a body; what is missing is empty, and `content` is None where there is no fence."""

    revision: str = ""
    format: str = ""
    scope: str = ""
    ask: str = ""
    files: tuple[str, ...] = ()
    content: str | None = None

    @property
    def root(self) -> str:
        """What all parts and all versions of one payload share."""
        found = _TOKEN.fullmatch(self.revision)
        return found[1] if found is not None else self.revision

    @property
    def part(self) -> tuple[int, int] | None:
        """Which part of how many."""
        found = _TOKEN.fullmatch(self.revision)
        return (int(found[3]), int(found[4])) if found is not None and found[3] else None


def digits(content: str) -> str:
    """The digits that belong to a content: of its bytes with plain line feeds, and one at the end."""
    text = content.replace("\r\n", "\n")
    return hexdigest((text if text.endswith("\n") else text + "\n").encode())[:8]


def root(day: str, topic: str, seq: str) -> str:
    """What the tokens of a topic begin with: the day, the topic in plain letters, and a number."""
    words, number = ("-".join(re.findall(r"[a-z0-9]+", text.lower())) for text in (topic, seq))
    return f"REV-{day.replace('-', '')}-{words[:_TOPIC].strip('-') or 'payload'}-{number or '01'}"


def token(root: str, content: str, part: tuple[int, int] | None = None) -> str:
    """The revision of a content; the root is `REV-<day>-<topic>-<seq>`."""
    suffix = "" if part is None else f"-p{part[0]}of{part[1]}"
    return f"{root}-h{digits(content)}{suffix}"


def defects(payload: ReviewPayload) -> Iterator[str]:
    """Everything that is wrong with a payload, each in one sentence."""
    found = _TOKEN.fullmatch(payload.revision)
    if not payload.revision:
        yield "the payload has no Revision"
    elif found is None:
        yield f"the Revision {payload.revision[:80]!r} is not of the form REV-YYYYMMDD-<topic>-<seq>-h<8 hex digits>"
    for name, value, allowed in (
        ("Format", payload.format, FORMATS),
        ("Review scope", payload.scope, SCOPES[:-1]),
        ("Ask", payload.ask, ASKS),
    ):
        if value not in allowed:
            said = f"the {name} cannot be {value[:40]!r}" if value else f"the payload has no {name}"
            yield f"{said}; it is one of {', '.join(allowed)}"
    if not payload.files:
        yield "the payload has no Files"
    yield from _of_content(payload, found)


def _of_content(payload: ReviewPayload, found: re.Match[str] | None) -> Iterator[str]:
    if payload.content is None:
        if payload.ask != "fyi":
            yield "the payload has no content in a fenced block; paths alone are enough only where Ask is fyi"
        return
    if found is not None and found[2] != (right := digits(payload.content)):
        yield f"the Revision says h{found[2]}, and the content is h{right}: changed content needs a new token"
    if found is not None and found[3] and not 1 <= int(found[3]) <= int(found[4]):
        yield f"there is no part {found[3]} of {found[4]}"
    size, lines = len(payload.content.encode()), payload.content.rstrip("\n").count("\n") + 1
    if size > BYTES or lines > LINES:
        yield (
            f"the content has {size:,} bytes in {lines:,} lines, and a block holds {BYTES:,} bytes and {LINES} lines: "
            "send it in parts whose Revisions end in -p1ofN … -pNofN"
        )


def refusal(payload: ReviewPayload | None) -> AofError | None:
    """Why a message that asks for a review cannot be sent with this."""
    first = "paths alone are no review" if payload is None else next(defects(payload), None)
    if first is None:
        return None
    return MalformedPayload(first, f"put this block into the body, or give the content as 'payload':\n{_BLOCK}")


def echo(payload: ReviewPayload, reason: str, others: Iterable[ReviewPayload]) -> AofError | None:
    """Why an acknowledgement is no answer to the payload: it repeats no revision, or parts are missing."""
    if RESEND in reason:
        return None
    named = _WORD.findall(reason)
    if payload.revision not in named:
        said = f"it names {named[0]}" if named else "it names none"
        return RevisionMismatch(
            f"the answer to a payload repeats its revision, and {said}",
            f"begin the reason with {payload.revision}; where the payload is malformed, with {RESEND}",
        )
    if payload.part is None:
        return None
    there = {other.part[0] for other in (payload, *others) if other.root == payload.root and other.part is not None}
    missing = [str(number) for number in range(1, payload.part[1] + 1) if number not in there]
    if not missing:
        return None
    return MissingPart(
        f"of {payload.root} part {', '.join(missing)} of {payload.part[1]} is missing",
        f"wait for it, or answer with {RESEND}",
    )


def asks_for_review(scope: str) -> bool:
    """Whether a message with this review scope must carry what is to be reviewed."""
    return scope != NONE
