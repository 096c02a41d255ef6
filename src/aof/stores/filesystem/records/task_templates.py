"""`templates/<name>.md`: what new tasks begin with, as frontmatter and text. Must not know what the keys mean."""

from __future__ import annotations

import os
from contextlib import suppress
from typing import Any, Final

from aof.core.errors.tasks import UnreadableTask
from aof.core.model.ids import is_agent_name
from aof.stores.filesystem.io.read import read, refuse_link
from aof.stores.filesystem.working_copy import markdown

FOLDER: Final = "templates"
_ENDING: Final = ".md"
_LIMIT: Final = 262_144


def names(root: str) -> tuple[str, ...]:
    """The names of the files that can be templates."""
    with suppress(FileNotFoundError, NotADirectoryError):
        found = (
            name.removesuffix(_ENDING) for name in sorted(os.listdir(f"{root}/{FOLDER}")) if name.endswith(_ENDING)
        )
        return tuple(name for name in found if is_agent_name(name))
    return ()


def load(root: str, name: str) -> tuple[dict[str, Any], str] | None:
    """The keys and the text of one; None where there is none. A link is not followed. Raises UnreadableTask."""
    if not is_agent_name(name):
        return None
    try:
        refuse_link(f"{root}/{FOLDER}")
        content = read(f"{root}/{FOLDER}/{name}{_ENDING}", limit=_LIMIT)
    except OSError as error:
        hint = f"put a text file of at most {_LIMIT:,} bytes there"
        raise UnreadableTask(f"the file cannot be read: {error.strerror}", hint) from None
    if content is None:
        return None
    found, body, _ = markdown.take_apart(content)
    return found or {}, body
