"""The notification channels of a data directory.

What the settings say of them, where they lead, and the threads that serve them.
"""

from __future__ import annotations

import os
import re
import stat
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import NamedTuple

import msgspec

from aof.api.fabric import Fabric
from aof.config import ChannelSettings, Settings, load_settings
from aof.errors import InvalidInput, NotAllowed, SettingsUnusable, Unavailable
from aof.kernel.faults import record
from aof.kernel.ports import ChannelFailed, CommandLine, Delivery, Trust
from aof.scheduler.steps import channel_command, untrusted_refusal
from aof.service.bootstrap import open_fabric
from aof.service.clock import SystemClock
from aof.service.extras import install_hint
from aof.service.notify import OF_THE_CALLER
from aof.service.sender import Outcome
from aof.store.directory import Problem
from aof.store.files.service_files import DeliveryFiles
from aof.supervision.notifications import DeliveryPlan, Outbox, Rules
from aof.support import lazy_imports
from aof.support.hashing import hexdigest
from aof.support.printable import clean

_NAME = re.compile(r"[a-z0-9][a-z0-9-]{0,31}")
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,99}")
_MOST = 16
_LONGEST_BATCH, _LONGEST_QUIET = 3_600.0, 7 * 86_400.0  # seconds
_PAUSE = 0.2  # seconds that a burst of changes gets to come together
_LOOK = 1.0  # seconds after which a thread sees that it is to end
_AFTER_A_FAULT = 60.0
_STOPPING = 2.0

Tell = Callable[[str, str], None]


class Address:
    """One address, read anew each time it is used."""

    def __init__(
        self,
        root: str,
        *,
        url: str | None = None,
        variable: str | None = None,
        file: str | None = None,
        environment: Mapping[str, str] = os.environ,
    ) -> None:
        self._root = os.path.realpath(root)
        self._url = url
        self._variable = variable
        self._file = file
        self._environment = environment

    @property
    def shown(self) -> str:
        """What a person may be shown."""
        if self._variable is not None:
            return f"the address in ${self._variable}"
        if self._file is not None:
            return f"the address in {self._file}"
        return shown_address(self._url or "")

    @property
    def digest(self) -> str:
        """What stands for it where somebody trusts it: the whole address, or the place that the person keeps it at."""
        parts = (self._url or "", self._variable or "", self._file or "")
        return hexdigest("\0".join(parts).encode("utf-8", "surrogatepass"))

    def read(self) -> str:
        """The address itself. Raises ChannelFailed, whose text has nothing of it."""
        if self._variable is not None:
            found = self._environment.get(self._variable, "")
            if not found:
                raise ChannelFailed(f"the variable {clean(self._variable)} is not set where 'aof up' was started")
        elif self._file is not None:
            found = self._read_file(self._file)
        else:
            found = self._url or ""
        address = found.strip()
        if len(address) > _LONGEST or not address.isprintable() or _SCHEME.match(address) is None:
            raise ChannelFailed(f"{clean(self.shown)} is no address such as json://host/path")
        return address

    def _read_file(self, path: str) -> str:
        if not os.path.isabs(path) or os.path.realpath(path).startswith(f"{self._root}/"):
            raise ChannelFailed("urlFile must be an absolute path outside of the data directory")
        try:
            fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
        except OSError as error:
            raise ChannelFailed(f"{clean(path)} cannot be read: {error.strerror}") from None
        try:
            found = os.fstat(fd)
            if not stat.S_ISREG(found.st_mode) or found.st_uid != os.geteuid() or found.st_mode & _FOR_OTHERS:
                raise ChannelFailed(f"{clean(path)} must be a file of yours that nobody else can read: chmod 600")
            return os.read(fd, _LONGEST + 1).decode("utf-8", "replace")
        finally:
            os.close(fd)


class Configured(NamedTuple):
    """A channel of the settings: how it is served, where it leads, and what somebody has to trust."""

    plan: DeliveryPlan
    address: Address
    command: CommandLine


class ChannelReport(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """What a person may know of a channel."""

    name: str
    address: str
    trusted: bool
    status: tuple[str, ...]
    priority: tuple[str, ...]
    agent: tuple[str, ...]
    sent: int = 0
    sent_at: str | None = None
    failures: int = 0
    failed_since: str | None = None
    error: str | None = None


def configured(root: str, settings: Settings, environment: Mapping[str, str] = os.environ) -> tuple[Configured, ...]:
    """The channels of the settings; raises SettingsUnusable."""
    given = settings.notify.channels
    names = [one.name for one in given]
    if len(given) > _MOST or len(set(names)) < len(names):
        raise _unusable(f"there are at most {_MOST} channels, each with a name of its own")
    return tuple(_configured(root, one, environment) for one in given)


def _configured(root: str, given: ChannelSettings, environment: Mapping[str, str]) -> Configured:
    if not _NAME.fullmatch(given.name):
        raise _unusable("a channel needs a name of lower-case letters, digits and hyphens, such as 'team'")
    if sum(one is not None for one in (given.url, given.url_env, given.url_file)) != 1:
        raise _unusable(f"channel {given.name} needs one of url, urlEnv and urlFile")
    if given.url_env is not None and not _VARIABLE.fullmatch(given.url_env):
        raise _unusable(f"urlEnv of channel {given.name} is no name of a variable")
    if not (0 <= given.batch <= _LONGEST_BATCH and 0 <= given.quiet <= _LONGEST_QUIET):
        raise _unusable(f"batch of channel {given.name} is 0 to 3600 seconds, quiet 0 to 604800")
    address = Address(root, url=given.url, variable=given.url_env, file=given.url_file, environment=environment)
    rules = Rules(
        statuses=given.status,
        priorities=given.priority,
        agents=given.agent,
        sla=given.sla,
        questions=given.question,
        handoffs=given.handoff,
        mail=given.mail,
    )
    plan = DeliveryPlan(name=given.name, rules=rules, batch=given.batch, quiet=given.quiet, details=given.details)
    return Configured(plan, address, channel_command(given.name, address.shown, address.digest))


def _unusable(what: str) -> SettingsUnusable:
    return SettingsUnusable(f"aof.toml cannot be used: {what}", "correct [[notify.channels]], or leave it out")


def reports(root: str, trust: Trust) -> tuple[ChannelReport, ...]:
    """Every channel, and how it does."""
    found, files = configured(root, load_settings(root)), DeliveryFiles(root, SystemClock())
    return tuple(_report(one, trust, files.load(one.plan.name) or Delivery(seq=0)) for one in found)


def _report(one: Configured, trust: Trust, known: Delivery) -> ChannelReport:
    return ChannelReport(
        name=one.plan.name,
        address=one.address.shown,
        trusted=trust.covers(one.command),
        status=one.plan.rules.statuses,
        priority=one.plan.rules.priorities,
        agent=one.plan.rules.agents,
        sent=known.sent,
        sent_at=known.sent_at,
        failures=known.failures,
        failed_since=known.failed_since,
        error=known.error,
    )


def advice(root: str, trust: Trust) -> Iterator[Problem]:
    """What is wrong with channels: no damage, but somebody waits for news in vain."""
    try:
        found = reports(root, trust)
    except SettingsUnusable as error:
        yield Problem(error.code, "aof.toml", error.message, error.hint)
        return
    for one in found:
        if not one.trusted:
            yield Problem("channel_untrusted", "aof.toml", f"channel {one.name} gets nothing", "see it: aof trust")
        elif one.failures:
            what = f"channel {one.name} failed {one.failures} times since {one.failed_since}: {one.error}"
            yield Problem("channel_failing", "aof.toml", what, f"correct it, then: aof admin notify test {one.name}")


def channel_of(one: Configured, trust: Trust) -> AppriseChannel:
    """The channel itself; nothing is sent before somebody has trusted it."""
    return AppriseChannel(one.address, lambda: None if trust.covers(one.command) else untrusted_refusal(one.command))


def send_test(root: str, trust: Trust, name: str) -> None:
    """Send a message that says what it is; raises NotAllowed where nobody trusts the channel, else Unavailable."""
    found = next((one for one in configured(root, load_settings(root)) if one.plan.name == name), None)
    if found is None:
        raise InvalidInput(f"there is no channel {name[:40]!r}", "see the channels: aof admin notify")
    channel = channel_of(found, trust)
    if (why := channel.refused()) is not None:
        raise NotAllowed(f"nothing was sent: {why}", "aof trust")
    try:
        channel.send(f"A test of the channel {name}", "AOF can reach you here. Nothing needs to be done.")
    except ChannelFailed as error:
        raise Unavailable(f"nothing was sent: {error}", "correct [[notify.channels]] in aof.toml") from None


def send_pending(root: str, trust: Trust, tell: Tell) -> int:
    """Send to every channel what it has not got yet, for those who run no service; how many could not be served."""
    failed = 0
    with open_fabric(root, secret="") as fabric:
        for one in configured(root, load_settings(root)):
            box = _outbox(one, root, trust, fabric, tell)
            while box.step(now_or_never=True) == 0.0:
                pass
            known = DeliveryFiles(root, SystemClock()).load(one.plan.name)
            failed += known is not None and known.failures > 0
    return failed


@contextmanager
def delivering(root: str, trust: Trust, tell: Tell, *, once: bool = False) -> Iterator[None]:
    """Serve every channel beside the caller, for as long as it needs; `once` also sends what waits at the end."""
    lazy_imports.settle()
    stop = threading.Event()
    threads = [
        threading.Thread(
            target=_serve, args=(one, root, trust, stop, tell), name=f"notify-{one.plan.name}", daemon=True
        )
        for one in configured(root, load_settings(root))
    ]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        stop.set()
        for thread in threads:
            thread.join(_STOPPING)
    if once:
        send_pending(root, trust, tell)


def _serve(one: Configured, root: str, trust: Trust, stop: threading.Event, tell: Tell) -> None:
    """The life of one thread. Whatever goes wrong in it is recorded, and it goes on."""
    while not stop.is_set():
        try:
            with open_fabric(root, secret="") as fabric:
                box = _outbox(one, root, trust, fabric, tell)
                while not stop.is_set():
                    wait = box.step()
                    if wait:
                        fabric.store.wait(box.seen, min(wait, _LOOK))
                        stop.wait(_PAUSE)
        except Exception as error:  # noqa: BLE001 - the edge of one channel
            name = record(f"notifications to {one.plan.name}", error)
            tell("fault", f"channel {one.plan.name} is not served for a minute (reference {name})")
            stop.wait(_AFTER_A_FAULT)


def _outbox(one: Configured, root: str, trust: Trust, fabric: Fabric, tell: Tell) -> Outbox:
    here = fabric.services.environment
    files = DeliveryFiles(root, here.clock)
    channel = channel_of(one, trust)
    return Outbox(
        one.plan,
        channel,
        log=here.store,
        deliveries=files,
        clock=here.clock,
        look=here.lookup.get,
        project=here.policy.project,
        tell=tell,
    )


PATIENCE = 30.0  # seconds
_SENDER = "aof.service.sender"
_ERRORS: dict[int, str] = {
    Outcome.UNKNOWN_ADDRESS: "apprise does not know such an address",
    Outcome.REFUSED: "the service cannot be reached, or did not take the message",
}


class AppriseChannel:
    """Implements `kernel.ports.Channel` for one address."""

    def __init__(
        self,
        address: Address,
        refused: Callable[[], str | None] = lambda: None,
        patience: float = PATIENCE,
    ) -> None:
        self._address = address
        self._refused = refused
        self._patience = patience

    def refused(self) -> str | None:
        """Why nothing may be sent there, if so."""
        return self._refused()

    def send(self, subject: str, text: str) -> None:
        """Send one message. Raises ChannelFailed; what it says has nothing of the address."""
        given = {"url": self._address.read(), "subject": subject, "text": text}
        try:
            ended = subprocess.run(  # noqa: S603 - our own module; what is said goes in as data
                [sys.executable, "-P", "-m", _SENDER],
                input=msgspec.json.encode(given),
                cwd="/",
                env={name: value for name, value in os.environ.items() if name not in OF_THE_CALLER},
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                timeout=self._patience,
                check=False,
            )
        except subprocess.TimeoutExpired:
            raise ChannelFailed(f"the service did not answer within {self._patience:.0f} s") from None
        except OSError as error:
            raise ChannelFailed(f"nothing could be sent: {error.strerror}") from None
        if ended.returncode:
            if ended.returncode == Outcome.NOT_INSTALLED:
                raise ChannelFailed(f"apprise is not installed; {install_hint('notify')}")
            why = _ERRORS.get(ended.returncode, "the sender failed")
            code = ended.stdout[:3].decode("ascii", "replace")
            raise ChannelFailed(f"{why} (HTTP {code})" if code.isdigit() else why)


_LONGEST = 4_096  # bytes
_SCHEME = re.compile(r"([a-z][a-z0-9+.-]{0,30})://", re.IGNORECASE)
_HOSTED = frozenset({"json", "jsons", "xml", "xmls", "form", "forms"})  # elsewhere the host may be the secret
_HOST = re.compile(r"[a-z0-9.-]{1,253}(:[0-9]{1,5})?|\[[0-9a-f:]{2,45}\](:[0-9]{1,5})?", re.IGNORECASE)
_FOR_OTHERS = 0o077


def shown_address(url: str) -> str:
    """An address without its secrets."""
    scheme = _SCHEME.match(url)
    if scheme is None:
        return "(no address)"
    host = re.split(r"[/?#]", url[scheme.end() :], maxsplit=1)[0].rpartition("@")[2]
    if scheme.group(1).lower() in _HOSTED and _HOST.fullmatch(host):
        return f"{scheme.group(1).lower()}://{host}/(hidden)"
    return f"{scheme.group(1).lower()}://(hidden)"
