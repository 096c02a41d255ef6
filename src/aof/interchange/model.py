"""A task as another tool has it, in the one shape that all readers make; and how it is created here, once."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any, Final, Literal

import msgspec

from aof.errors import AofError, Call, InvalidInput, NotAllowed
from aof.kernel import limits as kernel_limits
from aof.kernel.commands import Create, Decide, Needs, NeedsOf, OwnRule, Records, Verdict
from aof.kernel.evolve import evolve_draft
from aof.kernel.kinds import Priority
from aof.kernel.model import is_agent_name, iso, millis
from aof.support import nesting
from aof.support.typed import prepare_type
from aof.tasks import body as tasks_body
from aof.tasks.fields import TaskField, malformed
from aof.tasks.rules import to_blocked, transition

Target = Literal["ready", "backlog", "blocked", "done", "cancelled"]
MOST_TASKS: Final = 5_000
MOST_BYTES: Final = 10_000_000
_KEPT_TEXT: Final = 500
_DIGITS: Final = 18  # of a number
_KEPT_BYTES: Final = 1_000
_CONTROL = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]+")
_UNSTORABLE = re.compile("[\x00\ud800-\udfff]")


class SourceFile(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A file of another tool: its name, from the folder that was given, and its text."""

    name: str
    text: str


class NotMapped(msgspec.Struct, frozen=True, rename="camel"):
    """Something of a source that has no place here: of which task, what, and what was done instead."""

    source: str
    field: str
    detail: str


class ForeignTask(msgspec.Struct, kw_only=True):
    """One task of another tool. `key` is its ID there; edges are such keys too. `fields` go by their keys here."""

    key: str
    title: str
    body: str = ""
    status: Target = "ready"
    priority: Priority = "normal"
    tags: tuple[str, ...] = ()
    depends_on: tuple[str, ...] = ()
    parent: str | None = None
    fields: dict[str, Any] = {}
    about: dict[str, Any] = {}
    lost: list[NotMapped] = []

    def lose(self, field: str, detail: str) -> None:
        """Note that something did not map."""
        self.lost.append(NotMapped(self.key, field, detail))


class Reading(msgspec.Struct):
    """What was read: tasks, and what did not map of the source as a whole."""

    tasks: list[ForeignTask]
    lost: list[NotMapped] = []


def new_task(key: object, title: object) -> ForeignTask:
    """A task with its ID there and a title that fits on one line."""
    name = line(key)[: kernel_limits.ITEM]
    task = ForeignTask(key=name, title=line(title) or name, lost=[], about={}, fields={})
    if len(line(key)) > kernel_limits.ITEM:
        task.lose("id", f"cut to {kernel_limits.ITEM} characters")
    if len(task.title) > kernel_limits.TITLE:
        task.lose("title", f"cut to {kernel_limits.TITLE} characters")
        task.title = f"{task.title[: kernel_limits.TITLE - 1]}…"
    return task


def line(value: object) -> str:
    """A value as text on one line."""
    return " ".join(_CONTROL.sub(" ", "" if value is None else str(value)).split())


def text(value: object) -> str:
    """A value as text that a file can hold; other tools end lines as Windows does."""
    return _UNSTORABLE.sub("\ufffd", value.replace("\r\n", "\n")) if isinstance(value, str) else ""


def sections(task: ForeignTask, parts: Iterable[tuple[str, object]]) -> None:
    """Make the body of headed parts; the first one needs no heading. Empty ones are left out."""
    found = [(heading, text(part).strip()) for heading, part in parts]
    kept = [(f"## {heading}\n\n" if heading else "") + part for heading, part in found if part]
    body = "\n\n".join(kept)
    if len(body) > kernel_limits.BODY:
        task.lose("description", f"cut to {kernel_limits.BODY:,} characters")
        body = body[: kernel_limits.BODY - 1]
    task.body = f"{body}\n" if body else ""


def set_comments(task: ForeignTask, comments: list[tuple[object, object, object]]) -> None:
    """Put what people said of the task where comments stand: each as author, moment and text, oldest first."""
    for place, (author, at, words) in enumerate(comments):
        if not text(words).strip():
            continue
        name = line(author)[:100] or "unknown"
        try:
            body = tasks_body.add_comment(task.body, iso(millis(line(at))), name, text(words))
        except (ValueError, OverflowError):
            body = tasks_body.append(task.body, f"{name}:", text(words), tasks_body.COMMENTS)
        if len(body) > kernel_limits.BODY:
            task.lose("comments", f"only the first {place} of {len(comments)}")
            return
        task.body = body


def listed(value: object) -> list[str]:
    """A list of texts, from a list or from text with commas."""
    if isinstance(value, str):
        value = value.split(",")
    return [one for item in value if (one := line(item))] if isinstance(value, list | tuple) else []


def set_tags(task: ForeignTask, values: Iterable[str]) -> None:
    """The tags, as many and as long as a task may have."""
    given = [one for one in values if one]
    found = list(dict.fromkeys(one[: kernel_limits.ITEM] for one in given))
    if any(len(one) > kernel_limits.ITEM for one in given):
        task.lose("tags", f"cut to {kernel_limits.ITEM} characters")
    if len(found) > kernel_limits.ITEMS:
        task.lose("tags", f"only the first {kernel_limits.ITEMS} of {len(found)}")
    task.tags = tuple(found[: kernel_limits.ITEMS])


def set_acceptance(task: ForeignTask, values: Iterable[str]) -> None:
    """The acceptance criteria, as many and as long as other lists of a task may be."""
    found = [one for value in values if (one := line(value))]
    if len(found) > kernel_limits.ITEMS:
        task.lose("acceptance", f"only the first {kernel_limits.ITEMS} of {len(found)}")
    if any(len(one) > kernel_limits.ITEM for one in found[: kernel_limits.ITEMS]):
        task.lose("acceptance", f"criteria cut to {kernel_limits.ITEM} characters")
    task.fields["acceptance"] = [one[: kernel_limits.ITEM] for one in found[: kernel_limits.ITEMS]]


def set_owner(task: ForeignTask, names: list[str]) -> None:
    """The first of the people it is assigned to owns the task; an assignment there does not bind an agent here."""
    found = [name.lstrip("@") for name in names]
    if not found:
        return
    if is_agent_name(found[0]):
        task.fields["owner"] = found[0]
    else:
        task.lose("assignee", f"{found[0][:80]!r} cannot be a name here")
    if len(found) > 1:
        task.lose("assignee", f"only the first of {len(found)} owns the task")
    if found != [task.fields.get("owner")]:
        task.about["assignees"] = found


def set_priority(task: ForeignTask, value: object, known: Mapping[str, Priority]) -> None:
    """The priority by the tool's own words."""
    word = line(value).lower()
    if not word:
        return
    if word in known:
        task.priority = known[word]
        if word != task.priority:
            task.about["priority"] = word
    else:
        task.lose("priority", f"{word[:80]!r} is unknown and became {task.priority}")


def set_status(task: ForeignTask, value: object, known: Mapping[str, Target], inexact: Mapping[str, str]) -> None:
    """The status by the tool's own words; `inexact` says of some what gets lost."""
    word = line(value).lower().replace("_", "-").replace(" ", "-")
    if not word:
        return
    if word not in known:
        task.lose("status", f"{word[:80]!r} is unknown and became {task.status}")
        return
    task.status = known[word]
    if word != task.status:
        task.about["status"] = word
    if word in inexact:
        task.lose("status", f"{word} became {task.status}: {inexact[word]}")


def set_field(task: ForeignTask, row: TaskField, value: object) -> None:
    """A field whose values are single words, such as the due date, where it can hold what is said."""
    said = line(value)
    if not said:
        return
    number = row.kind == "whole" and said.isascii() and said.isdecimal() and len(said) <= _DIGITS
    kept = int(said) if number else said
    if malformed({row.key: kept}) is None:
        task.fields[row.key] = kept
    else:
        what = {"moment": "a day or a moment", "whole": f"a whole number from {row.least} to {row.most:,}"}
        task.lose(row.key, f"{said[:80]!r} is not {what.get(row.kind, 'possible here')}")


def keep(task: ForeignTask, given: Mapping[str, Any], names: Iterable[str]) -> None:
    """Keep these values of the source, as text, with what is known of the task's origin."""
    for name in names:
        if value := line(given.get(name)):
            task.about[name] = value[:_KEPT_TEXT]
            if len(value) > _KEPT_TEXT:
                task.lose(name, f"cut to {_KEPT_TEXT} characters")


def note_rest(task: ForeignTask, given: Mapping[str, Any], used: Iterable[str]) -> None:
    """Report what a reader did not use and what says something; where it is short enough, keep it."""
    for name in sorted(set(map(str, given)) - set(used)):
        value = given.get(name)
        if value in (None, "", [], {}, False):
            continue
        if name in task.about or kernel_limits.data(name, value, _KEPT_BYTES) is not None:
            task.lose(line(name)[:80], "has no place here")
        else:
            task.about[name] = value
            task.lose(line(name)[:80], "has no place here; kept in metadata.source")


def note_parts(reading: Reading, file: SourceFile, field: str, rows: Iterable[object], used: Iterable[str]) -> None:
    """Report once for a file which parts of the records in a field were not used."""
    given = {
        key
        for row in rows
        if isinstance(row, dict)
        for key, value in row.items()
        if value not in (None, "", [], {}, False)
    }
    if left := sorted(map(line, given - set(used))):
        reading.lost.append(NotMapped(line(file.name)[:200], field, f"without {', '.join(left)[:400]}"))


def decoded(file: SourceFile) -> Any:
    """The JSON of a file, or what is wrong with it."""
    try:
        return nesting.decode_json(file.text.lstrip("\ufeff").encode("utf-8", "replace"), object)
    except (msgspec.DecodeError, RecursionError) as error:
        return InvalidInput(f"{file.name[:80]} is not JSON: {str(error)[:200]}", "give the file as the tool wrote it")


class ImportTask(OwnRule, frozen=True, kw_only=True):
    """Create a task as another tool has it; `create` are the values of a creation, with the key of its source."""

    create: dict[str, Any]
    arrives: Literal["ready", "backlog", "blocked", "done", "cancelled"]
    reason: str

    def needs(self, known: Records, needs: NeedsOf) -> Needs:
        """What a creation needs."""
        return needs(self._creation(), known)

    def decide(self, records: Records, now: int, decide: Decide) -> Verdict:
        """A creation, and the move to where the task is in its source."""
        if self.arrives == "done" and records.policy.binds and self.acting not in records.policy.maintainers:
            return NotAllowed(
                f"{self.acting} is not a maintainer and may not import finished tasks as done",
                "let a maintainer import them",
                Call("list", {"status": "done"}),
                agent=self.acting,
            )
        verdict = decide(records, self._creation(), now)
        if isinstance(verdict, AofError) or verdict.replayed is not None or self.arrives in ("ready", "backlog"):
            return verdict
        task = evolve_draft(verdict.drafts[0], iso(now))
        moves = [one.payload["to"] for one in verdict.drafts if one.type == "task.transitioned"]
        origin = moves[-1] if moves else task.status
        if self.arrives != "blocked":
            moved = transition(task, self.arrives, origin=origin, reason=self.reason)
        elif origin == "blocked":
            return verdict
        else:
            moved = to_blocked(task, now, kind="blocked", reason=self.reason, by=self.acting, origin=origin)
        return msgspec.structs.replace(verdict, drafts=(*verdict.drafts, moved))

    def _creation(self) -> Create:
        status = "backlog" if self.arrives == "backlog" else "ready"
        return msgspec.convert(self.passed_on() | {"status": status} | self.create, prepare_type(Create))
