"""What a run printed, piece by piece, while it runs and afterwards."""

from __future__ import annotations

from typing import Any

from aof.errors import Call, InvalidInput, NoSuchAttempt
from aof.kernel import limits as kernel_limits
from aof.kernel.kinds import Stream
from aof.kernel.results import Printed
from aof.runs.model import OUTPUT_FILES, Run
from aof.store.port import Store

_CONTINUES, _CONTINUATION = 0b1100_0000, 0b1000_0000
_LAST_WORDS, _LAST_LINES = 2_000, 5
LARGEST_PIECE = 65_536  # bytes
_LONGEST_CHARACTER = 4


def output_piece(
    store: Store, task_id: str, *, attempt: int | None, stream: Stream, offset: int, limit: int
) -> Printed:
    """The next piece of a run's output, whole characters only; the last run's where no attempt is named."""
    if stream not in OUTPUT_FILES:
        raise InvalidInput(f"there is no stream '{stream[:80]}'", kernel_limits.choices("stream", tuple(OUTPUT_FILES)))
    if offset < 0 or not _LONGEST_CHARACTER <= limit <= LARGEST_PIECE:
        raise InvalidInput(
            f"offset {offset} and limit {limit} are not possible",
            f"begin at 0 and read from {_LONGEST_CHARACTER} to {LARGEST_PIECE:,} bytes at a time",
        )
    run = _run(store, task_id, attempt)
    data, size = store.output(run, stream, offset, limit)
    ended = _over(store, run)
    data = data if ended and offset + len(data) >= size else _whole(data)
    after = offset + len(data)
    return Printed(
        task_id=task_id,
        run_id=run.run_id,
        attempt=run.attempt,
        stream=stream,
        offset=offset,
        next_offset=after,
        size=size,
        ended=ended and after >= size,
        text=data.decode("utf-8", "replace"),
    )


def end_of(store: Store, run: Run) -> dict[str, Any]:
    """How the process of a run that came to nothing ended, its last words, and where all that it printed lies."""
    if run.worker == "pull" or run.status in ("running", "completed"):
        return {}
    history = store.events(task_id=run.task_id)
    payload = next((one.payload for one in history if one.type == "run.exited" and one.run_id == run.run_id), None)
    if payload is None:
        return {}
    _, size = store.output(run, "stderr", 0, 0)
    data, _ = store.output(run, "stderr", max(size - _LAST_WORDS, 0), _LAST_WORDS)
    lines = data.decode("utf-8", "replace").splitlines()[-_LAST_LINES:]
    found: dict[str, Any] = {name: payload[name] for name in ("exitCode", "signal", "stopped") if name in payload}
    kept = {name: told["path"] for name, told in payload["output"].items() if told.get("path")}
    return found | {"lastErrors": lines, "paths": kept}


def _run(store: Store, task_id: str, attempt: int | None) -> Run:
    runs = store.attempts(task_id)
    found = runs[-1:] if attempt is None else [one for one in runs if one.attempt == attempt]
    if not found:
        which = f"no attempt {attempt}" if attempt is not None else "not been run yet"
        raise NoSuchAttempt(f"{task_id} has {which}", "see its attempts", Call("show", {"task_id": task_id}))
    return found[0]


def _over(store: Store, run: Run) -> bool:
    """Whether nothing more can come: a worker process may print after it has reported, until it has exited."""
    if run.status == "running" or run.worker == "pull":
        return run.status != "running"
    history = store.events(task_id=run.task_id)
    return any(event.type == "run.exited" and event.run_id == run.run_id for event in history)


def _whole(data: bytes) -> bytes:
    """Without a character whose last bytes have not come yet."""
    for back in range(1, min(_LONGEST_CHARACTER, len(data)) + 1):
        first = data[-back]
        if first & _CONTINUES == _CONTINUATION:
            continue
        needed = 1 if first < 0x80 else 2 if first < 0xE0 else 3 if first < 0xF0 else 4  # noqa: PLR2004 - UTF-8
        return data[:-back] if needed > back else data
    return data
