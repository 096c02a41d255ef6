"""The settings that decisions depend on. Plain, because a list that is asked for loads it too."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

_NONE: Mapping[str, int] = MappingProxyType({})


class Policy:
    """What is in force."""

    __slots__ = ("lease_ttl_ms", "max_attempts", "resource_slots", "retry_base_ms", "retry_cap_ms", "retry_factor")

    def __init__(
        self,
        *,
        lease_ttl_ms: int = 300_000,
        max_attempts: int = 3,
        retry_base_ms: int = 60_000,
        retry_factor: int = 3,
        retry_cap_ms: int = 900_000,
        resource_slots: Mapping[str, int] = _NONE,
    ) -> None:
        self.lease_ttl_ms = lease_ttl_ms
        self.max_attempts = max_attempts
        self.retry_base_ms = retry_base_ms
        self.retry_factor = retry_factor
        self.retry_cap_ms = retry_cap_ms
        self.resource_slots = resource_slots
