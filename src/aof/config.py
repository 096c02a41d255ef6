"""Settings: `aof.toml` in the data directory, every one with a default. Must not know who uses them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from types import MappingProxyType

from aof.errors import SettingsUnusable
from aof.kernel.model import Policy, SchedulingPolicy, WorklogPolicy, is_agent_name
from aof.store.files.disk import read

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Literal


_LARGEST = 1_000_000  # bytes
_TEXT = """\
# Settings of this data directory. Everything has a default; remove the '#' to change one.
schemaVersion = 1
{project}
{maintainers}
{shared}
{solo}

# [storage]
# durability = "full"            # or "relaxed": survives killed processes, not power loss
# lockTimeout = 10               # seconds to wait for another process
# allowNetworkFilesystem = false

# [lease]
# ttl = 300                      # seconds that a claim lasts without a sign of life
# keptTtl = 3600                 # the same for a claim that outlives its session (claim --keep)
# awayGrace = 86400              # seconds before a run of another clone counts as lost: its heartbeats stay there

# [retry]
# maxAttempts = 3
# base = 60                      # seconds before the first retry; each further one waits three times as long
# cap = 900

# [scheduler]
# maxConcurrent = 8              # runs at once, of all agents together
# promote = false                # or true: every task leaves the backlog by itself once it waits for nothing

# [sla]                          # seconds that a task may stay in a status before an alert is recorded
# review = 86400

# [retention]
# finished = 2592000             # seconds after which a done or cancelled task is archived; unset: never

# [handoff]
# defaultTimeout = 3600          # seconds for the answer, and for the result of a delegation, where none are given

# [review]
# required = true                # or a list of tags: only a maintainer creates such a task without review

# unlistedAgents = "worker"      # with an org chart: what a name outside of it is; or "refuse": it may not write

# [identity]
# mode = "open"                  # or "strict": a session, token or run is one actor, also without an org chart
# requireSecret = false          # or true: writes to a run and to gates count only with a secret or a token

# [http]                         # bounds of the HTTP server
# hosts = ["aof.example.org"]    # names that it may be called by, beside the loopback's and its own address
# headerSeconds = 10             # for the headers of a request to arrive, and for a TLS handshake
# bodySeconds = 60               # for its body
# idleSeconds = 60               # between two requests
# stallSeconds = 30              # that a client may leave a response unread
# connections = 4096             # in total; fewer where the process may not open so many files
# connectionsPerAddress = 2048
# streamsPerToken = 32
# requestsPerSecond = 200        # per token
# failuresPerMinute = 60         # failed authentications per address that are answered at once

# [a2a]
# pushHosts = ["hooks.example.org"]  # hosts, perhaps with a port, that peers may have push notifications sent to

# [messages]
# perSend = 1000                 # messages that one 'send' takes

# [worklog]
# automatic = true               # claims, completions and handoffs write a line into WORKLOG.md by themselves

# [notify]                       # what to notify when a task comes to review, is blocked or is done
# command = ["notify-send", "-"] # an argument list; gets the notification as JSON on standard input
# file = "notifications.jsonl"   # or a file that gets one line of JSON each
# [[notify.channels]]            # a chat, mail or push service that 'aof up' sends to; see docs/howto/get-notified.md
# name = "team"
# urlEnv = "AOF_TEAM_CHAT"       # the variable that holds its address; or urlFile = "/etc/aof/team.url"; or url
# status = ["review", "blocked", "deadletter"]
# priority = ["high", "critical"]

# [resources]                    # how many running tasks may share one; 1 unless said here
# gpu = 2
"""

SCHEMA_VERSION = 2  # with lanes beside the root lane; a data directory begins with 1
_VERSION_LINES = tuple(f"schemaVersion = {version}" for version in range(1, SCHEMA_VERSION + 1))
_MAINTAINERS = "maintainers = "
_PROJECT = "project = "
_SOLO = "selfReview = true               # who ran a task may approve it: one person works here alone"
_SHARED = (
    'shared = "group"               # or "owner": who may read and write the files; \'aof doctor --fix\' sets modes'
)


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
    """How long a claim lasts, one that outlives its session, and one that was made in another clone."""

    ttl: float = 300.0
    kept_ttl: float = 3600.0
    away_grace: float = 86_400.0


class RetrySettings(Section):
    """How failed runs are tried again."""

    max_attempts: int = 3
    base: float = 60.0
    cap: float = 900.0


class SchedulerSettings(Section):
    """What the scheduler may do."""

    max_concurrent: int | None = None
    promote: bool = False


class HandoffSettings(Section):
    """How long an answer to a handoff, and the result of a delegation, may take where the sender does not say."""

    default_timeout: float = 3600.0


class RetentionSettings(Section):
    """How long a finished task stays among the others."""

    finished: float | None = None


class ChannelSettings(Section):
    """A service that people read, where its address stands, and which news it gets. Times are in seconds."""

    name: str = ""
    url: str | None = None
    url_env: str | None = None
    url_file: str | None = None
    status: tuple[
        Literal["backlog", "ready", "in-progress", "review", "blocked", "done", "cancelled", "deadletter"], ...
    ] = (
        "review",
        "blocked",
        "done",
        "deadletter",
    )
    priority: tuple[Literal["critical", "high", "normal", "low"], ...] = ()
    agent: tuple[str, ...] = ()
    sla: bool = True
    question: bool = True
    handoff: bool = True
    mail: bool = True
    batch: float = 10.0
    quiet: float = 3600.0
    details: bool = True


class NotifySettings(Section):
    """Whom to notify when a task needs a person."""

    command: tuple[str, ...] = ()
    file: str | None = None
    channels: tuple[ChannelSettings, ...] = ()


class IdentitySettings(Section):
    """What proves who acts. `identity = "strict"` in the file is short for a table with that mode."""

    shorthand = "mode"
    mode: Literal["open", "strict"] = "open"
    require_secret: bool = False


class HttpBounds(Section):
    """What clients of the HTTP server may take."""

    hosts: tuple[str, ...] = ()
    header_seconds: float = 10.0
    body_seconds: float = 60.0
    idle_seconds: float = 60.0
    stall_seconds: float = 30.0
    connections: int = 4096
    connections_per_address: int = 2048
    streams_per_token: int = 32
    requests_per_second: float = 200.0
    failures_per_minute: float = 60.0


class A2aSettings(Section):
    """What peers may ask for over Agent2Agent: the hosts that they may have push notifications sent to."""

    push_hosts: tuple[str, ...] = ()


class MessageSettings(Section):
    """What one delivery of messages may bring."""

    per_send: int = 1000


class WorklogSettings(Section):
    """What is written into the WORKLOG without being asked for."""

    automatic: bool = True


class ReviewSettings(Section):
    """Which tasks only a maintainer takes out of review: all, those with one of these tags, or none."""

    required: bool | tuple[str, ...] = False


class Settings(Section):
    """All settings of a data directory."""

    schema_version: int = 1
    project: str | None = None
    maintainers: tuple[str, ...] = ()
    shared: Literal["owner", "group"] = "owner"
    unlisted_agents: Literal["worker", "refuse"] = "worker"
    self_review: bool = False
    review: ReviewSettings = ReviewSettings()
    storage: Storage = Storage()
    lease: LeaseSettings = LeaseSettings()
    retry: RetrySettings = RetrySettings()
    scheduler: SchedulerSettings = SchedulerSettings()
    sla: Mapping[Literal["backlog", "ready", "in-progress", "review", "blocked"], float] = MappingProxyType({})
    resources: Mapping[str, int] = MappingProxyType({})
    notify: NotifySettings = NotifySettings()
    handoff: HandoffSettings = HandoffSettings()
    retention: RetentionSettings = RetentionSettings()
    identity: IdentitySettings = IdentitySettings()
    http: HttpBounds = HttpBounds()
    a2a: A2aSettings = A2aSettings()
    messages: MessageSettings = MessageSettings()
    worklog: WorklogSettings = WorklogSettings()

    def policy(self, project: str = "unknown") -> Policy:
        """The part that decisions depend on; the name is for a project that the settings do not name."""
        return Policy(
            lease_ttl_ms=int(self.lease.ttl * 1000),
            kept_ttl_ms=int(self.lease.kept_ttl * 1000),
            max_attempts=self.retry.max_attempts,
            retry_base_ms=int(self.retry.base * 1000),
            retry_cap_ms=int(self.retry.cap * 1000),
            resource_slots=self.resources,
            scheduling=SchedulingPolicy(
                max_concurrent=self.scheduler.max_concurrent,
                promote=self.scheduler.promote,
                patience_ms={status: int(seconds * 1000) for status, seconds in self.sla.items()},
                handoff_ms=int(self.handoff.default_timeout * 1000),
                archive_ms=None if self.retention.finished is None else int(self.retention.finished * 1000),
            ),
            maintainers=self.maintainers,
            project=self.project or project,
            require_secret=self.identity.require_secret,
            strict=self.identity.mode == "strict",
            refuse_unlisted=self.unlisted_agents == "refuse",
            self_review=self.self_review,
            review_required=self.review.required,
            messages_per_send=self.messages.per_send,
            worklog=WorklogPolicy(automatic=self.worklog.automatic),
        )


def default_text(maintainer: str, project: str = "", *, shared: bool = False, solo: bool = False) -> str:
    """The settings of a new data directory. It names the project, so that clones in other folders call it the same."""
    names = json.dumps([maintainer], ensure_ascii=False)
    said = json.dumps(project, ensure_ascii=False) if project.isprintable() else ""
    text = _TEXT.replace("{shared}", _SHARED if shared else f"# {_SHARED}")
    text = text.replace("{solo}", _SOLO if solo else f"# {_SOLO}")
    text = text.replace("{project}", f"{_PROJECT}{said}" if project and said else f'# {_PROJECT}"my-project"')
    return text.replace("{maintainers}", f"{_MAINTAINERS}{names}  # who may do everything, whatever the org chart says")


def with_solo(text: str) -> str | None:
    """The settings with self-review allowed; None where they say something of it already."""
    if any(line.lstrip().startswith("selfReview") for line in text.splitlines()):
        return None
    return text.replace(f"# {_SOLO}", _SOLO, 1) if f"\n# {_SOLO}\n" in text else f"{_SOLO}\n{text}"


def load_settings(root: str) -> Settings:
    """Read `aof.toml`; a file that says nothing but whose it is costs no parser."""
    try:
        data = read(f"{root}/aof.toml", limit=_LARGEST)
        if data is None:
            return Settings()
        text = data.decode()
    except (OSError, UnicodeDecodeError) as error:
        raise SettingsUnusable(f"aof.toml cannot be read: {error}", "put a text file in UTF-8 there") from None
    lines = [line for line in map(str.strip, text.splitlines()) if line and not line.startswith("#")]
    told = [line for line in lines if line not in _VERSION_LINES]
    project, told = _project(told)
    if not told:
        return Settings(project=project)
    if len(told) == 1 and (names := _maintainers(told[0])) is not None:
        return Settings(project=project, maintainers=names)
    from aof.config_file import parsed

    return parsed(text, Settings, f"{root}/aof.toml")


def _project(lines: list[str]) -> tuple[str | None, list[str]]:
    """The name in the first line as `init` writes it, and the other lines; any other name is left to the parser."""
    name = lines[0].removeprefix(_PROJECT)[1:-1] if lines else ""
    plain = name and f'{_PROJECT}"{name}"' == lines[0] and not {'"', "\\"} & set(name)
    return (name, lines[1:]) if plain else (None, lines)


def _maintainers(line: str) -> tuple[str, ...] | None:
    """The names in a line as `init` writes it; any other way to write them is left to the parser."""
    listed = line.removeprefix(_MAINTAINERS).partition("#")[0].strip()
    names = listed[2:-2].split('", "')
    plain = (
        line.startswith(_MAINTAINERS) and listed[:2] == '["' and listed[-2:] == '"]' and all(map(is_agent_name, names))
    )
    return tuple(names) if plain else None
