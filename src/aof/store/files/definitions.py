"""What people write down for all tasks: the org chart, workflows, templates, and the charter's gates.

Each is read again at each use, and judged again only when its bytes have changed. What reads or judges them is loaded
only where there is one. Must not know who may do what.
"""

from __future__ import annotations

import errno
import hashlib
import os
import stat
import threading
from contextlib import suppress

import msgspec

from aof.errors import UnreadableTask, UnusableOrgChart
from aof.kernel import findings as kernel_findings
from aof.kernel import model as kernel_model
from aof.org import chart as org_chart
from aof.org import model as org_model
from aof.store import directory
from aof.store.files import disk as files_disk
from aof.store.files import markdown, strict_yaml
from aof.support import nesting
from aof.workflows import templates

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from aof.kernel.findings import Finding
    from aof.org.model import Gate, KeptChart, OrgChart
    from aof.store.directory import OrgReport, OrgState, WorkflowReport

ORG_FOLDER = "org"
ORG_CHART = f"{ORG_FOLDER}/org-chart.yaml"
LIMIT = 1_048_576
_TEMPLATES, _ENDING = "templates", ".md"
_TEMPLATE_BYTES = 262_144
_WORKFLOW_BYTES = 65_536
_CHARTER_BYTES = 4_000_000


class OrgFile:
    """The chart of a data directory that may have none.

    The last usable version is kept beside the locks, ready to be decoded: most calls need no YAML parser, and a
    person's slip of the pen takes no rule out of force.
    """

    def __init__(self, root: str, disk: files_disk.Disk | None = None) -> None:
        self._root = root
        self._path = f"{root}/{ORG_CHART}"
        self._kept_path = f"{root}/locks/org-chart.json"
        self._temporary = f"{root}/tmp/org-chart"  # noqa: S108 - inside the data directory
        self._disk = disk
        self._seen: bytes | OSError | None = None
        self._chart: OrgChart | None = None
        self._findings: tuple[Finding, ...] = ()
        self._kept: KeptChart | None = None

    def chart(self) -> OrgChart | None:
        """The chart in force; None when there is none."""
        if self._seen is None and not self._is_written():
            return None
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
            return directory.OrgReport(path=ORG_CHART, state="absent", chart=org_model.EMPTY)
        kept = self._kept or self._load_kept()
        judged, readable = _judged(content, kept)
        findings = judged.findings
        if isinstance(content, bytes) and readable and findings:
            findings = strict_yaml.with_places(findings, strict_yaml.document_text(content))
        if judged.chart is not None:
            return directory.OrgReport(path=ORG_CHART, state="current", chart=judged.chart, findings=findings)
        if kept is not None:
            return directory.OrgReport(path=ORG_CHART, state="last_good", chart=kept.chart, findings=findings)
        state: OrgState = "unusable" if readable else "unreadable"
        return directory.OrgReport(path=ORG_CHART, state=state, chart=org_model.EMPTY, findings=findings)

    def _is_written(self) -> bool:
        """Whether there is a chart, or a link in place of its folder."""
        try:
            folder = os.lstat(f"{self._root}/{ORG_FOLDER}").st_mode
        except OSError:
            return False
        return stat.S_ISLNK(folder) or os.path.lexists(self._path)

    def _content(self) -> bytes | OSError | None:
        """All of it: to compare the bytes costs microseconds, and times alone may miss a quick second edit.

        A symbolic link is no missing chart: gates would open. The folder is looked at when the bytes are new.
        """
        try:
            found = files_disk.read(self._path, limit=LIMIT)
            if found is None or found != self._seen:
                files_disk.refuse_link(os.path.dirname(self._path))
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
                self._kept = org_model.KeptChart(digest=digest, chart=judged.chart)
                self._keep(self._kept)
        self._seen = content

    def _load_kept(self) -> KeptChart | None:
        with suppress(OSError, msgspec.MsgspecError):
            data = files_disk.read(self._kept_path)
            return nesting.decode_json(data, org_model.KeptChart) if data is not None else None
        return None

    def _keep(self, kept: KeptChart) -> None:
        """What cannot be kept costs only time: the next process judges the file again."""
        temporary = f"{self._temporary}.{os.getpid()}.{threading.get_ident()}"
        with suppress(OSError):
            if self._disk is None:
                self._disk = files_disk.Disk()
                self._disk.bind(self._root)
            self._disk.write_new(temporary, msgspec.json.encode(kept))
            self._disk.rename(temporary, self._kept_path)


def _judged(content: bytes | OSError, kept: KeptChart | None) -> tuple[org_chart.Judged, bool]:
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
    return org_chart.validate_chart(values), True


def _unreadable(detail: str, fix: str, line: int | None = None) -> tuple[org_chart.Judged, bool]:
    return org_chart.Judged(None, (_finding(detail, fix, line),)), False


def _finding(detail: str, fix: str, line: int | None) -> Finding:
    return kernel_findings.Finding(code="unreadable", severity="error", at=(), detail=detail, fix=fix, line=line)


class WorkflowFiles:
    """The workflow templates of a data directory: `workflows/<name>.yaml`."""

    def __init__(self, root: str) -> None:
        self._root = root

    def names(self) -> tuple[str, ...]:
        """The names of the files."""
        with suppress(FileNotFoundError, NotADirectoryError):
            found = sorted(os.listdir(f"{self._root}/workflows"))
            return tuple(name.removesuffix(".yaml") for name in found if name.endswith(".yaml"))
        return ()

    def report(self, name: str) -> WorkflowReport | None:
        """Read and check one; None where there is none of that name."""
        path = f"workflows/{name}.yaml"
        if not kernel_model.is_agent_name(name):
            return None

        def unreadable(detail: str, fix: str, line: int | None = None) -> WorkflowReport:
            return directory.WorkflowReport(name=name, path=path, ok=False, findings=(_finding(detail, fix, line),))

        try:
            files_disk.refuse_link(f"{self._root}/workflows")
            content = files_disk.read(f"{self._root}/{path}", limit=_WORKFLOW_BYTES)
            if content is None:
                return None
            text = strict_yaml.document_text(content)
            document = strict_yaml.load_document(text, "the workflow")
        except OSError as error:
            fix = f"put a text file of at most {_WORKFLOW_BYTES:,} bytes there"
            return unreadable(f"the file cannot be read: {error.strerror}", fix)
        except UnicodeDecodeError as error:
            return unreadable(f"the file is not UTF-8: {error.reason}", "save it as UTF-8")
        except UnreadableTask as error:
            return unreadable(error.message, error.hint, error.details.get("line"))
        checked = templates.validate_template(document, name)
        findings = strict_yaml.with_places(checked.findings, text, otherwise=1) if checked.findings else ()
        return directory.WorkflowReport(
            name=name, path=path, ok=checked.template is not None, findings=findings, document=document
        )


def template_names(root: str) -> tuple[str, ...]:
    """The names of the files that can be templates."""
    with suppress(FileNotFoundError, NotADirectoryError):
        files = [name for name in sorted(os.listdir(f"{root}/{_TEMPLATES}")) if name.endswith(_ENDING)]
        return tuple(name for file in files if kernel_model.is_agent_name(name := file.removesuffix(_ENDING)))
    return ()


def load_template(root: str, name: str) -> tuple[dict[str, Any], str] | None:
    """The keys and the text of one; None where there is none. A link is not followed. Raises UnreadableTask."""
    if not kernel_model.is_agent_name(name):
        return None
    try:
        files_disk.refuse_link(f"{root}/{_TEMPLATES}")
        content = files_disk.read(f"{root}/{_TEMPLATES}/{name}{_ENDING}", limit=_TEMPLATE_BYTES)
    except OSError as error:
        hint = f"put a text file of at most {_TEMPLATE_BYTES:,} bytes there"
        raise UnreadableTask(f"the file cannot be read: {error.strerror}", hint) from None
    if content is None:
        return None
    found, body, _ = markdown.take_apart(content)
    return found or {}, body


class CharterGates:
    """The gates of the charter. A file that cannot be read keeps the gates as they were."""

    def __init__(self, root: str) -> None:
        self._path = f"{root}/SESSION_CHARTER.md"
        self._seen: files_disk.Seen | None = None
        self._gates: tuple[Gate, ...] = ()

    def gates(self) -> tuple[Gate, ...]:
        """The gates that hold anything up."""
        try:
            seen = files_disk.seen(self._path)
            if seen == self._seen:
                return self._gates
            data = files_disk.read(self._path, limit=_CHARTER_BYTES) if seen is not None else None
        except OSError:
            return self._gates
        self._gates = _gates_in(data) if data else ()
        self._seen = seen
        return self._gates


def _gates_in(charter: bytes) -> tuple[Gate, ...]:
    from aof.documents.charter import parse_charter

    found = parse_charter(charter.decode("utf-8", "replace")).gates
    return tuple(gate for gate in found if gate.band != "auto" and gate.scope)
