"""Every hint can be followed: what it shows is a call that there is, and in every status it leads on."""

from __future__ import annotations

import ast
import re
import shlex
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

import aof
from aof.api.call import (
    EVERYTHING,
    HELP,
    Caller,
    HintReader,
    error_payload,
    offered_call,
    parameters,
    perform,
    wire_names,
)
from aof.api.catalogue import BY_NAME, RARE, SCOPES, TIERS, listed_in, shown_fields
from aof.api.fabric import Fabric
from aof.errors import AofError, Call
from aof.kernel.model import STATUSES
from aof.surfaces.cli.aliases import INSTEAD
from aof.surfaces.cli.grammar import Verb
from aof.surfaces.cli.help import help_text, reference
from aof.surfaces.cli.hints import spell
from aof.surfaces.cli.parser import below, find_verb, parse
from aof.surfaces.cli.verbs import VERBS
from aof.surfaces.mcp.tools import spell as mcp_spelling
from aof.testing import memory_fabric
from tests.support.requirements import requirement
from tests.support.workflows import REVIEW

SOURCE = Path(aof.__file__).parent
PLACEHOLDER = "…"
_COMMAND = re.compile(r"'(aof [^']+)'")
_SEVERAL = re.compile(r", then |, or |; ")


# --- as they are written in the source


def _nodes(marked: str) -> Iterator[tuple[Path, ast.AST]]:
    """What the source is made of, where it has this mark; to parse all of it would delay every run."""
    for path in sorted(SOURCE.rglob("*.py")):
        if marked in (text := path.read_text()):
            yield from ((path, node) for node in ast.walk(ast.parse(text)))


def _written() -> Iterator[tuple[str, Call]]:
    """Every call in the source, with 001 for what is only known when it is made."""
    for path, node in _nodes("Call("):
        match node:
            case ast.Call(func=ast.Name(id="Call"), args=[ast.Constant(value=str(operation)), ast.Dict() as given]):
                where = f"{path.relative_to(SOURCE)}:{node.lineno}"
                yield (
                    where,
                    Call(
                        operation,
                        dict(
                            _filled(name, value) for name, value in zip(given.keys, given.values, strict=True) if name
                        ),
                    ),
                )


def _filled(name: ast.expr | None, value: ast.expr) -> tuple[str, Any]:
    assert isinstance(name, ast.Constant)
    try:
        return str(name.value), ast.literal_eval(value)
    except ValueError:
        return str(name.value), "001"


WRITTEN = dict(_written())


@pytest.mark.parametrize("where", WRITTEN)
def test_a_call_in_the_source_is_one_of_the_catalogue_with_all_that_it_needs(where: str) -> None:
    call = WRITTEN[where]
    operation = BY_NAME[call.operation]
    known = {field.name: field for field in msgspec.structs.fields(operation.parameters)}
    assert call.arguments.keys() <= {*RARE, *(field.name for field in shown_fields(operation))}  # rare: as it was given
    assert call.arguments.keys() >= {name for name, field in known.items() if field.required}
    assert call.arguments.keys() >= set(operation.tool_requires)


@pytest.mark.parametrize("where", WRITTEN)
def test_the_command_line_spells_a_call_with_every_word_of_it(where: str) -> None:
    call = WRITTEN[where]
    read = parse(shlex.split(spell(call))[1:])
    assert read.verb is not None
    given = sum(value is not False for value in call.arguments.values())  # a switch that is off is left out
    assert len(read.values) - ("action" in read.values) == given, spell(call)


@pytest.mark.parametrize("tier", TIERS)
def test_every_call_in_the_source_is_shown_to_each_reader_as_one_that_it_has_or_in_words(tier: str) -> None:
    listed = {operation.tool: operation for operation in listed_in((tier,))}
    for where, call in WRITTEN.items():
        for scope in SCOPES:
            reader = HintReader(tiers=(tier,), scope=scope)
            hint = error_payload(AofError("it is refused", "do this", call), mcp_spelling, reader).hint
            named = re.findall(r"aof_\w+", hint)
            fitted = offered_call(call, reader)
            if fitted is None:
                assert named in ([], [HELP, BY_NAME[call.operation].tool]), (where, hint)
                assert hint.startswith(("do this; that ", f"do this; {HELP}(")), (where, hint)
                continue
            operation = BY_NAME[fitted.operation]
            assert named[0] in listed, (where, hint)
            assert SCOPES.index(scope) >= SCOPES.index(operation.scope), (where, hint)
            fields = {field.name: field for field in shown_fields(operation)}
            assert fitted.arguments.keys() <= {*RARE, *fields}, (where, hint)
            assert fitted.arguments.keys() >= {name for name, field in fields.items() if field.required}, (where, hint)


def test_commands_in_a_hint_are_for_the_machine_that_holds_the_data() -> None:
    hint = error_payload(AofError("it is damaged", "run 'aof doctor'"), mcp_spelling).hint
    assert hint == "run 'aof doctor', on the machine that holds the data"
    assert error_payload(AofError("no", "ask somebody"), mcp_spelling).hint == "ask somebody"


def _texts() -> Iterator[str]:
    """Every command that a text puts into quotes, with 1 for what is filled in. The command line itself names verbs."""
    for path, node in _nodes("'aof "):
        if "cli" in path.parts:
            continue
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield from _COMMAND.findall(node.value)
        elif isinstance(node, ast.JoinedStr):
            parts = (part.value if isinstance(part, ast.Constant) else "1" for part in node.values)
            yield from _COMMAND.findall("".join(map(str, parts)))


@pytest.mark.parametrize("text", sorted({*_texts()}))
def test_a_command_in_quotes_is_one_that_can_be_called(text: str) -> None:
    assert parse(shlex.split(text)[1:]).verb


@pytest.mark.parametrize("guess", INSTEAD)
def test_what_does_what_another_tools_verb_does_is_a_verb_of_ours(guess: str) -> None:
    commands = [part for part in _SEVERAL.split(INSTEAD[guess]) if part.startswith("aof ")]
    for command in commands:
        verb, *words = shlex.split(command)[1:]
        known = {option.name for option in find_verb(verb).options}
        assert {word.rstrip(",") for word in words if word.startswith("--")} <= known
    assert commands or guess == "config"


@pytest.mark.parametrize("verb", VERBS, ids=lambda verb: str(verb.name))
def test_the_example_of_a_verb_can_be_called(verb: Any) -> None:
    words = shlex.split(verb.example.partition(" > ")[0])
    called = parse(words[1:]).verb
    assert called is not None
    assert called is verb or (verb.is_group and called in below(verb))


@pytest.mark.parametrize("verb", [verb for verb in VERBS if verb.help], ids=lambda verb: str(verb.name))
def test_what_a_verb_has_to_say_beside_its_words_is_in_its_help_and_in_the_reference(verb: Verb) -> None:
    assert verb.help in help_text(verb)
    assert verb.help in reference()


# --- as they are told


def _claimed(fabric: Fabric, agent: str = "ada", **given: Any) -> str:
    task_id = fabric.create("Do it", **given).task_id
    fabric.claim(task_id, agent=agent)
    return task_id


def _again(fabric: Fabric) -> str:
    """Held by somebody who has had an earlier run of it, and must name the run."""
    task_id = _claimed(fabric)
    fabric.release(task_id, agent="ada")
    fabric.claim(task_id, agent="ada")
    return task_id


def _after(fabric: Fabric, task_id: str, *steps: str, **given: Any) -> str:
    for step in steps:
        getattr(fabric, step)(task_id, **given)
    return task_id


def _waiting(fabric: Fabric) -> str:
    return fabric.create("Later", depends_on=[fabric.create("First").task_id]).task_id


def _dead_dependency(fabric: Fabric) -> str:
    first = fabric.create("First").task_id
    later = fabric.create("Later", depends_on=[first]).task_id
    fabric.cancel(first)
    return later


def _below_a_cancelled_one(fabric: Fabric) -> str:
    above = fabric.create("Above").task_id
    below = fabric.create("Below", parent_id=above).task_id
    fabric.cancel(above)
    return below


def _busy(fabric: Fabric) -> str:
    _claimed(fabric, "bob", resource="gpu")
    return fabric.create("Do it", resource="gpu").task_id


STATES: dict[str, Callable[[Fabric], str]] = {
    "ready": lambda fabric: fabric.create("Do it").task_id,
    "backlog": lambda fabric: fabric.create("Do it", backlog=True).task_id,
    "draft": lambda fabric: fabric.create("Do it", metadata={"draft": True}).task_id,
    "waiting": _waiting,
    "busy": _busy,
    "held by another": lambda fabric: _claimed(fabric, "bob"),
    "held": _claimed,
    "held again": _again,
    "review": lambda fabric: _after(fabric, _claimed(fabric), "complete", agent="ada"),
    "blocked": lambda fabric: _after(fabric, fabric.create("Do it").task_id, "block", reason="no key"),
    "paused": lambda fabric: _after(fabric, fabric.create("Do it").task_id, "pause"),
    "blocked by a dead dependency": _dead_dependency,
    "retrying": lambda fabric: _after(fabric, _claimed(fabric), "fail", agent="ada"),
    "done": lambda fabric: _after(fabric, _claimed(fabric, review=False), "complete", agent="ada"),
    "cancelled": lambda fabric: _after(fabric, fabric.create("Do it").task_id, "cancel"),
    "cancelled below another": _below_a_cancelled_one,
    "deadletter": lambda fabric: _after(fabric, _claimed(fabric, max_attempts=1), "fail", agent="ada"),
    "archived": lambda fabric: _after(fabric, fabric.create("Do it").task_id, "cancel", "archive"),
    "missing": lambda _fabric: "TASK-2020-01-01-001",
}
ACTIONS: dict[str, dict[str, Any]] = {
    "claim": {"agent": "ada"},
    "heartbeat": {"agent": "ada"},
    "release": {"agent": "ada"},
    "progress": {"agent": "ada", "text": "half of it"},
    "complete": {"agent": "ada"},
    "approve": {},
    "reject": {"blockers": ["no tests"]},
    "fail": {"agent": "ada"},
    "cancel": {},
    "block": {"reason": "no key"},
    "unblock": {},
    "pause": {},
    "resume": {},
    "retry": {"reason": "again"},
    "archive": {},
    "edit": {"title": "Do that"},
    "workflow_attach": {},
}
MOVES = [("update", {"agent": "ada", "status": status}) for status in STATUSES]
MOST_STEPS = 3


def _with_placeholders_filled(call: Call) -> dict[str, Any]:
    filled = {"workflow": "review"}
    given = {name: filled.get(name, "x") if value == PLACEHOLDER else value for name, value in call.arguments.items()}
    return wire_names(Call(call.operation, given))


def _followed(fabric: Fabric, refusal: AofError, reader: HintReader = EVERYTHING) -> list[str]:
    """What was refused on the way that the hints show, until a call is not, or until words say what it takes."""
    steps: list[str] = []
    while len(steps) < MOST_STEPS:
        steps.append(f"{refusal.message} → {refusal.hint}: {refusal.call}")
        assert refusal.call is not None, steps
        call = offered_call(refusal.call, reader)
        if call is None:
            assert reader != EVERYTHING, steps
            return steps
        operation = BY_NAME[call.operation]
        given = parameters(operation, _with_placeholders_filled(call), tool=True)
        try:
            perform(fabric, operation, given, Caller("ada"))
        except AofError as error:
            refusal = error
        else:
            return steps
    raise AssertionError("\n".join(steps))


@requirement("tools.errors.hint-works")
@pytest.mark.parametrize("tier", ["all", "core"])
@pytest.mark.parametrize("state", STATES)
def test_in_every_state_the_hints_lead_on_by_calls_that_succeed(state: str, tier: str) -> None:
    """A hint that was followed may be met by another one: a task that waits is claimed only after what it waits for."""
    refused = 0
    for action, given in (*ACTIONS.items(), *MOVES):
        fabric = memory_fabric(actor="ada", workflows=(REVIEW,))
        task_id = STATES[state](fabric)
        fabric.create("Something else to do")
        try:
            getattr(fabric, action)(task_id, **given)
        except AofError as error:
            refused += 1
            _followed(fabric, error, HintReader(tiers=(tier,)))
    assert refused


@requirement("tools.errors.hint-works")
@pytest.mark.parametrize(
    ("state", "action", "step"),
    [
        ("backlog", "heartbeat", "update"),
        ("draft", "complete", "edit"),
        ("blocked", "approve", "unblock"),
        ("deadletter", "progress", "retry"),
        ("archived", "claim", "reopen"),
        ("archived", "retry", "reopen"),
        ("held by another", "approve", "show"),
        ("held again", "approve", "complete"),
        ("held again", "complete", "complete"),
        ("held again", "progress", "progress"),
        ("held again", "fail", "fail"),
        ("held again", "release", "release"),
        ("ready", "workflow_attach", "create"),
    ],
)
def test_the_first_hint_is_the_step_that_is_missing(state: str, action: str, step: str) -> None:
    fabric = memory_fabric(actor="ada", workflows=(REVIEW,))
    task_id = STATES[state](fabric)
    with pytest.raises(AofError) as refused:
        getattr(fabric, action)(task_id, **ACTIONS[action])
    assert refused.value.call is not None
    assert refused.value.call.operation == step
    assert len(_followed(fabric, refused.value)) == 1
