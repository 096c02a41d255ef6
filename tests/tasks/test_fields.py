"""The table of a task's fields against everything that is made of it, and every field on its way through a store."""

from __future__ import annotations

import inspect
import json
import subprocess
import sys
from functools import reduce
from typing import Any, get_args

import msgspec
import pytest

from aof.api.catalogue import BY_NAME, schema_of
from aof.api.fabric import Fabric
from aof.errors import AofError, InvalidInput, NotReconciled
from aof.interchange.readers import COLUMNS
from aof.kernel import commands, kinds
from aof.kernel.evolve import evolve
from aof.merge.content import merge_content
from aof.org import authorization
from aof.portable.schemas import PLAIN_FIELDS, TASK
from aof.queries.operations import Filters
from aof.queries.results import TaskRow
from aof.store.files import markdown
from aof.store.lists import Row
from aof.surfaces.board.actions import BY_NAME as ACTIONS
from aof.surfaces.board.actions import CREATE
from aof.surfaces.cli.grammar import Option
from aof.surfaces.cli.verbs import verb_of
from aof.tasks.fields import BY_KEY, CLEARABLE, FIELDS, LISTED, PLAIN, ROUTING, WHOLE, TaskField, malformed
from aof.tasks.manual_edits import THEIRS
from aof.tasks.model import Routing, Task
from aof.tasks.parameters import field_type
from aof.tasks.rules import request_digest
from aof.tasks.templates import template_type
from aof.testing import memory_fabric
from tests.support.fields import first, held, second, values
from tests.support.messages import report
from tests.support.portable import Camera
from tests.support.requirements import requirement
from tests.support.room import Room
from tests.support.world import World

# --- the table of a task's fields against everything that is made of it, and every field on its way through a store


every_row = pytest.mark.parametrize("row", FIELDS, ids=lambda row: row.key)
every_plain_row = pytest.mark.parametrize("row", PLAIN, ids=lambda row: row.key)


def _names(kind: type[msgspec.Struct]) -> dict[str, msgspec.structs.FieldInfo]:
    return {field.name: field for field in msgspec.structs.fields(kind)}


def _parameters(operation: str) -> set[str]:
    return set(BY_NAME[operation].parameters.__struct_fields__)


def _options(verb: str) -> dict[str, Option]:
    return {option.target: option for option in verb_of(verb).options}


@every_row
def test_a_task_has_every_field_with_its_default_and_lines_in_its_file(row: TaskField) -> None:
    if row.inside == "body":
        return
    found = _names(Routing if row.inside else Task)[row.name]
    assert row.inside or row.key in markdown.KEYS
    if found.required:
        assert not row.nullable
    else:
        usual = found.default_factory() if found.default is msgspec.NODEFAULT else found.default
        assert row.inside or msgspec.json.encode(usual) == msgspec.json.encode(row.default)
    if row.kind == "choice":
        assert get_args(getattr(kinds, row.choice)) == row.choices


@every_row
def test_what_sets_a_task_has_a_parameter_for_every_field(row: TaskField) -> None:
    name = {"title": "title", "description": "brief"}.get(row.key, row.name)
    assert (name in _parameters("create")) == row.creates
    assert (name in inspect.signature(Fabric.create).parameters) == row.creates
    routed = schema_of(BY_NAME["edit"].parameters)["properties"]["routing"]["properties"]
    assert (row.name in (routed if row.inside == "routing" else _parameters("edit"))) == row.edits
    assert (row.key in schema_of(BY_NAME["bulk"].parameters)["properties"]["changes"]["properties"]) == bool(row.bulk)
    assert (row.name in template_type().__struct_fields__) == row.template
    if not row.inside:
        assert row.key in THEIRS, "people set it in the file"


@every_row
def test_the_command_line_spells_every_field_as_its_row_says(row: TaskField) -> None:
    if row.creates and row.key not in ("title", "description"):
        option = _options("create")[row.name]
        assert option.name == (row.option or f"--{row.name.replace('_', '-')}")
        assert (row.usage or row.help) in option.help
    if row.edits and row.key not in ("routing", "description", "title"):
        target = f"routing.{row.name}" if row.inside else row.name
        assert _options("edit")[target].name == (row.option or f"--{row.name.replace('_', '-')}")
    assert (f"changes.{row.key}" in _options("bulk")) == bool(row.bulk)


def test_what_can_be_cleared_is_offered_everywhere_and_nothing_else() -> None:
    offered = schema_of(BY_NAME["edit"].parameters)["properties"]["clear"]["items"]["enum"]
    assert sorted(offered) == sorted(CLEARABLE)
    assert all(name in _options("edit")["clear"].help for name in CLEARABLE)


def test_lists_show_and_filter_what_the_rows_say() -> None:
    assert {row.name for row in LISTED} <= set(TaskRow.__struct_fields__)
    known = set(BY_NAME["ready"].parameters.__struct_fields__)
    assert {name for row in FIELDS for name in row.filters} <= known & Filters.__annotations__.keys()
    fabric = memory_fabric()
    task = fabric.get(fabric.create("Full", **first()).task_id)
    assert {row.key: Row.of(task, None)[row.key] for row in LISTED} == {row.key: values(row)[0] for row in LISTED}


@every_row
def test_tables_snapshots_forms_and_gates_have_the_fields_that_say_so(row: TaskField) -> None:
    assert not row.column or row.column in COLUMNS
    assert not row.portable or row.portable in TASK["properties"]
    if row.form:
        forms = [{field.name: field.label for field in action.fields} for action in (ACTIONS["edit"], CREATE)]
        assert [form[row.key] for form in forms] == [row.form, row.form]
    assert (row.key in authorization.FIELDS) == (row.gated and not row.inside)


def test_jobs_say_the_same_of_the_fields_of_their_tasks() -> None:
    create, job = (schema_of(BY_NAME[name].parameters)["properties"] for name in ("create", "job_add"))
    shared = [row.key for row in (*ROUTING, *PLAIN) if row.key in job and row.creates]
    assert {"agent", "tags", "resource"} <= {*shared}
    assert {name: job[name]["description"] for name in shared} == {name: create[name]["description"] for name in shared}


@every_plain_row
def test_changes_of_two_clones_come_together_as_the_row_says(row: TaskField) -> None:
    one, other = values(row)
    merged = merge_content({}, {row.key: one}, {row.key: other})
    assert (row.merge == "one stands") == bool(merged.clashes) or row.kind == "object"
    if row.merge == "by item":
        assert merged.changes[row.key] == [*one, *other]


@pytest.mark.parametrize("wrong", [0, -1, 525_601, 1.5, True, "90", "", [90]])
def test_a_whole_number_out_of_bounds_is_refused_by_every_source(room: Room, fabric: Fabric, wrong: object) -> None:
    assert isinstance(malformed({"estimate": wrong}), InvalidInput)
    task_id = room.task()
    for refused in (lambda: fabric.create("New", estimate=wrong), lambda: fabric.edit(task_id, estimate=wrong)):  # type: ignore[arg-type]
        with pytest.raises(AofError) as caught:
            refused()
        assert caught.value.code == "invalid"
    assert fabric.list().total == 1


def test_a_creation_carries_no_field_that_there_is_not() -> None:
    with pytest.raises(InvalidInput, match="colour"):
        memory_fabric().create("New", colour="red")  # type: ignore[call-arg] # what a user mistypes


def test_a_request_of_before_has_the_digest_that_logs_have() -> None:
    """A field that was added later is in the digest only where it is given."""
    asked = commands.Create(
        actor="pm",
        task_id="T",
        title="Full",
        body="B\n",
        priority="high",
        assignee="ada",
        role="dev",
        team="eng",
        tags=("a", "b"),
        workflow="w",
        depends_on=("TASK-2026-02-21-001",),
        parent_id="TASK-2026-02-21-002",
        fields={
            "owner": "bob",
            "resource": "gpu",
            "visibility": "hidden",
            "due": "2026-03-01",
            "acceptance": ("x", {"b": 1, "a": 2}),
            "constraints": {"z": 1, "b": {"d": 1, "c": 2}},
            "profile": {"p": [1]},
        },
        metadata={"m": 1},
        max_attempts=4,
        key="k",
    )
    assert request_digest(asked) == "8d28614b3ba1164461bf985041956ddc"
    more = msgspec.structs.replace(asked, fields=asked.fields | {"estimate": 90})
    assert request_digest(more) != request_digest(asked)


def test_a_persons_own_key_gives_way_to_the_field_of_that_name() -> None:
    world = World()
    task = world.next_id()
    own = {"estimate": "two days", "colour": "red"}
    world.do(commands.ImportEdit(actor="person", task_id=task, status="ready", created={"title": "T", "extra": own}))
    world.act(commands.Edit, task, changes={"estimate": 90})
    assert (world.tasks[task].estimate, world.tasks[task].extra) == (90, {"colour": "red"})


@pytest.fixture(params=["memory", "files"])
def anywhere(request: pytest.FixtureRequest) -> Fabric:
    """A fabric on each store."""
    if request.param == "memory":
        return memory_fabric()
    found: Fabric = request.getfixturevalue("fabric")
    return found


@every_plain_row
def test_a_field_is_set_listed_changed_undone_cleared_and_replayed_on_every_store(
    anywhere: Fabric, row: TaskField
) -> None:
    one, other = values(row)
    task_id = anywhere.create("Full", **{row.name: one}).task_id

    def now() -> Any:
        return held(anywhere.get(task_id), row)

    assert now() == one
    assert msgspec.json.encode(anywhere.show(task_id)[row.key]) == msgspec.json.encode(one)
    assert not row.listed or anywhere.list().tasks[0][row.key] == one
    assert anywhere.edit(task_id, **{row.name: other}).updated_fields == (row.key,)
    assert now() == other
    anywhere.undo(task_id)
    assert now() == one
    if row.clear:
        anywhere.edit(task_id, clear=[row.clear])
        assert now() == row.default
    task = reduce(evolve, anywhere.events(task_id=task_id), None)
    assert task is not None
    assert held(task, row) == now(), "the log alone says the same"


def test_every_field_begins_with_a_template_and_is_in_the_snapshot_and_the_table(room: Room, fabric: Fabric) -> None:
    keys = {row.key: first()[row.name] for row in PLAIN}
    folder = room.root / "templates"
    folder.mkdir()
    folder.joinpath("full.md").write_text(
        "---\n" + "".join(f"{key}: {json.dumps(value)}\n" for key, value in keys.items()) + "---\n"
    )
    task_id = fabric.create("Full", template="full").task_id
    assert {row.key: held(fabric.get(task_id), row) for row in PLAIN} == keys
    assert {row.key: room.front(task_id)[row.key] for row in PLAIN} == keys
    (shown,) = fabric.snapshot()["tasks"]
    assert {row.portable for row in FIELDS if row.portable} <= shown.keys()
    assert {row.portable: shown[row.portable] for row in PLAIN_FIELDS} == {
        row.portable: keys[row.key] for row in PLAIN_FIELDS
    }
    table = fabric.export_tasks("csv").text
    elsewhere = memory_fabric()
    elsewhere.import_tasks("csv", files=[{"name": "tasks.csv", "text": table}])
    (there,) = elsewhere.list().tasks
    copied = [row for row in PLAIN if row.column]
    assert {row.key: held(elsewhere.get(there.id), row) for row in copied} == {row.key: keys[row.key] for row in copied}
    bad = elsewhere.import_tasks("csv", files=[{"name": "t.csv", "text": "title,estimate\nOne,soon\nTwo,0\n"}])
    assert [(lost.field, lost.detail.partition(" is ")[0]) for lost in bad.not_mapped] == [
        ("estimate", "'soon'"),
        ("estimate", "'0'"),
    ]


@every_plain_row
def test_a_person_sets_every_field_in_the_file_and_takes_it_out_again(
    room: Room, fabric: Fabric, row: TaskField
) -> None:
    one, _ = values(row)
    task_id = room.task()
    path = room.file(task_id)
    path.write_text(path.read_text().replace("createdBy:", f"{row.key}: {json.dumps(one)}\ncreatedBy:"))
    assert held(fabric.get(task_id), row) == one
    assert room.events(task_id, "task.updated")[-1].payload["fields"] == [row.key]
    lines = room.file(task_id).read_text().splitlines(keepends=True)
    room.file(task_id).write_text("".join(line for line in lines if not line.startswith(f"{row.key}:")))
    assert held(fabric.get(task_id), row) == row.default


def test_a_hand_edit_that_makes_no_estimate_waits_and_changes_nothing(room: Room, fabric: Fabric) -> None:
    for wrong in ("soon", "0", "1.5"):
        task_id = room.task()
        path = room.file(task_id)
        path.write_text(path.read_text().replace("createdBy:", f"estimate: {wrong}\ncreatedBy:"))
        shown = fabric.show(task_id)
        assert "estimate" in json.dumps(shown["problem"])
        assert "estimate" not in shown


def test_the_board_sends_what_was_typed_as_the_fields_have_it() -> None:
    typed = {"estimate": " 90 ", "tags": "a b", "due": "", "agent": "ada"}
    assert ACTIONS["edit"].arguments(typed) == {
        "routing": {"agent": "ada", "tags": ["a", "b"]},
        "estimate": 90,
        "clear": ["due"],
    }
    assert CREATE.arguments(typed | {"title": "New"})["estimate"] == 90
    assert ACTIONS["edit"].arguments({"estimate": "soon"})["estimate"] == "soon", "the operation refuses it"


def test_every_field_of_a_file_that_people_set_is_in_the_table() -> None:
    ours = {
        *("schemaVersion", "id", "status", "rev", "createdAt", "updatedAt", "lastTransitionAt", "createdBy", "lease"),
        *(
            "blocked",
            "cancel",
            "retry",
            "lastError",
            "progress",
            "workflow",
            "validation",
            "delivery",
            "locks",
            "usage",
        ),
        *("context", "links", "handoffs", "questions", "lateResults", "aliases", "key", "requests", "startedAt"),
        "endedAt",
    }
    assert ours | {row.key for row in WHOLE} == markdown.KEYS
    assert {row.key for row in ROUTING} == set(Routing.__struct_fields__)
    assert BY_KEY["estimate"].merge == "one stands"
    assert field_type(BY_KEY["estimate"]) is int
    assert {*first()} == {*second()}


def test_the_table_loads_nothing_slow_for_the_lists_that_read_it() -> None:
    words = "from aof.support import lazy_imports; lazy_imports.install(); import aof.tasks.fields as f; f.LISTED"
    slow = "print(*({'msgspec', 'typing', 'enum', 're'} & sys.modules.keys()))"
    command = [sys.executable, "-S", "-c", f"import sys; sys.path[:0] = {sys.path!r}; {words}; {slow}"]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout.strip() == ""


# --- what a task declares must be there before it is done: criteria, artifacts, evidence, delivery


GATED = {
    "name": "two",
    "hops": [{"id": "build", "role": "dev"}, {"id": "check", "role": "dev", "dependsOn": ["build"]}],
}


def put(room: Room, task_id: str, path: str, text: str = "the work") -> None:
    """Write a file of the task."""
    place = room.file(task_id).with_suffix("") / path
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_text(text)


def points(room: Room, task_id: str, **given: Any) -> list[str]:
    """What a refused completion names as open."""
    refusal = room.refused("not_reconciled", room.fabric.complete, task_id, **given)
    found = refusal.details["open"]
    assert all(point.split("'")[0] in refusal.message for point in found)
    return list(found)


@requirement("task.control.complete", "task.record.acceptance")
def test_a_task_is_not_complete_while_a_criterion_is_unreported_or_unmet(room: Room, fabric: Fabric) -> None:
    task_id = room.task("in-progress", review=False, acceptance=["it works", {"id": "fast", "text": "under 1 s"}])
    assert points(room, task_id, agent="ada") == ["acceptance 'it works' is unknown", "acceptance 'fast' is unknown"]
    fabric.progress(task_id, facts={"acceptance": ["it works"]}, agent="ada")
    assert points(room, task_id, agent="ada") == ["acceptance 'fast' is unknown"]
    unmet = [{"criterion": "fast", "met": False}]
    assert points(room, task_id, agent="ada", acceptance=unmet) == ["acceptance 'fast' is unmet"]
    assert fabric.complete(task_id, agent="ada", acceptance=["fast"]).status == "done"


@requirement("task.status.completed")
def test_required_artifacts_evidence_and_delivery_are_named_until_they_are_there(room: Room, fabric: Fabric) -> None:
    output = {"artifacts": ["outputs/report.md"], "evidence": ["tests", "https://ci.example/7"]}
    task_id = room.task("in-progress", review=False, constraints={"output": output})
    assert points(room, task_id, agent="ada") == [
        "artifact outputs/report.md is missing",
        "evidence 'tests' is missing",
        "evidence 'https://ci.example/7' is missing",
    ]
    put(room, task_id, "outputs/report.md")
    fabric.link(task_id, "evidence", "https://ci.example/7")
    failed = {"total": 2, "passed": 1, "failed": 1}
    assert points(room, task_id, agent="ada", tests=failed) == ["evidence 'tests' is missing"]
    assert fabric.complete(task_id, agent="ada", tests={"total": 2, "passed": 2}).status == "done"


def test_what_nobody_declared_holds_up_nothing(room: Room, fabric: Fabric) -> None:
    assert fabric.complete(room.task("in-progress", review=False), agent="ada").status == "done"
    assert fabric.complete(room.task(review=False), actor="ada").status == "done"


def test_work_with_open_points_can_be_handed_over_and_the_approval_vouches_for_the_unreported(
    room: Room, fabric: Fabric
) -> None:
    task_id = room.task("in-progress", acceptance=["it works", "it is fast", "it is told"])
    fabric.complete(task_id, outcome="needs_review", acceptance=["it works", {"it is fast": "unmet"}], agent="ada")
    refusal = room.refused("not_reconciled", fabric.approve, task_id, actor="bob")
    assert refusal.details["open"] == ["acceptance 'it is fast' is unmet"]
    fabric.edit(task_id, acceptance=["it works", "it is told"])
    fabric.approve(task_id, actor="bob")
    shown = Camera(room).task(task_id)
    assert [one["status"] for one in shown["acceptance"]] == ["met", "met"]
    (moved,) = [event for event in room.events(task_id, "task.transitioned") if event.payload["to"] == "done"]
    assert (moved.payload["by"], moved.payload["acceptance"]) == ("bob", ["it is told"])


@pytest.mark.parametrize("again", ["reject", "retry"])
def test_work_that_is_sent_back_is_reported_on_anew(room: Room, fabric: Fabric, again: str) -> None:
    task_id = room.task("in-progress", acceptance=["it works"])
    fabric.complete(task_id, acceptance=["it works"], agent="ada")
    if again == "reject":
        fabric.reject(task_id, blockers=["it does not"], actor="bob")
    else:
        fabric.approve(task_id, actor="bob")
        fabric.retry(task_id, reason="once more")
    run = fabric.claim(task_id, agent="eve").run_id
    assert points(room, task_id, run=run) == ["acceptance 'it works' is unknown"]


def test_a_reported_result_goes_no_further_than_to_review_while_something_is_open(room: Room, fabric: Fabric) -> None:
    task_id = room.task("in-progress", review=False, acceptance=["it works"])
    run = fabric.get(task_id).last_run
    assert fabric.send(report(task_id))[0].outcome == "accepted"
    fabric.session_end(agent="ada", run=run)
    assert fabric.get(task_id).status == "review"
    assert room.events(task_id, "task.transitioned")[-1].payload["open"] == ["acceptance 'it works' is unknown"]


def test_only_the_last_hop_of_a_workflow_must_leave_nothing_open() -> None:
    fabric = memory_fabric(workflows=[GATED])
    task_id = fabric.create("Gated", workflow="two", acceptance=["built", "checked"]).task_id
    run = fabric.claim(task_id, agent="ada", hop="build").run_id
    fabric.complete(task_id, run=run, outcome="complete", acceptance=["built"])
    last = fabric.claim(task_id, agent="bob", hop="check").run_id
    with pytest.raises(NotReconciled) as caught:
        fabric.complete(task_id, run=last, outcome="complete")
    assert caught.value.details["open"] == ["acceptance 'checked' is unknown"]
    assert fabric.complete(task_id, run=last, outcome="complete", acceptance=["checked"]).status == "done"


@pytest.mark.parametrize(
    "output",
    [
        {"artifacts": "x"},
        {"artifacts": ["../secret"]},
        {"artifacts": ["/etc/passwd"]},
        {"evidence": [1]},
        {"delivery": 1},
    ],
)
def test_demands_that_make_no_sense_are_refused(room: Room, fabric: Fabric, output: object) -> None:
    assert room.refused("invalid", fabric.create, "T", constraints={"output": output}).hint


def test_long_and_many_criteria_stay_within_the_limits_of_a_task_file(room: Room, fabric: Fabric) -> None:
    criteria = [f"{number} " + "ü" * 150 for number in range(100)]
    task_id = room.task("in-progress", review=False, acceptance=criteria)
    assert fabric.complete(task_id, agent="ada", acceptance=criteria).status == "done"
    assert len(str(room.front(task_id)["validation"])) < 6_000
    room.reopen()
    assert {one["status"] for one in Camera(room).task(task_id)["acceptance"]} == {"met"}
    room.refused("invalid", room.fabric.create, "T", acceptance=["one"] * 101)
