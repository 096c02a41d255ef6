"""A charter as text: written and read again, changed line by line, and read from whatever people type."""

from __future__ import annotations

import string

from hypothesis import given
from hypothesis import strategies as st

from aof.core.documents.charter import changes as c
from aof.core.documents.charter import model
from aof.documents.charter.edit import apply
from aof.documents.charter.parse import parse
from aof.documents.charter.render import render
from aof.documents.markdown import split
from tests.support.charters import TEAM, without_lines

WORDS = st.text(string.ascii_letters + string.digits + "|\\`<>#*_.-é", min_size=1, max_size=12).filter(
    lambda text: text.strip("`-") != "" and text.strip("`") == text and text.casefold() != "none"
)
LINES = st.lists(WORDS, min_size=1, max_size=4).map(" ".join)
NAMES = st.text(string.ascii_lowercase, min_size=1, max_size=8).filter(lambda name: name != "none")
PATTERN = st.text(string.ascii_lowercase + "/*", min_size=1, max_size=12).filter(
    lambda text: text.strip("/") != "" and text.casefold() != "none"
)
LANES = st.builds(
    model.CharterLane, name=NAMES, owner=NAMES, patterns=st.lists(PATTERN, min_size=1, max_size=3).map(tuple)
)
PEOPLE = st.builds(model.Participant, role=NAMES, agent=NAMES, model=NAMES, lane=st.just("") | NAMES).filter(
    lambda one: not one.is_maintainer
)


@given(st.lists(LANES, max_size=4), st.lists(PEOPLE, max_size=4), st.lists(LINES, max_size=4), LINES)
def test_what_is_written_reads_as_the_same_charter(
    lanes: list[model.CharterLane], people: list[model.Participant], criteria: list[str], milestone: str
) -> None:
    written = model.Charter(
        session_id="s-1",
        date="2026-03-02",
        project="demo",
        milestone=milestone,
        risk_tier="Low",
        roster=tuple(people),
        lanes=tuple(lanes),
        gates=TEAM.gates,
        acceptance=tuple(criteria),
        handshakes=(model.Signature(agent="ada", signed="ada", role="dev", lane="api", status="Accepted"),),
        checklist=tuple(model.Item(text=text, done=False) for text in model.KICKOFF),
        escalation=model.Escalation(rebuttal_cycles=2, tie_break="lower risk"),
    )
    assert without_lines(parse(render(written))) == written


@given(
    st.text(max_size=400)
    | st.lists(st.sampled_from([*split(render(TEAM)), "| a |\n", "```\n", "## 3)\n"])).map("".join)
)
def test_reading_never_fails_and_changing_keeps_every_other_line(text: str) -> None:
    parse(text)
    lane = model.CharterLane(name="api", owner="ada", patterns=("src/api/**",))
    changed = apply(text, [c.SetLane(lane=lane)])
    assert lane in without_lines(parse(changed)).lanes
    assert apply(changed, [c.SetLane(lane=lane)]) == changed
    kept = [line.rstrip("\r\n") for line in split(changed)]
    lost = [line for line in (raw.rstrip("\r\n") for raw in split(text)) if line not in kept]
    assert len(lost) <= 1, lost


CHANGES = st.one_of(
    st.builds(c.SetField, section=st.just(1), key=st.sampled_from(model.METADATA), value=LINES),
    st.builds(c.SetField, section=st.just(5), key=st.sampled_from(model.GOVERNANCE), value=LINES),
    st.builds(c.SetLane, lane=LANES),
    st.builds(c.DropLane, name=NAMES),
    st.builds(c.SetParticipant, participant=PEOPLE),
    st.builds(c.SetWindow, cycles=st.integers(1, 9)),
    st.builds(c.SetAcceptance, criteria=st.lists(LINES, min_size=1, max_size=3).map(tuple)),
    st.builds(c.TickItem, number=st.integers(1, 7), done=st.booleans()),
    st.builds(
        c.Sign,
        signature=st.builds(
            model.Signature, agent=NAMES, signed=NAMES, role=NAMES, lane=NAMES, status=st.just("Accepted")
        ),
    ),
)


@given(st.lists(CHANGES, max_size=5), st.sampled_from(["\n", "\r\n"]))
def test_changes_of_a_file_with_other_line_endings_keep_them_and_can_be_repeated(
    changes: list[c.Change], end: str
) -> None:
    text = render(TEAM).replace("\n", end)
    changed = apply(text, changes)
    assert changed.count("\n") == changed.count(end)
    for change in changes[-1:]:
        assert apply(changed, [change]) == changed
    assert parse(changed.replace("\r\n", "\n")) == parse(changed)


def test_only_the_lines_that_must_change_do() -> None:
    text = render(TEAM).replace("## 4)", "A note of mine.\n\n## 4)")
    lane = model.CharterLane(name="api", owner="bob", patterns=("src/api/**",))
    before, after = split(text), split(apply(text, [c.SetLane(lane=lane)]))
    differing = [(old, new) for old, new in zip(before, after, strict=True) if old != new]
    assert differing == [("| api | ada | `src/api/**` |\n", "| api | bob | `src/api/**` |\n")]
    signed = model.Signature(agent="ada", signed="ada", role="Developer", lane="api", status="Accepted", timestamp="t")
    after = split(apply(text, [c.Sign(signature=signed)]))
    assert len(after) == len(before)
    assert [new for old, new in zip(before, after, strict=True) if old != new] == [
        "- **Signed:** ada\n",
        "- **Handshake status:** Accepted\n",
        "- **Timestamp:** t\n",
    ]


def test_a_hand_written_charter_is_read_in_other_forms_too() -> None:
    text = (
        "# Our charter\r\n\r\n## 1. Session metadata\r\nSession ID: 2026-02-07-alpha\r\n- **Risk tier**: High\r\n"
        "<!--\r\n## 2) Agent roster\r\n-->\r\n## Agent roster\r\n|Role|Agent|Model/Provider|Lane|\r\n|-|-|-|-|\r\n"
        "|Maintainer|pm|human|—|\r\n|Dev|ada|x|`api`|\r\n## 7) Conflict escalation\r\n1. Counter-recommendation\r\n"
        "2. Time-boxed rebuttal (two cycles)\r\n3. Risk-minimizing default\r\n4. Maintainer adjudication\r\n"
        "## 6) Approval gates\r\n- Auto: docs\r\n- Notify + Delay: merge (2h)\r\n"
        "- Approval Required: release; tag:db\r\n"
        "## My own section\r\nkept\r\n"
    )
    charter = parse(text)
    assert (charter.session_id, charter.risk_tier) == ("2026-02-07-alpha", "High")
    assert [(one.agent, one.lane) for one in charter.roster] == [("pm", ""), ("ada", "api")]
    assert charter.escalation.rebuttal_cycles == 2
    assert [(gate.band, gate.scope, gate.delay_seconds) for gate in charter.gates] == [
        ("auto", ("docs",), 0),
        ("delay", ("merge",), 7200),
        ("approval", ("release", "tag:db"), 0),
    ]
