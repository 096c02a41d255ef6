"""Tools and a prompt that ask their client something before they answer, as the MCP conformance suite wants them.

No tool of ours does; they are added to our server in the process that is tested, and nowhere else.
"""

from __future__ import annotations

import hmac
from collections.abc import Callable, Mapping
from typing import Any

import mcp_types as types
from mcp.server.context import ServerRequestContext
from mcp.shared.exceptions import MCPError

Context = ServerRequestContext[Any, Any]
Answer = types.CallToolResult | types.InputRequiredResult
Given = Mapping[str, Any]
_KEY = b"a key of this process"
_NAME: dict[str, Any] = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}
_PROMPTED = "test_input_required_result_prompt"


def _elicitation(message: str = "What is your name?") -> types.ElicitRequest:
    return types.ElicitRequest(params=types.ElicitRequestFormParams(message=message, requested_schema=_NAME))


def _sampling() -> types.CreateMessageRequest:
    said = types.SamplingMessage(role="user", content=types.TextContent(text="What is the capital of France?"))
    return types.CreateMessageRequest(params=types.CreateMessageRequestParams(messages=[said], max_tokens=100))


def _roots() -> types.ListRootsRequest:
    return types.ListRootsRequest()


# What each fixture asks for, round by round; those of several rounds, or with a state, are told by the second table.
ROUNDS: dict[str, list[dict[str, Callable[[], types.InputRequest]]]] = {
    "test_input_required_result_elicitation": [{"user_name": _elicitation}],
    "test_input_required_result_sampling": [{"capital_question": _sampling}],
    "test_input_required_result_list_roots": [{"client_roots": _roots}],
    "test_input_required_result_request_state": [{"confirm": _elicitation}],
    "test_input_required_result_multiple_inputs": [
        {"user_name": _elicitation, "greeting": _sampling, "client_roots": _roots}
    ],
    "test_input_required_result_multi_round": [{"step1": _elicitation}, {"step2": _elicitation}],
    "test_input_required_result_tampered_state": [{"confirm": _elicitation}],
    "test_input_required_result_capabilities": [{"user_name": _elicitation, "greeting": _sampling}],
    "test_streaming_elicitation": [{"user_name": _elicitation}],
    _PROMPTED: [{"user_context": _elicitation}],
}
WITH_STATE = {
    f"test_input_required_result_{name}"
    for name in ("request_state", "multiple_inputs", "multi_round", "tampered_state")
}
TOOLS = tuple(name for name in ROUNDS if name != _PROMPTED)
_NEEDS = {
    types.ElicitRequest: types.ClientCapabilities(elicitation=types.ElicitationCapability()),
    types.CreateMessageRequest: types.ClientCapabilities(sampling=types.SamplingCapability()),
}


async def tool(ctx: Context, params: types.CallToolRequestParams) -> Answer:
    """One call of a fixture: another question, or the answer."""
    asked = _asked(ctx, params.name, params.input_responses or {}, params.request_state)
    return asked or types.CallToolResult(content=[types.TextContent(text="Hello, state-ok!")])


async def prompt(
    ctx: Context, params: types.GetPromptRequestParams
) -> types.GetPromptResult | types.InputRequiredResult:
    """The fixture that is no tool."""
    asked = _asked(ctx, params.name, params.input_responses or {}, params.request_state)
    said = types.PromptMessage(role="user", content=types.TextContent(text="As you wish."))
    return asked or types.GetPromptResult(messages=[said])


def _asked(ctx: Context, name: str, given: Given, state: str | None) -> types.InputRequiredResult | None:
    """What is still to be asked; None once everything is answered."""
    rounds, number = ROUNDS[name], 0
    if name in WITH_STATE and state is not None:
        number = _round(state)
    if not rounds[number].keys() <= given.keys():
        return _question(ctx, name, number)
    return _question(ctx, name, number + 1) if number + 1 < len(rounds) else None


def _question(ctx: Context, name: str, number: int) -> types.InputRequiredResult:
    requests = {key: make() for key, make in ROUNDS[name][number].items()}
    if name == "test_input_required_result_capabilities":
        requests = {key: one for key, one in requests.items() if ctx.session.check_client_capability(_NEEDS[type(one)])}
    state = f"{number}.{_sealed(number)}" if name in WITH_STATE else None
    return types.InputRequiredResult(input_requests=requests, request_state=state)


def _round(state: str) -> int:
    number, _, seal = state.partition(".")
    if not number.isdecimal() or not hmac.compare_digest(seal.encode(), _sealed(int(number)).encode()):
        raise MCPError(types.INVALID_PARAMS, "this is not the state that was handed out")
    return int(number)


def _sealed(number: int) -> str:
    return hmac.new(_KEY, str(number).encode(), "sha256").hexdigest()


async def missing_capability(ctx: Context, _name: str) -> types.CallToolResult:
    """A tool that needs what the client may not have."""
    if not ctx.session.check_client_capability(_NEEDS[types.CreateMessageRequest]):
        data: dict[str, Any] = {"requiredCapabilities": {"sampling": {}}}
        raise MCPError(types.MISSING_REQUIRED_CLIENT_CAPABILITY, "this needs a client that samples", data)
    return types.CallToolResult(content=[types.TextContent(text="sampled")])
