"""A script for an environment of its own: the tools of others' frameworks work on one task.

`python agent_frameworks.py FRAMEWORK`, with the connection and the calls as JSON on standard input. Every call is made
in a session of its own, as some of these frameworks always do, and with the framework's own object for the tool that
it has found in our list. An argument `$task` stands for the task that the first call has made. Prints the text of
each tool's answer, as JSON.
"""

# ruff: noqa: PLC0415 - each framework takes long to load, and only one is tried

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import AsyncIterator
from typing import Any

Connection = dict[str, Any]  # `url` and `headers`, or `command`, `args` and `env`
_SECONDS = 60.0


async def langchain(to: Connection, name: str, given: dict[str, Any]) -> str:
    """A tool of `langchain-mcp-adapters`, which opens a session for each call by itself."""
    from langchain_mcp_adapters.client import MultiServerMCPClient

    transport = {"transport": "streamable_http" if "url" in to else "stdio"}
    tools = {tool.name: tool for tool in await MultiServerMCPClient({"aof": to | transport}).get_tools()}
    answer = await tools[name].ainvoke({"name": name, "args": given, "id": "1", "type": "tool_call"})
    return str(answer.content[0]["text"] if isinstance(answer.content, list) else answer.content)


async def openai_agents(to: Connection, name: str, given: dict[str, Any]) -> str:
    """An agent of `openai-agents` with a scripted model."""
    from agents import Agent, Model, ModelResponse, RunConfig, Runner, Usage
    from agents.mcp import MCPServerStdio, MCPServerStreamableHttp
    from openai.types.responses import ResponseFunctionToolCall, ResponseOutputMessage, ResponseOutputText

    class Scripted(Model):  # type: ignore[misc]
        """A model that makes one call and is content."""

        def __init__(self) -> None:
            wanted = {"name": name, "arguments": json.dumps(given), "call_id": "1", "type": "function_call"}
            text = ResponseOutputText(text="done", type="output_text", annotations=[])
            message = {"id": "2", "role": "assistant", "status": "completed", "type": "message", "content": [text]}
            self._outputs = iter([ResponseFunctionToolCall(**wanted), ResponseOutputMessage(**message)])

        async def get_response(self, *_given: Any, **_named: Any) -> Any:
            return ModelResponse(output=[next(self._outputs)], usage=Usage(), response_id=None)

        def stream_response(self, *_given: Any, **_named: Any) -> Any:
            raise NotImplementedError

    kind = MCPServerStreamableHttp if "url" in to else MCPServerStdio
    async with kind(params=to, client_session_timeout_seconds=_SECONDS) as server:
        agent = Agent(name="worker", model=Scripted(), mcp_servers=[server])
        done = await Runner.run(agent, "Go on.", run_config=RunConfig(tracing_disabled=True))
    outputs = [item.output for item in done.new_items if item.type == "tool_call_output_item"]
    return str(outputs[0]["text"] if isinstance(outputs[0], dict) else outputs[0])


async def fastmcp(to: Connection, name: str, given: dict[str, Any]) -> str:
    """The client of `fastmcp`."""
    async with _fastmcp_client(to) as client:
        assert name in {tool.name for tool in await client.list_tools()}
        answer = await client.call_tool(name, given, raise_on_error=False)
    return str(answer.content[0].text)


async def pydantic_ai(to: Connection, name: str, given: dict[str, Any]) -> str:
    """An agent of `pydantic-ai` with a function for a model."""
    from pydantic_ai import Agent
    from pydantic_ai.mcp import MCPToolset
    from pydantic_ai.messages import ModelResponse, TextPart, ToolCallPart, ToolReturnPart
    from pydantic_ai.models.function import FunctionModel

    outputs = iter([ToolCallPart(name, given), TextPart("done")])
    model = FunctionModel(lambda _messages, _about: ModelResponse(parts=[next(outputs)]))
    agent = Agent(model, toolsets=[MCPToolset(_fastmcp_client(to))])
    async with agent:
        done = await agent.run("Go on.")
    parts = [part for message in done.all_messages() for part in message.parts]
    return next(json.dumps(part.content) for part in parts if isinstance(part, ToolReturnPart))


async def autogen(to: Connection, name: str, given: dict[str, Any]) -> str:
    """A tool of `autogen-ext`."""
    from autogen_core import CancellationToken
    from autogen_ext.tools.mcp import StdioServerParams, StreamableHttpServerParams, mcp_server_tools

    params = StreamableHttpServerParams(**to) if "url" in to else StdioServerParams(**to, read_timeout_seconds=_SECONDS)
    tools = {tool.name: tool for tool in await mcp_server_tools(params)}
    answer = await tools[name].run_json(given, CancellationToken())
    return str(json.loads(tools[name].return_value_as_string(answer))[0]["text"])


async def smolagents(to: Connection, name: str, given: dict[str, Any]) -> str:
    """A tool of `smolagents`, which is called from a thread."""
    from mcp import StdioServerParameters
    from smolagents import MCPClient

    def call() -> Any:
        params = to | {"transport": "streamable-http"} if "url" in to else StdioServerParameters(**to)
        with MCPClient(params, structured_output=True) as tools:
            return next(tool for tool in tools if tool.name == name)(**given)

    answer = await asyncio.to_thread(call)
    return answer if isinstance(answer, str) else json.dumps(answer)


async def google_adk(to: Connection, name: str, given: dict[str, Any]) -> str:
    """An agent of `google-adk` with a scripted model."""
    from google.adk.agents import LlmAgent
    from google.adk.models import BaseLlm, LlmResponse
    from google.adk.runners import InMemoryRunner
    from google.adk.tools.mcp_tool import McpToolset, StdioConnectionParams, StreamableHTTPConnectionParams
    from google.genai.types import Content, Part
    from mcp import StdioServerParameters

    class Scripted(BaseLlm):  # type: ignore[misc]
        """A model that makes one call and is content."""

        async def generate_content_async(self, asked: Any, *_more: Any, **_named: Any) -> AsyncIterator[Any]:
            answered = any(part.function_response for content in asked.contents for part in content.parts)
            part = Part(text="done") if answered else Part.from_function_call(name=name, args=given)
            yield LlmResponse(content=Content(role="model", parts=[part]))

    tools = McpToolset(
        connection_params=StreamableHTTPConnectionParams(**to, timeout=_SECONDS)
        if "url" in to
        else StdioConnectionParams(server_params=StdioServerParameters(**to), timeout=_SECONDS)
    )
    agent = LlmAgent(name="worker", model=Scripted(model="scripted"), tools=[tools])
    events = await InMemoryRunner(agent=agent).run_debug("Go on.", quiet=True)
    await tools.close()
    (answer,) = [one.response for event in events for one in event.get_function_responses()]
    return str(answer["content"][0]["text"])


async def crewai(to: Connection, name: str, given: dict[str, Any]) -> str:
    """A tool of `crewai`, which sends a null for every argument that it is not given."""
    from crewai.mcp import MCPServerHTTP, MCPServerStdio
    from crewai.mcp.tool_resolver import MCPToolResolver
    from crewai.utilities.logger import Logger

    def call() -> str:
        resolver = MCPToolResolver(agent=None, logger=Logger())
        tools = resolver.resolve([MCPServerHTTP(**to) if "url" in to else MCPServerStdio(**to)])
        try:
            return str(next(tool for tool in tools if tool.name.endswith(name)).run(**given))
        finally:
            resolver.cleanup()

    return await asyncio.to_thread(call)


def _fastmcp_client(to: Connection) -> Any:
    from fastmcp import Client
    from fastmcp.client.transports import StdioTransport, StreamableHttpTransport

    if "url" in to:
        return Client(StreamableHttpTransport(to["url"], headers=to["headers"]))
    return Client(StdioTransport(to["command"], to["args"], env=to["env"], keep_alive=False))


FRAMEWORKS = {
    one.__name__: one
    for one in (langchain, openai_agents, fastmcp, pydantic_ai, autogen, smolagents, google_adk, crewai)
}


def main() -> None:
    """Let one of them make the calls."""
    asked = json.load(sys.stdin)
    call = FRAMEWORKS[sys.argv[1]]
    said: list[str] = []
    for name, given in asked["calls"]:
        made = {key: json.loads(said[0])["taskId"] if one == "$task" else one for key, one in given.items()}
        said.append(asyncio.run(call(asked["to"], name, made)))
    sys.stdout.write(json.dumps(said))


if __name__ == "__main__":
    main()
