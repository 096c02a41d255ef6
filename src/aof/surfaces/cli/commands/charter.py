"""`aof charter` and `aof conflict`: what the team agreed on, and proposals and disagreements that are open."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

from aof.errors import InvalidInput, Unavailable
from aof.support import git
from aof.surfaces.cli import operations
from aof.surfaces.cli.output import Answer, Context
from aof.surfaces.cli.parser import UsageError
from aof.surfaces.cli.screen import Screen

_ACTIONS = ("init", "amend", "sign", "show", "check")
_DIGITS = 3
_QUESTIONS = (
    ("session_id", "Session ID", "today's date and a word"),
    ("milestone", "What does the session work towards?", ""),
    ("risk_tier", "Risk tier (Low, Medium, High)", "Medium"),
    ("decision_mode", "How are decisions made? (consent, quorum, maintainer-adjudicated)", "consent"),
)


def charter(context: Context, values: dict[str, Any]) -> Answer:
    """`aof charter init`, `amend`, `sign`, `show` and `check`."""
    given = dict(values)
    action = given.pop("action")
    if action not in _ACTIONS:
        raise UsageError(f"'aof charter' knows {', '.join(_ACTIONS)}, not '{action}'", "for example: aof charter show")
    options = next(one.options for one in operations.VERBS if one.name == "charter")
    known = {one.target for one in options if not one.actions or action in one.actions}
    if wrong := [name for name in given if name not in known]:
        option = wrong[0].replace("_", "-")
        raise UsageError(f"'aof charter {action}' does not take --{option}", "see: aof help charter")
    if action == "amend" and "reason" not in given:
        raise UsageError("an amendment needs a reason", "aof charter amend --risk High --reason 'new data'")
    if action == "init" and not given and not context.options.get("json") and sys.stdin.isatty():
        given = _asked(_question)
    if (since := given.pop("git", None)) is not None:
        folder = context.service("bootstrap").find_data_dir(context.options.get("data_dir"))
        given["changed"] = [*given.get("changed", ()), *changed_files(folder, since)]
    for name in ("done", "undone"):
        if name in given:
            given[name] = [_number(word) for word in given[name]]
    result = getattr(context.fabric, f"charter_{action}")(**given)
    if action == "check":
        return Answer(result, lambda screen: _findings(screen, result), 0 if result.ok else 1)
    return Answer(result, lambda screen: _charter_shown(screen, result))


def _number(word: str) -> int:
    if not (word.isascii() and word.isdigit() and len(word) <= _DIGITS):
        raise UsageError("an item of the checklist goes by its number", "aof charter amend --done 1 --reason 'agreed'")
    return int(word)


def _question(text: str, usual: str) -> str:
    sys.stdout.write(f"{text}{f' [{usual}]' if usual else ''}: ")
    sys.stdout.flush()
    line = sys.stdin.readline()
    if not line:
        raise UsageError("nobody answered", "give the charter with options: aof help charter")
    return line.strip()


def _asked(ask: Callable[[str, str], str]) -> dict[str, Any]:
    """What a person answers; an empty answer leaves it as usual."""
    given: dict[str, Any] = {name: said for name, text, usual in _QUESTIONS if (said := ask(text, usual))}
    for name, text in (
        ("participants", "A participant as NAME:ROLE:LANE (empty: no more)"),
        ("lanes", "A lane as LANE:OWNER:FILES, such as api:ada:src/api/** (empty: no more)"),
        ("approval", "What must a person approve, such as tag:release or cancel? (empty: no more)"),
        ("acceptance", "An acceptance criterion (empty: no more)"),
    ):
        while said := ask(text, ""):
            given.setdefault(name, []).append(said)
    return given


def _charter_shown(screen: Screen, shown: Any) -> None:
    towards = shown.milestone or "no milestone"
    screen.line(f"{shown.path}: session {shown.session_id}, {towards}, risk {shown.risk_tier}")
    screen.line(f"decisions by {shown.governance.decision_mode}, objections within {shown.governance.objection_window}")
    screen.line()
    rows = [
        (one.agent, one.role, one.lane or "-", "missing" if one.agent in shown.unsigned else "-")
        for one in shown.roster
    ]
    signed = {one.agent: one.status for one in shown.handshakes if one.signed and one.agent not in shown.unsigned}
    rows = [(agent, role, lane, signed.get(agent, mark)) for agent, role, lane, mark in rows]
    screen.table(("AGENT", "ROLE", "LANE", "HANDSHAKE"), rows)
    screen.line()
    screen.table(("LANE", "OWNER", "FILES"), [(one.name, one.owner, ", ".join(one.patterns)) for one in shown.lanes])
    screen.line()
    names = {"auto": "Auto", "delay": "Notify + Delay", "approval": "Approval Required"}
    screen.table(("GATE", "SCOPE"), [(names[gate.band], ", ".join(gate.scope) or "none") for gate in shown.gates])


def _findings(screen: Screen, checked: Any) -> None:
    for one in checked.problems:
        severity = screen.paint(one.severity, "error" if one.severity == "error" else "high")
        screen.line(f"{one.file}:{one.line}: {severity}: {one.detail} [{one.code}]")
    if checked.ok:
        screen.line(f"{checked.path} is ready: work can start")


_LEVELS = {1: "countered", 2: "rebutted", 3: "default in force", 4: "decided"}
_TAKES = {"list": {"settled"}, "show": {"conflict_id"}}
_OUTCOME = {"conflict_id", "text", "agent", "reasons"}


def conflict(context: Context, values: dict[str, Any]) -> Answer:
    """`aof conflict list`, `show`, `settle` and `default`."""
    given = dict(values)
    action = given.pop("action", None) or "list"
    if action not in ("list", "show", "settle", "default"):
        raise UsageError(f"'aof conflict' knows list, show, settle and default, not '{action}'", "aof conflict list")
    takes = _TAKES.get(action, _OUTCOME)
    if wrong := [name for name in given if name not in takes]:
        raise UsageError(f"'aof conflict {action}' does not take {wrong[0]}", "see: aof help conflict")
    needed = {"show": ("conflict_id",), "list": ()}.get(action, ("conflict_id", "text"))
    if missing := [name for name in needed if name not in given]:
        raise UsageError(f"'aof conflict {action}' needs {missing[0]}", "aof conflict settle PROP-001 'we do it'")
    result = getattr(context.fabric, f"conflict_{action}")(**given)
    text = {"list": _listed, "show": _conflict_shown}.get(action, _posted)
    return Answer(result, lambda screen: text(screen, result))


def _listed(screen: Screen, found: Any) -> None:
    rows = [(one.id, one.state, one.author, one.subject) for one in found.proposals]
    rows += [
        (one.id, _LEVELS[one.level] if one.settled_by is None else "settled", f"{one.agent} / {one.other}", one.subject)
        for one in found.disputes
    ]
    rows += [(one.id, f"waits for {one.decides}", one.agent, one.subject) for one in found.reviews]
    if rows:
        screen.table(("ID", "STATE", "BY", "SUBJECT"), rows)
    else:
        screen.line("nothing is open")


def _conflict_shown(screen: Screen, shown: Any) -> None:
    screen.line(f"{shown.conflict_id}: {shown.kind}, {shown.state}")
    for one in shown.entries:
        screen.line()
        screen.line(f"{one['event_id']}  {one['timestamp']}  {one['actor']}: {one['subject']}")
        for name, value in one["payload"].items():
            if name not in ("form", "session") and value:
                screen.line(f"  {name}: {value}")


def _posted(screen: Screen, posted: Any) -> None:
    screen.line(f"{posted.event_id}  {posted.event_type}  {posted.actor}: {posted.subject}")


_MOST = 5_000  # files
_MOST_BYTES = 32 * 1024 * 1024


def changed_files(data_dir: str, since: str) -> list[str]:
    """What differs between a revision and the files as they are, and new files, relative to the project."""
    if since.startswith("-"):
        raise InvalidInput(f"{since[:40]!r} is no revision", "name a commit, a branch or HEAD")
    project, _, inside = data_dir.rpartition("/")
    try:
        told = git.changed_files(project, since, most=_MOST_BYTES)
    except OSError:
        raise Unavailable("git could not be asked", "name the files with --changed") from None
    if told is None:
        raise InvalidInput("git cannot tell what has changed", "name the files with --changed, or another revision")
    found = [name for name in told if not name.startswith(f"{inside}/")]
    if len(found) > _MOST:
        raise InvalidInput(f"{len(found)} files have changed, more than {_MOST}", "name some with --changed")
    return found
