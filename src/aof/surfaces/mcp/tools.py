"""The operations as MCP tools: how they are listed, called and answered.

`aof_help` finds the tool for a topic, a word or a guessed name; an unknown tool is answered with what to call instead.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache
from typing import Any, Final

import msgspec
from mcp_types import CallToolResult, TextContent, Tool, ToolAnnotations

from aof.api.async_bridge import Gone, perform_async
from aof.api.call import (
    HELP,
    Caller,
    HintReader,
    Told,
    error_payload,
    offered_call,
    parameters,
    perform,
    warning,
    wire_names,
)
from aof.api.catalogue import (
    BY_NAME,
    BY_TOOL,
    OPERATIONS,
    Operation,
    Params,
    example_arguments,
    input_schema,
    listed_in,
    needed_arguments,
    output_schema,
    shown_fields,
)
from aof.errors import AofError, Call, InvalidInput
from aof.kernel.faults import record
from aof.kernel.findings import similar, suggestion
from aof.messages.service import SentMessages
from aof.surfaces.mcp.sessions import Hub, Session

SECRETS = "aof/runSecrets"
WARNING = "aof/warning"
_SECRET_FIELD = "secret"  # noqa: S105 - the field of a result that no model may read
# What differs from the defaults of the protocol, by which a tool may destroy things.
_ANNOTATIONS = {
    "read": ToolAnnotations(read_only_hint=True),
    "append": ToolAnnotations(destructive_hint=False),
    "write": ToolAnnotations(destructive_hint=False),
    "destructive": None,
}


def tools(tiers: tuple[str, ...]) -> list[Tool]:
    """The tools of some tiers. What they answer is not described: it would cost a model more than all the rest."""
    return [
        Tool(
            name=operation.tool,
            description=operation.help,
            input_schema=input_schema(operation, tool=True),
            annotations=_ANNOTATIONS[operation.effect],
        )
        for operation in listed_in(tiers)
    ]


async def call(
    hub: Hub,
    operation: Operation,
    given: dict[str, Any],
    caller: Caller,
    session: Session | None,
    *,
    gone: Gone | None = None,
) -> tuple[Any, list[str], str]:
    """Perform the operation; raises AofError. With the result come secrets that no session keeps, and a warning."""

    def work(params: Params) -> tuple[Any, list[str], str]:
        speaker = session.speaker(operation, params, caller) if session is not None else caller
        whose, named = operation.tool_caller, isinstance(params.actor, str)
        if whose is not None and getattr(params, whose) is msgspec.UNSET and (named or not speaker.default):
            params = msgspec.structs.replace(params, **{whose: params.actor if named else speaker.actor})
        if session is None:
            result, secrets = _without_secrets(perform(hub.fabric, operation, params, speaker))
        else:
            result, kept = _without_secrets(perform(hub.fabric, operation, params, speaker, session.run_of))
            session.note(operation, result, kept)
            secrets = []
        return result, secrets, warning(hub.fabric) if operation.effect == "read" else ""

    return await perform_async(hub.follower, parameters(operation, given, tool=True), work, gone)


def _without_secrets(result: Any) -> tuple[Any, list[str]]:
    """A result without the secrets of the runs that it has begun, and those secrets."""
    if isinstance(result, SentMessages):
        rows = [{name: value for name, value in row.items() if name != _SECRET_FIELD} for row in result.results]
        return SentMessages(results=rows), [row[_SECRET_FIELD] for row in result.results if _SECRET_FIELD in row]
    secret = getattr(result, _SECRET_FIELD, None)
    if not isinstance(secret, str):
        return result, []
    return msgspec.structs.replace(result, secret=msgspec.UNSET), [secret]


def tool_result(result: Any, secrets: Sequence[str] = (), warning_text: str = "") -> CallToolResult:
    """A result: structured, and the same as text for clients that know only that.

    Secrets are for the client's program, which sends them along, and not for the model that it works for. A warning
    stands beside the result, which has to fit its schema.
    """
    data = msgspec.to_builtins(result)
    text = msgspec.json.encode(result).decode()
    answer = CallToolResult(content=[TextContent(text=text)], structured_content=data)
    beside = meta(secrets, warning_text)
    return answer.model_copy(update={"meta": beside}) if beside else answer


def meta(secrets: Sequence[str], warning_text: str) -> dict[str, Any]:
    """What stands beside a result."""
    return ({SECRETS: list(secrets)} if secrets else {}) | ({WARNING: warning_text} if warning_text else {})


def refusal(error: AofError, reader: HintReader) -> CallToolResult:
    """A refused call."""
    return _failure(error_payload(error, spell, reader))


def fault(operation: Operation, error: Exception) -> CallToolResult:
    """A fault of ours, without a word about our insides; the server's log has more under the reference."""
    reference = record(operation.tool, error)
    message = f"{operation.tool} failed (reference {reference})"
    hint = "try again; if it stays, the server's log has more under this reference"
    details = {"reference": reference}
    return _failure(Told(code="internal", kind="internal", message=message, hint=hint, details=details))


def _failure(error: Told) -> CallToolResult:
    """An error as text only: clients hold structured content against the schema of success."""
    text = msgspec.json.encode({"error": error}).decode()
    return CallToolResult(content=[TextContent(text=text)], is_error=True)


def spell(operation: Operation, arguments: dict[str, Any]) -> str:
    """A call as a client of this surface makes it."""
    return f"{operation.tool}({msgspec.json.encode(arguments).decode()})"


HELP_TOOL: Final = Tool(
    name=HELP,
    description="Finds tools, also unlisted ones, which can be called too; of one tool the parameters and an example.",
    input_schema={
        "type": "object",
        "properties": {"topic": {"type": "string", "description": "topic, tool or word"}},
    },
    annotations=ToolAnnotations(read_only_hint=True),
)
_PARAMETERS: Final = frozenset({"topic", "actor"})  # every tool takes an actor; what exists is the same for all
_LONGEST: Final = 80  # characters of a name that are looked at
_PREFIXES: Final = ("mcp__aof__", "aof_", "tasks_", "task_")
_GUESSES: Final = {
    "create": ("create_subtask",),
    "claim": ("begin", "pick", "pickup", "take_next", "claim_next"),
    "complete": ("submit", "resolve", "mark_done", "mark_complete", "end"),
    "update": ("note", "add_note", "move", "set_status", "transition", "update_status"),
    "assign": ("reassign",),
    "edit": ("set_priority", "tag"),
    "cancel": ("delete", "remove", "abort"),
    "show": ("describe", "details", "info", "read"),
    "list": ("tasks", "all"),
    "search": ("query",),
    "status": ("stats", "summary", "board"),
    "comment": ("add_comment", "reply"),
    "progress": ("report", "report_progress"),
    "heartbeat": ("ping", "renew"),
    "ask": ("ask_human", "ask_person", "ask_question", "ask_user"),
    "dep_add": ("add_dependency", "depend", "depends_on", "dependency_add"),
    "dep_remove": ("remove_dependency", "dependency_remove"),
    "handoff_new": ("hand_over", "transfer", "escalate", "handoff", "handoff_create", "handoff_delegate"),
    "mail_send": ("mail", "message", "send_mail", "send_message", "notify"),
    "release": ("give_back", "drop"),
    "fail": ("give_up", "failed"),
}
"""Names that models try, by the operation that they mean; the aliases of the command line count as well."""
_SUBJECTS: Final[dict[str, tuple[tuple[str, dict[str, Any]], ...]]] = {
    "delegate delegation delegating subtask child children parent part hand": (
        ("create", {"parent_id": "001", "agent": "bob"}),
        ("release", {"wait_for_children": True}),
        ("show", {}),
        ("handoff_new", {"type": "delegation", "to": ["bob"], "reason": "needs a test"}),
    ),
    "question": (("ask", {"text": "Which region?", "wait": 60}), ("answer", {})),
    "wait waiting": (
        ("release", {"wait_for_children": True}),
        ("ask", {"question": "Q1", "wait": 60}),
        ("claim", {"wait": 60}),
    ),
    "rework reviewer sent back feedback verdict": (
        ("complete", {"outcome": "needs_review", "blockers": ["no test for expiry"]}),
        ("reject", {}),
        ("reopen", {}),
    ),
    "lease epoch expire": (("claim", {}), ("heartbeat", {}), ("release", {}), ("recover", {})),
    "gate hop": (("workflow_show", {"name": "001"}), ("complete", {"caller_role": "reviewer"})),
    "result summary outcome": (("complete", {"summary": "12 tests passing"}), ("show", {})),
    "person human maintainer": (("ask", {"text": "Which region?"}), ("inbox", {})),
    "artifact file deliverable": (("complete", {"deliverables": ["report.md"]}), ("context_artifact", {})),
    "dependency prerequisite blocker": (("dep_add", {}), ("dep_remove", {})),
    "assignee reserve": (("assign", {"agent": "bob"}),),
    "budget limit": (("preflight", {}),),
    "due deadline overdue": (("edit", {"due": "+3d"}), ("inbox", {"kind": ["overdue"]})),
}
"""Words that agents search for and that name no tool, with the calls that help, the simplest first."""
_EMPTY_WORDS: Final = frozenset({
    "a", "an", "and", "aof", "are", "can", "do", "for", "how", "i", "in", "is", "it", "my", "of", "on", "or", "task",
    "tasks", "the", "to", "tool", "tools", "with",
})  # fmt: skip
_ENDINGS: Final = ("ations", "ation", "ions", "ion", "ing", "ies", "ed", "es", "s", "e", "y")
_SHORTEST_STEM: Final = 3
_FOUND: Final = 6  # tools that a search names


def help_answer(given: dict[str, Any], reader: HintReader) -> CallToolResult:
    """The answer to a call of `aof_help`: the topics, or the tools that a topic, a name or some words mean.

    Raises InvalidInput.
    """
    topic = given.get("topic", "")
    if unknown := sorted(given.keys() - _PARAMETERS):
        raise InvalidInput(f"there is no parameter {unknown[0][:_LONGEST]!r}", f'call {HELP}({{"topic":"…"}})')
    if topic is not None and not isinstance(topic, str):
        raise InvalidInput("'topic' must be a text", f'call {HELP}({{"topic":"mail"}})', parameter="topic")
    return CallToolResult(content=[TextContent(text=_help_text((topic or "").strip()[:_LONGEST], reader))])


def _help_text(topic: str, reader: HintReader) -> str:
    topics = _topics()
    if not topic:
        lines = [f'Give a topic, a tool or a word, as {HELP}({{"topic":"work"}}). All these tools can be called.']
        for name, operations in topics.items():
            if allowed := [one.tool for one in operations if reader.may(one)]:
                lines.append(f"{name}: {' '.join(allowed)}")
        return "\n".join(lines)
    if topic.lower() in topics:
        return _describe_calls([Call(one.name, example_arguments(one)) for one in topics[topic.lower()]], reader)
    operation = BY_TOOL.get(topic) or _by_guess().get(_plain(topic))
    if operation is not None:
        return _describe_tool(operation, reader)
    if found := _search(topic):
        return _describe_calls(found, reader)
    hint = suggestion(topic, (*topics, *BY_TOOL), f"the topics are: {', '.join(topics)}")
    raise InvalidInput(f"there is no topic or tool {topic!r}", hint, parameter="topic")


def _describe_calls(calls: Sequence[Call], reader: HintReader) -> str:
    """A line for each call; those that the reader's token does not allow come last."""
    allowed, denied = [], []
    for call in calls:
        operation = BY_NAME[call.operation]
        if reader.may(operation):
            allowed.append(f"{_spelled(call)}: {operation.help}")
        else:
            denied.append(f"{operation.tool}: takes a token with the scope {operation.scope}")
    return "\n".join([*allowed, *denied])


def _describe_tool(operation: Operation, reader: HintReader) -> str:
    if not reader.may(operation):
        return f"{operation.tool}: {operation.help}\nIt takes a token with the scope {operation.scope}."
    schema = input_schema(operation, tool=True, whole=True)
    lines = [
        f"{operation.tool}: {operation.help}",
        f"parameters: {msgspec.json.encode(schema['properties']).decode()}",
        f"required: {', '.join(schema.get('required', ())) or 'none'}",
        f"example: {_spelled(Call(operation.name, example_arguments(operation)))}",
    ]
    if answers := output_schema(operation).get("properties"):
        lines.append(f"answers: {', '.join(name for name in answers if name != 'secret')}")
    if not reader.knows(operation):
        command = f"; on the command line: {operation.cli.example}" if operation.cli is not None else ""
        lines.append(f"Not listed here, but it can be called{command}")
    return "\n".join(lines)


def tool_instead(name: str, given: dict[str, Any], reader: HintReader) -> str:
    """What to call instead of an unknown tool; with those of the given arguments that the right tool takes, too."""
    known: dict[str, Any] = {}
    operation = _by_guess().get(_plain(name))
    if operation is None and (calls := _by_subject().get(_plain(name))):
        operation, known = BY_NAME[calls[0].operation], calls[0].arguments
    if operation is None:
        close = similar(name[:_LONGEST], (*BY_TOOL, HELP))
        return f"{f'did you mean {close}? ' if close else ''}{HELP}({{}}) lists all tools by topic"
    fields = {field.encode_name: field.name for field in shown_fields(operation)}
    kept = {
        fields[key]: value
        for key, value in given.items()
        if key in fields
        and (isinstance(value, bool | int | float) or (isinstance(value, str) and len(value) <= _LONGEST))
    }
    call = offered_call(Call(operation.name, needed_arguments(operation) | known | kept), reader)
    if call is not None:
        return f"use {_spelled(call)}"
    if not reader.may(operation):
        return f"use {operation.tool}, which takes a token with the scope {operation.scope}"
    return f'use {operation.tool}: {HELP}({{"topic":"{operation.tool}"}}) shows how'


def _spelled(call: Call) -> str:
    return spell(BY_NAME[call.operation], wire_names(call))


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
    """The operations by their names, aliases, and the names that models try."""
    found: dict[str, Operation] = {}
    for operation in OPERATIONS:
        for guess in _GUESSES.get(operation.name, ()):
            found.setdefault(guess, operation)
    for operation in OPERATIONS:
        for alias in operation.cli.aliases if operation.cli is not None else ():
            found[alias] = operation
    for operation in OPERATIONS:
        found[_plain(operation.tool)] = operation
        found[operation.name] = operation
    return found


@cache
def _by_subject() -> dict[str, tuple[Call, ...]]:
    """The calls of each subject, by each of its words."""
    return {
        word: tuple(Call(name, given) for name, given in calls)
        for words, calls in _SUBJECTS.items()
        for word in words.split()
    }


def _search(text: str) -> list[Call]:
    """The calls of the subjects that the words name, then the tools whose names or help have all of the words.

    Where there is none of either, the tools that have some of them in their names, those with the most first.
    """
    stems = [_stem(word) for word in _words(text) if word not in _EMPTY_WORDS]
    subjects = {_stem(word): calls for word, calls in _by_subject().items()}
    found: dict[str, Call] = {}
    for call in (call for stem in stems for call in subjects.get(stem, ())):
        given = needed_arguments(BY_NAME[call.operation]) | call.arguments
        found.setdefault(call.operation, Call(call.operation, given))
    by_names, by_help = _words_of_operations()
    matches = [one for one, words in (*by_names, *by_help) if stems and all(_has(words, stem) for stem in stems)]
    if not found and not matches:
        counts = {one.name: sum(_has(words, stem) for stem in stems) for one, words in by_names}
        matches = sorted((one for one, _ in by_names if counts[one.name]), key=lambda one: -counts[one.name])
    for operation in matches:
        found.setdefault(operation.name, Call(operation.name, example_arguments(operation)))
    return list(found.values())[:_FOUND]


def _has(words: tuple[str, ...], stem: str) -> bool:
    return any(word.startswith(stem) for word in words)


@cache
def _words_of_operations() -> tuple[tuple[tuple[Operation, tuple[str, ...]], ...], ...]:
    """The words of each operation's names, and the same with those of its help."""
    names = tuple((one, _words(f"{one.tool} {one.name} {one.verb}")) for one in OPERATIONS)
    return names, tuple((one, (*words, *_words(one.help))) for one, words in names)


def _words(text: str) -> tuple[str, ...]:
    return tuple(re.findall(r"[a-z0-9]+", text.lower()))


def _stem(word: str) -> str:
    """The word without an ending, so that `questions` finds `question` and `delegation` finds `delegate`."""
    ending = next((one for one in _ENDINGS if word.endswith(one)), "")
    stem = word.removesuffix(ending)
    return stem if len(stem) >= _SHORTEST_STEM else word


def _plain(name: str) -> str:
    """The name in lower case, without what says only that it is a tool, of this server, for tasks."""
    name = name[:_LONGEST].lower().replace("-", "_").replace(".", "_")
    for prefix in _PREFIXES:
        name = name.removeprefix(prefix)
    return name.removesuffix("_tasks").removesuffix("_task")
