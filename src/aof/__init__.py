"""AOF: a task fabric for teams of agents. `with aof.open() as fabric:` is where to begin.

The names here are the whole public interface; everything is loaded when it is first used.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from aof import errors
    from aof.api.fabric import Fabric
    from aof.errors import AofError
    from aof.kernel.kinds import BlockedKind, Outcome, Priority, Status, Visibility
    from aof.messages.message_line import message_line
    from aof.runs.claimed_run import ClaimedRun
    from aof.service.bootstrap import init_data_dir as init
    from aof.service.bootstrap import open_fabric as open  # noqa: A004 - reads well as aof.open()
    from aof.tasks.model import Task

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
    "AofError": ("aof.errors", "AofError"),
    "BlockedKind": ("aof.kernel.kinds", "BlockedKind"),
    "ClaimedRun": ("aof.runs.claimed_run", "ClaimedRun"),
    "Fabric": ("aof.api.fabric", "Fabric"),
    "Outcome": ("aof.kernel.kinds", "Outcome"),
    "Priority": ("aof.kernel.kinds", "Priority"),
    "Status": ("aof.kernel.kinds", "Status"),
    "Task": ("aof.tasks.model", "Task"),
    "Visibility": ("aof.kernel.kinds", "Visibility"),
    "errors": ("aof.errors", None),
    "init": ("aof.service.bootstrap", "init_data_dir"),
    "message_line": ("aof.messages.message_line", "message_line"),
    "open": ("aof.service.bootstrap", "open_fabric"),
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
