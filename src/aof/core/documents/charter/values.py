"""What a charter that AOF writes may hold. What people write by hand is checked, and never refused.

Must not know how it is written down.
"""

from __future__ import annotations

from aof.core.documents.charter import model
from aof.core.documents.charter.model import Charter
from aof.core.errors.base import AofError, InvalidInput, PayloadTooLarge
from aof.core.validation import limits

_LINE, _ROWS, _PATTERN = 256, 100, 200


def refused(charter: Charter) -> AofError | None:
    """Why this is no charter that could be written."""
    return _of_fields(charter) or _of_people(charter) or _of_lanes(charter) or _of_gates(charter)


def _of_fields(charter: Charter) -> AofError | None:
    rules, contract = charter.governance, charter.contract
    lines = {
        "sessionId": charter.session_id,
        "project": charter.project,
        "milestone": charter.milestone,
        "objectionWindow": rules.objection_window,
        "mergePolicy": rules.merge_policy,
        "testPolicy": rules.test_policy,
        "contract": contract.location,
        "contractOwner": contract.owner,
        "contractTests": contract.tests,
        "tieBreak": charter.escalation.tie_break,
    }
    problem = next((found for key, value in lines.items() if (found := limits.line(key, value, _LINE))), None)
    return (
        problem
        or limits.line("sessionId", charter.session_id, _LINE, required=True)
        or limits.choice("riskTier", charter.risk_tier, model.RISK_TIERS)
        or limits.choice("decisionMode", rules.decision_mode, model.DECISION_MODES)
        or limits.choice("crossReviewMode", rules.cross_review_mode, model.CROSS_REVIEW_MODES)
        or limits.choice("contractStatus", contract.status, model.CONTRACT_STATUSES)
        or (limits.items("acceptance", charter.acceptance, limits.ITEMS, single_line=True))
    )


def _of_people(charter: Charter) -> AofError | None:
    if len(charter.roster) > _ROWS:
        return PayloadTooLarge(f"the roster has {len(charter.roster)} rows, the limit is {_ROWS}", "use fewer")
    for one in charter.roster:
        problem = (
            limits.names(participant=one.agent)
            or limits.line("role", one.role, _LINE, required=True)
            or limits.line("lane", one.lane, _LINE)
            or limits.line("model", one.model, _LINE)
        )
        if problem is not None:
            return problem
    agents = [one.agent for one in charter.roster]
    if len(set(agents)) < len(agents):
        return InvalidInput("somebody is in the roster twice", "name each participant once")
    if sum(one.is_maintainer for one in charter.roster) != 1:
        return InvalidInput("a session has exactly one maintainer", "name one participant with the role Maintainer")
    return None


def _of_lanes(charter: Charter) -> AofError | None:
    if len(charter.lanes) > _ROWS:
        return PayloadTooLarge(f"there are {len(charter.lanes)} lanes, the limit is {_ROWS}", "use fewer")
    for lane in charter.lanes:
        if (problem := limits.line("lane", lane.name, _LINE, required=True)) is not None:
            return problem
        if not lane.owner or not lane.patterns:
            return InvalidInput(f"the lane {lane.name[:60]!r} needs an owner and files", "give it as LANE:OWNER:FILES")
        if any(len(pattern) > _PATTERN or "`" in pattern for pattern in lane.patterns):
            return InvalidInput(
                f"a pattern of the lane {lane.name[:60]!r} is too long, or has a backtick", "shorten it"
            )
    names = [lane.name for lane in charter.lanes]
    return InvalidInput("a lane is there twice", "name each lane once") if len(set(names)) < len(names) else None


def _of_gates(charter: Charter) -> AofError | None:
    return next(
        (found for gate in charter.gates if (found := limits.items("gate", gate.scope, _ROWS, single_line=True))), None
    )
