"""How an agent written in Python prints a message, where AOF starts it and reads its standard output."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any, Final

import msgspec

from aof.messages.protocol import NONCE, PREFIX

VARIABLE: Final = "AOF_MESSAGE_NONCE"


def message_line(message: Mapping[str, Any], environment: Mapping[str, str] = os.environ) -> str:
    """A message as its process prints it: on one line, behind `AOF/1 `, with the nonce that the process was given."""
    nonce = environment.get(VARIABLE)
    fields = {**message, NONCE: nonce} if nonce else dict(message)
    return PREFIX + msgspec.json.encode(fields).decode()
