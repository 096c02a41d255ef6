"""Entry point of the `aof` command, also `python -m aof`: imports are lazy, and the process ends when all is said."""

from __future__ import annotations

import gc
import os
import sys

from aof.support import lazy_imports

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import NoReturn

_GARBAGE = 100_000  # objects more than were freed, before anybody looks for cycles: no short call makes so many


def main() -> NoReturn:
    """Run one command line in a process of its own, which ends as soon as all is said.

    Everything is closed by then. Taking the interpreter's modules apart one by one, and looking for garbage among what
    was just loaded, takes as long as starting it; nobody should wait for that.
    """
    gc.set_threshold(_GARBAGE)
    lazy_imports.install()
    from aof.surfaces.cli.main import main as run

    code = run()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


if __name__ == "__main__":
    main()
