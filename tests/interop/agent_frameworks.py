"""A script for an environment of its own: agents of others' frameworks, with scripted models, work on one task.

`python agent_frameworks.py FRAMEWORK`, with the connection and the calls as JSON on standard input. Every call is made
in a session of its own, as some of these frameworks always do. Prints the text of each tool's answer, as JSON.
"""

# ruff: noqa: PLC0415 - each framework takes long to load, and only one is tried

from __future__ import annotations

import asyncio
import json
import sys
from typing import Any

Connection = dict[str, Any]  # `url` and `headers`, or `command`, `args` and `env`
Call = tuple[str, dict[str, Any]]


async def langchain(to: Connection, calls: list[Call]) -> list[str]:
    """Tools of `langchain-mcp-adapters`, which opens a session for each call by itself."""
    from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
    from langchain_core.messages import AIMessage
    from langchain_mcp_adapters.client import MultiServerMCPClient

    transport = {"transport": "streamable_http" if "url" in to else "stdio"}
    tools = {tool.name: tool for tool in await MultiServerMCPClient({"aof": to | transport}).get_tools()}
    wanted = [{"name": name, "args": given, "id": str(number)} for number, (name, given) in enumerate(calls)]
    model = GenericFakeChatModel(messages=iter([AIMessage(content="", tool_calls=[one]) for one in wanted]))
    said = []
    for _ in calls:
        message = await model.ainvoke("What next?")
        for call in message.tool_calls:
            answer = await tools[call["name"]].ainvoke(call)
            said.append(answer.content[0]["text"] if isinstance(answer.content, list) else answer.content)
    return said


async def openai_agents(to: Connection, calls: list[Call]) -> list[str]:
    """Agents of `openai-agents`, each with a server of its own."""
    from agents import Agent, Model, ModelResponse, RunConfig, Runner, Usage
    from agents.mcp import MCPServerStdio, MCPServerStreamableHttp
    from openai.types.responses import ResponseFunctionToolCall, ResponseOutputMessage, ResponseOutputText

    class Scripted(Model):  # type: ignore[misc]
        """A model that makes one call and is content."""

        def __init__(self, name: str, given: dict[str, Any]) -> None:
            wanted = {"name": name, "arguments": json.dumps(given), "call_id": "1", "type": "function_call"}
            text = ResponseOutputText(text="done", type="output_text", annotations=[])
            message = {"id": "2", "role": "assistant", "status": "completed", "type": "message", "content": [text]}
            self._outputs = iter([ResponseFunctionToolCall(**wanted), ResponseOutputMessage(**message)])

        async def get_response(self, *_given: Any, **_named: Any) -> Any:
            return ModelResponse(output=[next(self._outputs)], usage=Usage(), response_id=None)

        def stream_response(self, *_given: Any, **_named: Any) -> Any:
            raise NotImplementedError

    said = []
    for name, given in calls:
        kind = MCPServerStreamableHttp if "url" in to else MCPServerStdio
        async with kind(params=to) as server:
            agent = Agent(name="worker", model=Scripted(name, given), mcp_servers=[server])
            done = await Runner.run(agent, "Go on.", run_config=RunConfig(tracing_disabled=True))
        outputs = [item.output for item in done.new_items if item.type == "tool_call_output_item"]
        said.append(outputs[0]["text"] if isinstance(outputs[0], dict) else str(outputs[0]))
    return said


async def fastmcp(to: Connection, calls: list[Call]) -> list[str]:
    """The client of `fastmcp`, without a model."""
    said = []
    for name, given in calls:
        async with _fastmcp_client(to) as client:
            answer = await client.call_tool(name, given, raise_on_error=False)
        said.append(answer.content[0].text)
    return said


async def pydantic_ai(to: Connection, calls: list[Call]) -> list[str]:
    """Agents of `pydantic-ai` with a function for a model."""
    from pydantic_ai import Agent
    from pydantic_ai.mcp import MCPToolset
    from pydantic_ai.messages import ModelResponse, TextPart, ToolCallPart, ToolReturnPart
    from pydantic_ai.models.function import FunctionModel

    said = []
    for name, given in calls:
        outputs = iter([ToolCallPart(name, given), TextPart("done")])
        model = FunctionModel(lambda _messages, _about, outputs=outputs: ModelResponse(parts=[next(outputs)]))
        agent = Agent(model, toolsets=[MCPToolset(_fastmcp_client(to))])
        async with agent:
            done = await agent.run("Go on.")
        parts = [part for message in done.all_messages() for part in message.parts]
        said += [json.dumps(part.content) for part in parts if isinstance(part, ToolReturnPart)]
    return said


def _fastmcp_client(to: Connection) -> Any:
    from fastmcp import Client
    from fastmcp.client.transports import StdioTransport, StreamableHttpTransport

    if "url" in to:
        return Client(StreamableHttpTransport(to["url"], headers=to["headers"]))
    return Client(StdioTransport(to["command"], to["args"], env=to["env"], keep_alive=False))


FRAMEWORKS = {one.__name__: one for one in (langchain, openai_agents, fastmcp, pydantic_ai)}


def main() -> None:
    """Run one of them."""
    asked = json.load(sys.stdin)
    calls = [(name, given) for name, given in asked["calls"]]
    sys.stdout.write(json.dumps(asyncio.run(FRAMEWORKS[sys.argv[1]](asked["to"], calls))))


if __name__ == "__main__":
    main()
