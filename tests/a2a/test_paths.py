"""The OpenAPI document describes the routes of Agent2Agent that there are."""

from __future__ import annotations

from typing import cast

from a2a.server.request_handlers.request_handler import RequestHandler
from a2a.server.routes import create_rest_routes
from starlette.routing import Route

from aof.surfaces.a2a import handler
from aof.surfaces.a2a.endpoint import CARD_PATHS, A2aOverHttp

NOT_DESCRIBED = {"/a2a/extendedAgentCard"}  # the card is the same for everybody


def test_every_route_of_the_newest_revision_is_described() -> None:
    described = {(path, method) for path, found in A2aOverHttp.described().items() for method in found}
    routes = create_rest_routes(cast("RequestHandler", object()), path_prefix=handler.PREFIX)
    served = {
        (route.path, method.lower())
        for route in routes
        if isinstance(route, Route)
        for method in (route.methods or set()) - {"HEAD"}
        if route.path not in NOT_DESCRIBED
    }
    assert described - served == {*((path, "get") for path in CARD_PATHS), (handler.RPC, "post")}
    assert served - described == {("/a2a/tasks/{id}:subscribe", "post")}  # which does the same as GET
