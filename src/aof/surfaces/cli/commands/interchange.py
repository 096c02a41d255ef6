"""`aof import` and `aof export`: tasks of other tools, lists of tasks, and whole data directories."""

from __future__ import annotations

import os
import shlex
import sys
from pathlib import Path
from typing import Any

import msgspec

from aof.errors import NotFound
from aof.interchange.model import MOST_BYTES, MOST_TASKS
from aof.kernel.identity import refuse_in_run
from aof.surfaces.cli.output import Answer, Context
from aof.surfaces.cli.parser import UsageError
from aof.surfaces.cli.screen import Screen

_SHOWN = 20  # lines of what did not map
_TOOLS = {".csv": "csv", ".json": "github", ".jsonl": "beads"}  # that write such files
_FORMATS = {".csv": "csv", ".json": "json"}  # of an export, by the name of its file


def import_any(context: Context, values: dict[str, Any]) -> Answer:
    """`aof import`: with `--from`, tasks; else a data directory."""
    path, source, dry_run = values.get("file"), values.get("source"), values.get("dry_run", False)
    if path is None:
        raise UsageError("'aof import' needs FILE", "for example: aof import tasks.csv --from csv --dry-run")
    if not source:
        suffix = Path(path).suffix
        if dry_run or suffix in _TOOLS or Path(path).is_dir():
            tool = _TOOLS.get(suffix, "backlog")
            hint = f"name it, as in: aof import {shlex.quote(path)} --from {tool} --dry-run"
            raise UsageError(f"--from must say which tool the tasks in {path} come from", hint)
        refuse_in_run("import a data directory", os.environ)
        with context.progress("import") as progress:
            root, count = context.service("upkeep").import_data_dir(context.options.get("data_dir"), path, progress)
        return Answer({"dataDir": root, "files": count}, lambda screen: screen.line(f"{count} files read into {root}"))
    report = context.fabric.import_tasks(source, files=_files(path), dry_run=dry_run)

    def text(screen: Screen) -> None:
        rows = [(one.source, one.task_id or "-", one.outcome, one.error or one.title) for one in report.items]
        if rows:
            screen.table(("SOURCE", "TASK", "OUTCOME", ""), rows, whole=True)
        for one in report.not_mapped[:_SHOWN]:
            screen.line(f"not mapped: {one.source}  {one.field}: {one.detail}")
        if len(report.not_mapped) > _SHOWN:
            screen.line(f"and {len(report.not_mapped) - _SHOWN} more; see --json")
        would = "would be " if report.dry_run else ""
        screen.line(f"{report.created} {would}created, {report.existing} here already, {report.refused} refused")

    return Answer(report, text, 1 if report.refused else 0)


def _files(path: str) -> list[dict[str, str]]:
    """The text of a file, or of all Markdown files of a folder; links and devices are passed over."""
    if path == "-":
        return [{"name": "standard input", "text": _decoded(path, sys.stdin.buffer.read(MOST_BYTES + 1))}]
    top = Path(path)
    if not top.is_dir():
        return [{"name": top.name, "text": _decoded(path, _bytes(top, MOST_BYTES))}]
    found: list[dict[str, str]] = []
    left = MOST_BYTES
    for folder, folders, names in os.walk(path):
        folders.sort()
        for whole in (Path(folder, name) for name in sorted(names) if name.endswith(".md")):
            if whole.is_symlink() or not whole.is_file():
                continue
            content = _bytes(whole, left)
            left -= len(content)
            found.append({"name": str(whole.relative_to(top)), "text": _decoded(str(whole), content)})
            if len(found) > MOST_TASKS:
                raise UsageError(f"{path} has more than {MOST_TASKS:,} files", "name a folder with fewer")
    if not found:
        raise NotFound(f"there is no Markdown file in {path}", "name the folder of Backlog.md, such as backlog/")
    return found


def _bytes(path: Path, most: int) -> bytes:
    try:
        with path.open("rb") as file:
            content = file.read(most + 1)
    except FileNotFoundError:
        raise NotFound(f"there is no {path}", "check the path") from None
    except OSError as error:
        raise UsageError(f"{path} cannot be read: {error.strerror}", "name a file that you may read") from None
    if len(content) > most:
        raise UsageError(f"{path} is too large: {MOST_BYTES:,} bytes can be imported at once", "import it in parts")
    return content


def _decoded(path: str, content: bytes) -> str:
    try:
        return content.decode()
    except UnicodeDecodeError:
        raise UsageError(f"{path} is not text in UTF-8", "save it as UTF-8") from None


def export_any(context: Context, values: dict[str, Any]) -> Answer:
    """`aof export`: with `--format` or to a file of such a name, tasks; else the data directory."""
    given = dict(values)
    path = given.pop("file", None)
    kind = given.pop("format", None) or _FORMATS.get(Path(path or "").suffix)
    if kind is None:
        if path is None or given:
            raise UsageError("'aof export' needs FILE or --format", "for example: aof export tasks.csv --format csv")
        _check_writable(path)
        with context.progress("export") as progress:
            count = context.service("upkeep").export_data_dir(context.options.get("data_dir"), path, progress)
        data = {"file": path, "files": count}
        return Answer(data, lambda screen: screen.line(f"{count} files written to {path}"))
    exported = context.fabric.export_tasks(kind, **given)
    if path in (None, "-"):
        return Answer(exported, lambda screen: screen.block(exported.text.rstrip("\n")))
    _check_writable(path)
    temporary = Path(f"{path}.{os.getpid()}.part")
    temporary.write_text(exported.text, encoding="utf-8", newline="")
    temporary.replace(path)
    report = {name: one for name, one in msgspec.to_builtins(exported).items() if name != "text"} | {"file": path}

    def text(screen: Screen) -> None:
        screen.line(f"{exported.total} task{'' if exported.total == 1 else 's'} written to {path}")
        for name, count in exported.not_mapped.items():
            screen.line(f"not in the table: {name} of {count}")

    return Answer(report, text)


def _check_writable(path: str) -> None:
    """Say what is wrong with a place before anything is done; a name ending in .part would be no help."""
    file = Path(path).absolute()
    if file.is_dir():
        raise UsageError(f"{path} is a folder", "name a file in it, as in: aof export backup.tar.gz")
    if not file.parent.is_dir():
        raise NotFound(f"there is no folder {file.parent}", "check the path")
