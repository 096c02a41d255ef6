"""The verbs about protocol messages, sessions and handoffs, as data."""

from __future__ import annotations

from aof.adapters.cli.spec.grammar import Argument, Option, Verb

VERBS: tuple[Verb, ...] = (
    Verb(
        "send",
        "deliver AOF/1 messages",
        "messages:send",
        arguments=(
            Argument(
                "FILE",
                "one message a line, a JSON document or several of them; - or nothing: standard input",
                required=False,
            ),
        ),
        options=(Option("--run", "the run that speaks (else $AOF_RUN_ID)", metavar="R"),),
        example="aof send report.json",
    ),
    Verb(
        "session-end",
        "carry out what runs have reported",
        "messages:session_end",
        options=(
            Option("--agent", "only the runs of this agent", metavar="A"),
            Option("--run", "this run has ended; without a report it has failed", metavar="R"),
        ),
        example="aof session-end --agent swe-backend",
    ),
    Verb(
        "handoff",
        "list handoffs, or show one",
        "messages:handoff",
        arguments=(
            Argument("list|show", "what to do", target="action"),
            Argument("HANDOFF", "the handoff to show", required=False, target="handoff_id"),
        ),
        options=(
            Option("--task", "only of this task, as child or as parent", metavar="ID"),
            Option("--from", "only from this agent", metavar="A", target="from_agent"),
            Option("--to", "only to this agent", metavar="A", target="to_agent"),
        ),
        example="aof handoff list --to swe-qa",
    ),
)
