"""Settings: `aof.toml` in the data directory, every one with a default. Must not know who uses them."""

from __future__ import annotations

import os
from typing import Any, Literal

import msgspec

from aof.core.errors import SettingsUnusable, UnsupportedVersion
from aof.core.events import SCHEMA_VERSION
from aof.core.records import Policy

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

_VERSION_LINE = f"schemaVersion = {SCHEMA_VERSION}"


class Storage(msgspec.Struct, forbid_unknown_fields=True, rename="camel"):
    """How the store behaves."""

    durability: Literal["full", "relaxed"] = "full"
    lock_timeout: float = 10.0
    allow_network_filesystem: bool = False


class LeaseSettings(msgspec.Struct, forbid_unknown_fields=True):
    """How long a claim lasts."""

    ttl: float = 300.0


class RetrySettings(msgspec.Struct, forbid_unknown_fields=True, rename="camel"):
    """How failed runs are tried again."""

    max_attempts: int = 3
    base: float = 60.0
    cap: float = 900.0


class Settings(msgspec.Struct, forbid_unknown_fields=True, rename="camel"):
    """All settings of a data directory."""

    schema_version: int = 1
    project: str | None = None
    maintainers: tuple[str, ...] = ()
    storage: Storage = msgspec.field(default_factory=Storage)
    lease: LeaseSettings = msgspec.field(default_factory=LeaseSettings)
    retry: RetrySettings = msgspec.field(default_factory=RetrySettings)
    resources: dict[str, int] = {}

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
        raise SettingsUnusable(f"aof.toml cannot be read: {error}", "put a text file in UTF-8 there") from None
    lines = map(str.strip, text.splitlines())
    if not any(line and not line.startswith("#") and line != _VERSION_LINE for line in lines):
        return Settings()
    import tomllib

    try:
        values: dict[str, Any] = tomllib.loads(text)
        _refuse_newer(values.get("schemaVersion"))
        return msgspec.convert(values, Settings)
    except (tomllib.TOMLDecodeError, msgspec.ValidationError) as error:
        raise SettingsUnusable(
            f"aof.toml cannot be used: {error}",
            "correct the file, or delete it: every setting has a default",
            path=os.path.join(root, "aof.toml"),
        ) from None


def _refuse_newer(version: object) -> None:
    if isinstance(version, int) and version > SCHEMA_VERSION:
        raise UnsupportedVersion(
            f"the data directory has schemaVersion {version}, and this AOF knows versions up to {SCHEMA_VERSION}",
            "use the AOF that wrote it, or a newer one; nothing was changed",
            version=version,
        )
