"""Payloads for review: their fields, their token, their size and their parts."""

from __future__ import annotations

import hashlib
from typing import Any

import msgspec
import pytest

from aof.documents import mail_rules
from aof.documents.mail_cards import found_in, payload_block
from aof.documents.mail_rules import ReviewPayload, echo, payload_defects, payload_refusal, token
from aof.errors import AofError
from tests.support.requirements import requirement

_CONTENT = "one\ntwo\n"
_ROOT = "REV-20260221-login-01"


def _payload(content: str | None = _CONTENT, **changes: Any) -> ReviewPayload:
    given = ReviewPayload(
        revision=token(_ROOT, content or ""),
        format="full-text",
        scope="full",
        ask="review-only",
        files=("src/login.py",),
        content=content,
    )
    return msgspec.structs.replace(given, **changes)


@requirement("comms.message.payload-first")
def test_a_payload_is_written_and_read_with_its_five_fields_and_a_fence() -> None:
    text = f"Please.\n\n{payload_block(_payload())}\n\nThanks."
    assert found_in(text) == _payload()
    for name in ("Revision", "Format", "Review scope", "Ask", "Files"):
        assert f"{name}:" in text
    assert list(payload_defects(_payload())) == []
    assert found_in("Just words, and src/login.py") is None


@requirement("comms.message.payload-first")
@pytest.mark.parametrize("name", ["revision", "format", "scope", "ask", "files", "content"])
def test_a_missing_field_is_named(name: str) -> None:
    empty: Any = {"files": (), "content": None}.get(name, "")
    said = list(payload_defects(_payload(**{name: empty})))
    word = {"scope": "Review scope", "content": "fenced block"}.get(name, name.capitalize())
    assert any(word in one for one in said)
    paths_only = payload_refusal(None)
    assert isinstance(paths_only, AofError)
    assert "Revision: REV-" in paths_only.hint
    fyi = _payload(None, ask="fyi")
    assert list(payload_defects(fyi)) == []


@requirement("comms.message.revision-token")
def test_the_token_has_the_first_digits_of_the_contents_hash() -> None:
    right = hashlib.sha256(_CONTENT.encode()).hexdigest()[:8]
    assert token(_ROOT, _CONTENT) == f"{_ROOT}-h{right}"
    assert token(_ROOT, _CONTENT.replace("\n", "\r\n")) == f"{_ROOT}-h{right}"
    changed = _payload(content="one\ntwi\n", revision=token(_ROOT, _CONTENT))
    [said] = payload_defects(changed)
    assert right in said
    assert mail_rules.digest_digits("one\ntwi\n") in said
    assert any("form" in one for one in payload_defects(_payload(revision="REV-1")))


@requirement("comms.message.payload-cap")
def test_a_block_that_is_too_large_is_refused_with_the_way_to_split_it() -> None:
    for content in ("x" * 16_384 + "\n", "x\n" * 302):
        whole = _payload(content)
        refused = payload_refusal(whole)
        assert isinstance(refused, AofError)
        assert "-p1ofN" in refused.message
    assert payload_refusal(_payload("x\n" * 300)) is None


@requirement("comms.message.payload-cap")
def test_a_review_waits_for_all_parts() -> None:
    first, second, third = (
        _payload(f"{number}\n", revision=token(_ROOT, f"{number}\n", (number, 3))) for number in (1, 2, 3)
    )
    missing = echo(first, f"{first.revision} looks good", [third])
    assert isinstance(missing, AofError)
    assert "part 2 of 3" in missing.message
    assert echo(first, f"{first.revision} looks good", [second, third]) is None
    assert echo(first, "needs-resend: part 2 is missing", [third]) is None


@requirement("comms.message.echo-and-resend")
def test_an_answer_repeats_the_revision() -> None:
    whole = _payload()
    assert echo(whole, f"{whole.revision} applied", []) is None
    for reason in ("applied", f"{token(_ROOT, 'other')} applied"):
        refused = echo(whole, reason, [])
        assert isinstance(refused, AofError)
        assert refused.code == "revision_mismatch"
        assert whole.revision in refused.hint


def test_content_with_fences_of_its_own_stays_inside() -> None:
    content = "```\ncode\n```\n"
    assert found_in(payload_block(_payload(content, revision=token(_ROOT, content)))) == _payload(
        content, revision=token(_ROOT, content)
    )
