"""Operations about the session charter. Must not know any surface."""

from __future__ import annotations

from typing import Annotated

from msgspec import UNSET, UnsetType

from aof.app.documents.charter.examination import CharterChecked
from aof.app.documents.charter.service import CharterShown
from aof.app.operations.spec import Cli, Extra, Family, Operation, Params, Spelling, one_of, param
from aof.core.documents.charter.model import (
    CONTRACT_STATUSES,
    CROSS_REVIEW_MODES,
    DECISION_MODES,
    HANDSHAKE_STATUSES,
    RISK_TIERS,
)

_CHARTER = Family(
    verb="charter",
    help="create, amend, sign, show or check the session charter",
    example="aof charter init --participant ada:Developer:api --lane 'api:ada:src/api/**'",
)
_AS = Annotated[str, param("who acts", Spelling(note="(else the actor)"))] | UnsetType


class CharterFields(Params, frozen=True, kw_only=True):
    """What a charter says."""

    session_id: Annotated[str, param("ID of the session, unique in the project")] | UnsetType = UNSET
    project: Annotated[str, param("the project")] | UnsetType = UNSET
    milestone: Annotated[str, param("what the session works towards")] | UnsetType = UNSET
    risk_tier: (
        Annotated[str, param("Low, Medium or High", Spelling(option="--risk"), says=one_of(RISK_TIERS))] | UnsetType
    ) = UNSET
    participants: (
        Annotated[
            list[str],
            param(
                "somebody who takes part, as NAME:ROLE:LANE, with :MODEL behind it if you like; "
                "the roles Maintainer and Observer have no lane",
                Spelling(option="--participant", metavar="P"),
            ),
        ]
        | UnsetType
    ) = UNSET
    lanes: (
        Annotated[
            list[str],
            param("files that somebody owns, as LANE:OWNER:PATTERN,PATTERN", Spelling(option="--lane", metavar="L")),
        ]
        | UnsetType
    ) = UNSET
    contract: Annotated[str, param("file that several lanes build against")] | UnsetType = UNSET
    contract_owner: Annotated[str, param("who owns the contract")] | UnsetType = UNSET
    contract_tests: Annotated[str, param("tests that validate the contract")] | UnsetType = UNSET
    contract_status: (
        Annotated[str, param("Not started, Draft or Locked", says=one_of(CONTRACT_STATUSES))] | UnsetType
    ) = UNSET
    decision_mode: (
        Annotated[str, param("consent, quorum or maintainer-adjudicated", says=one_of(DECISION_MODES))] | UnsetType
    ) = UNSET
    objection_window: Annotated[str, param("how long objections may take, such as '1 cycle'")] | UnsetType = UNSET
    cross_review_mode: (
        Annotated[
            str,
            param("aspirational or mandatory", Spelling(option="--cross-review"), says=one_of(CROSS_REVIEW_MODES)),
        ]
        | UnsetType
    ) = UNSET
    merge_policy: Annotated[str, param("when work is merged")] | UnsetType = UNSET
    test_policy: Annotated[str, param("which tests must pass")] | UnsetType = UNSET
    auto: Annotated[list[str], param("what needs nobody's approval", Spelling(metavar="T"))] | UnsetType = UNSET
    delayed: (
        Annotated[
            list[str],
            param(
                "what is told and then waits: complete, or tasks by tag:X, risk:X, priority:X, agent:X or team:X",
                Spelling(option="--delay", metavar="T"),
            ),
        ]
        | UnsetType
    ) = UNSET
    delay_time: Annotated[str, param("how long that waits: 30m, 2h, 1d")] | UnsetType = UNSET
    approval: (
        Annotated[
            list[str],
            param(
                "what a person has to approve: an action (complete, cancel, retry, archive), or such tasks",
                Spelling(metavar="T"),
            ),
        ]
        | UnsetType
    ) = UNSET
    rebuttal_cycles: (
        Annotated[int, param("WORKLOG cycles that a rebuttal may take", Spelling(metavar="N"), ge=1, le=99)] | UnsetType
    ) = UNSET
    tie_break: Annotated[str, param("what breaks a tie")] | UnsetType = UNSET
    acceptance: (
        Annotated[list[str], param("acceptance criterion", Spelling(option="--accept", metavar="T"))] | UnsetType
    ) = UNSET
    agent: _AS = UNSET


class CharterAmendment(CharterFields, frozen=True, kw_only=True):
    """What changes in a charter, and why."""

    reason: Annotated[str, param("why; it stands in the Decision Index", Spelling(metavar="T"))]
    leave: (
        Annotated[list[str], param("participant who leaves", Spelling(option="--leave", metavar="A"))] | UnsetType
    ) = UNSET
    close_lanes: (
        Annotated[list[str], param("lane that ends", Spelling(option="--close-lane", metavar="L"))] | UnsetType
    ) = UNSET
    done: Annotated[list[int], param("kickoff item that is done, by its number", Spelling(metavar="N"))] | UnsetType = (
        UNSET
    )
    undone: Annotated[list[int], param("kickoff item that is not done", Spelling(metavar="N"))] | UnsetType = UNSET


class Handshake(Params, frozen=True, kw_only=True):
    """Who signs, and with which reservations."""

    agent: _AS = UNSET
    status: (
        Annotated[str, param("'Accepted' or 'Accepted with reservations'", says=one_of(HANDSHAKE_STATUSES))] | UnsetType
    ) = UNSET
    notes: Annotated[str, param("reservations, or what the maintainer should know")] | UnsetType = UNSET


class CharterCheck(Params, frozen=True, kw_only=True):
    """Which changed files to compare with the lanes, and whose they are."""

    agent: Annotated[str, param("whose changes they are")] | UnsetType = UNSET
    changed: (
        Annotated[list[str], param("file that has changed, relative to the project", Spelling(metavar="FILE"))]
        | UnsetType
    ) = UNSET


ROWS: tuple[Operation, ...] = (
    Operation(
        name="charter_init",
        parameters=CharterFields,
        result=CharterShown,
        help="Create the charter of a session: who takes part, who owns which files, how decisions are made.",
        effect="append",
        tool="aof_charter_init",
        verb="charter init",
        cli=Cli(section="team", order=40, example="aof charter init", family=_CHARTER),
        tier="mail",
        acts="agent",
        needs="lead",
    ),
    Operation(
        name="charter_amend",
        parameters=CharterAmendment,
        result=CharterShown,
        help="Change the charter, by decision of a maintainer.",
        effect="write",
        tool="aof_charter_amend",
        verb="charter amend",
        cli=Cli(
            section="team",
            order=40,
            example="aof charter amend --lane 'api:bob:src/api/**' --reason 'ada is away'",
            family=_CHARTER,
        ),
        tier="mail",
        acts="agent",
        needs="lead",
    ),
    Operation(
        name="charter_sign",
        parameters=Handshake,
        result=CharterShown,
        help="Sign the handshake of the charter: you have read it and take your role and lane.",
        effect="append",
        tool="aof_charter_sign",
        verb="charter sign",
        cli=Cli(section="team", order=40, example="aof charter sign --agent ada", family=_CHARTER),
        tier="mail",
        acts="agent",
    ),
    Operation(
        name="charter_show",
        parameters=Params,
        result=CharterShown,
        help="The session charter as it stands.",
        effect="read",
        tool="aof_charter_show",
        verb="charter show",
        cli=Cli(section="team", order=40, example="aof charter show", family=_CHARTER),
        tier="mail",
    ),
    Operation(
        name="charter_check",
        parameters=CharterCheck,
        result=CharterChecked,
        help="What is wrong with the charter, and which locks and changed files lie outside of their owner's lane.",
        effect="read",
        tool="aof_charter_check",
        verb="charter check",
        cli=Cli(
            section="team",
            order=40,
            example="aof charter check --agent ada --git HEAD",
            extra=(
                Extra(option="--git", help="check: compare the files that git says have changed since", metavar="REV"),
            ),
            family=_CHARTER,
        ),
        tier="mail",
    ),
)
