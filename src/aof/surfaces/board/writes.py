"""The writes of the board: a dialog asks, a form is sent, the operation decides, and a refusal keeps what was typed."""

from __future__ import annotations

import json
import secrets
from collections.abc import Awaitable, Callable
from typing import Any

import anyio.to_thread
import msgspec
from starlette.datastructures import FormData
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from aof.api.catalogue import BY_NAME as OPERATIONS
from aof.errors import AofError, InvalidInput, NotAllowed, NotFound, Refused, RevisionConflict
from aof.surfaces.board.access import PREFIX, check_origin, read_form
from aof.surfaces.board.actions import (
    BY_NAME,
    CREATE,
    Field,
    PageAction,
    TaskData,
    Values,
    last_entries,
    moves,
    offered,
)
from aof.surfaces.board.view import HEADERS, Operations, problem_of, render
from aof.surfaces.http.guard import CALLER
from aof.surfaces.http.responses import status_of

Endpoint = Callable[[Request], Awaitable[Response]]
_MOST_BODY = 1_000_000
_BULK = ("retry", "cancel")
_REVIEWS = ("approve", "reject")  # their dialogs say what was reported
_MOST_AT_ONCE = 500
_LONGEST = 1_000_000
_DIGITS = 17  # of a revision


def routes(signed_in: Callable[[Endpoint], Endpoint], frame: Callable[..., dict[str, Any]]) -> list[Route]:
    """The routes of all writes; `frame` gives what every template is given."""
    writes = Writes(frame)
    task = f"{PREFIX}/tasks/{{task_id}}"
    return [
        Route(f"{PREFIX}/create", signed_in(writes.create), methods=["GET", "POST"]),
        Route(f"{PREFIX}/bulk/{{command}}", signed_in(writes.bulk), methods=["GET", "POST"]),
        Route(f"{task}/do/{{action}}", signed_in(writes.act), methods=["GET", "POST"]),
        Route(f"{task}/moves", signed_in(writes.moves)),
        Route(f"{task}/move", signed_in(writes.menu)),
    ]


class Writes:
    """Answers dialogs and forms."""

    def __init__(self, frame: Callable[..., dict[str, Any]]) -> None:
        self._frame = frame

    async def act(self, request: Request) -> Response:
        """One action on one task."""
        action = BY_NAME.get(request.path_params["action"])
        if action is None or action.operation not in OPERATIONS:
            raise NotFound(f"there is no action {request.path_params['action'][:40]!r}", "open the task on the board")
        return await self._dialog_or_write(request, action, request.path_params["task_id"])

    async def create(self, request: Request) -> Response:
        """A new task."""
        return await self._dialog_or_write(request, CREATE, None)

    async def _dialog_or_write(self, request: Request, action: PageAction, task_id: str | None) -> Response:
        form, ask = await _read_form(request), _operations(request)

        def respond() -> Response:
            task: TaskData = ask("show", task_id=task_id) if task_id is not None else {}
            if form is None:
                if task and action.name not in offered(task, ask):
                    raise _not_offered(action, task, ask)
                chosen = request.query_params  # by the link that led here
                initial = {field.name: chosen.get(field.name, field.value(task))[:_LONGEST] for field in action.fields}
                return self._dialog(request, action, task, initial)
            values = {field.name: str(form.get(field.name, "")) for field in action.fields}
            was = {field.name: str(form.get(f"was.{field.name}", field.value(task))) for field in action.fields}
            try:
                offer = offered(task, ask).get(action.name) if task else None
                more = offer.arguments if offer is not None else {"status": action.status} if action.status else {}
                result = ask(action.operation, **more, **_arguments(action, task, values, was, form))
            except AofError as error:
                return self._dialog(request, action, task, values, error=error, was=was)
            written, warned = str(result.get("taskId", task.get("id"))), result.get("warning")
            warning = f"{warned['message']}: {warned['hint']}" if isinstance(warned, dict) else None
            return _done(written, f"{written}: {action.done}", warning)

        return await anyio.to_thread.run_sync(respond)

    def _dialog(
        self,
        request: Request,
        action: PageAction,
        task: TaskData,
        values: Values,
        *,
        error: AofError | None = None,
        was: Values | None = None,
    ) -> Response:
        """The form; after a refusal with what was typed, and beside it what the task says now.

        A field that was not touched follows the task, so that nobody takes back what somebody else has changed.
        """
        conflict = isinstance(error, RevisionConflict)
        changed = _changed(error.details) if error is not None and conflict else []
        fields = [
            _field_view(field, task, values.get(field.name, ""), (was or {}).get(field.name) if conflict else None)
            for field in action.fields
            if field.choices is None or field.choices(task)
        ]
        status = status_of(error) if error is not None else 200
        problem = problem_of(error) if error is not None else None
        where = f"{PREFIX}/tasks/{task['id']}/do/{action.name}" if task else f"{PREFIX}/create"
        frame = self._frame(request, title=action.label if not task else f"{action.label} {task['id']}")
        own: dict[str, Any] = {
            "action": action,
            "task": task,
            "fields": fields,
            "problem": problem,
            "changed": changed,
            "where": where,
            "chosen": any(one["value"] != one["was"] for one in fields[2:]),
            "is_review": action.name in _REVIEWS,
            "last_entries": last_entries(task) if task else "",
        }
        return render("action.html", status, **frame, **own, key=secrets.token_hex(8), conflict=conflict)

    async def moves(self, request: Request) -> Response:
        """Where a task may be dragged to, for the revision that this is about."""
        ask = _operations(request)

        def respond() -> Response:
            answer = ask("moves", task_id=request.path_params["task_id"])
            to = {
                status: {"action": action.name, "direct": action.is_direct, "label": action.label}
                for status, action in moves(answer, ask).items()
            }
            return JSONResponse({"id": answer["taskId"], "rev": answer["rev"], "moves": to}, headers=HEADERS)

        return await anyio.to_thread.run_sync(respond)

    async def menu(self, request: Request) -> Response:
        """The moves of a task as a menu, for those who do not drag."""
        ask = _operations(request)

        def respond() -> Response:
            task = ask("show", task_id=request.path_params["task_id"])
            frame = self._frame(request, title=f"Move {task['id']}")
            return render("move.html", **frame, task=task, moves=moves(ask("moves", task_id=task["id"]), ask))

        return await anyio.to_thread.run_sync(respond)

    async def bulk(self, request: Request) -> Response:
        """Many tasks at once: first what would become of them, then that, for exactly the revisions that were shown."""
        command = request.path_params["command"]
        if command not in _BULK:
            raise NotFound(f"there is no bulk action {command[:40]!r}", f"use one of: {', '.join(_BULK)}")
        form, ask = await _read_form(request), _operations(request)
        chosen = form.getlist("id") if form is not None else request.query_params.getlist("id")
        ids = [str(one) for one in chosen][:_MOST_AT_ONCE]
        reason = str(form.get("reason", "")) if form is not None else ""

        def respond() -> Response:
            frame = self._frame(request, title=f"{command.capitalize()} {len(ids)} tasks")
            given = {"command": command, "task_ids": ids, "reason": reason or "from the board"}
            own = {"command": command, "reason": reason, "key": secrets.token_hex(8)}
            if form is None:
                planned = ask("bulk", **given, dry_run=True)
                return render("bulk.html", **frame, **own, report=planned, problem=None)
            try:
                report = ask("bulk", **given, expect_revs=_revisions(form, ids), key=str(form.get("key", "")) or None)
            except AofError as error:
                return render("bulk.html", status_of(error), **frame, **own, report=None, problem=problem_of(error))
            if report["refused"]:
                return render("bulk.html", 422, **frame, **own, report=report, problem=None)
            return _done(None, f"{report['changed']} tasks: {command}", None)

        return await anyio.to_thread.run_sync(respond)


def _operations(request: Request) -> Operations:
    return Operations(request.app.state.follower.fabric, request.scope[CALLER])


async def _read_form(request: Request) -> FormData | None:
    """The form that was sent; None where the dialog is only to be shown."""
    if request.method != "POST":
        return None
    check_origin(request)
    return await read_form(request, _MOST_BODY)


def _field_view(field: Field, task: TaskData, value: str, was: str | None) -> dict[str, Any]:
    """A field as it is drawn; `was` is what it began with, where the task has changed since."""
    now = field.value(task)
    typed = value if was is None or value != was else now
    return {
        "of": field,
        "value": typed,
        "was": now,
        "choices": field.choices(task) if field.choices is not None else (),
        "suggested": field.suggested(task),
        "now": now if was is not None and now not in (typed, was) else None,
    }


def _revisions(form: FormData, ids: list[str]) -> dict[str, int]:
    """The revisions that were shown, as `rev=ID=N`; each task has one."""
    pairs = (str(one).rpartition("=")[::2] for one in form.getlist("rev"))
    found = {name: int(rev) for name, rev in pairs if _is_revision(rev)}
    if set(ids) - set(found):
        raise InvalidInput("this form does not say for which versions it is", "choose the tasks on the board again")
    return found


def _is_revision(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) <= _DIGITS


def _not_offered(action: PageAction, task: TaskData, ask: Operations) -> Refused:
    """Why no form is shown: the action would be refused."""
    if not ask.may(action.operation):
        return NotAllowed(f"your token does not allow you to {action.operation}", "sign in with one that does")
    message = f"{action.label} is not possible while {task['id']} is {task['status']}"
    return Refused(message, "open the task to see what can be done with it")


def _arguments(action: PageAction, task: TaskData, values: Values, was: Values, form: FormData) -> dict[str, Any]:
    """The parameters of the operation: those of the form, the task, and the revision and the key that it came with."""
    touched = {name: value for name, value in values.items() if value != was[name]}
    given = action.arguments(values if action.shapes is None else touched)
    if task:
        given["task_id"] = task["id"]
    known = {field.name for field in msgspec.structs.fields(OPERATIONS[action.operation].parameters)}
    rev, key = str(form.get("rev", "")), str(form.get("key", ""))
    if action.checks and "expect_rev" in known:
        if not _is_revision(rev):
            raise InvalidInput("this form does not say for which version it is", "reload the page and send it again")
        given["expect_rev"] = int(rev)
    if key and "key" in known:
        given["key"] = f"page-{key[:40]}"
    return given


def _changed(details: dict[str, Any]) -> list[dict[str, str]]:
    """The fields that differ between the version that the person saw and the present one."""
    seen, now = details.get("expected", {}), details.get("current", {})
    skipped = {"rev", "updatedAt", "lastTransitionAt", "body"}
    names = [name for name in now if name not in skipped and seen.get(name) != now.get(name)]
    return [{"name": name, "was": _as_text(seen.get(name)), "is": _as_text(now.get(name))} for name in names]


def _as_text(value: Any) -> str:
    return "nothing" if value in (None, "", [], {}) else value if isinstance(value, str) else json.dumps(value)


def _done(task_id: str | None, text: str, warning: str | None) -> Response:
    """The answer after a write: an event that the scripts of the page show."""
    event = {"aof:done": {"text": text, "task": task_id, "warning": warning}}
    headers = {"HX-Trigger": json.dumps(event), "HX-Reswap": "none"}
    return Response("", headers=HEADERS | headers, media_type="text/html")
