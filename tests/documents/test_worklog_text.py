"""The text of a WORKLOG: the forms of entries, what is read from it, and what is odd about it."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from aof.documents import markdown as documents_markdown
from aof.documents import worklog_rules, worklog_text
from aof.documents.markdown import contained, original, plain_text
from aof.documents.worklog import envelopes, event_id, event_type, payload, timestamp
from aof.documents.worklog_rules import Wording, worded, wording_problem
from aof.documents.worklog_text import RESERVED, EventType, Worklog, new_worklog, parse_entry, parse_worklog
from aof.errors import AofError
from tests.support.requirements import requirement

# --- every form of an entry is read back as it was written, whatever it holds


MOMENT = "2026-02-08T14:32:11.000Z"
_STRUCTURE = ("# ", "### ada: x", "## Session 9 — 2026-01-01", "---", "```", "<!--", "-->", "|", "**Decision:** no")
_OURS = ("14:32 — bob: done (x).", "Handoff: x", "Owner: bob", "Now Working (b): c")
_PARTS = st.sampled_from((*_STRUCTURE, *_OURS, "a", "B ", "\n", "\n\n", "\r\n", "\\", " ", "\t"))
TEXT = st.lists(_PARTS, min_size=1, max_size=12).map("".join).filter(lambda text: text.strip() != "")
LINE = TEXT.map(lambda text: " ".join(text.split()))


def entry(kind: EventType, **said: object) -> str:
    text = worded(kind, Wording(**said), "ada", MOMENT)  # type: ignore[arg-type]
    assert not isinstance(text, AofError), text.message
    return text


@requirement("comms.handoff-block.quick-form")
def test_a_quick_line_gives_its_values_and_is_written_back_the_same() -> None:
    line = "14:32 — A: parser and tests done (47 pass). Next: B wiring."
    fields = worklog_text.quick_fields(line)
    assert fields == {
        "time": "14:32",
        "owner": "A",
        "what": "parser and tests done",
        "result": "47 pass",
        "nextOwner": "B",
        "next": "wiring",
    }
    assert worklog_text.quick_line("14:32", "A", fields["what"], fields["result"], ("B", "wiring")) == line


@requirement("comms.handoff-block.full-keys")
def test_a_full_handoff_has_its_keys_in_order_and_all_of_them_are_needed() -> None:
    said = {
        "subject": "Parser",
        "status": "Ready for review",
        "changed": ("src/a.py", "src/b.py"),
        "tests": ("pytest: 10 passed",),
        "risks": ("none",),
        "blocking": (),
        "next_owner": "bob",
        "next": "wire the API",
    }
    text = entry("handoff.posted", **said)
    keys = [
        found[0]
        for line in text.split("\n")
        if (found := documents_markdown.plain_field(line)) and found[0] != "pytest"
    ]
    assert tuple(keys) == worklog_text.HANDOFF_KEYS
    for name in ("status", "changed", "tests", "risks", "blocking", "next_owner"):
        left = {key: one for key, one in said.items() if key != name}
        lacking = worded("handoff.posted", Wording(**left), "ada", MOMENT)  # type: ignore[arg-type]
        assert isinstance(lacking, AofError), name
    read = payload(parse_entry(text, "2026-02-08"))
    assert read["changed_files"] == ["src/a.py", "src/b.py"]
    assert (read["risks_assumptions"], read["blocking_items"]) == ([], [])
    assert (read["next_owner"], read["next_note"]) == ("bob", "wire the API")


@requirement("comms.handoff-block.status-values")
def test_another_status_is_refused_with_the_four_that_there_are() -> None:
    said = Wording(subject="x", status="done", changed=(), tests=(), risks=(), blocking=(), next_owner="bob")
    refused = worded("handoff.posted", said, "ada", MOMENT)
    assert isinstance(refused, AofError)
    assert all(status in f"{refused.message} {refused.hint}" for status in worklog_text.STATUSES)


@requirement("comms.handoff-block.field-values")
def test_lists_are_read_inline_and_as_bullets() -> None:
    head = "### A: x\n\nHandoff: x\nOwner: A\nStatus: Complete\n"
    tail = "Tests run: none\nRisks/assumptions: none\nBlocking items: none\nNext owner: B (wire the API)\n"
    inline = payload(parse_entry(f"{head}Changed files: a.py, b.py\n{tail}", "2026-02-08"))
    bullets = payload(parse_entry(f"{head}Changed files:\n  - a.py\n  - b.py\n{tail}", "2026-02-08"))
    fenced = payload(parse_entry(f"### A: x\n\n```\n{head[10:]}Changed files: a.py, b.py\n{tail}```\n", "2026-02-08"))
    assert inline["changed_files"] == bullets["changed_files"] == fenced["changed_files"] == ["a.py", "b.py"]
    assert inline["blocking_items"] == []
    assert (inline["next_owner"], inline["next_note"]) == ("B", "wire the API")


@given(TEXT, TEXT, st.lists(TEXT.map(lambda text: " ".join(text.split())), min_size=1, max_size=3))
@example("\t\\# ", "\t\\#", ["#"])
def test_a_counter_recommendation_comes_back_whatever_it_says(first: str, second: str, reasons: list[str]) -> None:
    text = entry(
        "objection.raised", subject="No", other="bob", recommended=first, counter=second, reasons=tuple(reasons)
    )
    read = parse_entry(text, "2026-02-08")
    assert (read.form, read.actor, read.text) == ("counter", "ada", text)
    assert read.fields["recommended"].strip() == plain_text(first).strip()
    assert read.fields["counter"].strip() == plain_text(second).strip()
    assert event_type(read) == "objection.raised"


def test_an_entry_of_too_many_words_or_items_is_refused() -> None:
    long = "a b " * 5_000
    said = Wording(
        subject="x", other="bob", recommended=long, counter=long, compromise=long, agreed=long, reasons=("z",)
    )
    refused = worded("objection.raised", said, "ada", MOMENT)
    assert isinstance(refused, AofError)
    assert refused.code == "payload_too_large"
    many = wording_problem(
        "handoff.posted", Wording(subject="x", changed=tuple(f"src/{number}.py" for number in range(51)))
    )
    assert many is not None
    assert many.code == "payload_too_large"


@given(TEXT, TEXT)
def test_an_entry_stays_one_entry_whatever_its_text_tries(subject: str, body: str) -> None:
    text = entry("escalation.requested", subject=" ".join(subject.split()), body=body)
    whole = f"{new_worklog('p')}\n## Session 1 — 2026-02-08\n\n{text}\n\n### bob: After\n\nHandoff: y\n"
    known = parse_worklog(whole)
    assert [(one.actor, one.text) for one in known.entries[:1]] == [("ada", text)]
    assert [one.subject for one in known.entries[1:]] == ["After"]
    assert len(known.sessions) == 1
    assert not known.status or all(line.number < 8 for line in known.status)


@given(LINE, LINE, LINE)
def test_a_quick_line_stays_one_line_of_its_owner(what: str, result: str, more: str) -> None:
    text = entry("task.completed", subject=what, result=result, quick=True, next_owner="bob", next=more)
    known = parse_worklog(f"{new_worklog('p')}\n## Session 1 — 2026-02-08\n\n{text}\n")
    assert [(one.form, one.actor, one.time) for one in known.entries] == [("quick", "ada", "14:32")]
    assert known.entries[0].text == text


@requirement("comms.envelope.event-type")
def test_the_eight_types_follow_from_the_form_and_no_tag_stands_in_the_text() -> None:
    full = {"changed": (), "tests": (), "risks": (), "blocking": (), "next_owner": "bob"}
    proposal = {"scope": "s", "proposal": "p", "risks": ("r",), "rollback": "b", "deadline": "2026-03-01"}
    said: dict[EventType, dict[str, object]] = {
        "task.claimed": {"task": "TASK-2026-02-08-001"},
        "task.completed": {"subject": "done", **full},
        "handoff.posted": {"subject": "over", "status": "Ready for review", **full},
        "proposal.created": {"subject": "idea", "proposal_id": "PROP-001", **proposal},
        "proposal.amended": {"subject": "idea", "proposal_id": "PROP-001", **proposal},
        "objection.raised": {"subject": "no", "other": "bob", "recommended": "x", "counter": "y", "reasons": ("z",)},
        "decision.recorded": {"subject": "use it"},
        "escalation.requested": {"subject": "stuck"},
    }
    texts = [entry(kind, **fields) for kind, fields in said.items()]
    whole = f"{new_worklog('p')}\n## Session 1 — 2026-02-08\n\nJust a paragraph.\n\n" + "\n\n".join(texts)
    assert [one.event_type for one in envelopes(parse_worklog(whole).entries)] == ["unknown", *said]
    assert not any(kind in whole for kind in said)


# --- A WORKLOG that people wrote is read, and what is odd about it is named by its line


HAND = """\
# Worklog — pilot

References: docs/plan.md

Now Working (ada): the parser
Now Working (bob): idle
Maintainer Focus: release
Next Review Checkpoint: Friday
Mood: good

<!--
### template: not an entry
Handoff: <task>
-->

## Decision Index

| Decision | Owner | Timestamp | Section |
| --- | --- | --- | --- |
| Use SQLite | ada | 2026-02-07 | Session 1 |

## Session 1 — 2026-02-07

### ada: Parser rewrite

```
Handoff: Parser rewrite
Owner: ada
Status: Ready for review
Changed files: src/a.py, src/b.py
Tests run: pytest 10 passed
Risks/assumptions: none
Blocking items: none
Next owner: bob (wire it)
```

### bob: Review

Handoff: Review
Owner: bob
Status: Complete
Changed files: none
Tests run:
  - pytest 12 passed
Risks/assumptions: none
Blocking items: none
Next owner: Maintainer

14:32 — ada: small fix done (3 pass). Next: bob merging.

## Notes of the maintainer

Anything.

## Session 2 — 2026-02-08

### ada: Decision

**Decision:** Use SQLite
"""
GOOD = f"{worklog_text.new_worklog('p')}\n## Session 1 — 2026-02-08\n\n14:32 — ada: it done (3 pass).\n"
_LINES = st.sampled_from(
    [
        *dict.fromkeys(HAND.split("\n")),
        "| a |",
        "| a | b | c | d | e |",
        "```",
        "<!--",
        "<<<<<<< x",
        "\t- x",
        "\x00",
        "é",
    ]
)


@requirement("comms.worklog.hand-written")
@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_a_hand_written_file_is_read_and_a_changed_line_is_the_only_difference(end: str) -> None:
    text = HAND.replace("\n", end)
    known = parse_worklog(text)
    assert [(one.actor, one.subject, one.form) for one in known.entries] == [
        ("ada", "Parser rewrite", "handoff"),
        ("bob", "Review", "handoff"),
        ("ada", "small fix done", "quick"),
        ("ada", "Decision", "decision"),
    ]
    assert known.findings == ()
    changed = worklog_text.with_status(text, {"bob": "the API"})
    assert [(old, new) for old, new in zip(text.split(end), changed.split(end), strict=True) if old != new] == [
        ("Now Working (bob): idle", "Now Working (bob): the API")
    ]


@given(st.lists(_LINES, max_size=40), st.sampled_from(["\n", "\r\n"]))
def test_whatever_stands_in_a_file_reading_never_fails_and_changes_keep_all_other_lines(
    lines: list[str], end: str
) -> None:
    text = end.join(lines)
    known = parse_worklog(text)
    assert all(one.line is None or 1 <= one.line <= max(known.lines, 1) for one in known.findings)
    list(envelopes(known.entries))
    list(worklog_rules.entry_findings(known, lambda _name: True))
    before = [line for line in documents_markdown.split_lines(text) if line.strip()]
    for changed in (
        worklog_text.with_status(text, {"zed": "x"}),
        worklog_text.with_row(text, worklog_text.INDEX, ("a | b", "zed", "2026-02-08 14:32 UTC", "Session 1")),
    ):
        after = [line.rstrip("\r\n") for line in documents_markdown.split_lines(changed) if line.strip()]
        assert [line for line in after if "zed" not in line and line not in _MADE] == [
            line.rstrip("\r\n") for line in before if line.rstrip("\r\n") not in _MADE
        ]


@given(st.lists(_LINES, max_size=40), st.sampled_from(["\n", "\r\n"]), st.sampled_from(["", "# Worklog — p\n"]))
def test_the_pinned_lines_are_found_without_reading_the_sessions_below_them(
    lines: list[str], end: str, title: str
) -> None:
    text = title.replace("\n", end) + end.join(lines)
    assert parse_worklog(worklog_text.pinned_part(text)).status == parse_worklog(text).status
    statuses = {"ada": "x", "zed": "y", worklog_text.FOCUS: "z"}
    changed = worklog_text.with_status(text, statuses)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(worklog_text, "pinned_part", lambda whole: whole)
        assert changed == worklog_text.with_status(text, statuses)


_MADE = {"## Decision Index", "| Decision | Owner | Timestamp | Section |", "| --- | --- | --- | --- |"}


def test_a_correct_file_has_no_finding() -> None:
    assert codes(GOOD) == []


def codes(text: str) -> list[tuple[str, int | None]]:
    known = parse_worklog(text)
    found = (
        *known.findings,
        *worklog_rules.entry_findings(known, lambda _name: True),
        *worklog_rules.index_findings(known, Worklog(title="")),
    )
    return [(one.code, one.line) for one in found]


@requirement("comms.validate.worklog")
@pytest.mark.parametrize(
    ("old", "new", "wanted"),
    [
        ("# Worklog — p", "# Diary", ("title_missing", 1)),
        ("## Decision Index", "## Decisions", ("section_missing", 1)),
        ("## Session 1 — 2026-02-08", "## Session 1 — 2026-02-08\n\n## Session 1 — 2026-02-08", ("session_number", 13)),
        (
            "## Session 1 — 2026-02-08",
            "## Session 3 — 2026-02-08\n\n14:31 — ada: x done.\n\n## Session 2 — 2026-02-08",
            ("session_number", 15),
        ),
        ("Maintainer Focus: none", "Now Working (a): x\nNow Working (a): y", ("status_line_doubled", 4)),
        ("| --- | --- | --- | --- |", "| --- | --- | --- | --- |\n| a | b | c |", ("table_cells", 10)),
        ("14:32", "<<<<<<< ours\n14:32", ("conflict_mark", 13)),
        ("14:32", "```\n14:32", ("unclosed", 13)),
    ],
)
def test_each_defect_is_named_with_its_line(old: str, new: str, wanted: tuple[str, int]) -> None:
    assert wanted in codes(GOOD.replace(old, new, 1))


@requirement("comms.decision-index.two-way")
def test_a_decision_without_a_row_and_a_row_without_a_section_are_named() -> None:
    row = "| x | ada | 2026-02-08 | Session 9 |"
    entry = "### ada: Later\n\n**Decision:** later\n"
    text = GOOD.replace("| --- | --- | --- | --- |", f"| --- | --- | --- | --- |\n{row}") + f"\n{entry}"
    found = [one for one in codes(text) if one[0] in ("decision_without_row", "section_unknown")]
    assert found == [("decision_without_row", 16), ("section_unknown", 10)]


@requirement("comms.handoff-block.full-keys", "comms.handoff-block.status-values", "comms.entry.evidence")
def test_a_handoff_by_hand_that_lacks_something_is_read_and_named() -> None:
    text = GOOD + "\n### bob: Over\n\nHandoff: Over\nOwner: bob\nStatus: done\nChanged files: none\nNext owner: ada\n"
    known = parse_worklog(text)
    assert known.entries[-1].fields["Status"] == "done"
    details = [one.detail for one in worklog_rules.entry_findings(known, lambda _name: True)]
    assert any("'Risks/assumptions'" in detail for detail in details)
    assert any("'done'" in detail for detail in details)
    complete = text.replace("Status: done", "Status: Complete")
    assert [one.code for one in worklog_rules.evidence_findings(parse_worklog(complete).entries)] == ["no_evidence"]


@requirement("comms.envelope.actor", "comms.envelope.timestamp", "comms.envelope.subject")
def test_actor_time_and_subject_come_from_where_a_person_sees_them() -> None:
    text = (
        f"{worklog_text.new_worklog('p')}\n## Session 3 — 2026-02-08\n\n"
        "14:32 — B: parser done (47 pass). Next: A wiring.\n\n"
        "### A: Parser rewrite\n\nHandoff: x\nOwner: B\nStatus: Complete\n"
    )
    known = parse_worklog(text)
    quick, full = envelopes(known.entries)
    assert (quick.actor, quick.timestamp, quick.subject) == ("B", "2026-02-08T14:32Z", "parser done")
    assert (full.actor, full.timestamp, full.subject) == ("A", "2026-02-08", "Parser rewrite")
    assert "owner_differs" in [one.code for one in worklog_rules.entry_findings(known, lambda _name: True)]
    assert timestamp(parse_worklog(text.replace("— 2026-02-08", "")).entries[1]) == "unknown"


@requirement("comms.envelope.event-id")
def test_an_entry_keeps_its_id_when_something_else_changes_and_twins_have_two() -> None:
    twins = GOOD + "\n14:32 — ada: it done (3 pass).\n"
    first = [one.event_id for one in envelopes(parse_worklog(twins).entries)]
    assert len(set(first)) == 2
    changed = (
        worklog_text.with_status(twins.replace("# Worklog — p", "# Worklog — other"), {"ada": "x"}) + "\n### b: y\n"
    )
    assert [one.event_id for one in envelopes(parse_worklog(changed).entries)][:2] == first
    assert event_id(parse_worklog(twins).entries[0]) == first[0]


@requirement("comms.envelope.links", "comms.envelope.payload")
def test_links_are_listed_in_order_of_mention_and_the_rest_of_the_text_is_kept() -> None:
    body = "Done in TASK-2026-02-08-001, see MSG-20260208-001 and src/a.py, again src/a.py.\n\nMore: https://x.y/z.html"
    text = f"{GOOD}\n### ada: Over\n\n**Escalation:** stuck\n\n**Details:**\n\n{body}\n"
    *_, last = envelopes(parse_worklog(text).entries)
    assert last.links == ["TASK-2026-02-08-001", "MSG-20260208-001", "src/a.py"]
    assert last.payload["details"] == body
    unknown = worklog_rules.link_findings(parse_worklog(text).entries, lambda link: link.startswith("TASK"))
    assert [one.code for one in unknown] == ["link_unknown"]


@requirement("comms.handoff-block.quick-form")
def test_a_quick_entry_of_four_lines_and_one_for_long_work_ask_for_the_full_block() -> None:
    task = "TASK-2026-02-08-001"
    line = f"14:32 — ada: completed {task} (done; Tests run: none)."
    long = parse_worklog(GOOD + f"\n{line}\nb\nc\nd\n")
    assert ("quick_too_long", "warning") in [
        (one.code, one.severity) for one in worklog_rules.entry_findings(long, lambda _n: True)
    ]
    known = parse_worklog(GOOD + f"\n{line}\n").entries
    assert [one.code for one in worklog_rules.long_work_findings(known, {task: 45.0})] == ["quick_for_long_work"]
    assert not list(worklog_rules.long_work_findings(known, {task: 10.0}))


@requirement("comms.delivery.human-visible")
def test_dense_text_needs_a_paraphrase_and_a_link_needs_words() -> None:
    dense = f"{GOOD}\n### ada: X\n\n```dense\nxyz\n```\n"
    assert "no_paraphrase" in dict(codes(dense))
    assert "no_paraphrase" not in dict(codes(dense + "Paraphrase: it works\n"))
    assert "only_a_link" in dict(codes(f"{GOOD}\nhttps://example.org/x\n"))


# --- A line of any length and make is read in time that grows with its length; with other patterns this never ends


LONG = 20_000
BEGINNINGS = (
    "",
    "# ",
    "### ",
    "### 2026-02-08",
    "### ada: ",
    "14:32 — ada: ",
    "14:32 — ",
    "**Decision:** ",
    "**a",
    "Handoff: ",
    "Owner: ",
    "Now Working (ada): ",
    "Maintainer Focus",
    "| ",
    "| --- |",
    "---",
    "```",
    "<!--",
    "https://",
    "src/",
    "REV-",
)

FILLINGS = (" ", "\t ", "(", " (a) ", "a:", "a/", "a.", "- ", "**", "|", "\\", "#", "`", "<!--")


@pytest.mark.parametrize("filling", FILLINGS)
@pytest.mark.parametrize("beginning", BEGINNINGS)
def test_a_long_line_is_read_and_escaped(beginning: str, filling: str) -> None:
    line = beginning + filling * (LONG // len(filling)) + "x"
    known = parse_worklog(f"{new_worklog('p')}\n## Session 1 — 2026-02-08\n\n### ada: Over\n\n{line}\n\n{line}\n")
    assert sum(1 for _ in envelopes(known.entries)) == len(known.entries)
    list(worklog_rules.entry_findings(known, lambda _name: True))
    list(worklog_rules.index_findings(known, Worklog(title="")))
    assert original(contained(line, RESERVED), RESERVED) == line.strip("\n")
    assert documents_markdown.heading(line) is None or beginning.startswith("#")
