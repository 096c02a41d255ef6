"""What the OpenAPI document says of Agent2Agent: its routes, without repeating the protocol's own schemas.

Must not know tasks, and not load the protocol's library: the document is made when the server starts.
"""

from __future__ import annotations

from typing import Any, Final

_SPECIFICATION: Final = "as the Agent2Agent specification 1.0 defines it"
_OBJECT: Final = {"type": "object", "additionalProperties": True, "description": _SPECIFICATION}
_TEXT: Final = {"type": "string"}
_JSON: Final = "application/json"
_STREAM: Final = "text/event-stream"
_PLACES: Final = {"id": "task", "push_id": "configuration"}
_PUSH: Final = "/a2a/tasks/{id}/pushNotificationConfigs"
# path, method, operation, what it does, whether it takes a body, and what it answers with
_ROUTES: Final = (
    ("/.well-known/agent-card.json", "get", "a2a_card", "Who we are, and how we are called.", False, _JSON),
    ("/.well-known/agent.json", "get", "a2a_card_0_3", "The same for peers of revision 0.3.", False, _JSON),
    ("/a2a/rpc", "post", "a2a_rpc", "Any method of the protocol, as JSON-RPC 2.0.", True, _JSON),
    ("/a2a/message:send", "post", "a2a_send", "Give us a task, or say more about one.", True, _JSON),
    ("/a2a/message:stream", "post", "a2a_stream", "The same, and follow the task.", True, _STREAM),
    ("/a2a/tasks", "get", "a2a_tasks", "Tasks that the caller has given us.", False, _JSON),
    ("/a2a/tasks/{id}", "get", "a2a_task", "One of them.", False, _JSON),
    ("/a2a/tasks/{id}:cancel", "post", "a2a_cancel", "Cancel one of them.", True, _JSON),
    ("/a2a/tasks/{id}:subscribe", "get", "a2a_subscribe", "Follow one of them.", False, _STREAM),
    (_PUSH, "get", "a2a_push_list", "Where news of a task is pushed to.", False, _JSON),
    (_PUSH, "post", "a2a_push_set", "Push news of a task to an address.", True, _JSON),
    (f"{_PUSH}/{{push_id}}", "get", "a2a_push_get", "One of these addresses.", False, _JSON),
    (f"{_PUSH}/{{push_id}}", "delete", "a2a_push_delete", "Push no more news there.", False, _JSON),
)


def described() -> dict[str, Any]:
    """The routes by path, as OpenAPI describes them."""
    found: dict[str, Any] = {}
    for path, method, name, summary, takes, answers in _ROUTES:
        route: dict[str, Any] = {
            "operationId": name,
            "tags": ["a2a"],
            "summary": summary,
            "description": f"Requests and answers are {_SPECIFICATION}; revision 0.3 is understood as well.",
            "responses": {
                "200": {"description": "Done.", "content": {answers: {"schema": _OBJECT}}},
                "4XX": {"description": "Not done.", "content": {_JSON: {"schema": _OBJECT}}},
            },
        }
        if path.startswith("/."):
            route["security"] = []
        if places := [name for name in _PLACES if f"{{{name}}}" in path]:
            route["parameters"] = [
                {"name": name, "in": "path", "required": True, "description": _PLACES[name], "schema": _TEXT}
                for name in places
            ]
        if takes:
            route["requestBody"] = {"required": not path.endswith("cancel"), "content": {_JSON: {"schema": _OBJECT}}}
        found.setdefault(path, {})[method] = route
    return found
