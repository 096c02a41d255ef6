"""The push notification configurations of the protocol: what a peer may set, see and delete for its own tasks.

Everything of a configuration is checked before it is kept. Must not know how a notification is sent.
"""

from __future__ import annotations

from typing import Final, Literal

from a2a.types import AuthenticationInfo, TaskPushNotificationConfig
from a2a.utils.errors import InvalidParamsError, PushNotificationNotSupportedError, UnsupportedOperationError

from aof.adapters.a2a.served.push.hosts import PushHosts, host_of
from aof.adapters.a2a.served.view import TaskView
from aof.app.fabric import Fabric
from aof.app.operations.call import Caller
from aof.core.model.times import iso
from aof.ports.push import PushTarget, PushTargets, Targets

Version = Literal["1.0", "0.3"]
_OFF: Final = "push notifications are off here; the operator lists hosts as pushHosts under [a2a] in aof.toml"
_PER_TASK, _TASKS = 10, 10_000
_NAME, _SECRET = 256, 4_096  # characters
_READERS: Final = "read"  # the scope of a token that may not have anything sent


class PushConfigs:
    """The configurations of one data directory."""

    def __init__(self, fabric: Fabric, hosts: PushHosts, targets: PushTargets) -> None:
        self._fabric = fabric
        self._hosts = hosts
        self._targets = targets

    def check(self, config: TaskPushNotificationConfig, caller: Caller) -> None:
        """Refuse what cannot be kept; raises an error of the protocol."""
        self._check_on(caller)
        if (refusal := self._hosts.refusal(config.url)) is not None:
            raise InvalidParamsError(refusal)
        if len(config.id) > _NAME or not config.id.isprintable():
            raise InvalidParamsError(f"the ID of a configuration has up to {_NAME} printable characters")
        login = config.authentication
        for name, text in (("token", config.token), ("scheme", login.scheme), ("credentials", login.credentials)):
            if len(text) > _SECRET or not text.isascii() or not text.isprintable():
                raise InvalidParamsError(f"{name} must be printable ASCII of up to {_SECRET} characters")
        if " " in login.scheme or bool(login.scheme) != bool(login.credentials):
            raise InvalidParamsError("authentication needs a scheme of one word and credentials, or neither")

    def create(
        self, config: TaskPushNotificationConfig, shown: TaskView, caller: Caller, version: Version
    ) -> TaskPushNotificationConfig:
        """Keep a configuration that was checked. It is told what comes after this view of the task."""
        task_id = shown.task.id
        clock = self._fabric.services.environment.clock
        target = PushTarget(
            task_id=task_id,
            id=config.id or task_id,
            actor=caller.actor,
            url=config.url,
            token=config.token,
            scheme=config.authentication.scheme,
            credentials=config.authentication.credentials,
            version=version,
            made_at=iso(clock.now()),
            seq=shown.seq,
            state=int(shown.state),
        )
        known = self._targets.tasks()
        if task_id not in known and len(known) >= _TASKS:
            raise UnsupportedOperationError(f"{_TASKS:,} tasks have push notifications already; follow this one")

        def replaced(targets: Targets) -> Targets:
            others = tuple(one for one in targets if one.id != target.id)
            if len(others) >= _PER_TASK:
                raise UnsupportedOperationError(f"a task has at most {_PER_TASK} push notification configurations")
            return (*others, target)

        self._targets.change(task_id, replaced)
        self._fabric.remark("a2a.push.set", {"id": target.id, "host": host_of(target.url), "by": caller.actor}, task_id)
        return _config(target)

    def of(self, task_id: str, caller: Caller) -> list[TaskPushNotificationConfig]:
        """The configurations of a task that is the caller's own."""
        self._check_on(caller)
        return [_config(one) for one in self._targets.of(task_id)]

    def delete(self, task_id: str, config_id: str, caller: Caller) -> None:
        """Delete one; one that is gone already stays so."""
        self._check_on(caller)
        self._targets.change(task_id, lambda targets: tuple(one for one in targets if one.id != config_id))

    def _check_on(self, caller: Caller) -> None:
        if not self._hosts:
            raise PushNotificationNotSupportedError(_OFF)
        if caller.scope == _READERS:
            raise UnsupportedOperationError(
                "push notifications need a token with the scope work: "
                f"aof admin token create {caller.actor} --scope work"
            )


def _config(target: PushTarget) -> TaskPushNotificationConfig:
    config = TaskPushNotificationConfig(id=target.id, task_id=target.task_id, url=target.url, token=target.token)
    if target.scheme:
        config.authentication.CopyFrom(AuthenticationInfo(scheme=target.scheme, credentials=target.credentials))
    return config
