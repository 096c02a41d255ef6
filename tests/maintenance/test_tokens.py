"""Tokens of clients, and the sessions of people in a browser."""

from __future__ import annotations

import json
import os
import threading
from pathlib import Path
from typing import Any

import msgspec
import pytest

from aof.api.call import Caller, admitted, parameters, perform
from aof.api.catalogue import BY_NAME, OPERATIONS, SCOPES
from aof.errors import InvalidInput, NotAllowed
from aof.kernel.model import iso
from aof.kernel.ports import Token, Tokens
from aof.maintenance import tokens
from aof.maintenance.tokens import LINK_SECONDS, MOST_SESSIONS, SESSION_SECONDS, PageSessions
from aof.service import serve
from aof.service.bootstrap import init_data_dir, open_fabric
from aof.store.files.service_files import TokenFile
from aof.testing import FakeClock
from tests.support.clock import ManualClock

# --- what a token allows, and until when


NOW = 1_800_000_000_000


@pytest.fixture
def root(tmp_path: Path) -> str:
    return init_data_dir(tmp_path / ".aof")[0]


def test_a_token_has_the_scope_that_was_asked_for_and_the_least_without(root: str) -> None:
    known = serve.tokens_of(root)
    made = {scope: tokens.create_token(known, "ada", None, NOW, scope=scope) for scope in (None, *SCOPES)}
    found = {scope: tokens.recognise(known, one.token, NOW) for scope, one in made.items()}
    assert {scope: (one.role, one.scope, one.token) for scope, one in found.items() if one is not None} == {
        None: ("agent", "work", made[None].id),
        "read": ("reader", "read", made["read"].id),
        "work": ("agent", "work", made["work"].id),
        "lead": ("agent", "lead", made["lead"].id),
        "admin": ("admin", "admin", made["admin"].id),
    }


def test_a_token_file_from_before_there_were_scopes_stays_valid(root: str) -> None:
    known = serve.tokens_of(root)
    made = {role: tokens.create_token(known, "ada", role, NOW) for role in ("reader", "agent", "admin")}
    path = Path(root, "tokens.json")
    rows: list[dict[str, Any]] = json.loads(path.read_text())
    path.write_text(json.dumps([{key: row[key] for key in row if key != "scope"} for row in rows]))
    scopes = {role: tokens.recognise(known, one.token, NOW) for role, one in made.items()}
    assert {role: one.scope for role, one in scopes.items() if one is not None} == {
        "reader": "read",
        "agent": "lead",
        "admin": "admin",
    }


@pytest.mark.parametrize(("role", "scope"), [("reader", "work"), ("agent", "admin"), ("king", None), (None, "all")])
def test_a_role_allows_no_more_than_it_ever_did(root: str, role: str | None, scope: str | None) -> None:
    with pytest.raises(InvalidInput):
        serve.create_token(root, "ada", role, scope=scope)
    assert serve.list_tokens(root) == ()


def test_a_token_ends_at_its_time(root: str) -> None:
    known = serve.tokens_of(root)
    for given in ("2h", iso(NOW + 7_200_000)):
        made = tokens.create_token(known, "ada", None, NOW, expires=given)
        assert made.expires_at == iso(NOW + 7_200_000)
        assert tokens.recognise(known, made.token, NOW + 7_199_999) is not None
        assert tokens.recognise(known, made.token, NOW + 7_200_000) is None
        assert made.id in tokens.valid_ids(known, NOW + 7_199_999)
        assert made.id not in tokens.valid_ids(known, NOW + 7_200_000)
    assert {one.expired for one in tokens.known_tokens(known, NOW + 7_200_000)} == {True}


@pytest.mark.parametrize("expires", ["", "soon", "0s", "-1d", "2020-01-01", "9999-01-01"])
def test_an_expiry_that_is_none_is_refused(root: str, expires: str) -> None:
    with pytest.raises(InvalidInput, match="cannot expire"):
        serve.create_token(root, "ada", None, expires=expires)


def test_an_expiry_that_somebody_has_edited_into_nonsense_counts_as_over(root: str) -> None:
    known = serve.tokens_of(root)
    made = tokens.create_token(known, "ada", None, NOW, expires="2h")
    path = Path(root, "tokens.json")
    path.write_text(path.read_text().replace(str(made.expires_at), "whenever"))
    assert tokens.recognise(known, made.token, NOW) is None


def test_a_token_names_the_tools_that_are_listed_for_it(root: str) -> None:
    known = serve.tokens_of(root)
    made = tokens.create_token(known, "ada", None, NOW, tools="core, handoff")
    caller = tokens.recognise(known, made.token, NOW)
    assert caller is not None
    assert (made.tools, caller.tools) == ("core,handoff", ("core", "handoff"))
    assert [one.tools for one in tokens.known_tokens(known, NOW)] == ["core,handoff"]
    other = tokens.recognise(known, tokens.create_token(known, "bob", None, NOW).token, NOW)
    assert other is not None
    assert other.tools == ()
    with pytest.raises(InvalidInput, match="no set of tools 'everything'"):
        tokens.create_token(known, "ada", None, NOW, tools="everything")


def test_only_the_owner_may_read_the_token_file(root: str) -> None:
    before = os.umask(0)
    try:
        serve.create_token(root, "ada", None)
    finally:
        os.umask(before)
    assert Path(root, "tokens.json").stat().st_mode & 0o777 == 0o600


def test_every_operation_is_refused_below_its_scope_and_admitted_from_it_on() -> None:
    by_effect = {"read": "read", "append": "work", "write": "work", "destructive": "lead"}
    for operation in OPERATIONS:
        least = SCOPES.index(operation.scope)
        assert SCOPES[least:].count(operation.scope) == 1
        assert by_effect[operation.effect] in SCOPES[: least + 1]
        fields = msgspec.structs.fields(operation.parameters)
        params = operation.parameters(**{field.name: "x" for field in fields if field.required})
        for place, scope in enumerate(SCOPES):
            caller = Caller("ada", "agent", proven=True, scope=scope)
            if place < least:
                with pytest.raises(NotAllowed, match=f"needs a token with the scope {operation.scope}"):
                    admitted(operation, params, caller)
            else:
                assert admitted(operation, params, caller) == "ada"


@pytest.mark.parametrize(
    ("operation", "given"),
    [
        ("update", {"taskId": "x", "status": "done"}),
        ("update", {"taskId": "x", "status": "cancelled"}),
        ("approve", {"taskId": "x"}),
        ("cancel", {"taskId": "x", "reason": "y"}),
    ],
)
def test_there_is_no_way_around_the_scope_lead(root: str, operation: str, given: dict[str, Any]) -> None:
    with open_fabric(root, clock=ManualClock()) as fabric:
        row = BY_NAME[operation]
        with pytest.raises(NotAllowed, match="needs a token with the scope lead"):
            perform(fabric, row, parameters(row, given), Caller("ada", "agent", proven=True, scope="work"))


def test_mending_needs_the_scope_admin(root: str) -> None:
    row = BY_NAME["doctor"]
    lead = Caller("ada", "agent", proven=True, scope="lead")
    with open_fabric(root, clock=ManualClock()) as fabric:
        assert perform(fabric, row, parameters(row, {}), lead).ok
        with pytest.raises(NotAllowed, match="scope admin"):
            perform(fabric, row, parameters(row, {"fix": True}), lead)


@pytest.mark.parametrize("mode", [0o644, 0o640, 0o604, 0o660])
def test_a_token_file_that_others_can_reach_is_not_used_nor_made_valid(root: str, mode: int) -> None:
    made = tokens.create_token(serve.tokens_of(root), "ada", None, NOW)
    path = Path(root, "tokens.json")
    path.chmod(mode)
    with pytest.raises(InvalidInput, match="others can reach it"):
        tokens.recognise(serve.tokens_of(root), made.token, NOW)
    with pytest.raises(InvalidInput, match="others can reach it"):
        tokens.create_token(serve.tokens_of(root), "eve", None, NOW)
    with open_fabric(root) as fabric:
        fabric.doctor(fix=True)
    assert path.stat().st_mode & 0o777 == mode
    path.chmod(0o600)
    known = serve.tokens_of(root)
    assert tokens.recognise(known, made.token, NOW) is not None
    path.chmod(mode)
    with pytest.raises(InvalidInput, match="others can reach it"):
        tokens.recognise(known, made.token, NOW)
    path.chmod(0o600)
    assert tokens.recognise(known, made.token, NOW) is not None, "it is as it was"


def test_a_new_session_is_recognised_while_another_thread_still_reads_the_old_tokens(root: str) -> None:
    tokens.create_token(serve.tokens_of(root), "ada", None, NOW)
    has_read, may_go_on = threading.Event(), threading.Event()

    class SlowlyRead(TokenFile):
        """Its first reader ends as soon as the second one notes what it has read."""

        def _read(self) -> tuple[Token, ...]:
            found = super()._read()
            if threading.current_thread() is slow:
                has_read.set()
                assert may_go_on.wait(10)
            return found

        def __setattr__(self, name: str, value: object) -> None:
            super().__setattr__(name, value)
            if has_read.is_set() and threading.current_thread() is not slow:
                may_go_on.set()
                slow.join(10)

    known = SlowlyRead(root, ManualClock())
    slow = threading.Thread(target=known.all)
    slow.start()
    assert has_read.wait(10)
    new = tokens.create_token(serve.tokens_of(root), "bert", None, NOW)
    known.all()
    assert tokens.recognise(known, new.token, NOW) is not None


# --- how people get into the page: what a link, a token and a session are worth, and for how long


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def kept(tmp_path: Path) -> Tokens:
    return serve.tokens_of(init_data_dir(tmp_path / ".aof")[0])


@pytest.fixture
def sessions(kept: Tokens, clock: FakeClock) -> PageSessions:
    return PageSessions(kept, clock)


def test_a_link_lets_its_actor_in_once(sessions: PageSessions) -> None:
    key = sessions.link("ada", "lead")
    begun = sessions.enter(key)
    assert begun is not None
    caller = sessions.caller(begun.text)
    assert caller is not None
    assert (caller.actor, caller.scope, caller.proven) == ("ada", "lead", True)
    assert sessions.enter(key) is None


def test_a_link_is_worth_nothing_after_a_minute(sessions: PageSessions, clock: FakeClock) -> None:
    key = sessions.link("ada", "lead")
    clock.sleep(LINK_SECONDS)
    assert sessions.enter(key) is None


def test_a_session_ends_after_half_a_day(sessions: PageSessions, clock: FakeClock) -> None:
    begun = sessions.enter(sessions.link("ada", "lead"))
    assert begun is not None
    clock.sleep(SESSION_SECONDS)
    assert sessions.caller(begun.text) is None


def test_a_session_ends_with_the_token_that_began_it(sessions: PageSessions, kept: Tokens, clock: FakeClock) -> None:
    token = tokens.create_token(kept, "ada", None, clock.now(), scope="read")
    begun = sessions.login(token.token)
    assert begun is not None
    caller = sessions.caller(begun.text)
    assert caller is not None
    assert caller.scope == "read"
    tokens.revoke_token(kept, token.id)
    assert sessions.caller(begun.text) is None
    assert caller.token not in tokens.valid_ids(kept, clock.now())


def test_a_session_is_no_longer_than_its_token(sessions: PageSessions, kept: Tokens, clock: FakeClock) -> None:
    token = tokens.create_token(kept, "ada", None, clock.now(), scope="read", expires="90s")
    begun = sessions.login(token.token)
    assert begun is not None
    assert begun.seconds == 90


def test_neither_a_link_nor_a_session_is_a_token_for_calls(
    sessions: PageSessions, kept: Tokens, clock: FakeClock
) -> None:
    key = sessions.link("ada", "admin")
    assert tokens.recognise(kept, key, clock.now()) is None
    assert sessions.login(key) is None
    begun = sessions.enter(key)
    assert begun is not None
    assert tokens.recognise(kept, begun.text, clock.now()) is None
    assert sessions.login(begun.text) is None
    assert sessions.enter(begun.text) is None


def test_a_token_is_no_session(sessions: PageSessions, kept: Tokens, clock: FakeClock) -> None:
    token = tokens.create_token(kept, "ada", None, clock.now(), scope="admin")
    assert sessions.caller(token.token) is None
    assert sessions.enter(token.token) is None


def test_who_leaves_is_out_and_others_stay(sessions: PageSessions) -> None:
    one, other = sessions.enter(sessions.link("ada", "lead")), sessions.enter(sessions.link("ada", "lead"))
    assert one is not None
    assert other is not None
    sessions.leave(one.text)
    assert sessions.caller(one.text) is None
    assert sessions.caller(other.text) is not None


def test_a_further_session_takes_the_place_of_the_oldest(
    sessions: PageSessions, kept: Tokens, clock: FakeClock
) -> None:
    token = tokens.create_token(kept, "ada", None, clock.now(), scope="read")
    begun = []
    for _ in range(MOST_SESSIONS + 1):
        clock.sleep(1)
        begun.append(sessions.login(token.token))
    first, second, last = begun[0], begun[1], begun[-1]
    assert first is not None
    assert second is not None
    assert last is not None
    assert sessions.caller(first.text) is None
    assert sessions.caller(second.text) is not None
    assert sessions.caller(last.text) is not None
    assert len(kept.all()) == MOST_SESSIONS + 1


def test_what_is_over_is_not_kept(sessions: PageSessions, kept: Tokens, clock: FakeClock) -> None:
    sessions.link("ada", "lead")
    clock.sleep(LINK_SECONDS)
    sessions.link("ada", "lead")
    assert len(kept.all()) == 1


def test_what_proves_a_session_is_neither_kept_nor_shown(sessions: PageSessions, kept: Tokens) -> None:
    begun = sessions.enter(sessions.link("ada", "lead"))
    assert begun is not None
    assert begun.text not in repr(kept.all())
    assert begun.text not in repr(begun)


def test_an_actor_that_cannot_be_one_gets_no_link(sessions: PageSessions) -> None:
    with pytest.raises(InvalidInput):
        sessions.link("not a name\n", "lead")
