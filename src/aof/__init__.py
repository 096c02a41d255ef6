"""AOF: a task fabric for teams of agents. `with aof.open() as fabric:` is where to begin.

The names here are the whole public interface; everything is loaded when it is first used.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from aof import errors
    from aof.app.fabric import Fabric
    from aof.app.messages.message_line import message_line
    from aof.app.runs.claimed_run import ClaimedRun
    from aof.core.errors.base import AofError
    from aof.core.model.kinds import BlockedKind, Outcome, Priority, Status, Visibility
    from aof.core.model.task import Task
    from aof.entrypoints.bootstrap import init_data_dir as init
    from aof.entrypoints.bootstrap import open_fabric as open  # noqa: A004 - reads well as aof.open()

__version__ = "0.1.0"
__all__ = [
    "AofError",
    "BlockedKind",
    "ClaimedRun",
    "Fabric",
    "Outcome",
    "Priority",
    "Status",
    "Task",
    "Visibility",
    "errors",
    "init",
    "message_line",
    "open",
]

_PLACES: dict[str, tuple[str, str | None]] = {
    "AofError": ("aof.core.errors.base", "AofError"),
    "BlockedKind": ("aof.core.model.kinds", "BlockedKind"),
    "ClaimedRun": ("aof.app.runs.claimed_run", "ClaimedRun"),
    "Fabric": ("aof.app.fabric", "Fabric"),
    "Outcome": ("aof.core.model.kinds", "Outcome"),
    "Priority": ("aof.core.model.kinds", "Priority"),
    "Status": ("aof.core.model.kinds", "Status"),
    "Task": ("aof.core.model.task", "Task"),
    "Visibility": ("aof.core.model.kinds", "Visibility"),
    "errors": ("aof.errors", None),
    "init": ("aof.entrypoints.bootstrap", "init_data_dir"),
    "message_line": ("aof.app.messages.message_line", "message_line"),
    "open": ("aof.entrypoints.bootstrap", "open_fabric"),
}


def __getattr__(name: str) -> Any:
    from importlib import import_module

    try:
        module, attribute = _PLACES[name]
    except KeyError:
        raise AttributeError(f"module 'aof' has no attribute {name!r}") from None
    loaded = import_module(module)
    return loaded if attribute is None else getattr(loaded, attribute)


def __dir__() -> list[str]:
    return __all__
