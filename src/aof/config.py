"""Settings: `aof.toml` in the data directory, every one with a default. Must not know who uses them."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from aof.core.errors import InvalidInput
from aof.core.policy import Policy

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Literal

DEFAULT_TEXT = """\
# Settings of this data directory. Everything has a default; remove the '#' to change one.
schemaVersion = 1
# project = "my-project"
# maintainers = ["you"]

# [storage]
# durability = "full"            # or "relaxed": survives killed processes, not power loss
# lockTimeout = 10               # seconds to wait for another process
# allowNetworkFilesystem = false

# [lease]
# ttl = 300                      # seconds that a claim lasts without a sign of life

# [retry]
# maxAttempts = 3
# base = 60                      # seconds before the first retry; each further one waits three times as long
# cap = 900

# [resources]                    # how many running tasks may share one; 1 unless said here
# gpu = 2
"""

SCHEMA_VERSION = 1
_VERSION_LINE = f"schemaVersion = {SCHEMA_VERSION}"


class Section:
    """Settings of one kind: each with its type and its default, which stand in the class.

    The file spells their names in camelCase. Whatever somebody has written there is checked against the types.
    """

    def __init__(self, **given: Any) -> None:
        vars(self).update(given)


class Storage(Section):
    """How the store behaves."""

    durability: Literal["full", "relaxed"] = "full"
    lock_timeout: float = 10.0
    allow_network_filesystem: bool = False


class LeaseSettings(Section):
    """How long a claim lasts."""

    ttl: float = 300.0


class RetrySettings(Section):
    """How failed runs are tried again."""

    max_attempts: int = 3
    base: float = 60.0
    cap: float = 900.0


class Settings(Section):
    """All settings of a data directory."""

    schema_version: int = SCHEMA_VERSION
    project: str | None = None
    maintainers: tuple[str, ...] = ()
    storage: Storage = Storage()
    lease: LeaseSettings = LeaseSettings()
    retry: RetrySettings = RetrySettings()
    resources: Mapping[str, int] = MappingProxyType({})

    def policy(self) -> Policy:
        """The part that decisions depend on."""
        return Policy(
            lease_ttl_ms=int(self.lease.ttl * 1000),
            max_attempts=self.retry.max_attempts,
            retry_base_ms=int(self.retry.base * 1000),
            retry_cap_ms=int(self.retry.cap * 1000),
            resource_slots=self.resources,
        )


def load_settings(root: str) -> Settings:
    """Read `aof.toml`; a file that is all comments costs no parser."""
    try:
        with open(f"{root}/aof.toml", encoding="utf-8") as file:
            text = file.read()
    except FileNotFoundError:
        return Settings()
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidInput(f"aof.toml cannot be read: {error}", "put a text file in UTF-8 there") from None
    lines = map(str.strip, text.splitlines())
    if not any(line and not line.startswith("#") and line != _VERSION_LINE for line in lines):
        return Settings()
    from aof.config_file import parsed

    return parsed(text, Settings, f"{root}/aof.toml")
