"""Which names usually stand for something that must not be shown. Must not know where the names come from."""

from __future__ import annotations

import re

_SECRET = re.compile(
    r"KEY|TOKEN|SECRET|PASSW|PASSPHRASE|CREDENTIAL|COOKIE|PRIVATE|NONCE|(^|_)(PAT|PASS|AUTH|DSN)($|_)|DATABASE_URL"
)


def looks_secret(name: str) -> bool:
    """Whether a variable of this name usually holds a secret."""
    return _SECRET.search(name.upper()) is not None
