"""Every form of an entry is read back as it was written, whatever it holds."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from aof.documents import markdown as documents_markdown
from aof.documents import worklog_text
from aof.documents.markdown import plain_text
from aof.documents.worklog import envelopes, event_type, payload
from aof.documents.worklog_rules import Wording, worded, wording_problem
from aof.documents.worklog_text import EventType, new_worklog, parse_entry, parse_worklog
from aof.errors import AofError
from tests.support.requirements import requirement

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
