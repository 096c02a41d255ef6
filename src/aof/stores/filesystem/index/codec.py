"""A task's record as the index keeps it: JSON in and out. Must not know the tables."""

from __future__ import annotations

import msgspec

from aof._support.typed import prepare_type
from aof.core.model.task import Task

encode = msgspec.json.Encoder().encode
decode = msgspec.json.Decoder(prepare_type(Task)).decode


def encode_task(task: Task) -> bytes:
    """A task without what only its file holds."""
    return encode(msgspec.structs.replace(task, body="", layout=None))
