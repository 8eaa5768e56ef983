"""The beginning of a turn: say hello to the agent, begin or resume a session, choose the model."""

from __future__ import annotations

import asyncio
import re
from typing import Any, NamedTuple

from .... import __version__
from ....core.contracts.failures import LaneError, SessionLost, TurnError
from ....core.contracts.provider import TurnInput
from ....core.quoting import shortened
from ...json_lines import Line
from ..claude import saved_sessions
from . import failures, resumption
from .connection import AgentEnded, AgentError, Connection
from .failures import Agent
from .settings import AcpSettings

PROTOCOL = 1
# Files and terminals are the agent's own: it works in the workspace itself. Forms are asked as questions.
CLIENT = {
    "fs": {"readTextFile": False, "writeTextFile": False},
    "terminal": False,
    "elicitation": {"form": {}},
}
KEY_METHOD = re.compile(r"api.?key", re.I)
SHOWN_MODELS = 12


class Hello(NamedTuple):
    """Who answers, and what it can do."""

    agent: Agent
    resume: str | None  # the method that resumes a session
    forks: bool  # it can copy a session
    takes_instructions: bool  # as a system prompt
    key_methods: tuple[str, ...]  # the ways to log in with a key


class Session(NamedTuple):
    """A session that is open."""

    id: str
    opened: Line  # what the agent says about it
    note: str | None = None  # that it is a copy


async def say_hello(connection: Connection, agent: Agent) -> Hello:
    """Ask the agent who it is. Raises LaneError if it is no agent that we can talk with."""
    try:
        found = await connection.call(
            "initialize",
            {
                "protocolVersion": PROTOCOL,
                "clientCapabilities": CLIENT,
                "clientInfo": {"name": "hiboss", "title": "hiboss", "version": __version__},
            },
        )
    except AgentError as error:
        raise failures.of_first_call(error, agent) from None
    except AgentEnded:
        raise failures.of_end(connection.result, agent, began=False) from None
    if found.get("protocolVersion") != PROTOCOL:
        spoken = found.get("protocolVersion")
        why = f"it speaks version {spoken!r:.20} of the Agent Client Protocol, and hiboss {PROTOCOL}"
        raise LaneError("outdated", f"{agent.shown}: {why}")
    info, can = _part(found, "agentInfo"), _part(found, "agentCapabilities")
    sessions, methods = _part(can, "sessionCapabilities"), _rows(found.get("authMethods"))
    named = [info.get("name"), info.get("version")]
    name = " ".join(one.split("/")[-1][:100] for one in named if isinstance(one, str) and one.isprintable())
    load = "session/load" if can.get("loadSession") is True else None
    return Hello(
        agent=agent._replace(name=name, logins=_logins(methods)),
        forks=sessions.get("fork") is not None,
        resume="session/resume" if sessions.get("resume") is not None else load,
        takes_instructions=sessions.get("systemPrompt") is not None,
        key_methods=_key_methods(methods),
    )


async def open_session(connection: Connection, hello: Hello, turn: TurnInput, command: str) -> Session:
    """Begin the session of a turn, or resume it."""
    given: Line = {"cwd": turn.workspace, "mcpServers": []}
    if hello.takes_instructions and turn.instructions:
        content = [{"type": "text", "text": turn.instructions}]
        given["systemPrompt"] = {"mode": "append", "content": content}
    note = None
    if turn.session is None:
        opened = await _begin(connection, hello, turn, given)
    elif hello.resume is None:
        raise SessionLost(f"{hello.agent.shown} cannot resume sessions")
    else:
        given["sessionId"] = turn.session
        if holder := await _holder(hello.agent, turn):
            opened, note = await _copy(connection, hello, given, holder)
        else:
            opened, note = await _resume(connection, hello, given, command)
    session = opened.get("sessionId", turn.session)
    if not isinstance(session, str):
        raise TurnError("no_session", f"{hello.agent.shown} began a session without an id")
    return Session(session, opened, note)


async def _begin(connection: Connection, hello: Hello, turn: TurnInput, given: Line) -> Line:
    try:
        return await connection.call("session/new", given)
    except AgentError as error:
        has_key = any(name.endswith("_API_KEY") and value for name, value in turn.environment.items())
        if error.code != failures.AUTH_REQUIRED or not has_key or not hello.key_methods:
            raise failures.of_error(error, hello.agent) from None
    try:
        await connection.call("authenticate", {"methodId": hello.key_methods[0]})
        return await connection.call("session/new", given)
    except AgentError as error:
        raise failures.of_error(error, hello.agent) from None


async def _holder(agent: Agent, turn: TurnInput) -> str:
    """Return who has the session of a turn open, where the agent does not look itself."""
    if agent.known is None or not agent.known.of_claude or turn.session is None:
        return ""
    return await asyncio.to_thread(saved_sessions.holder, turn.environment, turn.session)


async def _copy(connection: Connection, hello: Hello, given: Line, holder: str) -> tuple[Line, str]:
    """Go on in a copy of a session that is open in another program; without copies it is lost."""
    is_open = f"{given['sessionId']} is open in {holder}"
    if not hello.forks:
        raise SessionLost(is_open)
    try:
        opened = await connection.call("session/fork", given)
    except AgentError as error:
        found = failures.of_resuming(error, hello.agent)
        raise SessionLost(f"{is_open}; {found.text}") if isinstance(found, SessionLost) else found from None
    if opened.get("sessionId") in (None, given["sessionId"]):
        raise SessionLost(is_open)
    return opened, f"its session {is_open}, so it went on in a copy of it, {opened['sessionId']}"


async def _resume(connection: Connection, hello: Hello, given: Line, command: str) -> tuple[Line, str | None]:
    assert hello.resume is not None
    try:
        opened = await connection.call(hello.resume, given)
    except AgentError as error:
        if failures.is_open_elsewhere(error):
            return await _copy(connection, hello, given, "another program")
        found = failures.of_resuming(error, hello.agent)
        if isinstance(found, SessionLost) and resumption.failed(command):
            raise SessionLost(f"{found.text}; until hiboss restarts, its sessions are not resumed") from None
        raise found from None
    resumption.succeeded(command)
    return opened, None


async def choose_model(
    connection: Connection, agent: Agent, settings: AcpSettings, session: Session
) -> str | None:
    """Set the model, where the agent has a way for that. Return the name of the one that answers."""
    option, models = _model_option(session.opened), _part(session.opened, "models")
    now: Any = option.get("currentValue") if option else models.get("currentModelId")
    wanted = settings.model
    if wanted is None or wanted == now:
        return now if isinstance(now, str) else None
    if not option and not models:
        why = "it takes no model by the protocol; give it as an argument in --command"
        raise LaneError("no_model", f"{agent.shown}: {why}")
    method = "session/set_config_option" if option else "session/set_model"
    value = {"configId": option["id"], "value": wanted} if option else {"modelId": wanted}
    try:
        await connection.call(method, {"sessionId": session.id, **value})
    except AgentError as error:
        there = ", ".join(_models(option, models)[:SHOWN_MODELS])
        said = f"{agent.shown} does not take the model {wanted} ({shortened(error.message, 200)})"
        raise LaneError("no_model", said + (f"; it has {there}" if there else "")) from None
    return wanted


def _part(content: Line, name: str) -> Line:
    found = content.get(name)
    return found if isinstance(found, dict) else {}


def _rows(given: Any) -> list[Line]:
    return [one for one in given if isinstance(one, dict)] if isinstance(given, list) else []


def _key_methods(methods: list[Line]) -> tuple[str, ...]:
    """Return the ways to log in that need nobody: with a key of the environment."""
    ids = [one.get("id") for one in methods if one.get("type", "agent") != "terminal"]
    return tuple(one for one in ids if isinstance(one, str) and KEY_METHOD.search(one))


def _logins(methods: list[Line]) -> list[str]:
    names = [one.get("description") or one.get("name") for one in methods]
    return [" ".join(one.split())[:100] for one in names if isinstance(one, str)]


def _model_option(opened: Line) -> Line:
    """Return the option of the session that is its model."""
    options = _rows(opened.get("configOptions"))
    return next((one for one in options if one.get("category") == "model" and "id" in one), {})


def _models(option: Line, models: Line) -> list[str]:
    """Return the names of the models that the agent offers."""
    rows = _rows(option.get("options") or models.get("availableModels"))
    names = [one.get("value") or one.get("modelId") for one in rows]
    return [one for one in names if isinstance(one, str)]
