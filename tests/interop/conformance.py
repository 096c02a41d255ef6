"""What the MCP conformance suite wants to find in a server: tools, resources and prompts with names of its own.

They are added to our server in the process that is tested, and nowhere else.
"""

from __future__ import annotations

import json
from contextlib import suppress
from functools import partial
from typing import Any

import anyio
import mcp_types as types
from mcp.server.context import HandlerResult, ServerRequestContext
from mcp.server.lowlevel import Server
from mcp.shared.exceptions import MCPError

from aof.errors import AofError
from aof.surfaces.mcp import long_calls
from aof.surfaces.mcp.http import McpOverHttp
from aof.surfaces.mcp.sessions import Hub
from tests.interop import input_required

Context = ServerRequestContext[Any, Any]
PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5ErkJggg=="
SILENCE = "UklGRiQAAABXQVZFZm10IBAAAAABAAEAQB8AAEAfAAABAAgAZGF0YQAAAAA="
IMAGE = types.ImageContent(data=PIXEL, mime_type="image/png")


class WithFixtures(McpOverHttp):
    """Our endpoint with the suite's fixtures."""

    def server(self, hub: Hub) -> Server[Hub]:
        server = super().server(hub)
        add_fixtures(server, hub)
        return server


class Streamed(WithFixtures):
    """The same for those fixtures that say something before they answer."""

    streamed = True


def _text(text: str) -> types.TextContent:
    return types.TextContent(text=text)


def _embedded(uri: str, text: str, mime_type: str = "text/plain") -> types.EmbeddedResource:
    return types.EmbeddedResource(resource=types.TextResourceContents(uri=uri, mime_type=mime_type, text=text))


async def _plain(ctx: Context, name: str) -> types.CallToolResult:
    mixed = _embedded("test://mixed-content-resource", '{"test":"data","value":123}', "application/json")
    contents: dict[str, list[Any]] = {
        "test_simple_text": [_text("This is a simple text response for testing.")],
        "test_image_content": [IMAGE],
        "test_audio_content": [types.AudioContent(data=SILENCE, mime_type="audio/wav")],
        "test_embedded_resource": [_embedded("test://embedded-resource", "This is an embedded resource content.")],
        "test_multiple_content_types": [_text("Multiple content types test:"), IMAGE, mixed],
    }
    return types.CallToolResult(content=contents[name])


async def _logging(ctx: Context, _name: str) -> types.CallToolResult:
    for said in ("Tool execution started", "Tool processing data", "Tool execution completed"):
        note = types.LoggingMessageNotification(params=types.LoggingMessageNotificationParams(level="info", data=said))
        await ctx.session.send_notification(note, related_request_id=ctx.request_id)
        await anyio.sleep(0.05)
    return types.CallToolResult(content=[_text("logged")])


async def _progress(ctx: Context, _name: str) -> types.CallToolResult:
    for done in (0, 50, 100):
        await ctx.session.report_progress(done, 100)
        await anyio.sleep(0.05)
    return types.CallToolResult(content=[_text("done")])


async def _error(ctx: Context, _name: str) -> types.CallToolResult:
    said = "This tool intentionally returns an error for testing"
    return types.CallToolResult(content=[_text(said)], is_error=True)


async def _sampling(ctx: Context, _name: str) -> types.CallToolResult:
    prompt = (ctx.params or {})["arguments"]["prompt"]
    message = types.SamplingMessage(role="user", content=_text(prompt))
    asked = types.CreateMessageRequest(params=types.CreateMessageRequestParams(messages=[message], max_tokens=100))
    answer = await ctx.session.send_request(asked, types.CreateMessageResult)
    return types.CallToolResult(content=[_text(f"LLM response: {answer.model_dump_json()}")])


_PERSON = {"username": {"type": "string"}, "email": {"type": "string"}}
_DEFAULTS = {
    "name": {"type": "string", "default": "John Doe"},
    "age": {"type": "integer", "default": 30},
    "score": {"type": "number", "default": 95.5},
    "status": {"type": "string", "enum": ["active", "inactive", "pending"], "default": "active"},
    "verified": {"type": "boolean", "default": True},
}
_OPTIONS = ["option1", "option2", "option3"]
_TITLED = [{"const": f"value{number}", "title": f"Option {number}"} for number in (1, 2, 3)]
_ENUMS = {
    "untitledSingle": {"type": "string", "enum": _OPTIONS},
    "titledSingle": {"type": "string", "oneOf": _TITLED},
    "legacyEnum": {"type": "string", "enum": ["opt1", "opt2", "opt3"], "enumNames": ["One", "Two", "Three"]},
    "untitledMulti": {"type": "array", "items": {"type": "string", "enum": _OPTIONS}},
    "titledMulti": {"type": "array", "items": {"anyOf": _TITLED}},
}


async def _elicitation(ctx: Context, name: str) -> types.CallToolResult:
    asked = {"test_elicitation_sep1034_defaults": _DEFAULTS, "test_elicitation_sep1330_enums": _ENUMS}.get(
        name, _PERSON
    )
    schema: dict[str, Any] = {"type": "object", "properties": asked, "required": []}
    answer = await ctx.session.elicit_form("Please tell", schema)
    content = json.dumps(answer.content)
    return types.CallToolResult(content=[_text(f"Elicitation completed: action={answer.action}, content={content}")])


TOOLS = {
    **dict.fromkeys(
        (
            "test_simple_text", "test_image_content", "test_audio_content", "test_embedded_resource",
            "test_multiple_content_types",
        ),
        _plain,
    ),
    "test_tool_with_logging": _logging,
    "test_tool_with_progress": _progress,
    "test_error_handling": _error,
    "test_sampling": _sampling,
    **dict.fromkeys(
        ("test_elicitation", "test_elicitation_sep1034_defaults", "test_elicitation_sep1330_enums"), _elicitation
    ),
}  # fmt: skip
PROMPTS: dict[str, tuple[str, ...]] = {
    "test_simple_prompt": (),
    "test_prompt_with_arguments": ("arg1", "arg2"),
    "test_prompt_with_embedded_resource": ("resourceUri",),
    "test_prompt_with_image": (),
}


async def _greet(ctx: Context, _name: str) -> types.CallToolResult:
    return types.CallToolResult(content=[_text(f"Hello, {(ctx.params or {})['arguments']['name']}!")])


async def _logs_if_asked(ctx: Context, name: str) -> types.CallToolResult:
    return await long_calls.with_reports(ctx, name, lambda: _greeted(name))


async def _greeted(name: str) -> types.CallToolResult:
    return types.CallToolResult(content=[_text(f"Hello from {name}")])


TOOLS["greet"] = _greet
TOOLS["test_logging_tool"] = _logs_if_asked
TOOLS["test_missing_capability"] = input_required.missing_capability
LONG_WORK = ("slow_compute", "failing_job", "confirm_delete")  # each is a real task that our own tool dispatches


async def _worked_on(hub: Hub, task_id: str, name: str, seconds: float) -> None:
    """Somebody does the task, unless it is cancelled before."""
    await anyio.sleep(seconds)
    with suppress(AofError):
        run = (await hub.ask(partial(hub.fabric.claim, task_id, agent="ada"))).run_id
        if name == "failing_job":
            given_up = partial(hub.fabric.fail, task_id, run=run, code="tests_failed", message="x", retryable=False)
            await hub.ask(given_up)
        else:
            await hub.ask(partial(hub.fabric.complete, task_id, run=run, summary="computed"))


def add_fixtures(server: Server[Hub], hub: Hub) -> None:
    """Let the server answer for the fixtures first, and as ever for all else."""
    _add_tools(server, hub)
    _add_resources(server)

    async def list_prompts(_ctx: Context, _params: types.PaginatedRequestParams) -> HandlerResult:
        asking = types.Prompt(name="test_input_required_result_prompt", description="A fixture.")
        listed = [
            types.Prompt(
                name=name,
                description="A fixture.",
                arguments=[types.PromptArgument(name=one, required=True) for one in arguments],
            )
            for name, arguments in PROMPTS.items()
        ]
        return types.ListPromptsResult(prompts=[*listed, asking])

    async def get_prompt(_ctx: Context, params: types.GetPromptRequestParams) -> HandlerResult:
        if params.name in input_required.ROUNDS:
            return await input_required.prompt(_ctx, params)
        given = params.arguments or {}
        contents: dict[str, list[Any]] = {
            "test_simple_prompt": [_text("This is a simple prompt for testing.")],
            "test_prompt_with_arguments": [_text(f"arg1='{given.get('arg1')}', arg2='{given.get('arg2')}'")],
            "test_prompt_with_embedded_resource": [
                _embedded(given.get("resourceUri", ""), "For testing."),
                _text("It"),
            ],
            "test_prompt_with_image": [IMAGE, _text("Please analyze the image above.")],
        }
        messages = [types.PromptMessage(role="user", content=one) for one in contents[params.name]]
        return types.GetPromptResult(messages=messages)

    async def complete(_ctx: Context, _params: types.CompleteRequestParams) -> HandlerResult:
        return types.CompleteResult(completion=types.Completion(values=[], total=0, has_more=False))

    async def set_level(_ctx: Context, _params: types.SetLevelRequestParams) -> HandlerResult:
        return types.EmptyResult()

    server.add_request_handler("prompts/list", types.PaginatedRequestParams, list_prompts)
    server.add_request_handler("prompts/get", types.GetPromptRequestParams, get_prompt)
    server.add_request_handler("completion/complete", types.CompleteRequestParams, complete)
    server.add_request_handler("logging/setLevel", types.SetLevelRequestParams, set_level)


def _add_tools(server: Server[Hub], hub: Hub) -> None:
    listing, calling = server.get_request_handler("tools/list"), server.get_request_handler("tools/call")
    assert listing is not None
    assert calling is not None

    async def list_tools(ctx: Context, params: types.PaginatedRequestParams) -> HandlerResult:
        ours = await listing.handler(ctx, params)
        assert isinstance(ours, types.ListToolsResult)
        names = (*TOOLS, *LONG_WORK, *input_required.TOOLS)
        fixtures = [types.Tool(name=name, description="A fixture.", input_schema={"type": "object"}) for name in names]
        return types.ListToolsResult(tools=[*ours.tools, *fixtures])

    async def dispatch(ctx: Context, params: types.CallToolRequestParams) -> HandlerResult:
        given = {"title": params.name, "brief": "x", "wait": True, "metadata": {"reviewRequired": False}}
        asked = params.model_copy(update={"name": "aof_dispatch", "arguments": given})
        answer = await calling.handler(ctx, asked)
        whole = answer if isinstance(answer, dict) else {}
        if "taskId" in whole:
            seconds = float((params.arguments or {}).get("seconds", 0))
            hub.start(_worked_on, hub, whole["taskId"], params.name, seconds)
        return answer

    async def call_tool(ctx: Context, params: types.CallToolRequestParams) -> HandlerResult:
        if params.name in LONG_WORK:
            return await dispatch(ctx, params)
        if params.name in input_required.TOOLS:
            return await input_required.tool(ctx, params)
        fixture = TOOLS.get(params.name)
        return await (calling.handler(ctx, params) if fixture is None else fixture(ctx, params.name))

    server.add_request_handler("tools/list", types.PaginatedRequestParams, list_tools)
    server.add_request_handler("tools/call", types.CallToolRequestParams, call_tool)


def _add_resources(server: Server[Hub]) -> None:
    reading = server.get_request_handler("resources/read")
    assert reading is not None

    async def read(ctx: Context, params: types.ReadResourceRequestParams) -> HandlerResult:
        uri = str(params.uri)
        if uri == "test://static-binary":
            blob = types.BlobResourceContents(uri=uri, mime_type="image/png", blob=PIXEL)
            return types.ReadResourceResult(contents=[blob])
        if uri == "test://static-text":
            text = types.TextResourceContents(uri=uri, mime_type="text/plain", text="This is a static text.")
            return types.ReadResourceResult(contents=[text])
        if uri.startswith("test://template/"):
            said = json.dumps({"id": uri.split("/")[3], "templateTest": True})
            data = types.TextResourceContents(uri=uri, mime_type="application/json", text=said)
            return types.ReadResourceResult(contents=[data])
        if uri.startswith("test://"):
            raise MCPError(types.INVALID_PARAMS, "Resource not found", {"uri": uri})
        return await reading.handler(ctx, params)

    server.add_request_handler("resources/read", types.ReadResourceRequestParams, read)
