"""The reference of all operations as Markdown, from the catalogue.

`python -m aof.api.reference > docs/reference/operations.md` writes it; a test compares.
Must not know any single operation.
"""

from __future__ import annotations

import sys
from typing import Any

from aof.api.catalogue import OPERATIONS, Operation, input_schema, output_schema, shown_fields

_HEAD = """# Operations

<!-- Written by `python -m aof.api.reference`; change the operations of the subjects instead. -->

Everything that can be asked of AOF, the same on every surface: as a method of the fabric in Python, as a verb of the
command line, as an MCP tool and over HTTP. Python writes the names of parameters with underscores (`task_id`); the
wire has them as they stand here. A task is named by its ID or by any part of it that begins at a dash and is unique.
"""
_EFFECTS = {
    "read": "reads only",
    "append": "adds, and changes nothing that is there",
    "write": "changes",
    "destructive": "ends work",
}


def reference() -> str:
    """The whole page."""
    parts = [_HEAD]
    for operation in sorted(OPERATIONS, key=lambda one: one.name):
        parts += _one(operation)
    return "\n".join(parts).rstrip() + "\n"


def _one(operation: Operation) -> list[str]:
    method = "GET" if operation.effect == "read" else "POST"
    schema = input_schema(operation)
    shown = {field.encode_name for field in shown_fields(operation)}
    needed = {*schema.get("required", ()), *operation.tool_requires}
    answer = ", ".join(f"`{name}`" for name in output_schema(operation).get("properties", {})) or "the whole object"
    tools = f"worker, {operation.tier}" if operation.worker else operation.tier
    spelled = f"`{operation.tool}` (tools: {tools}) · `aof {operation.verb}`"
    lines = [
        f"## {operation.name}\n",
        f"{operation.help}\n",
        f"{spelled} · `{method} /api/v1/{operation.name}` · {_EFFECTS[operation.effect]} · {_scopes(operation)}\n",
        "| parameter | |",
        "| --- | --- |",
    ]
    for name, kind in schema["properties"].items():
        marks = [_kind(kind)]
        if name in needed:
            marks.append("required" if name in schema.get("required", ()) else "required by the tool")
        if name not in shown:
            marks.append("not listed by the tool")
        if "default" in kind:
            marks.append(f"default `{kind['default']}`")
        text = f"; {kind['description']}" if "description" in kind else ""
        lines.append(f"| `{name}` | {', '.join(marks)}{text} |")
    return [*lines, "", f"Answers {answer}.\n"]


def _scopes(operation: Operation) -> str:
    """What a token must allow."""
    more = [f", `{scope}` with `{name}` {str(value).lower()}" for name, value, scope in operation.needs_more]
    return f"token: `{operation.scope}`{''.join(more)}"


def _kind(schema: dict[str, Any]) -> str:
    if "enum" in schema:
        return " or ".join(f"`{one}`" for one in schema["enum"])
    if schema.get("type") == "array":
        return f"list of {_kind(schema.get('items', {}))}"
    if "anyOf" in schema:
        return " or ".join(map(_kind, schema["anyOf"]))
    return str(schema.get("type", "anything"))


if __name__ == "__main__":
    sys.stdout.write(reference())
