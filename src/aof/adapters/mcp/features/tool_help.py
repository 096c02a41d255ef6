"""`aof_help`: which tools there are, by topic, and how each is called. And which tool a name that there is not meant.

Everything is made from the catalogue, so every tool can be looked up, also one that a session is not told about. Must
not know sessions.
"""

from __future__ import annotations

from functools import cache
from typing import Any, Final

import msgspec
from mcp_types import CallToolResult, TextContent, Tool, ToolAnnotations

from aof.adapters.mcp.tools import spell
from aof.app.operations.catalogue import BY_NAME, BY_TOOL, OPERATIONS, Operation
from aof.app.operations.error_payload import HELP, HintReader, offered, wire_names
from aof.app.operations.schemas import example, input_schema, needed, output_schema, shown_fields
from aof.core.errors.base import Call, InvalidInput
from aof.core.validation.findings import similar, suggestion

TOOL: Final = Tool(
    name=HELP,
    description="All tools by topic, also unlisted ones; of one tool the parameters and an example.",
    input_schema={
        "type": "object",
        "properties": {"topic": {"type": "string", "description": "topic or tool"}},
    },
    annotations=ToolAnnotations(read_only_hint=True),
)
_TAKEN: Final = frozenset({"topic", "actor"})  # every tool takes an actor; what exists is the same for all
_LONGEST: Final = 80  # characters of a name that are looked at
_NOISE: Final = ("mcp__aof__", "aof_", "tasks_", "task_")
_GUESSES: Final = {
    "create": ("create_subtask", "subtask"),
    "claim": ("begin", "pick", "pickup", "take_next", "claim_next"),
    "complete": ("submit", "resolve", "mark_done", "mark_complete", "end"),
    "update": ("note", "add_note", "move", "set_status", "transition", "update_status"),
    "edit": ("assign", "reassign", "set_priority", "tag"),
    "cancel": ("delete", "remove", "abort"),
    "show": ("describe", "details", "info", "read"),
    "list": ("tasks", "all"),
    "search": ("query",),
    "status": ("stats", "summary", "board"),
    "comment": ("add_comment", "reply"),
    "progress": ("report", "report_progress"),
    "heartbeat": ("ping", "renew"),
    "ask": ("question", "ask_human", "ask_person", "ask_question", "ask_user"),
    "dep_add": ("add_dependency", "depend", "depends_on", "dependency_add"),
    "dep_remove": ("remove_dependency", "dependency_remove"),
    "handoff_new": ("delegate", "handoff", "hand_over", "transfer", "escalate"),
    "mail_send": ("mail", "message", "send_mail", "send_message", "notify"),
    "release": ("give_back", "drop"),
    "fail": ("give_up", "failed"),
}
"""Names that models try, by the operation that does what they mean; the aliases of the command line come on top."""


def answer(given: dict[str, Any], reader: HintReader) -> CallToolResult:
    """The answer to a call of `aof_help`; raises InvalidInput."""
    topic = given.get("topic", "")
    if unknown := sorted(given.keys() - _TAKEN):
        raise InvalidInput(f"there is no parameter {unknown[0][:_LONGEST]!r}", f'call {HELP}({{"topic":"…"}})')
    if topic is not None and not isinstance(topic, str):
        raise InvalidInput("'topic' must be a text", f'call {HELP}({{"topic":"mail"}})', parameter="topic")
    return CallToolResult(content=[TextContent(text=_text((topic or "").strip()[:_LONGEST], reader))])


def instead(name: str, given: dict[str, Any], reader: HintReader) -> str:
    """What to call instead of a tool that there is not; with what was given, where the right tool takes it, too."""
    operation = _meant(name)
    if operation is None:
        close = similar(name[:_LONGEST], (*BY_TOOL, HELP))
        return f"{f'did you mean {close}? ' if close else ''}{HELP}({{}}) lists all tools by topic"
    fields = {field.encode_name: field.name for field in shown_fields(operation)}
    kept = {fields[key]: one for key, one in given.items() if key in fields and _is_short(one)}
    call = offered(Call(operation.name, needed(operation) | kept), reader)
    return _way_to(operation, reader) if call is None else f"use {_spelled(call)}"


def _text(topic: str, reader: HintReader) -> str:
    topics = _topics()
    if not topic:
        head = f'Give a topic or a tool, as {HELP}({{"topic":"work"}}).'
        return "\n".join([head, *(line for name in topics if (line := _names(name, reader)))])
    if topic.lower() in topics:
        return _about_topic(topic.lower(), reader)
    operation = BY_TOOL.get(topic) or _meant(topic)
    if operation is None:
        hint = suggestion(topic, (*topics, *BY_TOOL), f"the topics are: {', '.join(topics)}")
        raise InvalidInput(f"there is no topic or tool {topic!r}", hint, parameter="topic")
    return _about_tool(operation, reader)


def _names(topic: str, reader: HintReader) -> str:
    """The tools of a topic that the reader may call, on one line."""
    return f"{topic}: {' '.join(named)}" if (named := [one.tool for one in _topics()[topic] if reader.may(one)]) else ""


def _about_topic(topic: str, reader: HintReader) -> str:
    lines = [f"{_example(one)}: {one.help}" for one in _topics()[topic] if reader.may(one)]
    denied = [
        f"{one.tool}: takes a token with the scope {one.scope}" for one in _topics()[topic] if not reader.may(one)
    ]
    return "\n".join([*lines, *denied])


def _about_tool(operation: Operation, reader: HintReader) -> str:
    if not reader.may(operation):
        return f"{operation.tool}: {operation.help}\nIt takes a token with the scope {operation.scope}."
    schema = input_schema(operation, tool=True, whole=True)
    lines = [
        f"{operation.tool}: {operation.help}",
        f"parameters: {msgspec.json.encode(schema['properties']).decode()}",
        f"required: {', '.join(schema.get('required', ())) or 'none'}",
        f"example: {_example(operation)}",
    ]
    if answers := output_schema(operation).get("properties"):
        lines.append(f"answers: {', '.join(name for name in answers if name != 'secret')}")
    if not reader.knows(operation):
        command = f"; on the command line: {operation.cli.example}" if operation.cli is not None else ""
        lines.append(f"Not listed here, but it can be called{command}")
    return "\n".join(lines)


def _example(operation: Operation) -> str:
    return _spelled(Call(operation.name, example(operation)))


def _spelled(call: Call) -> str:
    return spell(BY_NAME[call.operation], wire_names(call))


def _way_to(operation: Operation, reader: HintReader) -> str:
    if not reader.may(operation):
        return f"use {operation.tool}, which takes a token with the scope {operation.scope}"
    return f'use {operation.tool}: {HELP}({{"topic":"{operation.tool}"}}) shows how'


def _is_short(value: object) -> bool:
    return isinstance(value, bool | int | float) or (isinstance(value, str) and len(value) <= _LONGEST)


@cache
def _topics() -> dict[str, tuple[Operation, ...]]:
    """The operations by topic: those that share a verb, else those of a section of the command line's help."""
    found: dict[str, tuple[Operation, ...]] = {}
    for operation in OPERATIONS:
        family = operation.cli.family.verb if operation.cli is not None and operation.cli.family is not None else ""
        section = operation.cli.section if operation.cli is not None else "see"
        name = family if family not in ("", "dep") else section
        found[name] = (*found.get(name, ()), operation)
    return found


@cache
def _by_guess() -> dict[str, Operation]:
    """The operations by everything that they may be called."""
    found: dict[str, Operation] = {}
    for operation in OPERATIONS:
        for guess in _GUESSES.get(operation.name, ()):
            found.setdefault(guess, operation)
    for operation in OPERATIONS:
        for alias in operation.cli.aliases if operation.cli is not None else ():
            found[alias] = operation
    for operation in OPERATIONS:
        found[_core_of(operation.tool)] = operation
        found[operation.name] = operation
    return found


def _meant(name: str) -> Operation | None:
    return _by_guess().get(_core_of(name[:_LONGEST].lower().replace("-", "_").replace(".", "_")))


def _core_of(name: str) -> str:
    """The name without what says only that it is a tool, of this server, for tasks."""
    for noise in _NOISE:
        name = name.removeprefix(noise)
    return name.removesuffix("_tasks").removesuffix("_task")
