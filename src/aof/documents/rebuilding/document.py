"""A document that git has merged: rewritten from the log, with the text that only people wrote added.

The same log and the same hand-written lines give the same text, whichever side was whose. Must not know where files
lie, nor any single document.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from aof.core.model.events import Event
from aof.documents.projection import Extension, Facts, Files, PastEvents, Projection, Rewritten
from aof.documents.rebuilding.marks import is_marked, sides

# What the log alone says, by file; each side's files; every event, oldest first: the same with what people wrote.
Additions = Callable[[dict[str, str], Sequence[Files], Sequence[Event]], dict[str, str]]


class Texts:
    """Keeps the contract of `documents.projection.Files` for texts that are at hand."""

    def __init__(self, texts: dict[str, str] | None = None) -> None:
        self.note = ""
        self._texts = texts or {}

    def text(self, path: str) -> str:
        """The text of a file; empty where there is none."""
        return self._texts.get(path, "")


class RebuiltDocument:
    """Keeps the contract of `documents.projection.Projection` around another one.

    A file with marks of a merge is rebuilt; with `anew`, any file that is not as AOF has left it.
    """

    def __init__(
        self, projection: Projection, files: tuple[str, ...], additions: Additions, *, anew: bool = False
    ) -> None:
        self._projection = projection
        self._files = files
        self._additions = additions
        self._anew = anew
        self.name, self.path, self.types = projection.name, projection.path, projection.types

    def extend(self, note: str, fresh: Sequence[Event], facts: Facts) -> Extension | None:
        """As without a merge."""
        return self._projection.extend(note, fresh, facts)

    def rewrite(self, files: Files, fresh: Sequence[Event], past: PastEvents | None, facts: Facts) -> Rewritten:
        """Everything from the log where git merged the file; else as without a merge."""
        if past is None or not (self._anew or any(is_marked(files.text(path)) for path in self._files)):
            return self._projection.rewrite(files, fresh, past, facts)
        events = [*reversed(list(past.events)), *fresh]
        told = self._projection.rewrite(Texts(), events, None, facts)
        split = {path: sides(files.text(path)) for path in self._files}
        count = max(map(len, split.values()))
        each = [Texts({path: one[min(side, len(one) - 1)] for path, one in split.items()}) for side in range(count)]
        each.sort(key=lambda side: tuple(side.text(path) for path in self._files))
        if not told.texts and not any(side.text(path) for side in each for path in self._files):
            return Rewritten({})
        texts = self._additions({path: _titled(text, path, each) for path, text in told.texts.items()}, each, events)
        return Rewritten({path: text for path, text in texts.items() if text}, told.note)


def _titled(text: str, path: str, each: Sequence[Files]) -> str:
    """With the title that the file has: each clone would name its own folder where nobody has set a project."""
    titles = [title for side in each if (title := side.text(path).partition("\n")[0]).startswith("# ")]
    first, end, rest = text.partition("\n")
    return f"{min(titles)}{end}{rest}" if titles and first.startswith("# ") else text
