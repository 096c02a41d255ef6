"""A charter as text: written and read again, changed line by line, and read from whatever people type."""

from __future__ import annotations

import string

from hypothesis import given
from hypothesis import strategies as st

from aof.documents import charter_rules
from aof.documents.charter import apply_changes, parse_charter, render_charter
from aof.documents.markdown import split_lines
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
    charter_rules.CharterLane, name=NAMES, owner=NAMES, patterns=st.lists(PATTERN, min_size=1, max_size=3).map(tuple)
)
PEOPLE = st.builds(charter_rules.Participant, role=NAMES, agent=NAMES, model=NAMES, lane=st.just("") | NAMES).filter(
    lambda one: not one.is_maintainer
)


@given(st.lists(LANES, max_size=4), st.lists(PEOPLE, max_size=4), st.lists(LINES, max_size=4), LINES)
def test_what_is_written_reads_as_the_same_charter(
    lanes: list[charter_rules.CharterLane], people: list[charter_rules.Participant], criteria: list[str], milestone: str
) -> None:
    written = charter_rules.Charter(
        session_id="s-1",
        date="2026-03-02",
        project="demo",
        milestone=milestone,
        risk_tier="Low",
        roster=tuple(people),
        lanes=tuple(lanes),
        gates=TEAM.gates,
        acceptance=tuple(criteria),
        handshakes=(charter_rules.Signature(agent="ada", signed="ada", role="dev", lane="api", status="Accepted"),),
        checklist=tuple(charter_rules.Item(text=text, done=False) for text in charter_rules.KICKOFF),
        escalation=charter_rules.Escalation(rebuttal_cycles=2, tie_break="lower risk"),
    )
    assert without_lines(parse_charter(render_charter(written))) == written


@given(
    st.text(max_size=400)
    | st.lists(st.sampled_from([*split_lines(render_charter(TEAM)), "| a |\n", "```\n", "## 3)\n"])).map("".join)
)
def test_reading_never_fails_and_changing_keeps_every_other_line(text: str) -> None:
    parse_charter(text)
    lane = charter_rules.CharterLane(name="api", owner="ada", patterns=("src/api/**",))
    changed = apply_changes(text, [charter_rules.SetLane(lane=lane)])
    assert lane in without_lines(parse_charter(changed)).lanes
    assert apply_changes(changed, [charter_rules.SetLane(lane=lane)]) == changed
    kept = [line.rstrip("\r\n") for line in split_lines(changed)]
    lost = [line for line in (raw.rstrip("\r\n") for raw in split_lines(text)) if line not in kept]
    assert len(lost) <= 1, lost


CHANGES = st.one_of(
    st.builds(charter_rules.SetField, section=st.just(1), key=st.sampled_from(charter_rules.METADATA), value=LINES),
    st.builds(charter_rules.SetField, section=st.just(5), key=st.sampled_from(charter_rules.GOVERNANCE), value=LINES),
    st.builds(charter_rules.SetLane, lane=LANES),
    st.builds(charter_rules.DropLane, name=NAMES),
    st.builds(charter_rules.SetParticipant, participant=PEOPLE),
    st.builds(charter_rules.SetWindow, cycles=st.integers(1, 9)),
    st.builds(charter_rules.SetAcceptance, criteria=st.lists(LINES, min_size=1, max_size=3).map(tuple)),
    st.builds(charter_rules.TickItem, number=st.integers(1, 7), done=st.booleans()),
    st.builds(
        charter_rules.Sign,
        signature=st.builds(
            charter_rules.Signature, agent=NAMES, signed=NAMES, role=NAMES, lane=NAMES, status=st.just("Accepted")
        ),
    ),
)


@given(st.lists(CHANGES, max_size=5), st.sampled_from(["\n", "\r\n"]))
def test_changes_of_a_file_with_other_line_endings_keep_them_and_can_be_repeated(
    changes: list[charter_rules.Change], end: str
) -> None:
    text = render_charter(TEAM).replace("\n", end)
    changed = apply_changes(text, changes)
    assert changed.count("\n") == changed.count(end)
    for change in changes[-1:]:
        assert apply_changes(changed, [change]) == changed
    assert parse_charter(changed.replace("\r\n", "\n")) == parse_charter(changed)


def test_only_the_lines_that_must_change_do() -> None:
    text = render_charter(TEAM).replace("## 4)", "A note of mine.\n\n## 4)")
    lane = charter_rules.CharterLane(name="api", owner="bob", patterns=("src/api/**",))
    before, after = split_lines(text), split_lines(apply_changes(text, [charter_rules.SetLane(lane=lane)]))
    differing = [(old, new) for old, new in zip(before, after, strict=True) if old != new]
    assert differing == [("| api | ada | `src/api/**` |\n", "| api | bob | `src/api/**` |\n")]
    signed = charter_rules.Signature(
        agent="ada", signed="ada", role="Developer", lane="api", status="Accepted", timestamp="t"
    )
    after = split_lines(apply_changes(text, [charter_rules.Sign(signature=signed)]))
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
    charter = parse_charter(text)
    assert (charter.session_id, charter.risk_tier) == ("2026-02-07-alpha", "High")
    assert [(one.agent, one.lane) for one in charter.roster] == [("pm", ""), ("ada", "api")]
    assert charter.escalation.rebuttal_cycles == 2
    assert [(gate.band, gate.scope, gate.delay_seconds) for gate in charter.gates] == [
        ("auto", ("docs",), 0),
        ("delay", ("merge",), 7200),
        ("approval", ("release", "tag:db"), 0),
    ]
