"""A message to a service through Apprise, in a process of its own that is ended when it takes too long.

Apprise knows more than a hundred services, each with its own idea of waiting; a process can always be ended. The
address goes to it on standard input, for arguments and variables can be seen by others. Must not know what is said.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable

import msgspec

from aof._support.extras import install_hint
from aof.adapters.notify.address import Address
from aof.adapters.notify.command import OF_THE_CALLER
from aof.adapters.notify.sender import Outcome
from aof.ports.notifier import ChannelFailed

PATIENCE = 30.0  # seconds
_SENDER = "aof.adapters.notify.sender"
_ERRORS: dict[int, str] = {
    Outcome.UNKNOWN_ADDRESS: "apprise does not know such an address",
    Outcome.REFUSED: "the service cannot be reached, or did not take the message",
}


class AppriseChannel:
    """Keeps the contract of `ports.notifier.Channel` for one address."""

    def __init__(
        self,
        address: Address,
        refused: Callable[[], str | None] = lambda: None,
        patience: float = PATIENCE,
    ) -> None:
        self._address = address
        self._refused = refused
        self._patience = patience

    def refused(self) -> str | None:
        """Why nothing may be sent there, if so."""
        return self._refused()

    def send(self, subject: str, text: str) -> None:
        """Send one message. Raises ChannelFailed; what it says has nothing of the address."""
        given = {"url": self._address.read(), "subject": subject, "text": text}
        try:
            ended = subprocess.run(  # noqa: S603 - our own module; what is said goes in as data
                [sys.executable, "-P", "-m", _SENDER],
                input=msgspec.json.encode(given),
                cwd="/",
                env={name: value for name, value in os.environ.items() if name not in OF_THE_CALLER},
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                timeout=self._patience,
                check=False,
            )
        except subprocess.TimeoutExpired:
            raise ChannelFailed(f"the service did not answer within {self._patience:.0f} s") from None
        except OSError as error:
            raise ChannelFailed(f"nothing could be sent: {error.strerror}") from None
        if ended.returncode:
            if ended.returncode == Outcome.NOT_INSTALLED:
                raise ChannelFailed(f"apprise is not installed; {install_hint('notify')}")
            why = _ERRORS.get(ended.returncode, "the sender failed")
            code = ended.stdout[:3].decode("ascii", "replace")
            raise ChannelFailed(f"{why} (HTTP {code})" if code.isdigit() else why)
