"""The CPU time of another process, as the kernel counts it. Must not know what the process does."""

from __future__ import annotations

import os
from pathlib import Path


def used(pid: int) -> float:
    """Seconds of CPU, user and system, that a process and its threads have used."""
    fields = Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
