"""Text by others as HTML: Markdown without raw HTML, without images from elsewhere and without dangerous links.

Must not know any view.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from html import escape
from typing import Any

from markdown_it import MarkdownIt
from markdown_it.token import Token
from markupsafe import Markup

_LONGEST = 200_000  # characters that are rendered; a longer text is shown as it is


@cache
def _parser() -> MarkdownIt:
    parser = MarkdownIt("commonmark", {"html": False, "maxNesting": 20}).enable(["table", "strikethrough"])
    parser.disable(["image"])  # a picture from elsewhere would tell somebody who reads this, and when
    parser.add_render_rule("link_open", _link)
    parser.add_render_rule("heading_open", _heading)
    parser.add_render_rule("heading_close", _heading)
    return parser


def markdown(text: str) -> Markup:
    """The text as safe HTML."""
    if len(text) > _LONGEST:
        return Markup(f"<pre>{escape(text)}</pre>")  # noqa: S704 - escaped here
    return Markup(_parser().render(text))  # noqa: S704 - made by a parser that lets no HTML of the text through


def _link(self: Any, tokens: Sequence[Token], index: int, options: Any, _env: Any) -> str:
    """A link that tells the other side nothing about this page."""
    tokens[index].attrSet("rel", "noopener noreferrer nofollow ugc")
    return str(self.renderToken(tokens, index, options, _env))


def _heading(self: Any, tokens: Sequence[Token], index: int, options: Any, _env: Any) -> str:
    """Headings of a text stand below those of the page: the text's first level is the page's fourth."""
    level = min(int(tokens[index].tag[1]) + 3, 6)
    tokens[index].tag = f"h{level}"
    return str(self.renderToken(tokens, index, options, _env))
