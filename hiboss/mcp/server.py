"""The handlers that the SDK calls: tools, resources, prompts, subscriptions, tasks. Both eras share them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import mcp_types as types
from mcp.server.apps import EXTENSION_ID as APPS
from mcp.server.apps import client_supports_apps
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel import Server
from mcp.shared.exceptions import MCPError

from .. import __version__
from ..core.errors import HibossError, NotFound, UnknownTool
from . import resources, subscriptions, tasks, tools
from .answers import failed, protocol_error, succeeded
from .caller import Caller
from .tool import Tool

Context = ServerRequestContext[Any, Any]
CallerOf = Callable[[Context], Caller]
BRIEFING = "briefing"
INSTRUCTIONS = (
    "Mail and chat of hiboss. Read the chat with chat_read_since and acknowledge with chat_ack when"
    " processed; claim mail, then ack it. Nothing is marked by looking."
)


def build(caller_of: CallerOf) -> Server[Any]:
    """Return a server. `caller_of` finds who makes a request."""
    handlers = _Handlers(caller_of)
    server: Server[Any] = Server(
        "hiboss",
        version=__version__,
        instructions=INSTRUCTIONS,
        on_list_tools=handlers.list_tools,
        on_call_tool=handlers.call_tool,
        on_list_resources=handlers.list_resources,
        on_list_resource_templates=handlers.list_templates,
        on_read_resource=handlers.read_resource,
        on_subscribe_resource=handlers.subscribe,
        on_unsubscribe_resource=handlers.unsubscribe,
        on_subscriptions_listen=handlers.listen,
        on_list_prompts=handlers.list_prompts,
        on_get_prompt=handlers.get_prompt,
    )
    server.extensions = {APPS: {}, tasks.EXTENSION: {}}
    tasks.serve(server, caller_of)
    return server


class _Handlers:
    def __init__(self, caller_of: CallerOf) -> None:
        self._caller_of = caller_of
        self._effects: Mapping[str, str] | None = None  # of every operation

    # --- tools -----------------------------------------------------------------------

    async def list_tools(self, context: Context, params: Any) -> types.ListToolsResult:
        caller = self._caller_of(context)
        try:
            effects = await self._find_effects(caller)
        except HibossError as error:
            raise protocol_error(error) from None
        listed = [_tool(one, one.name, effects) for one in tools.TABLE.values()]
        if caller.dotted:
            listed += [_tool(one, one.dotted, effects) for one in tools.TABLE.values() if one.dotted]
        return types.ListToolsResult(tools=listed)

    async def _find_effects(self, caller: Caller) -> Mapping[str, str]:
        """Return what each operation does, as the daemon declares it: hints follow from that."""
        if self._effects is None:
            found = await caller.call("rpc.discover")
            self._effects = {one["name"]: one["x-effect"] for one in found["methods"]}
        return self._effects

    async def call_tool(self, context: Context, params: types.CallToolRequestParams) -> Any:
        caller = self._caller_of(context)
        try:
            if tasks.is_wanted(context, params):
                return await tasks.create(caller, params.arguments or {})
            found = await tools.run(caller, params.name, params.arguments)
        except UnknownTool as error:
            raise MCPError(code=types.INVALID_PARAMS, message=error.message, data=error.payload()) from None
        except HibossError as error:
            return failed(error)
        return succeeded(found)

    # --- resources -------------------------------------------------------------------

    async def list_resources(self, context: Context, params: Any) -> types.ListResourcesResult:
        return types.ListResourcesResult(resources=resources.LISTED)

    async def list_templates(self, context: Context, params: Any) -> types.ListResourceTemplatesResult:
        return types.ListResourceTemplatesResult(resource_templates=resources.TEMPLATES)

    async def read_resource(
        self, context: Context, params: types.ReadResourceRequestParams
    ) -> types.ReadResourceResult:
        try:
            return await resources.read(
                self._caller_of(context), str(params.uri), as_app=client_supports_apps(context)
            )
        except HibossError as error:
            raise protocol_error(error) from None

    async def subscribe(self, context: Context, params: types.SubscribeRequestParams) -> types.EmptyResult:
        caller, uri = self._caller_of(context), str(params.uri)
        try:
            status = await caller.chat("status")  # a wrong token, or no agent, is said here
            if not resources.is_known(uri):
                raise NotFound(what="resource", value=uri[:200], where="resources/list")
            await subscriptions.subscriber_of(caller, context.session).add(uri, status)
        except HibossError as error:
            raise protocol_error(error) from None
        return types.EmptyResult()

    async def unsubscribe(
        self, context: Context, params: types.UnsubscribeRequestParams
    ) -> types.EmptyResult:
        caller = self._caller_of(context)
        subscriptions.subscriber_of(caller, context.session).remove(str(params.uri))
        return types.EmptyResult()

    async def listen(
        self, context: Context, params: types.SubscriptionsListenRequestParams
    ) -> types.SubscriptionsListenResult:
        caller = self._caller_of(context)
        try:
            status = await caller.chat("status")
        except HibossError as error:
            raise protocol_error(error) from None
        return await subscriptions.listen(caller, context, params, status)

    # --- prompts ---------------------------------------------------------------------

    async def list_prompts(self, context: Context, params: Any) -> types.ListPromptsResult:
        described = "Who you are, the team, and what waits for you: mail, asks, schedules"
        return types.ListPromptsResult(prompts=[types.Prompt(name=BRIEFING, description=described)])

    async def get_prompt(
        self, context: Context, params: types.GetPromptRequestParams
    ) -> types.GetPromptResult:
        if params.name != BRIEFING:
            detail = f"there is no prompt {params.name[:100]}; there is: {BRIEFING}"
            raise MCPError(code=types.INVALID_PARAMS, message=detail)
        try:
            found = await self._caller_of(context).call("agent.briefing")
        except HibossError as error:
            raise protocol_error(error) from None
        text = types.TextContent(type="text", text=found["text"])
        return types.GetPromptResult(messages=[types.PromptMessage(role="user", content=text)])


def _tool(one: Tool, name: str | None, effects: Mapping[str, str]) -> types.Tool:
    return types.Tool(
        name=name or one.name,
        description=one.description,
        input_schema=one.schema,
        annotations=types.ToolAnnotations.model_validate(one.hints(effects)),
    )
