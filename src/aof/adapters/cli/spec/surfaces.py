"""Verbs about who connects and how: agents, servers and tokens."""

from __future__ import annotations

from aof.adapters.cli.spec.grammar import Argument, Option, Verb

VERBS: tuple[Verb, ...] = (
    Verb(
        "mcp",
        "serve agents over the Model Context Protocol, on standard input and output",
        "surfaces:mcp",
        options=(Option("--tools", "which tools to list: core, handoff, all; separated by commas", metavar="T"),),
        example="aof mcp --tools core,handoff",
    ),
    Verb(
        "token",
        "let somebody call over HTTP: make, list and revoke tokens",
        "surfaces:token",
        arguments=(
            Argument("create|list|revoke", "what to do", target="action"),
            Argument("WHICH", "to revoke: the token's ID; to create: whose token it is, as --for", required=False),
        ),
        options=(
            Option("--for", "whose token it is (else the actor)", metavar="NAME", target="holder"),
            Option("--scope", "what it allows: read, work (the default), lead or admin", metavar="S"),
            Option("--expires", "when it ends: a duration such as 30d, or a moment; else never", metavar="WHEN"),
            Option("--role", "reader, agent (acts as itself only) or admin (may act for others)", metavar="R"),
        ),
        help="work lets an agent create, claim and report; lead also approve, cancel and pause; admin also repair, and "
        "act for others. Revoking a token ends its sessions and streams.",
        example="aof token create swe-backend",
    ),
    Verb(
        "trust",
        "see the commands of this data directory, and allow AOF to start them on this machine",
        "trust:trust",
        arguments=(Argument("ACTION", "list: only show them; revoke: allow none any more", required=False),),
        options=(Option("--yes", "allow them without asking"),),
        help="Agents and notifications run commands that the data directory names, and a data directory can come from "
        "anybody. Each command is allowed with its arguments, variables and folder; what a script contains is not "
        "looked at. A command that changes has to be allowed again.",
        example="aof trust",
    ),
    Verb(
        "prime",
        "what an agent needs to know when its session begins",
        "surfaces:prime",
        options=(Option("--agent", "whose session begins (else the actor)", metavar="A"),),
        example="aof prime --agent swe-backend",
    ),
)
