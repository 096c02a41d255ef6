"""One task in short: what somebody needs to work on it, without the bookkeeping of its past.

Whatever it leaves out is in the whole view. Must not know where the view comes from, nor any surface.
"""

from __future__ import annotations

from typing import Any, Final

_BOOKKEEPING: Final = ("schemaVersion", "lastTransitionAt", "startedAt", "retry", "requests", "links")
_OF_A_HOP: Final = ("id", "role", "status", "agent", "reason", "runId")
_OF_A_RUN: Final = ("attempt", "agentId", "status", "hop")
_OF_A_LEASE: Final = ("agent", "runId", "expiresAt")
_LONGEST: Final = 4_000  # characters of the body
_RUNS: Final = 3
_UNKNOWN: Final = {"state": "unknown"}


def outline(shown: dict[str, Any]) -> dict[str, Any]:
    """The short form of a whole view; `cut` names what is longer than it shows."""
    short = {name: value for name, value in shown.items() if name not in _BOOKKEEPING}
    cut: list[str] = []
    if lease := short.get("lease"):
        short["lease"] = _only(lease, _OF_A_LEASE)
    if workflow := short.get("workflow"):
        short["workflow"] = _workflow(workflow)
    if len(attempts := short.get("attempts", [])) > _RUNS:
        cut.append("attempts")
    short["attempts"] = [_only(run, _OF_A_RUN) for run in attempts[-_RUNS:]]
    if len(body := short.get("body", "")) > _LONGEST:
        short["body"] = f"{body[:_LONGEST]}…"
        cut.append("body")
    if short.get("progress") == _UNKNOWN:
        del short["progress"]
    if cut:
        short["cut"] = cut
    return {name: value for name, value in short.items() if value not in ({}, [], (), "", None)}


def _workflow(workflow: dict[str, Any]) -> dict[str, Any]:
    """Its hops, and the last rejection until the hop that rejected has accepted."""
    hops = [_only(hop, _OF_A_HOP) for hop in workflow["hops"]]
    short = _only(workflow, ("name", "state", "feedback")) | {"hops": hops}
    settled = {hop["id"] for hop in hops if hop.get("status") == "done"}
    if short.get("state", "open") != "open" or short.get("feedback", {}).get("hop") in settled:
        short.pop("feedback", None)
    return short


def _only(part: dict[str, Any], names: tuple[str, ...]) -> dict[str, Any]:
    return {name: part[name] for name in names if name in part}
