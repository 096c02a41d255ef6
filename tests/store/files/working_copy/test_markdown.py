"""The codec between a task and the bytes of its file."""

from __future__ import annotations

import re
from typing import Any

import msgspec
import pytest
import ryaml
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from aof.errors import PayloadTooLarge, UnreadableTask
from aof.store.files.markdown import layout_after, parse, parse_foreign, parse_heads, prepare, render
from aof.tasks.model import Lease, Routing, Task
from tests.support.strategies import tasks

TASK = Task(
    schema_version=1,
    id="TASK-2026-02-21-001",
    title="Add refresh endpoint",
    status="in-progress",
    priority="high",
    rev=12,
    created_at="2026-02-21T10:00:00.000Z",
    updated_at="2026-02-21T10:00:00.000Z",
    last_transition_at="2026-02-21T10:00:00.000Z",
    created_by="maintainer",
    routing=Routing(agent="swe-backend", tags=("auth",)),
    metadata={"reviewRequired": True},
    body="Do it.\n",
)
FILE = """---
schemaVersion: 1
id: "TASK-2026-02-21-001"
title: "Add refresh endpoint"
status: "in-progress"
priority: "high"
rev: 12
createdAt: "2026-02-21T10:00:00.000Z"
updatedAt: "2026-02-21T10:00:00.000Z"
lastTransitionAt: "2026-02-21T10:00:00.000Z"
createdBy: "maintainer"
routing: {"agent":"swe-backend","tags":["auth"]}
metadata: {"reviewRequired":true}
---

Do it.
"""
HAND_WRITTEN = FILE.replace('title: "Add refresh endpoint"', "# mine\ntitle: Add refresh endpoint  # soon").replace(
    'routing: {"agent":"swe-backend","tags":["auth"]}',
    "routing:\n  tags:\n    - auth # login\n  agent: swe-backend\n\nowner: ~\nmine: 5",
)


def change(task: Task, **values: Any) -> Task:
    return msgspec.structs.replace(task, **values)


def frontmatter(data: bytes) -> str:
    return data.decode().split("---\n", 1)[1].split("\n---\n", 1)[0] + "\n"


def test_a_task_is_written_one_json_line_a_key_and_read_back() -> None:
    assert render(TASK).decode() == FILE
    assert parse(FILE.encode()) == TASK
    assert parse(FILE.encode(), archived=True) == change(TASK, archived=True)


@given(tasks())
@settings(max_examples=120, deadline=None)
def test_every_task_survives_its_file(task: Task) -> None:
    data = render(task)
    again = parse(data, archived=task.archived)
    assert again == task
    assert render(again) == data
    assert prepare(change(task, rev=1)).fill(task.rev) == data


@given(tasks())
@settings(max_examples=60, deadline=None)
def test_what_is_written_is_yaml_with_the_same_values(task: Task) -> None:
    front = re.sub("x{1000,}", "x", frontmatter(render(task)))  # YAML allows keys of up to 1024 characters
    expected = {}
    for line in front.splitlines():
        key, value = line.split(": ", 1)
        expected[msgspec.json.decode(key) if key.startswith('"') else key] = msgspec.json.decode(value)
    assert ryaml.loads(front) == expected
    # YAML 1.1 wants a dot and a sign in a number with an exponent, or takes it for a text.
    assert set(yaml.safe_load(front)) == set(expected)


@pytest.mark.parametrize(
    "body", ["", "\n", "\n\na", "a", "a\r\nb\r\n", "---\n", "---\nid: 1\n---\n", "\r\n", "\ufeffa"]
)
def test_a_body_is_kept_to_the_byte(body: str) -> None:
    assert parse(render(change(TASK, body=body))).body == body


def test_keys_that_are_not_ours_are_kept_also_those_with_names_of_our_fields() -> None:
    extra = {"body": 1, "extra": {}, "archived": True, "layout": "x", "a: b": 1, "true": 2, "": 3, "# c": 4, "---": 5}
    task = change(TASK, extra=extra)
    again = parse(render(task))
    assert again == task
    assert again.layout is None


@pytest.mark.parametrize("title", ["\x7f", "\x80", "\x85", "\u2028", "\u2029", "\ufeff", "\ufffe", "\uffff"])
def test_what_yaml_forbids_or_breaks_lines_at_is_escaped(title: str) -> None:
    data = render(change(TASK, title=title))
    assert f'title: "\\u{ord(title):04x}"' in data.decode()
    assert yaml.safe_load(frontmatter(data))["title"] == title
    assert ryaml.loads(frontmatter(data))["title"] == title
    assert parse(data).title == title


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("---\n", "", "no frontmatter"),
        ("\n---\n", "\n", "no end"),
        ('"in-progress"', '"doing"', "'status' cannot be 'doing'; status: one of backlog, ready, "),
        ("rev: 12", 'rev: "12"', "'rev' must be a whole number, not '12'"),
        ("rev: 12", "rev: 99999999999999999999", "line 7"),
        ("rev: 12", "rev: " + "9" * 60, "line 7: a number of more than 64 bits"),
        ("rev: 12", "rev: 1e400", "'rev' must be a whole number, not "),
        ("rev: 12\n", "", "'rev' is missing"),
        ("rev: 12", "rev: 12\nrev: 13", "duplicate key: rev"),
        ('["auth"]', "[1]", "'routing.tags[0]' must be a text, not 1"),
        ('["auth"]}', '["auth"],"agent":"other"}', 'duplicate entry with key "agent" at line 12'),
        ('"maintainer"', '"maintainer', 'line 11: no closing "'),
        ("rev: 12", 'rev: 12,"owner":"me"', "'rev' must be a whole number"),
        ("true}", "true", "line 13: a [ or { is not closed"),
        ('{"reviewRequired":true}', "[" * 60_000, "line 13: nested more than 32 deep"),
        ('{"reviewRequired":true}', "[" * 60_000 + "]" * 3_000, "line 13: nested more than 32 deep"),
        ('{"reviewRequired":true}', "[" * 100_000, "larger than 64 KB"),
        ('{"reviewRequired":true}', "{a: .nan}", "metadata.a: nan is not a number"),
        ('{"reviewRequired":true}', "{1: 2}", "metadata: the key 1 is not text"),
        ('{"reviewRequired":true}', "&a {}", "line 13: an anchor"),
        ('{"reviewRequired":true}', "*a", "line 13: an alias"),
        ('{"reviewRequired":true}', "!!map {}", "line 13: a tag"),
        ('{"reviewRequired":true}', "{<<: {}}", "line 13: a merge"),
        ("rev: 12", "rev: 12\n- a", "not valid YAML"),
        ("schemaVersion", " schemaVersion", "first column"),
    ],
)
def test_a_bad_file_is_refused_with_the_place(old: str, new: str, message: str) -> None:
    assert old in FILE
    with pytest.raises(UnreadableTask, match=re.escape(message)) as refused:
        parse(FILE.replace(old, new, 1).encode())
    assert refused.value.hint


def test_bytes_that_are_not_utf_8_are_refused_wherever_they_stand() -> None:
    for old in (b"refresh", b"Do it"):
        with pytest.raises(UnreadableTask, match="not UTF-8"):
            parse(FILE.encode().replace(old, b"\xff"))


def test_frontmatter_that_could_not_be_read_again_is_not_written() -> None:
    with pytest.raises(PayloadTooLarge):
        prepare(change(TASK, title="x" * 66_000))


@given(st.binary(max_size=80) | st.binary(max_size=60).map(lambda data: b"---\n" + data + b"\n---\n"))
@settings(max_examples=300, deadline=None)
def test_no_bytes_raise_anything_but_the_one_error(data: bytes) -> None:
    for read in (parse, parse_foreign):
        try:
            found = read(data)
        except UnreadableTask:
            continue
        assert found


@given(st.data())
@settings(max_examples=250, deadline=None)
def test_no_damage_to_a_file_raises_anything_but_the_one_error(data: st.DataObject) -> None:
    source = data.draw(st.sampled_from([FILE, HAND_WRITTEN])).encode()
    start = data.draw(st.integers(0, len(source)))
    end = data.draw(st.integers(start, min(start + 20, len(source))))
    patch = data.draw(st.binary(max_size=3) | st.text("\n\r\t -:#&*!|>'\"[]{},?%<\\ua0", max_size=8).map(str.encode))
    try:
        task = parse(source[:start] + patch + source[end:])
    except UnreadableTask:
        return
    assert parse(render(task)) == change(task, layout=layout_after(task))


def test_a_persons_layout_is_kept_and_only_changes_are_written() -> None:
    task = parse(HAND_WRITTEN.encode())
    assert task == change(TASK, extra={"mine": 5}, layout=frontmatter(HAND_WRITTEN.encode()))
    assert render(task).decode() == HAND_WRITTEN
    assert layout_after(task) == task.layout

    later = change(
        task,
        title="New",
        rev=13,
        owner="me",
        routing=Routing(),
        lease=Lease(agent="a", run_id="r", epoch=1, acquired_at="x", expires_at="y", ttl_ms=1, worker="pull"),
    )
    assert render(later).decode() == (
        HAND_WRITTEN.replace("title: Add refresh endpoint  #", 'title: "New"  #')
        .replace("routing:\n  tags:\n    - auth # login\n  agent: swe-backend\n", "# login\n")
        .replace("owner: ~", 'owner: "me"')
        .replace("rev: 12", "rev: 13")
        .replace(
            "true}\n",
            'true}\nlease: {"agent":"a","runId":"r","epoch":1,"acquiredAt":"x","expiresAt":"y",'
            '"ttlMs":1,"worker":"pull"}\n',
        )
    )
    assert prepare(later).fill(13) == render(later)
    assert parse(render(later)) == change(later, layout=layout_after(later))


@given(
    tasks(),
    st.sampled_from(
        [
            "# only\n# comments\n\n",
            "{title: a, rev: 3, # why\n mine: [1,\n2]}\n",
            'rev: 3 # the number\n"title": |\n  a\n  # b\n\n# end\n',
            "title: 'a'\r\nmine: # c\r\n  - 1 # d\r\nrev: 1\r\n",
            "metadata:\n- a # first\n# second\n- b\nid: TASK\n",
        ]
    ),
)
@settings(max_examples=120, deadline=None)
def test_every_task_survives_in_every_layout(task: Task, layout: str) -> None:
    laid_out = change(task, layout=layout)
    data = render(laid_out)
    again = parse(data, archived=task.archived)
    assert again == change(task, layout=layout_after(laid_out))
    assert render(again) == data
    assert prepare(change(laid_out, rev=1)).fill(task.rev) == data
    assert [word for word in re.findall(r"# ([a-z ]+)", layout) if f"# {word}" not in data.decode()] in ([], ["b"])


_LAYOUTS = (
    None,
    "# only\n",
    'rev: 3\nmine: 1,"title":"not this one"\n',
    'title: "a"\nrev: 3\nowner: 1,"title":"not this one"\n',
    'metadata: {"a": 1}\n',
)


@given(st.lists(st.tuples(tasks(), st.sampled_from(_LAYOUTS)), max_size=4))
@settings(max_examples=150, deadline=None)
def test_many_files_read_at_once_are_what_each_of_them_is_alone(some: list[tuple[Task, str | None]]) -> None:
    files = [render(change(task, layout=layout)) for task, layout in some]

    together = parse_heads(files)

    alone = [change(parse(data), body="", layout=None) for data in files]
    if together is None:
        assert any(layout is not None or task.extra for task, layout in some)
    else:
        assert [task for task, _ in together] == alone
        assert [msgspec.json.decode(record, type=Task) for _, record in together] == alone


def test_files_without_foreign_keys_need_no_look_at_each() -> None:
    task = change(TASK, title="Fix: the colon", layout=None)

    found = parse_heads([render(task), render(TASK)])

    assert found is not None
    assert [one.title for one, _ in found] == ["Fix: the colon", TASK.title]


def test_a_layout_with_an_older_rev_gives_the_same_file() -> None:
    task = parse(HAND_WRITTEN.encode())
    assert task.layout is not None
    assert render(change(task, layout=task.layout.replace("rev: 12", "rev: 3"))) == render(task)


def test_a_file_with_windows_line_ends_and_a_byte_order_mark_is_read() -> None:
    data = b"\xef\xbb\xbf" + FILE.replace("\n", "\r\n").encode()
    task = parse(data)
    assert task == change(TASK, body="Do it.\r\n", layout=frontmatter(FILE.encode()).replace("\n", "\r\n"))
    assert parse(render(task)) == task


def test_a_new_file_of_a_person_needs_no_key_at_all() -> None:
    assert parse_foreign(b"Just do it.\n") == ({}, "Just do it.\n", None)
    assert parse_foreign(b"---\n---\n\nJust do it.\n") == ({}, "Just do it.\n", None)
    assert parse_foreign(b"---\ntitle: Fix it\n---\nNow") == ({"title": "Fix it"}, "Now", "title: Fix it\n")
    assert parse_foreign(b'---\ntitle: "Fix it"\n---') == ({"title": "Fix it"}, "", None)
