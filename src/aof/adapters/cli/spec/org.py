"""The verb about the org chart."""

from __future__ import annotations

from aof.adapters.cli.spec.grammar import MANY, Argument, Option, Verb

VERBS: tuple[Verb, ...] = (
    Verb(
        "org",
        "show or check the org chart, or see who would get a task",
        "org:org",
        arguments=(
            Argument("show|check|route", "what to do", target="action"),
            Argument("ID", "with route: the task that is to be routed", required=False, target="task_id"),
        ),
        options=(
            Option("--agent", "with route: for this agent", metavar="A"),
            Option("--role", "with route: for this role", metavar="R"),
            Option("--team", "with route: for this team", metavar="T"),
            Option("--tag", "with route: with this tag; may be repeated", metavar="T", kind=MANY, target="tags"),
            Option(
                "--capability",
                "with route: for who can do this, as NAME or NAME:0.8 for a least proficiency; may be repeated",
                metavar="C",
                kind=MANY,
                target="capabilities",
            ),
            Option("--risk", "with route: of this risk: low, medium or high", metavar="R"),
            Option("--level", "with route: for this autonomy level", metavar="N", type="int", target="autonomy_level"),
        ),
        example="aof org route --tag api --capability python:0.8",
    ),
)
