"""What a task demands of its output (`constraints.output`), and references into its folder.

Must not know whether a demand is met.
"""

from __future__ import annotations

from typing import Any, Final

from aof.core.errors.base import AofError, InvalidInput
from aof.core.validation import limits

DEMANDS: Final = ("artifacts", "evidence", "delivery")


def bad_output(field: str, value: object) -> AofError | None:
    """What is wrong with the demands on the output."""
    if not isinstance(value, dict) or not _demands(value):
        return None
    if not isinstance(value.get("delivery", False), bool):
        return InvalidInput(f"'{field}.delivery' must be true or false", "say whether delivery is required")
    artifacts, evidence = value.get("artifacts", []), value.get("evidence", [])
    return (
        limits.items(f"{field}.artifacts", artifacts, limits.ITEMS, single_line=True)
        or limits.items(f"{field}.evidence", evidence, limits.ITEMS, single_line=True)
        or escaping(*((f"{field}.artifacts", ref) for ref in artifacts))
    )


def demanded(constraints: dict[str, Any]) -> dict[str, Any]:
    """The demands on the output; none where a file was edited so that they make no sense."""
    given = constraints.get("output")
    if not isinstance(given, dict) or not _demands(given) or bad_output("constraints.output", given) is not None:
        return {}
    return given


def _demands(value: dict[str, Any]) -> bool:
    """Whether it names a demand: anything else that is said of the output is for the worker to read."""
    return not set(DEMANDS).isdisjoint(value)


def escaping(*refs: tuple[str, str | None]) -> AofError | None:
    """The refusal for the first reference that leaves its folder."""
    for field, ref in refs:
        if ref is not None and (ref.startswith(("/", "\\")) or ".." in ref.replace("\\", "/").split("/")):
            return InvalidInput(
                f"'{field}' leaves the task's folder: {ref[:80]!r}", "use a path such as outputs/summary.md"
            )
    return None
