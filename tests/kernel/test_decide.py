"""Hostile and odd input is a refusal with a code and a hint, for every command, and never an exception."""

from __future__ import annotations

import typing
from typing import Any

import hypothesis.strategies as st
import msgspec
import pytest
from hypothesis import given, settings

from aof.errors import AofError
from aof.kernel import commands
from aof.kernel.decide import _DECIDERS
from tests.support.world import World

MEGABYTE = "x" * 1_000_000
ODD_IDS = [
    "",
    "TASK-2026-03-02-001\n",
    "TASK-2026-03-02-\u0660\u0660\u0661",
    "../../etc/passwd",
    "task-2026-03-02-001",
    MEGABYTE,
    "\ud800",
]
NAMES = ["", " ", "a b", "a\nb", "../x", "-x", "x" * 129, "ä", "a/b", "\x00"]
FILLED: dict[str, Any] = {
    "kind": "blocked",
    "target_id": "outputs/report.md",
    "title": "x",
    "changes": {"title": "x"},
    "text": "x",
    "blockers": ("x",),
    "reason": "x",
    "status": "ready",
    "blocker_id": "TASK-2026-03-02-002",
    "template": {"name": "review", "hops": [{"id": "implement", "role": "developer"}]},
    "hop": "implement",
    "state": "delivered",
}


def filled(kind: type[commands.OnTask], /, **fields: Any) -> commands.OnTask:
    """A command of this kind, with something for each field that it has."""
    known = {field.name for field in msgspec.structs.fields(kind)}
    return kind(**({name: value for name, value in FILLED.items() if name in known} | fields))


def test_every_command_has_a_row() -> None:
    kinds = {kind for kind in vars(commands).values() if isinstance(kind, type) and issubclass(kind, commands.OnTask)}
    bases: tuple[type[commands.OnTask], ...] = (commands.OnTask, commands.OwnRule, commands.OnDocument)
    assert set(_DECIDERS) == kinds.difference(bases)


@pytest.mark.parametrize("kind", _DECIDERS)
def test_an_id_that_names_no_task_is_refused(kind: type[commands.OnTask]) -> None:
    creates = issubclass(kind, commands.Create)
    for task_id in (*ODD_IDS, *(() if creates else ("TASK-2026-03-02-404",))):
        refusal = World().refused(filled(kind, actor="pm", task_id=task_id))
        assert refusal.code == ("invalid" if creates else "task_not_found"), task_id[:40]


@pytest.mark.parametrize("kind", _DECIDERS)
def test_an_agent_whose_name_is_none_is_refused(kind: type[commands.OnTask]) -> None:
    world = World()
    task = world.next_id() if issubclass(kind, commands.Create) else world.create()
    for name in NAMES:
        assert world.refused(filled(kind, actor="pm", agent=name, task_id=task)).code == "invalid", name


@pytest.mark.parametrize("actor", ["", " ", "a\nb", "x" * 129, "\x1b[31m", "\x00"])
def test_an_actor_that_cannot_stand_on_a_line_is_refused(actor: str) -> None:
    world = World()
    assert world.refuse(commands.Pause, world.create(), actor).kind == "invalid"


@pytest.mark.parametrize(
    "fields",
    [
        {"title": MEGABYTE},
        {"title": ""},
        {"title": " \t "},
        {"title": "a\nb"},
        {"title": "a\u2028b"},
        {"title": "a\x1b[2Jb"},
        {"title": "\x00"},
        {"title": "\ud800"},
        {"body": "x" * 1_000_001},
        {"body": "\x00"},
        {"status": "done"},
        {"status": "nonsense"},
        {"priority": "urgent"},
        {"fields": {"visibility": "secret"}},
        {"assignee": "a b"},
        {"role": "../x"},
        {"team": "a\n"},
        {"fields": {"owner": "ä"}},
        {"fields": {"resource": "a/b"}},
        {"fields": {"lease": None}},
        {"workflow": "../x"},
        {"tags": ("",)},
        {"tags": ("a\nb",)},
        {"tags": ("x" * 257,)},
        {"tags": ("x",) * 51},
        {"depends_on": ("../x",)},
        {"depends_on": ("TASK-2026-03-02-001\n",)},
        {"depends_on": ("TASK-2026-03-02-404",) * 501},
        {"parent_id": "../x"},
        {"key": ""},
        {"key": "a\nb"},
        {"key": "x" * 257},
        {"max_attempts": 0},
        {"max_attempts": 101},
        {"metadata": {"a": MEGABYTE}},
        {"metadata": {"a": {1, 2}}},
        {"metadata": {"leaseTtlMs": -1}},
        {"metadata": {"leaseTtlMs": True}},
        {"fields": {"acceptance": (object(),)}},
        {"fields": {"constraints": {"a": "x" * 30_000}, "profile": {"a": "x" * 30_000}}},
    ],
)
def test_a_creation_out_of_bounds_is_refused_and_leaves_nothing(fields: dict[str, Any]) -> None:
    world = World()
    command = commands.Create(**({"actor": "pm", "task_id": world.next_id(), "title": "x"} | fields))
    assert world.refused(command).kind == "invalid"
    assert world.events == []


def test_data_that_is_nested_too_deep_is_refused() -> None:
    deep: dict[str, Any] = {}
    for _ in range(3_000):
        deep = {"a": deep}
    world = World()
    assert world.refuse(commands.Create, world.next_id(), title="x", metadata=deep).code == "invalid"


def test_text_in_any_language_is_kept_as_it_is() -> None:
    world = World()
    task = world.create("Überprüfe 日本語 🎉", body="Ω\n")
    assert (world.tasks[task].title, world.tasks[task].body) == ("Überprüfe 日本語 🎉", "Ω\n")


TEXTS = [None, "", " ", "x", "ada", "a\nb", "\x00", "\ud800", "../x", "x" * 2_000, "done", "blocked"]
TEXTS += ["RUN-2026-03-02-001-1"]
OTHERS = [-1, 0, 1, 10**30, True, float("nan"), {}, {"a": 1}, {"title": 5}, (), ("x",), ("",), ("../x",)]
ODD = st.sampled_from(
    [*TEXTS, *OTHERS, ("TASK-2026-03-02-001",), {"dependsOn": [5]}, {"metadata": {"leaseTtlMs": "x"}}]
)


@given(data=st.data())
@settings(max_examples=300, deadline=None)
def test_no_value_that_fits_its_field_raises(data: st.DataObject) -> None:
    """Surfaces convert to the commands' types first; whatever fits those types is answered."""
    kind = data.draw(st.sampled_from(sorted(_DECIDERS, key=lambda kind: kind.__name__)))
    world = World()
    task = world.into(data.draw(st.sampled_from(["ready", "in-progress", "review", "blocked", "done"])))
    fields: dict[str, Any] = {"actor": "ada", "task_id": world.next_id() if kind is commands.Create else task}
    hints = typing.get_type_hints(kind)
    for field in msgspec.structs.fields(kind):
        if field.name == "secret_digest":
            continue  # no caller gives it: AOF makes it of the secret
        if field.name not in fields and (field.required or data.draw(st.booleans())):
            value = data.draw(ODD)
            try:
                msgspec.convert(value, hints[field.name])
            except (msgspec.ValidationError, OverflowError, UnicodeEncodeError):
                value = FILLED.get(field.name, msgspec.UNSET)
            if value is not msgspec.UNSET:
                fields[field.name] = value
    command = filled(kind, **fields)
    verdict = world.verdict(command)
    if isinstance(verdict, AofError):
        assert verdict.code
        assert verdict.hint
    else:
        world.commit(command, verdict)


def test_a_repeated_request_with_half_a_character_is_answered_again() -> None:
    world = World()
    task = world.into("done")
    said = {"notes": "\ud800", "key": "k-1"}
    world.act(commands.Complete, task, "pm", **said)
    assert world.act(commands.Complete, task, "pm", **said).repeats == "k-1"
