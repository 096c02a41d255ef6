"""The `aof` command: words in, an answer and an exit code out. Loads only what the verb needs."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable

from aof import errors
from aof.support import printable
from aof.surfaces.cli import hints, output, parser
from aof.surfaces.cli import screen as cli_screen
from aof.surfaces.cli.commands import operation
from aof.surfaces.cli.grammar import SCHEMA_VERSION
from aof.surfaces.cli.parser import Parsed, UsageError, parse

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from aof.errors import AofError
    from aof.surfaces.cli.grammar import Verb
    from aof.surfaces.cli.output import Context

EXIT_BY_KIND = {"not_found": 3, "conflict": 4, "refused": 1, "invalid": 2, "unavailable": 1, "internal": 5}
EXIT_BY_CODE = {"unreadable_task": 5, "unusable_org_chart": 5, "settings_unusable": 5}
_AS_JSON = ("--json", "--jso", "--js")
_INTERRUPTED = 130
_WARN_THEMSELVES = ("merge", "doctor")
_NEVER_DELETED = "tasks are not deleted: aof cancel ID, then aof archive ID"
_AGAIN = "repeat the command: what it had begun, the next one finishes or leaves undone"


def main(words: list[str] | None = None) -> int:
    """Run one command line; the exit code says how it went."""
    words = sys.argv[1:] if words is None else words
    as_json = any(word in _AS_JSON for word in words)
    _take_standard_streams()
    before = cli_screen.guard()
    try:
        return _run_safely(words, as_json=as_json)
    finally:
        cli_screen.unguard(before)


def _run_safely(words: list[str], *, as_json: bool) -> int:
    parsed: Parsed | None = None
    try:
        parsed = parse(words)
        return _run(parsed)
    except UsageError as error:
        _complain(as_json=as_json, code="usage", message=error.message, hint=error.hint)
        return 2
    except KeyboardInterrupt:
        _complain(as_json=as_json, code="interrupted", message="interrupted", hint=_AGAIN)
        return _INTERRUPTED
    except BrokenPipeError:  # the reader has seen enough
        _mute()
        return 0
    except Exception as error:  # noqa: BLE001 - whatever it is, it is said in one sentence
        if os.environ.get("AOF_TRACEBACK"):
            from traceback import print_exc

            print_exc()  # while the guard is up: what was raised may quote anybody
            return 1
        return _refused(error, parsed, as_json=as_json)


def _take_standard_streams() -> None:
    """A stream that was closed before we began: its number must not become that of a file of ours."""
    if sys.stdin is None:
        sys.stdin = open(os.devnull, encoding="utf-8")  # noqa: SIM115 - open as long as the process
    if sys.stdout is None:
        sys.stdout = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115 - as above
    if sys.stderr is None:
        sys.stderr = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115 - as above


def _mute() -> None:
    """Nothing more goes to standard output, not even what the interpreter still holds of it when it ends."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)
    os.close(nowhere)


def _run(parsed: Parsed) -> int:
    context = output.Context(parsed.options, _service)
    if parsed.verb is None or parsed.options.get("help") or parsed.verb.is_group:
        return output.deliver(context, _help(parsed))
    if parsed.former and not parsed.options.get("json"):
        cli_screen.complain(f"aof {parsed.former} is now: aof {parsed.verb.name}")
    try:
        return _answer_and_warn(context, parsed.verb, parsed.values)
    except Exception as error:
        if getattr(error, "code", "") == "task_not_found":
            hints.suggest_task(context, error)
        raise
    finally:
        context.close()


def _answer_and_warn(context: Context, verb: Verb, given: dict[str, Any]) -> int:
    """Answer, and warn where the answer is one of several histories."""
    code = output.deliver(context, _answer(context, verb, given))
    for task_id in context.restored():
        cli_screen.complain(f"the file of {task_id} was missing and has been restored from the log", _NEVER_DELETED)
    if (histories := context.histories()) > 1 and verb.name not in _WARN_THEMSELVES:
        cli_screen.complain(errors.one_of_several(histories), "bring them together with 'aof merge'")
    return code


def _help(parsed: Parsed) -> output.Answer:
    """Help on a verb, or on all; nothing at all is asked for by options alone."""
    from aof.surfaces.cli.help import help_text

    if parsed.verb is None and parsed.options and not parsed.options.get("help"):
        raise UsageError("there is no verb in this call", "see 'aof --help'")
    verb, action = parsed.verb, str(parsed.values.get("action", ""))
    return output.Answer(
        {"help": help_text(verb, action=action)},
        lambda screen: screen.block(help_text(verb, screen.width, action)[:-1]),
    )


def _answer(context: Context, verb: Verb, given: dict[str, Any]) -> output.Answer:
    """What the verb's own function says, or the operation that the verb is."""
    from importlib import import_module

    if verb.reads:
        given = parser.resolved(verb, given)
    if not verb.handler:
        return operation.perform(context, verb.operation, given)
    module, function = verb.handler.split(":")
    handler: Callable[[Context, dict[str, Any]], output.Answer] = getattr(
        import_module(f"aof.surfaces.cli.commands.{module}"), function
    )
    return handler(context, given)


def _service(name: str) -> Any:
    """The console script is where a process puts its parts together; verbs get the modules of the service from here."""
    from importlib import import_module

    return import_module(f"aof.service.{name}")


def _refused(error: Exception, parsed: Parsed | None, *, as_json: bool) -> int:
    """Say what went wrong; returns the exit code."""
    if isinstance(error, output.AnswerNotWritten):
        _mute()
        cli_screen.complain(f"it is done, but the answer could not be written: {error}")
        return 1
    if not isinstance(error, errors.AofError):
        error = _as_ours(error)
    _complain(as_json=as_json, code=error.code, message=error.message, hint=_hint(error, parsed), details=error.details)
    return EXIT_BY_CODE.get(error.code, EXIT_BY_KIND[error.kind])


def _as_ours(error: Exception) -> AofError:
    """What nobody has foreseen, in one sentence."""
    import errno

    if isinstance(error, FileNotFoundError) and error.filename:
        return errors.NotFound(f"there is no {error.filename}", "check the path")
    if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT):
        return errors.DiskFull("no space left on the disk", "free some space and try again")
    if isinstance(error, OSError):
        where = f": {error.filename}" if error.filename else ""
        return errors.StorageFailed(f"{error.strerror or error}{where}", "check the disk and the permissions")
    if isinstance(error, UnicodeError):
        return errors.InvalidInput("there are bytes in this call that are not text in UTF-8", "write it in UTF-8")
    return errors.Internal(
        f"this should not have happened: {type(error).__name__}: {error}",
        "'aof doctor' says whether the data is sound; with AOF_TRACEBACK=1 the same call shows where it happened",
    )


def _hint(error: AofError, parsed: Parsed | None) -> str:
    """The hint as a command that works where it is pasted: on the same data directory, for the same agent."""
    options = parsed.options if parsed is not None else {}
    hint = hints.in_text(error.hint, options)
    agent = parsed.values.get("agent") if parsed is not None and not isinstance(error, errors.ActorMismatch) else None
    told = [(hint, error.call)] if error.otherwise is None else [(hint, error.call), error.otherwise]
    ways = [
        (words, hints.spell(call, options, agent if isinstance(agent, str) else None) if call is not None else "")
        for words, call in told
    ]
    return "; or ".join(": ".join(filter(None, way)) for way in ways)


def _complain(*, as_json: bool, code: str, message: str, hint: str, details: dict[str, Any] | None = None) -> None:
    if as_json:
        error: dict[str, Any] = {"code": code, "message": message, "hint": hint}
        if details:
            error["details"] = details
        text = json.dumps({"schema_version": SCHEMA_VERSION, "error": error}, ensure_ascii=False)
        sys.stdout.buffer.write(printable.escaped(text).encode() + b"\n")
        sys.stdout.flush()
        return
    cli_screen.complain(f"{message} [{code}]", hint)
