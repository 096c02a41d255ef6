"""The commands that a data directory declares, and what is said of one that nobody has allowed. Must not know files."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from aof.core.model.org_chart import Agent, OrgChart
from aof.core.scheduling.crew import STARTED
from aof.ports.trust import CommandLine, Trust

NOTIFY = "notify"


def of_agent(agent: Agent) -> CommandLine:
    """What starts an agent; of a peer, where its tasks are sent."""
    runner = agent.runner
    inherited = runner.inherit_env
    if runner.token_env is not None and isinstance(inherited, tuple):
        inherited = (*inherited, runner.token_env)
    return CommandLine(
        source=f"agent {agent.id}",
        kind="runner",
        command=("a2a", runner.url or "") if runner.kind == "a2a" else runner.command,
        env=runner.env,
        inherit_env=inherited,
        cwd=runner.cwd,
    )


def of_notifications(command: Sequence[str]) -> CommandLine:
    """What is started for each notification."""
    return CommandLine(source=NOTIFY, kind="notify", command=tuple(command))


def of_notification_file(file: str) -> CommandLine:
    """A file outside of the data directory that notifications are appended to; its path could be any file."""
    return CommandLine(source=f"{NOTIFY} file", kind="file", command=(file,))


def of_channel(name: str, shown: str, hidden: str) -> CommandLine:
    """A service that news is sent to: where it leads as far as that may be shown, and the whole as a digest."""
    return CommandLine(source=f"{NOTIFY} channel {name}", kind="channel", command=(shown,), hidden=hidden)


def declared(chart: OrgChart | None, notify: Sequence[str], file: str | None = None) -> Iterator[CommandLine]:
    """Every command that AOF would start for this data directory; `file` is one outside that it would write to."""
    for agent in chart.agents if chart is not None else ():
        if agent.runner.kind in STARTED:
            yield of_agent(agent)
    if notify:
        yield of_notifications(notify)
    if file is not None:
        yield of_notification_file(file)


def untrusted(trust: Trust | None, agent: Agent) -> str | None:
    """Why the command of an agent must not be started, if so. Without a keeper of trust every command may."""
    command = of_agent(agent)
    return None if trust is None or trust.covers(command) else refusal(command)


def refusal(command: CommandLine) -> str:
    """Why a command is not run, a file not written, or nothing sent to a channel."""
    if command.kind in ("file", "channel"):
        return f"the {command.source} {command.command[0]} is not trusted; see it and allow it: aof trust"
    return f"the command of {command.source} is not trusted; see it and allow it: aof trust"
