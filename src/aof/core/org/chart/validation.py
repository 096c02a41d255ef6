"""From a document to a chart: older versions are brought up to date, then shape, values and references are looked at.

Must not know where the document comes from.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

import msgspec

from aof._support.typed import prepare_type
from aof.core.model.org_chart import SCHEMA_VERSION, OrgChart
from aof.core.org.chart.references import dangling
from aof.core.org.chart.values import impossible
from aof.core.validation.findings import Finding
from aof.core.validation.shape import misshapen

Step = Callable[[dict[str, Any]], dict[str, Any]]
# What turns a document of a version into one of the next. The first version needs none.
MIGRATIONS: Final[Mapping[int, Step]] = {}


class Judged(msgspec.Struct, frozen=True):
    """The chart, if it can be used, and what was found."""

    chart: OrgChart | None
    findings: tuple[Finding, ...]


def judge(document: Any, migrations: Mapping[int, Step] = MIGRATIONS, newest: int = SCHEMA_VERSION) -> Judged:
    """Everything that is wrong with a document, and the chart that it is."""
    if not isinstance(document, dict):
        return Judged(None, tuple(misshapen(document, OrgChart)))
    version = document.get("schemaVersion", SCHEMA_VERSION)
    if not isinstance(version, int) or isinstance(version, bool) or not 1 <= version <= newest:
        return Judged(None, (_unknown_version(version, newest),))
    for number in range(version, newest):
        document = migrations[number](document) | {"schemaVersion": number + 1}
    findings = tuple(_with_agent(finding, document) for finding in misshapen(document, OrgChart))
    if findings:
        return Judged(None, findings)
    chart = msgspec.convert(document, prepare_type(OrgChart))
    findings = (*impossible(chart), *dangling(chart))
    usable = all(finding.severity != "error" for finding in findings)
    return Judged(chart if usable else None, findings)


def _with_agent(finding: Finding, document: dict[str, Any]) -> Finding:
    """A position in a list does not say which agent is meant."""
    match finding.at:
        case ("agents", int(number), *_) if isinstance(given := document["agents"][number], dict) and "id" in given:
            return msgspec.structs.replace(finding, detail=f"agent '{given['id']}': {finding.detail}")
    return finding


def _unknown_version(version: object, newest: int) -> Finding:
    return Finding(
        code="unknown_version",
        severity="error",
        at=("schemaVersion",),
        detail=f"schemaVersion {version!r} is not known; this AOF knows versions up to {newest}",
        fix="use the AOF that it was written for, or a newer one",
    )
