"""How to install the optional parts. The distribution has another name than the package and the command."""

from __future__ import annotations

DISTRIBUTION = "aof-fabric"


def install_hint(*extras: str) -> str:
    """The command that installs what an extra needs."""
    return f"install it with: pip install '{DISTRIBUTION}[{','.join(extras)}]'"
