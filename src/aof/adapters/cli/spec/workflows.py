"""The verb about workflows, and the options that verbs on gated tasks share."""

from __future__ import annotations

from aof.adapters.cli.spec.grammar import Argument, Option, Verb

HOP = Option("--hop", "in a workflow: the hop that is meant", metavar="H")
ROLE = Option("--role", "in a workflow: the role in which the hop is ended", metavar="R", target="caller_role")
VERBS: tuple[Verb, ...] = (
    Verb(
        "workflow",
        "check or show workflows, or where a task stands in its own",
        "workflow:workflow",
        arguments=(
            Argument("check|show|attach", "what to do", target="action"),
            Argument("NAME", "a workflow or a task; none: all workflows", required=False, target="name"),
        ),
        options=(Option("--format", "with show: text or mermaid", metavar="F"),),
        example="aof workflow show 001 --format mermaid",
    ),
)
