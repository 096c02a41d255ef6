"""Operations on the session charter. Must not know how the charter is written down, nor any surface."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from aof.app.documents import reading
from aof.app.documents.charter import examination, requests
from aof.app.operations.results import Result
from aof.core.documents.charter import model
from aof.core.errors.base import Call
from aof.core.errors.charter import NoCharter
from aof.core.model.times import iso
from aof.documents.charter.commands import AmendCharter, CreateCharter, SignCharter
from aof.documents.charter.parse import parse
from aof.documents.charter.projection import NAME, PATH

if TYPE_CHECKING:
    from aof.app.commands.context import Environment
    from aof.app.commands.dispatcher import Dispatcher
    from aof.app.documents.charter.examination import CharterChecked


class CharterShown(Result, frozen=True, kw_only=True):
    """The charter as it stands, and whose handshake is missing."""

    path: str
    session_id: str
    date: str
    project: str
    milestone: str
    risk_tier: str
    roster: tuple[model.Participant, ...]
    lanes: tuple[model.CharterLane, ...]
    contract: model.Contract
    governance: model.Governance
    gates: tuple[model.Gate, ...]
    escalation: model.Escalation
    acceptance: tuple[str, ...]
    handshakes: tuple[model.Signature, ...]
    checklist: tuple[model.Item, ...]
    unsigned: tuple[str, ...]


class CharterService:
    """Creates, amends, signs, shows and checks the charter."""

    def __init__(self, environment: Environment, dispatcher: Dispatcher) -> None:
        self._environment = environment
        self._dispatcher = dispatcher

    def charter_init(
        self,
        *,
        session_id: str | None = None,
        project: str | None = None,
        milestone: str | None = None,
        risk_tier: str | None = None,
        participants: Sequence[str] = (),
        lanes: Sequence[str] = (),
        contract: str | None = None,
        contract_owner: str | None = None,
        contract_tests: str | None = None,
        contract_status: str | None = None,
        decision_mode: str | None = None,
        objection_window: str | None = None,
        cross_review_mode: str | None = None,
        merge_policy: str | None = None,
        test_policy: str | None = None,
        auto: Sequence[str] | None = None,
        delayed: Sequence[str] | None = None,
        delay_time: str | None = None,
        approval: Sequence[str] | None = None,
        rebuttal_cycles: int | None = None,
        tie_break: str | None = None,
        acceptance: Sequence[str] = (),
        agent: str | None = None,
        actor: str | None = None,
    ) -> CharterShown:
        """Create the charter of a session; only a maintainer may, and once."""
        given = _given(locals())
        caller = agent or actor or self._dispatcher.actor
        maintainers = self._environment.policy.maintainers
        maintainer = caller if not maintainers or caller in maintainers else maintainers[0]
        today = iso(self._environment.clock.now())[:10]
        charter = requests.new_charter(
            given, maintainer=maintainer, project=self._environment.policy.project, today=today
        )
        self._dispatcher.dispatch(CreateCharter(actor=actor or self._dispatcher.actor, agent=agent, charter=charter))
        return self.charter_show()

    def charter_amend(
        self,
        *,
        reason: str,
        session_id: str | None = None,
        project: str | None = None,
        milestone: str | None = None,
        risk_tier: str | None = None,
        participants: Sequence[str] = (),
        leave: Sequence[str] = (),
        lanes: Sequence[str] = (),
        close_lanes: Sequence[str] = (),
        contract: str | None = None,
        contract_owner: str | None = None,
        contract_tests: str | None = None,
        contract_status: str | None = None,
        decision_mode: str | None = None,
        objection_window: str | None = None,
        cross_review_mode: str | None = None,
        merge_policy: str | None = None,
        test_policy: str | None = None,
        auto: Sequence[str] | None = None,
        delayed: Sequence[str] | None = None,
        delay_time: str | None = None,
        approval: Sequence[str] | None = None,
        rebuttal_cycles: int | None = None,
        tie_break: str | None = None,
        acceptance: Sequence[str] = (),
        done: Sequence[int] = (),
        undone: Sequence[int] = (),
        agent: str | None = None,
        actor: str | None = None,
    ) -> CharterShown:
        """Change the charter, by decision of a maintainer; the decision stands in the WORKLOG."""
        given = _given(locals())
        changes = requests.changes_of(given, self._charter())
        self._dispatcher.dispatch(
            AmendCharter(actor=actor or self._dispatcher.actor, agent=agent, changes=changes, reason=reason)
        )
        return self.charter_show()

    def charter_sign(
        self,
        *,
        agent: str | None = None,
        status: str = "Accepted",
        notes: str = "",
        actor: str | None = None,
    ) -> CharterShown:
        """Sign the handshake: the agent has read the charter and takes its role and lane."""
        status = requests.spelled(status, model.HANDSHAKE_STATUSES)
        signed = SignCharter(actor=actor or self._dispatcher.actor, agent=agent, status=status, notes=notes)
        self._dispatcher.dispatch(signed)
        return self.charter_show()

    def charter_show(self) -> CharterShown:
        """The charter as it stands."""
        charter = self._charter()
        parts = {name: getattr(charter, name) for name in charter.__struct_fields__}
        return CharterShown(path=PATH, unsigned=charter.unsigned, **parts)

    def charter_check(self, *, agent: str | None = None, changed: Sequence[str] = ()) -> CharterChecked:
        """What is wrong with the charter, and which locks and changed files lie outside of their owner's lane."""
        return examination.examined(self._environment, self._text(), agent=agent, changed=tuple(changed))

    def _charter(self) -> model.Charter:
        text = self._text()
        if not text.strip():
            raise NoCharter("there is no session charter", "let a maintainer create one", Call("charter_init", {}))
        return parse(text)

    def _text(self) -> str:
        return reading.texts(self._environment, NAME, PATH)[PATH]


def _given(values: dict[str, Any]) -> dict[str, Any]:
    """The parameters that the caller gave."""
    left_out = ("self", "agent", "actor", "reason")
    given = {name: value for name, value in values.items() if name not in left_out and value not in (None, ())}
    return given | {name: requests.spelled(given[name], allowed) for name, allowed in _WORDS.items() if name in given}


_WORDS = {
    "risk_tier": model.RISK_TIERS,
    "contract_status": model.CONTRACT_STATUSES,
    "decision_mode": model.DECISION_MODES,
    "cross_review_mode": model.CROSS_REVIEW_MODES,
}
