"""What axe-core finds in a page: rules of WCAG 2.2, levels A and AA. The page's own policy stays as strict as it is."""

from __future__ import annotations

from functools import cache
from typing import Any

from playwright.sync_api import Page

from tests.interop.node import installed

_AXE = "axe-core@4.14.0"
_TAGS = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"]
_RUN = """async (tags) => {
  const found = await axe.run(document, {runOnly: {type: "tag", values: tags}, resultTypes: ["violations"]});
  return found.violations.map((one) => ({rule: one.id, help: one.help, nodes: one.nodes.map((node) => node.html)}));
}"""


@cache
def _source() -> str:
    folder = installed(_AXE)
    return (folder / "node_modules" / "axe-core" / "axe.min.js").read_text("utf-8")


def violations(page: Page) -> list[dict[str, Any]]:
    """Every rule that the page breaks, with the elements that do."""
    page.evaluate(_source())
    broken: list[dict[str, Any]] = page.evaluate(_RUN, _TAGS)
    return broken
