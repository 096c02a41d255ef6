"""A process that works for a run cannot widen its own rights."""

from __future__ import annotations

import pytest

from aof.app.own_run import refuse_in_run
from aof.core.errors import NotAllowed


def test_a_process_with_a_runs_secret_is_refused_what_would_widen_its_rights() -> None:
    with pytest.raises(NotAllowed) as refused:
        refuse_in_run("make tokens", {"AOF_RUN_SECRET": "RUN-2026-01-01-001-1/ada/00"})
    assert refused.value.code == "not_allowed"
    assert "make tokens" in refused.value.message
    assert "ada" not in refused.value.message


def test_a_process_without_a_runs_secret_is_not_refused() -> None:
    for environment in ({}, {"AOF_RUN_SECRET": ""}, {"AOF_ACTOR": "ada"}):
        refuse_in_run("make tokens", environment)
