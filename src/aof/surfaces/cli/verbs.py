"""Every verb of the command line: those of operations, and those about this machine, its files and its screen.

A verb of an operation comes from its function; see `generate`. One that is not an operation is a row here and a
function below `commands`. Must not know what a verb does.
"""

from __future__ import annotations

from aof.surfaces.cli import operations
from aof.surfaces.cli.grammar import MANY, Argument, Option, Verb

OWN: tuple[Verb, ...] = (
    Verb(
        "init",
        "create a data directory, and connect the project's agents",
        "agents:init",
        section="data",
        order=10,
        options=(
            Option("--dry-run", "show what would be created and written, and stop"),
            Option(
                "--agent",
                "connect this agent without asking: claude (or claude-code), codex, cursor, gemini, opencode, copilot, "
                "vscode, qwen, amp, windsurf, zed, cline, kiro, goose, jetbrains (or junie), generic (any that reads "
                "AGENTS.md); may be repeated",
                metavar="A",
                kind=MANY,
                target="agents",
            ),
            Option("--http", "let them connect to this address instead of starting 'aof mcp'", metavar="URL"),
            Option("--remove", "remove what was written for agents (for all, without --agent); the data stays"),
            Option("--solo", "you work alone: who ran a task may approve it (selfReview = true in aof.toml)"),
            Option("--shared", "who may read and write the files: owner (the default) or group", metavar="WHO"),
        ),
        example="aof init --agent claude",
    ),
    Verb(
        "mcp",
        "serve agents over the Model Context Protocol, on standard input and output",
        "agents:mcp",
        section="serve",
        order=20,
        options=(
            Option(
                "--tools", "which tools to list: core, worker, handoff, mail, all; separated by commas", metavar="T"
            ),
            Option("--keep", "let claims outlive the session: for clients that start a server for each call"),
        ),
        example="aof mcp --tools core,handoff",
    ),
    Verb(
        "admin token",
        "create, list and revoke tokens for calls over HTTP",
        "agents:token",
        section="data",
        order=130,
        former=("token",),
        arguments=(
            Argument("create|list|revoke", "what to do", target="action"),
            Argument("WHICH", "to revoke: the token's ID; to create: whose token it is, as --for", required=False),
        ),
        options=(
            Option("--for", "whose token it is (else the actor)", metavar="NAME", target="holder"),
            Option("--scope", "what it allows: read, work (the default), lead or admin", metavar="S"),
            Option("--expires", "when it expires: a duration such as 30d, or a time (default: never)", metavar="WHEN"),
            Option("--role", "reader, agent (acts as itself only) or admin (may act for others)", metavar="R"),
            Option("--tools", "which tools MCP lists for it (default: what the server lists)", metavar="T"),
        ),
        help="work lets an agent create, claim and report; lead also approve, cancel and pause; admin also repair, and "
        "act for others. Revoking a token ends its sessions and streams.",
        example="aof admin token create swe-backend",
    ),
    Verb(
        "trust",
        "show the commands of this data directory, and allow AOF to run them on this machine",
        "service:trust",
        section="serve",
        order=10,
        arguments=(Argument("ACTION", "list: only show them; revoke: withdraw all permissions", required=False),),
        options=(Option("--yes", "allow them without asking"),),
        help="Agents and notifications run commands that the data directory names, channels send news out, and a data "
        "directory can come from anybody. Permission covers a command's arguments, variables and folder, but not the "
        "contents of a script. What changes needs permission again.",
        example="aof trust",
    ),
    Verb(
        "up",
        "run the service: start agents, renew leases, recover lost work",
        "service:up",
        section="serve",
        order=30,
        options=(
            Option("--once", "stop when nothing is left to do"),
            Option("--log-json", "one JSON object per line instead of text"),
            Option("--http", "also serve HTTP and MCP on this port; 0 picks a free one", metavar="PORT", type="int"),
            Option("--host", "the address for --http (default: loopback)", metavar="H"),
            Option("--socket", "serve HTTP and MCP on a Unix socket that only you can open", metavar="PATH"),
            Option("--tls-cert", "serve --http with TLS: the certificate, as a PEM file", metavar="FILE"),
            Option("--tls-key", "the key of --tls-cert, as a PEM file", metavar="FILE"),
            Option("--insecure", "serve other machines without TLS: tokens cross the network as plain text"),
            Option(
                "--tools",
                "which tools MCP lists: core (the default), worker, handoff, mail, all; a token may name its own",
                metavar="T",
            ),
        ),
        help="The first SIGTERM or SIGINT lets workers finish; a second one ends them. Clients that connect "
        "over HTTP need a token; see 'aof admin token --help'. A --host that other machines can reach needs TLS, or "
        "--insecure.",
        example="aof up",
    ),
    Verb(
        "admin notify",
        "see how the notification channels do, test one, or send what waits for them",
        "service:notify",
        section="data",
        order=140,
        former=("notify",),
        arguments=(
            Argument("ACTION", "list (the default), test: send a message to one, send: all that waits", required=False),
            Argument("CHANNEL", "the channel to test", required=False),
        ),
        help="Channels are declared under [[notify.channels]] in aof.toml and need 'aof trust'. 'aof up' serves them; "
        "where no service runs, 'aof admin notify send' does so once.",
        example="aof admin notify test team",
    ),
    Verb(
        "board",
        "columns by status, live",
        "views:board",
        section="see",
        order=70,
        options=(
            Option("--once", "draw once and exit"),
            Option("--web", "open the live page in the browser; starts the service if none serves it"),
            Option("--port", "serve the page on this port (default: 8420, or a free one)", metavar="PORT", type="int"),
            Option("--scope", "what the page may do: read, work, lead or admin (the default)", metavar="S"),
            Option("--no-open", "only print the link"),
        ),
        help="With --web, the link that is printed lets you in once, within a minute. The page acts in your name; 'aof "
        "admin token list' shows it, and 'aof admin token revoke' ends it.",
        example="aof board --web",
    ),
    Verb(
        "watch",
        "who works on what, and what happens, live",
        "views:watch",
        section="see",
        order=80,
        options=(Option("--once", "draw once and exit"),),
        example="aof watch",
    ),
    Verb(
        "admin",
        "for operators",
        section="data",
        order=80,
        example="aof admin verify",
    ),
    Verb(
        "insights",
        "runs over time, and how work flows",
        section="see",
        order=85,
        example="aof insights flow --days 14",
    ),
    Verb(
        "admin reindex",
        "rebuild the index",
        "data:reindex",
        section="data",
        order=115,
        former=("reindex",),
        example="aof admin reindex",
    ),
    Verb(
        "admin bench",
        "measure AOF on this machine, in a folder of its own",
        "service:bench",
        section="data",
        order=150,
        former=("bench",),
        options=(
            Option("--quick", "takes a few seconds; its figures are too rough to quote"),
            Option("--sizes", "number of tasks per data directory, such as 1000,10000; 0 for none", metavar="N,N"),
            Option("--dir", "measure below this folder, on its disk (else a temporary one)", metavar="DIR"),
        ),
        example="aof admin bench --sizes 1000",
    ),
    Verb(
        "completion",
        "print a script that completes verbs, options and IDs in your shell",
        "data:completion",
        section="data",
        order=90,
        arguments=(Argument("SHELL", "bash, zsh or fish"),),
        example="aof completion bash > ~/.local/share/bash-completion/completions/aof",
    ),
    Verb("version", "print the version of AOF", "data:version", section="data", order=100, example="aof version"),
    Verb(
        "help",
        "show help on a verb",
        "data:help_on",
        section="data",
        order=110,
        arguments=(
            Argument("VERB", "the verb", required=False),
            Argument("ACTION", "one action of a verb that has several", required=False),
        ),
        options=(Option("--all", "every verb, and the options that all have"),),
        example="aof help claim",
    ),
)
VERBS: tuple[Verb, ...] = (*operations.VERBS, *OWN)


def verb_of(words: str) -> Verb:
    """The verb of a row's words: they are its name, or its name and an action."""
    return next(one for named in (words, words.split(maxsplit=1)[0]) for one in VERBS if one.name == named)
