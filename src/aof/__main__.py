"""Entry point of the `aof` command, also `python -m aof`: imports are lazy, and the process ends when all is said."""

from __future__ import annotations

import gc
import os
import sys

from aof._support import lazy_imports

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import NoReturn

_GARBAGE = 100_000  # objects more than were freed, before anybody looks for cycles: no short call makes so many


class _Unneeded:
    """Keeps msgspec from loading `typing_extensions` while it loads itself: `typing` has all that it needs.

    That package is there wherever pydantic is, and brings `inspect` and others with it: a tenth of a call's time.
    """

    @staticmethod
    def find_spec(name: str, *_where: object) -> None:
        """Say that there is none, to nobody but msgspec."""
        loading = sys.modules.get("msgspec._utils") if name == "typing_extensions" else None
        if loading is not None and not hasattr(loading, "get_class_annotations"):
            raise ModuleNotFoundError(name)


def main() -> NoReturn:
    """Run one command line in a process of its own, which ends as soon as all is said.

    Everything is closed by then. Taking the interpreter's modules apart one by one, and looking for garbage among what
    was just loaded, takes as long as starting it; nobody should wait for that.
    """
    gc.set_threshold(_GARBAGE)
    lazy_imports.install()
    sys.meta_path.insert(0, _Unneeded)
    from aof.adapters.cli.main import main as run  # noqa: PLC0415 - after the hook

    code = run()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


if __name__ == "__main__":
    main()
