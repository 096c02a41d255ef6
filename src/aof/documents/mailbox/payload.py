"""The block of a review payload in a body: five fields, then the content in a fence.

Must not know when one is needed.
"""

from __future__ import annotations

import re
from typing import Final

from aof.core.documents.mailbox.payload import ReviewPayload
from aof.documents.markdown import bold_field, code_blocks, plain_field

_BULLET: Final = re.compile(r"\s*[-*]\s+(.+)")
_NAMES: Final = {
    "revision": "revision",
    "format": "format",
    "payload format": "format",
    "review scope": "scope",
    "ask": "ask",
}
_FENCES: Final = {"unified-diff": "diff", "full-text": "text"}


def found_in(body: str) -> ReviewPayload | None:
    """The payload of a body; None where nothing names a revision, a format or an ask."""
    lines = body.split("\n")
    blocks = code_blocks(lines)
    values: dict[str, str] = {}
    files: list[str] = []
    listing = False
    place, content = 0, None
    while place < len(lines):
        if place in blocks:
            if values and content is None:
                content = "".join(f"{line}\n" for line in lines[place + 1 : blocks[place] - 1])
            place = blocks[place]
            continue
        bullet = _BULLET.fullmatch(lines[place])
        bare = (bullet[1] if bullet is not None else lines[place]).strip()
        pair = bold_field(bare) or plain_field(bare)
        name = pair[0].lower() if pair is not None else ""
        if pair is not None and name in _NAMES:
            values.setdefault(_NAMES[name], pair[1])
            listing = False
        elif pair is not None and name == "files":
            listing = True
            files += [one.strip() for one in pair[1].split(",") if one.strip()]
        elif listing and bullet is not None:
            files.append(bare)
        else:
            listing = listing and not bare
        place += 1
    if not values.keys() & {"revision", "format", "ask"}:
        return None
    return ReviewPayload(**values, files=tuple(files), content=content)


def block(payload: ReviewPayload) -> str:
    """The lines of a payload, with a fence that its content cannot close."""
    lines = [
        f"Revision: {payload.revision}",
        f"Format: {payload.format}",
        f"Review scope: {payload.scope}",
        f"Ask: {payload.ask}",
        "Files:",
        *(f"  - {path}" for path in payload.files),
    ]
    if payload.content is not None:
        longest = max((len(run) for run in re.findall(r"^ {0,3}(`{3,})", payload.content, re.MULTILINE)), default=2)
        fence = "`" * (longest + 1)
        content = payload.content.removesuffix("\n")
        lines += ["", f"{fence}{_FENCES.get(payload.format, 'text')}", content, fence]
    return "\n".join(lines)
