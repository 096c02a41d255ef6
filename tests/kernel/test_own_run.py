"""A process that works for a run cannot widen its own rights."""

from __future__ import annotations

from pathlib import Path

import pytest

from aof.errors import NotAllowed
from aof.kernel.identity import refuse_in_run
from aof.service.bootstrap import own_secret


def test_a_process_with_a_runs_secret_is_refused_what_would_widen_its_rights() -> None:
    with pytest.raises(NotAllowed) as refused:
        refuse_in_run("make tokens", {"AOF_RUN_SECRET": "RUN-2026-01-01-001-1/ada/00"})
    assert refused.value.code == "not_allowed"
    assert "make tokens" in refused.value.message
    assert "ada" not in refused.value.message


@pytest.mark.parametrize("environment", [{}, {"AOF_RUN_SECRET": ""}, {"AOF_ACTOR": "ada"}])
def test_a_process_without_a_runs_secret_is_not_refused(environment: dict[str, str]) -> None:
    try:
        refuse_in_run("make tokens", environment)
    except NotAllowed as error:
        pytest.fail(f"it was refused: {error}")


@pytest.mark.parametrize("where", [None, "", "here"])
def test_a_process_of_a_run_is_known_also_where_its_data_directory_is_not_named(
    tmp_path: Path, where: str | None
) -> None:
    named = str(tmp_path) if where == "here" else where
    variables = {"AOF_RUN_SECRET": "s"} | ({} if named is None else {"AOF_DATA_DIR": named})
    assert own_secret(str(tmp_path), variables) == "s"
