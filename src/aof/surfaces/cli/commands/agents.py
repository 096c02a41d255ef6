"""Verbs about agents: who connects and how, and the org chart."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from threading import Timer
from typing import Any, Protocol

import msgspec

from aof.errors import NoDataDirectory
from aof.kernel import limits
from aof.kernel.identity import refuse_in_run
from aof.runs import brief
from aof.support.printable import clean
from aof.surfaces.cli.output import Answer, Context
from aof.surfaces.cli.parser import UsageError, chosen_action
from aof.surfaces.cli.screen import Screen

_SHOWN, _EXCERPT = 30, 12  # lines of a file: more than the first number are shown by their beginning
_HOOK_SECONDS = 5
_NO_ANSWER = "AOF did not answer"
_WITHOUT = "Begin without it, tell the person, and try later: aof prime"
_USES = {"link": "(link to the board)", "session": "(board session)"}


class WrittenFile(Protocol):
    """A file that connecting an agent writes."""

    path: str
    action: str
    added: str
    edited: bool


def init(context: Context, values: dict[str, Any]) -> Answer:
    """`aof init`."""
    refuse_in_run("set up a data directory or its agents", os.environ)
    dry, http = values.get("dry_run", False), values.get("http")
    where = context.options.get("data_dir")
    root, fresh = context.service("bootstrap").plan_data_dir(where)
    agents = tuple(values["agents"]) if "agents" in values else None
    settings = context.service("agents.connect")
    if values.get("remove", False):
        if http is not None:
            raise UsageError("'aof init --remove' takes no --http", "it removes both forms: aof init --remove")
        return _removed(root, settings.unwire_agents(root, agents, dry_run=dry).changes, dry=dry)
    made, driver = fresh and http is None, False
    if not dry:
        settings.wire_agents(root, agents, http=http, dry_run=True)  # with an error here nothing is made at all
        if http is None:
            context.service("bootstrap").init_data_dir(
                where,
                actor=context.options.get("actor"),
                shared=values.get("shared"),
                solo=values.get("solo", False),
            )
            driver = context.service("bootstrap").add_merge_driver(root)
    changes, steps, found = settings.wire_agents(
        root, agents, http=http, dry_run=dry, sure=None if context.options.get("json") else _sure
    )
    data = {
        "dataDir": root,
        "created": made and not dry,
        "dryRun": dry,
        "found": found,
        "agents": _shown(changes),
        "next": steps,
    }

    def text(screen: Screen) -> None:
        if http is None:
            screen.line(f"{root} {('would be created' if dry else 'created') if made else 'already exists'}")
            if values.get("solo", False):
                screen.line(f"who ran a task {'could' if dry else 'may'} approve it: selfReview = true in aof.toml")
        if driver:
            screen.line(".git/config: merge driver 'aof' added, for 'git pull' and 'aof merge'")
        _list(screen, changes, dry=dry, found=found, meant=agents or ())
        for step in steps:
            screen.line(f"next: {step}")

    return Answer(data, text)


def _removed(root: str, changes: list[WrittenFile], *, dry: bool) -> Answer:
    data = {"dataDir": root, "created": False, "dryRun": dry, "agents": _shown(changes), "next": []}

    def text(screen: Screen) -> None:
        _list(screen, changes, dry=dry)
        if not changes:
            screen.line("nothing that was written for agents is here")

    return Answer(data, text)


def _shown(changes: list[WrittenFile]) -> list[dict[str, Any]]:
    """The changes as data; what somebody had edited is shown in full."""
    return [
        {"path": one.path, "action": one.action} | ({"edited": True, "lines": one.added} if one.edited else {})
        for one in changes
    ]


def _list(
    screen: Screen, changes: list[WrittenFile], *, dry: bool, found: Sequence[str] = (), meant: Sequence[str] = ()
) -> None:
    """What was written, or would be; of the agents that were meant, that nothing was left to do."""
    if meant and not changes:
        screen.line(f"{', '.join(meant)}: connected already")
    for one in found if dry else ():
        screen.line(f"found {one}")
    for change in changes:
        if change.action == "keep":
            screen.line(f"{change.path}: {'would be ' if dry else ''}kept, as somebody has edited it")
            continue
        edited = ", although somebody had edited it:" if change.edited else ""
        screen.line(f"{change.path}: {'would ' if dry else ''}{change.action}{'' if dry else 'd'}{edited}")
        if change.edited:
            screen.block(change.added)
        elif dry:
            screen.block(_beginning(change.added))


def _beginning(added: str) -> str:
    """What a file gets, or how it begins if it is long."""
    lines = added.splitlines()
    return (
        added if len(lines) <= _SHOWN else "\n".join([*lines[:_EXCERPT], f"… and {len(lines) - _EXCERPT} more lines"])
    )


def _sure(found: list[str], changes: list[WrittenFile]) -> bool:
    """Ask a person; whoever cannot be asked has not agreed."""
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        return False
    sys.stdout.write(clean("".join(f"found {one}\n" for one in found) + "\n", lines=True))
    for change in changes:
        sys.stdout.write(clean(f"{change.path} ({change.action})\n{_beginning(change.added)}\n\n", lines=True))
    sys.stdout.write("Write this, so that your agents find AOF? [y/N] ")
    sys.stdout.flush()
    return sys.stdin.readline().strip().lower() in ("y", "yes")


def mcp(context: Context, values: dict[str, Any]) -> Answer:
    """`aof mcp`."""
    options = context.options
    serve_mcp = context.service("serve").serve_mcp
    serve_mcp(options.get("data_dir"), options.get("actor"), values.get("tools"), keep=bool(values.get("keep")))
    return Answer(None, lambda _screen: None)


def prime(context: Context, values: dict[str, Any]) -> Answer:
    """`aof prime`."""
    if not values.get("hook", False):
        return _primed(context, values)
    watch = Timer(_HOOK_SECONDS, _give_up)
    watch.daemon = True
    watch.start()
    try:
        answer = _primed(context, values)
    except NoDataDirectory:
        answer = Answer({"text": ""}, lambda _screen: None)
    except Exception as error:  # noqa: BLE001 - whatever it is, the session begins
        told = f"{_NO_ANSWER}: {clean(str(error))}\n{_WITHOUT}"
        answer = Answer({"text": told}, lambda screen: screen.block(told))
    watch.cancel()
    return answer


def _give_up() -> None:
    sys.stdout.write(f"{_NO_ANSWER} in {_HOOK_SECONDS} seconds.\n{_WITHOUT}\n")
    sys.stdout.flush()
    os._exit(0)


def _primed(context: Context, values: dict[str, Any]) -> Answer:
    if problem := limits.name("agent", values.get("agent", context.fabric.actor)):
        raise problem
    text = brief.prime(context.fabric, values.get("agent", context.fabric.actor))
    return Answer({"text": text}, lambda screen: screen.block(text.rstrip()))


def token(context: Context, values: dict[str, Any]) -> Answer:
    """`aof admin token create`, `list` and `revoke`."""
    refuse_in_run("use tokens", os.environ)
    serving, data_dir = context.service("serve"), context.options.get("data_dir")
    action = chosen_action(
        "admin token", dict(values), ("create", "list", "revoke"), "for example: aof admin token create ada"
    )
    which = values.get("which")
    if action == "create":
        holder = values.get("holder") or which
        if which not in (None, holder):
            raise UsageError(
                f"the token is for '{which}' or for '{holder}'", f"for example: aof admin token create {which}"
            )
        made = serving.create_token(
            data_dir,
            holder or context.options.get("actor"),
            values.get("role"),
            scope=values.get("scope"),
            expires=values.get("expires"),
            tools=values.get("tools"),
        )
        until = f" until {made.expires_at}" if made.expires_at else ""
        said = f"{made.token}\nThis is shown once. It lets {made.actor} call with the scope {made.scope}{until}."
        return Answer(made, lambda screen: screen.block(said))
    if action == "list":
        known = serving.list_tokens(data_dir)

        def text(screen: Screen) -> None:
            rows = [
                (
                    one.id,
                    one.actor,
                    one.role,
                    one.scope,
                    _USES.get(one.use or "", one.tools or ""),
                    one.created_at,
                    "never" if one.expires_at is None else f"{one.expires_at}{' (expired)' if one.expired else ''}",
                )
                for one in known
            ]
            screen.table(
                ("ID", "ACTOR", "ROLE", "SCOPE", "TOOLS", "CREATED", "EXPIRES"),
                rows,
                none="there are no tokens; make one: aof admin token create NAME",
            )

        return Answer({"tokens": known}, text)
    if not which:
        raise UsageError("'aof admin token revoke' needs the token's ID", "see the tokens: aof admin token list")
    serving.revoke_token(data_dir, which)
    return Answer({"id": which, "revoked": True}, lambda screen: screen.line(f"{which} is no longer valid"))


_PROBLEMS, _UNREADABLE, _NO_ROUTE = 1, 2, 1
_IN_FORCE = {
    "absent": "there is no org chart, so nothing is checked against one",
    "last_good": "the chart cannot be used; the last version that could is in force",
    "unusable": "the chart cannot be used, and there is no earlier version",
    "unreadable": "the chart cannot be read, and there is no earlier version",
}


def org(context: Context, values: dict[str, Any]) -> Answer:
    """`aof org show`, `aof org check` and `aof org route`."""
    actions = {"show": _show, "check": _check, "route": _route}
    given = dict(values)
    action = chosen_action("org", given, actions, "for example: aof org check")
    if given and action != "route":
        raise UsageError(f"'aof org {action}' takes nothing else", f"for example: aof org {action}")
    return actions[action](context, given)


def _check(context: Context, _given: dict[str, Any]) -> Answer:
    report = context.fabric.org_report()
    problems = [finding.as_dict() for finding in report.findings]
    ok = all(finding.severity == "note" for finding in report.findings)
    unreadable = any(finding.code == "unreadable" for finding in report.findings)

    def text(screen: Screen) -> None:
        for finding in report.findings:
            place = ":".join(str(part) for part in (report.path, finding.line, finding.column) if part is not None)
            detail = f"{finding.where}: {finding.detail}"
            screen.finding(place, finding.severity, detail, finding.code, finding.fix)
        screen.line(_IN_FORCE.get(report.state) or (f"{report.path} is fine" if ok else f"{report.path} is in force"))

    data = {"ok": ok, "path": report.path, "state": report.state, "problems": problems}
    return Answer(data, text, _UNREADABLE if unreadable else 0 if ok else _PROBLEMS)


def _show(context: Context, _given: dict[str, Any]) -> Answer:
    shown = context.fabric.org_show()

    def text(screen: Screen) -> None:
        if shown["state"] != "current":
            screen.line(f"{_IN_FORCE[shown['state']]}{'' if shown['state'] == 'absent' else '; see: aof org check'}")
        if shown["agents"]:
            _tables(screen, shown)

    return Answer(shown, text)


def _tables(screen: Screen, shown: dict[str, Any]) -> None:
    screen.table(
        ("AGENT", "KIND", "TEAM", "LOAD", "RUNNER", "ESCALATES TO", "ROLES", "CAPABILITIES"),
        [
            (
                agent["id"] + _state(agent),
                agent["kind"],
                agent["team"] or "-",
                _of(agent["load"], agent["concurrency"]),
                agent["runner"],
                " → ".join(agent["escalatesTo"]) or "-",
                ", ".join(agent["roles"]) or "-",
                ", ".join(
                    name if proficiency == 1.0 else f"{name}:{proficiency:g}"
                    for name, proficiency in agent["capabilities"].items()
                )
                or "-",
            )
            for agent in shown["agents"]
        ],
    )
    if shown["teams"]:
        screen.line()
        rows = [
            (
                team["id"],
                _of(team["load"], team["maxConcurrent"]),
                team["orchestrator"] or "-",
                team["lead"] or "-",
                ", ".join(team["members"]) or "-",
            )
            for team in shown["teams"]
        ]
        screen.table(("TEAM", "LOAD", "ORCHESTRATOR", "LEAD", "MEMBERS"), rows)
    if shown["roles"]:
        screen.line()
        screen.table(("ROLE", "AGENTS"), [(role, ", ".join(who) or "-") for role, who in shown["roles"].items()])


def _state(agent: dict[str, Any]) -> str:
    return " (inactive)" if not agent["active"] else "" if agent["available"] else " (unavailable)"


def _of(load: int, most: int | None) -> str:
    return f"{load}/{most}" if most is not None else str(load)


def _route(context: Context, given: dict[str, Any]) -> Answer:
    if not given:
        raise UsageError("'aof org route' needs a task, or what one would ask for", "for example: aof org route 001")
    if "task_id" in given and len(given) > 1:
        raise UsageError("a task says itself whom it is for", f"for example: aof org route {given['task_id']}")
    route = context.fabric.org_route(given.pop("task_id", None), **given)

    def text(screen: Screen) -> None:
        for number, step in enumerate(route.steps, start=1):
            screen.line(f"{number}. {step.looked_for}: {step.outcome}")
        shown = {"routed": "good", "waits": "high", "no_route": "error"}[route.state]
        screen.line(screen.paint(route.agent or route.state, shown))
        if route.others:
            screen.line()
            screen.table(("NOT", "BECAUSE"), list(route.others.items()), whole=True)

    data = msgspec.to_builtins(route) | {"agent": route.agent}
    if route.state != "no_route":
        return Answer(data, text)
    hint = "change what the task asks for, or the org chart: aof org show"
    return Answer(data, text, _NO_ROUTE, {"code": "no_route", "message": route.reason, "hint": hint})
