"""The process that sends one message: address, subject and text come as JSON on standard input.

It says by its exit code how it went, and prints the status of HTTP where there is one; never anything of the address.
Must not know why something is sent.
"""

from __future__ import annotations

import io
import json
import logging
import re
import sys
from enum import IntEnum

_MOST = 1_000_000  # bytes
_STATUS = re.compile(r"error[= ](\d{3})\b")


class Outcome(IntEnum):
    """How it went."""

    SENT = 0
    UNKNOWN_ADDRESS = 3
    REFUSED = 4
    NOT_INSTALLED = 5


def send(url: str, subject: str, text: str) -> tuple[Outcome, str]:
    """Send it; the outcome, and the status of HTTP where there is one."""
    try:
        import apprise
    except ModuleNotFoundError:
        return Outcome.NOT_INSTALLED, ""
    said = io.StringIO()
    log = logging.getLogger("apprise")
    log.addHandler(logging.StreamHandler(said))
    log.propagate = False
    asset = apprise.AppriseAsset(
        app_id="AOF", app_desc="AOF task fabric", storage_mode="memory", allow_templates=False, async_mode=False
    )
    service = apprise.Apprise(asset=asset)
    if not service.add(url):
        return Outcome.UNKNOWN_ADDRESS, ""
    sent = service.notify(title=subject, body=text, body_format=apprise.NotifyFormat.TEXT)
    status = _STATUS.search(said.getvalue())
    return Outcome.SENT if sent else Outcome.REFUSED, status.group(1) if status and not sent else ""


def main() -> int:
    """Read, send, and tell."""
    given = json.loads(sys.stdin.buffer.read(_MOST))
    outcome, status = send(given["url"], given["subject"], given["text"])
    sys.stdout.write(status)
    return outcome


if __name__ == "__main__":
    sys.exit(main())
