"""`org/org-chart.yaml`: read again at each use, and judged again only when its bytes have changed.

The last usable version is kept beside the locks, ready to be decoded: most calls need no YAML parser, and a person's
slip of the pen takes no rule out of force. Must not know who may do what.
"""

from __future__ import annotations

import errno
import hashlib
import os
from contextlib import suppress
from threading import get_ident
from typing import Final

import msgspec

from aof.errors import UnreadableTask, UnusableOrgChart
from aof.kernel.findings import Finding
from aof.org import chart
from aof.org.model import EMPTY, OrgChart
from aof.store.directory import OrgReport
from aof.store.files import strict_yaml
from aof.store.files.definitions import ORG_CHART
from aof.store.files.disk import Disk, read, refuse_link
from aof.support import nesting

LIMIT: Final = 1_048_576


class _Kept(msgspec.Struct, frozen=True):
    """The last usable version, and the bytes that it came from."""

    digest: str
    chart: OrgChart


class OrgFile:
    """The chart of one data directory."""

    def __init__(self, root: str, disk: Disk | None = None) -> None:
        self._path = f"{root}/{ORG_CHART}"
        self._kept_path = f"{root}/locks/org-chart.json"
        self._temporary = f"{root}/tmp/org-chart"  # noqa: S108 - inside the data directory
        self._disk = disk or Disk()
        if disk is None:
            self._disk.bind(root)
        self._seen: bytes | OSError | None = None
        self._chart: OrgChart | None = None
        self._findings: tuple[Finding, ...] = ()
        self._kept: _Kept | None = None

    def chart(self) -> OrgChart | None:
        """The chart in force; None when there is none."""
        content = self._content()
        if content is None:
            return None
        if content != self._seen:  # an error equals no other one, so it is looked at again
            self._look(content)
        if self._chart is not None:
            return self._chart
        if self._kept is not None:
            return self._kept.chart
        first = next(finding for finding in self._findings if finding.severity == "error")
        more = f" and {len(self._findings) - 1} more" if len(self._findings) > 1 else ""
        raise UnusableOrgChart(
            f"{ORG_CHART} cannot be used: {first.where}: {first.detail}{more}",
            "'aof org check' names each problem and its place",
            path=ORG_CHART,
        )

    def report(self) -> OrgReport:
        """What is written down, with the place of each problem; never raises for what it says."""
        content = self._content()
        if content is None:
            return OrgReport(path=ORG_CHART, state="absent", chart=EMPTY)
        kept = self._kept or self._load_kept()
        judged, readable = _judged(content, kept)
        findings = judged.findings
        if isinstance(content, bytes) and readable and findings:
            findings = strict_yaml.with_places(findings, strict_yaml.document_text(content))
        if judged.chart is not None:
            return OrgReport(path=ORG_CHART, state="current", chart=judged.chart, findings=findings)
        if kept is not None:
            return OrgReport(path=ORG_CHART, state="last_good", chart=kept.chart, findings=findings)
        return OrgReport(path=ORG_CHART, state="unusable" if readable else "unreadable", chart=EMPTY, findings=findings)

    def _content(self) -> bytes | OSError | None:
        """All of it: to compare the bytes costs microseconds, and times alone may miss a quick second edit.

        A symbolic link is no missing chart: gates would open. The folder is looked at when the bytes are new.
        """
        try:
            found = read(self._path, limit=LIMIT)
            if found is None or found != self._seen:
                refuse_link(os.path.dirname(self._path))
        except OSError as error:
            return error
        return found

    def _look(self, content: bytes | OSError) -> None:
        digest = hashlib.sha256(content).hexdigest() if isinstance(content, bytes) else ""
        self._kept = self._load_kept() or self._kept
        if self._kept is not None and self._kept.digest == digest:
            self._chart, self._findings = self._kept.chart, ()
        else:
            judged, _ = _judged(content, self._kept)
            self._chart, self._findings = judged.chart, judged.findings
            if judged.chart is not None:
                self._kept = _Kept(digest, judged.chart)
                self._keep(self._kept)
        self._seen = content

    def _load_kept(self) -> _Kept | None:
        with suppress(OSError, msgspec.MsgspecError):
            data = read(self._kept_path)
            return nesting.decode_json(data, _Kept) if data is not None else None
        return None

    def _keep(self, kept: _Kept) -> None:
        """What cannot be kept costs only time: the next process judges the file again."""
        temporary = f"{self._temporary}.{os.getpid()}.{get_ident()}"
        with suppress(OSError):
            self._disk.write_new(temporary, msgspec.json.encode(kept))
            self._disk.rename(temporary, self._kept_path)


def _judged(content: bytes | OSError, kept: _Kept | None) -> tuple[chart.Judged, bool]:
    """What the bytes say, and whether they could be read at all."""
    if isinstance(content, OSError):
        if content.errno == errno.EFBIG:
            fix = "split the work into several data directories"
            return _unreadable(f"the file is larger than {LIMIT:,} bytes", fix)
        return _unreadable(f"the file cannot be read: {content.strerror}", "make it a readable file")
    try:
        values = strict_yaml.load_document(strict_yaml.document_text(content), "the org chart")
    except UnicodeDecodeError as error:
        return _unreadable(f"the file is not UTF-8: {error.reason} at byte {error.start}", "save it as UTF-8")
    except UnreadableTask as error:
        return _unreadable(error.message, error.hint, error.details.get("line"))
    if not values and kept is not None and kept.chart.declared:
        return _unreadable("the file is empty", "say 'agents: []' if nothing is to be checked, or remove the file")
    return chart.validate_chart(values), True


def _unreadable(detail: str, fix: str, line: int | None = None) -> tuple[chart.Judged, bool]:
    finding = Finding(code="unreadable", severity="error", at=(), detail=detail, fix=fix, line=line)
    return chart.Judged(None, (finding,)), False
