"""The facade is what the generator makes of the operations, and has everything that the catalogue names."""

from __future__ import annotations

import inspect
import traceback
import typing
from pathlib import Path

import pytest

from aof import errors
from aof.api import facade_generator
from aof.api.catalogue import OPERATIONS
from aof.api.fabric import Fabric
from aof.errors import InvalidInput

_PLAIN = {str, int, float, bool, type(None), ...}


def test_the_committed_facade_and_its_signatures_are_what_the_generator_writes() -> None:
    for path, text in facade_generator.generated().items():
        assert Path(path).read_text("utf-8") == text, "write it anew: python -m aof.api.facade_generator"


def test_every_operation_without_a_call_of_its_own_is_a_method_of_the_fabric() -> None:
    assert [one.name for one in OPERATIONS if one.ask is None and not hasattr(Fabric, one.name)] == []


def test_help_shows_the_parameters_of_an_operation() -> None:
    shown = inspect.signature(Fabric.create)
    assert list(shown.parameters)[:3] == ["self", "title", "brief"]
    assert shown.parameters["depends_on"].default == ()
    assert "Create a task" in (inspect.getdoc(Fabric.create) or "")


def test_prose_needs_no_name(fabric: Fabric) -> None:
    made = fabric.create("Build", "All of it", review=False)
    assert fabric.get(made.task_id).body == "All of it\n"
    run = fabric.claim(made.task_id, agent="ada").run_id
    fabric.progress(made.task_id, "half", percent=50, run=run)
    asked = fabric.ask(made.task_id, "Which?", run=run)
    assert fabric.answer(made.task_id, "this", question=asked.question).question == asked.question
    assert fabric.complete(made.task_id, "all there", run=run).status == "done"
    assert fabric.reopen(made.task_id, "not quite").status == "ready"
    assert fabric.block(made.task_id, "no key").status == "blocked"
    assert fabric.cancel(made.task_id, "not needed").status == "cancelled"


def test_what_is_shown_and_listed_has_types_and_is_plain_data_on_demand(fabric: Fabric) -> None:
    made = fabric.create("Build", "All of it", review=False)
    fabric.claim(made.task_id, agent="ada").complete("built")
    shown, listed = fabric.show(made.task_id), fabric.list()
    assert (shown.id, shown.title, shown.status, shown.priority) == (made.task_id, "Build", "done", "normal")
    assert (shown.body.splitlines()[0], shown.waits, len(shown.attempts)) == ("All of it", None, 1)
    assert shown.result is not None
    assert shown.result["notes"] == "built"
    for answer in (shown, fabric.show(made.task_id, full=False), fabric.show(made.task_id, at=1), listed):
        assert type(answer.to_dict()) is dict
    assert list(listed.to_dict()["tasks"]) == (shown_row := [fabric.list().tasks[0].to_dict()])
    assert type(shown_row[0]) is dict


def test_everything_that_python_is_given_is_typed_and_plain_data_on_demand() -> None:
    names: dict[str, typing.Any] = {}
    path = next(path for path in facade_generator.generated() if str(path).endswith(".pyi"))
    exec(Path(path).read_text("utf-8"), names)
    methods = {name: one for name, one in vars(names["Facade"]).items() if inspect.isfunction(one)}
    found = {name: {*_parts(typing.get_type_hints(one)["return"])} - _PLAIN for name, one in methods.items()}
    untyped = {name for name, kinds in found.items() if not all(hasattr(kind, "to_dict") for kind in kinds)}
    assert untyped == {"portable_follow"}, "its lines are documents of others' schema"
    assert len(methods) > 100


def _parts(kind: typing.Any) -> typing.Iterator[typing.Any]:
    """What a type consists of: the items of a sequence, the values of a mapping."""
    parts = typing.get_args(kind)
    for one in parts:
        yield from _parts(one)
    if not parts:
        yield kind


def test_answers_that_are_documents_are_objects_with_what_they_certainly_have(fabric: Fabric) -> None:
    made = fabric.create("Build", "All of it")
    snapshot, told, past = fabric.snapshot(), fabric.portable_log(), fabric.replay(at=1)
    assert [one["taskId"] for one in snapshot.tasks] == [one["id"] for one in past.tasks] == [made.task_id]
    assert (snapshot.sequence, past.seq, told.events[0]["taskId"]) == (fabric.store.head(), 1, made.task_id)
    assert snapshot.session_id == snapshot["sessionId"]
    assert (fabric.org_show().state, fabric.org_show().agents) == ("absent", [])
    assert fabric.handoff_chain(made.task_id).task_id == made.task_id
    assert fabric.handoff_chain(made.task_id).text.startswith("sequenceDiagram")
    assert fabric.mail_export().active_messages == []
    answers = (snapshot, told, past, fabric.org_show(), fabric.handoff_chain(made.task_id), fabric.mail_export())
    for answer in answers:
        assert type(answer.to_dict()) is dict
        assert answer.to_dict() == answer


def test_a_task_an_event_and_a_page_of_handoffs_are_plain_data_on_demand(fabric: Fabric) -> None:
    made = fabric.create("Build", "All of it")
    plain = fabric.get(made.task_id).to_dict()
    assert (plain["id"], plain["createdBy"], plain["priority"]) == (made.task_id, fabric.actor, "normal")
    assert next(fabric.events()).to_dict()["taskId"] == made.task_id
    assert fabric.handoff_list().to_dict() == {"total": 0, "handoffs": ()}
    assert fabric.org_report().to_dict()["state"] == "absent"
    assert fabric.org_route(agent="ada").to_dict()["state"] == "no_route"
    assert fabric.graph().to_dict()["text"]


def test_a_call_that_does_not_fit_is_told_so_in_the_words_of_who_calls(fabric: Fabric) -> None:
    with pytest.raises(InvalidInput) as refused:
        fabric.create("x", prioriti="high")  # type: ignore[call-arg] # what a user mistypes
    assert (refused.value.message, refused.value.hint) == (
        "fabric.create() has no parameter 'prioriti'",
        "did you mean 'priority'?",
    )
    with pytest.raises(TypeError, match=r"^fabric\.block\(\) missing 1 required positional argument: 'reason'$"):
        fabric.block("001")  # type: ignore[call-arg] # as above


def test_a_traceback_names_the_error_as_it_is_caught_and_shows_the_hint(fabric: Fabric) -> None:
    with pytest.raises(errors.NothingReady) as refused:
        fabric.claim(agent="ada")
    told = "".join(traceback.format_exception_only(refused.value)).splitlines()
    assert told == [
        "aof.errors.NothingReady: there is nothing that ada can claim now",
        "see what each task waits for: fabric.held_back(agent='ada')",
    ]
    assert fabric.held_back() == ()
    with pytest.raises(errors.TaskNotFound) as unknown:
        fabric.approve("999")
    unknown.value.add_note("while approving")
    assert unknown.value.__notes__ == ["list what there is: fabric.list()", "while approving"]


def test_the_fabric_is_two_classes_deep() -> None:
    assert [kind.__name__ for kind in Fabric.__mro__] == ["Fabric", "Facade", "object"]
