"""The verbs of the scheduler and of the service."""

from __future__ import annotations

from aof.adapters.cli.spec.grammar import Option, Verb

VERBS: tuple[Verb, ...] = (
    Verb(
        "tick",
        "do once what is due: recover, promote, give up, alert",
        "service:tick",
        options=(Option("--dry-run", "only show what would be done, and why"),),
        help="Also tells why each other unfinished task is left alone. Agents are started by 'aof up' only.",
        example="aof tick --dry-run",
    ),
    Verb(
        "up",
        "serve: start agents, keep their leases, recover, until a signal comes",
        "service:up",
        options=(
            Option("--once", "stop when nothing is left to do"),
            Option("--log-json", "one JSON object a line instead of text"),
            Option("--http", "serve HTTP and MCP on this port as well; 0 takes a free one", metavar="PORT", type="int"),
            Option("--host", "the address for --http; loopback unless you name another", metavar="H"),
            Option("--socket", "serve HTTP and MCP on a Unix socket that only you can open", metavar="PATH"),
            Option("--tls-cert", "serve --http with TLS: the certificate, as a PEM file", metavar="FILE"),
            Option("--tls-key", "the key of --tls-cert, as a PEM file", metavar="FILE"),
            Option("--insecure", "serve other machines without TLS: tokens cross the network as plain text"),
        ),
        help="The first SIGTERM or SIGINT lets workers end in their own time, a second one does not. Whoever connects "
        "over HTTP needs a token; 'aof help token' says how. A --host that other machines can reach needs TLS, or "
        "--insecure.",
        example="aof up",
    ),
)
