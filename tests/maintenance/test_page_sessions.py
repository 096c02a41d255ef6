"""How people get into the page: what a link, a token and a session are worth, and for how long."""

from __future__ import annotations

from pathlib import Path

import pytest

from aof.errors import InvalidInput
from aof.kernel.ports import Tokens
from aof.maintenance import tokens as maintenance_tokens
from aof.maintenance.tokens import LINK_SECONDS, MOST_SESSIONS, SESSION_SECONDS, PageSessions
from aof.service import serve
from aof.service.bootstrap import init_data_dir
from aof.testing import FakeClock


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def tokens(tmp_path: Path) -> Tokens:
    return serve.tokens_of(init_data_dir(tmp_path / ".aof")[0])


@pytest.fixture
def sessions(tokens: Tokens, clock: FakeClock) -> PageSessions:
    return PageSessions(tokens, clock)


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


def test_a_session_ends_with_the_token_that_began_it(sessions: PageSessions, tokens: Tokens, clock: FakeClock) -> None:
    token = maintenance_tokens.create_token(tokens, "ada", None, clock.now(), scope="read")
    begun = sessions.login(token.token)
    assert begun is not None
    caller = sessions.caller(begun.text)
    assert caller is not None
    assert caller.scope == "read"
    maintenance_tokens.revoke_token(tokens, token.id)
    assert sessions.caller(begun.text) is None
    assert caller.token not in maintenance_tokens.valid_ids(tokens, clock.now())


def test_a_session_is_no_longer_than_its_token(sessions: PageSessions, tokens: Tokens, clock: FakeClock) -> None:
    token = maintenance_tokens.create_token(tokens, "ada", None, clock.now(), scope="read", expires="90s")
    begun = sessions.login(token.token)
    assert begun is not None
    assert begun.seconds == 90


def test_neither_a_link_nor_a_session_is_a_token_for_calls(
    sessions: PageSessions, tokens: Tokens, clock: FakeClock
) -> None:
    key = sessions.link("ada", "admin")
    assert maintenance_tokens.recognise(tokens, key, clock.now()) is None
    assert sessions.login(key) is None
    begun = sessions.enter(key)
    assert begun is not None
    assert maintenance_tokens.recognise(tokens, begun.text, clock.now()) is None
    assert sessions.login(begun.text) is None
    assert sessions.enter(begun.text) is None


def test_a_token_is_no_session(sessions: PageSessions, tokens: Tokens, clock: FakeClock) -> None:
    token = maintenance_tokens.create_token(tokens, "ada", None, clock.now(), scope="admin")
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
    sessions: PageSessions, tokens: Tokens, clock: FakeClock
) -> None:
    token = maintenance_tokens.create_token(tokens, "ada", None, clock.now(), scope="read")
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
    assert len(tokens.all()) == MOST_SESSIONS + 1


def test_what_is_over_is_not_kept(sessions: PageSessions, tokens: Tokens, clock: FakeClock) -> None:
    sessions.link("ada", "lead")
    clock.sleep(LINK_SECONDS)
    sessions.link("ada", "lead")
    assert len(tokens.all()) == 1


def test_what_proves_a_session_is_neither_kept_nor_shown(sessions: PageSessions, tokens: Tokens) -> None:
    begun = sessions.enter(sessions.link("ada", "lead"))
    assert begun is not None
    assert begun.text not in repr(tokens.all())
    assert begun.text not in repr(begun)


def test_an_actor_that_cannot_be_one_gets_no_link(sessions: PageSessions) -> None:
    with pytest.raises(InvalidInput):
        sessions.link("not a name\n", "lead")
