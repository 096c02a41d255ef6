"""The marker by which a test cites the requirements that it proves.

    @requirement("task.model.task", "task.model.run")
    def test_a_retry_is_a_new_run_of_the_same_task() -> None: ...

It is a plain pytest marker, so `item.iter_markers("requirement")` sees the ids.
"""

from __future__ import annotations

import pytest

requirement = pytest.mark.requirement
