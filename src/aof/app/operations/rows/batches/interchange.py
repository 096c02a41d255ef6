"""Operations that bring tasks from other tools and take tasks to them. Must not know any surface."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec
from msgspec import UNSET, UnsetType

from aof.app.interchange.service import Exported, Imported
from aof.app.operations.rows.queries import ListParams
from aof.app.operations.spec import Cli, Extra, Operation, Params, Spelling, param


class ImportParams(Params, frozen=True, kw_only=True):
    """From which tool, and its files."""

    source: (
        Annotated[
            Literal["backlog", "beads", "taskmaster", "github", "csv"],
            param("the tool that the tasks come from", Spelling(option="--from", metavar="TOOL")),
        ]
        | UnsetType
    ) = UNSET
    files: Annotated[
        list[dict[str, str]],
        param(
            "the files, each as an object with name and text",
            Spelling(
                place="FILE",
                target="file",
                help="the file or folder to read; without --from: an archive that 'aof export' wrote",
            ),
        ),
    ] = msgspec.field(default_factory=list)
    dry_run: Annotated[bool, param("report what would be imported, and change nothing")] | UnsetType = UNSET


class ExportParams(ListParams, frozen=True, kw_only=True):
    """Which tasks, as what."""

    format: Annotated[
        Literal["json", "csv"],
        param(
            "the form of the text",
            Spelling(help="tasks as json or csv (else as FILE ends, or everything)"),
        ),
    ] = "json"


ROWS: tuple[Operation, ...] = (
    Operation(
        name="import_tasks",
        parameters=ImportParams,
        result=Imported,
        help="Import tasks from Backlog.md, beads, Task Master, GitHub issues or CSV, each once.",
        effect="append",
        tool="aof_import",
        verb="import",
        cli=Cli(
            section="data",
            order=70,
            summary="import tasks of another tool, or an exported data directory",
            notes="With --from, the tasks of a file or folder come into this data directory; again, only those that "
            "are new. Without it, a data directory is created from an exported file.",
            example="aof import .beads/issues.jsonl --from beads --dry-run",
        ),
        needs="lead",
    ),
    Operation(
        name="export_tasks",
        parameters=ExportParams,
        result=Exported,
        help="The tasks that match, as JSON or CSV.",
        effect="read",
        tool="aof_export",
        verb="export",
        cli=Cli(
            section="data",
            order=60,
            summary="write the whole data directory, or a list of tasks, into a file",
            notes="Without --format, the file is an archive of everything, for 'aof import'. With it, the tasks that "
            "match the filters; '-' writes them to standard output.",
            example="aof export tasks.csv --format csv",
            extra=(Extra(option="[FILE]", help="the file to write"),),
        ),
    ),
)
