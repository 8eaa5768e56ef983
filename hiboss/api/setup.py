"""Set-up: the boss, a first agent, and their tokens."""

from __future__ import annotations

import getpass
from typing import Annotated, Any

from pydantic import Field
from typing_extensions import TypedDict

from ..core import clock
from ..core.address import check_agent_name
from ..core.crashpoint import SETUP_PROFILES, crashpoint
from ..core.errors import BadName, BadProvider, BadText, BadTimezone, NameTaken, TooLarge
from ..store import agents, tokens
from ..store.boss import add_boss, find_boss
from ..store.group_commit import Tx
from . import provider_settings
from .auth import Caller
from .context import Context
from .operation import Level, Nothing, Params, operation
from .param_sizes import Word


class SetupState(TypedDict):
    set_up: Annotated[bool, Field(description="true: setup.execute would change nothing")]
    home: Annotated[str, Field(description="the directory that is set up")]
    boss_name: Annotated[str | None, Field(description="null before set-up")]
    timezone: Annotated[str | None, Field(description="the boss's; null before set-up")]
    agents: Annotated[list[str], Field(description="the names of those there are")]
    default_boss_name: Annotated[
        str, Field(description="what set-up uses when no name is given: the login name")
    ]
    default_timezone: Annotated[
        str, Field(description="what set-up uses when no zone is given: the machine's")
    ]
    default_agent_name: Annotated[
        str, Field(description="what set-up calls the first agent when no name is given")
    ]


class Execute(Params):
    boss_name: Word | None = Field(None, description="default: the login name")
    timezone: str | None = Field(None, description="default: the machine's")
    agent_name: str | None = Field(None, description="the first agent; default nex")
    provider: str | None = Field(
        None, description="how the first agent's answers are made, like demo; none: it fetches its mail"
    )


class SetupResult(TypedDict):
    changed: Annotated[bool, Field(description="false: it was set up already, and no token is shown")]
    boss_name: Annotated[str, Field(description="the name that people and agents see")]
    timezone: Annotated[str, Field(description="the boss's; times without a zone are in it")]
    agent_name: Annotated[str | None, Field(description="of the first agent")]
    boss_token: Annotated[str | None, Field(description="shown only here; null: it was set up already")]
    agent_token: Annotated[str | None, Field(description="shown only here; null: it was set up already")]
    profiles: Annotated[list[str], Field(description="the files that hold the tokens for --as NAME")]


DEFAULT_AGENT = "nex"


@operation("setup.check", level=Level.OPEN, offline=True, result=SetupState)
def check(context: Context, caller: Caller, params: Nothing) -> SetupState:
    """Tell whether this home is set up, and what set-up would choose."""
    boss = context.store.read(find_boss)
    return {
        "set_up": boss is not None,
        "home": str(context.home),
        "boss_name": boss["name"] if boss else None,
        "timezone": boss["timezone"] if boss else None,
        "agents": [row["name"] for row in context.store.read(agents.list_all)],
        "default_boss_name": _login_name(),
        "default_timezone": clock.local_zone_name(),
        "default_agent_name": DEFAULT_AGENT,
    }


@operation(
    "setup.execute",
    level=Level.OPEN,
    effect="idempotent",
    offline=True,
    params=Execute,
    result=SetupResult,
    errors=(BadName, BadProvider, BadText, BadTimezone, NameTaken, TooLarge),
)
async def execute(context: Context, caller: Caller, params: Execute) -> SetupResult:
    """Set up this home: the boss, a first agent and their tokens. A second call changes nothing."""
    name = (params.boss_name or "").strip() or _login_name()
    context.settings.check_word("boss_name", name)
    zone = str(clock.zone(params.timezone or clock.local_zone_name()))
    agent = check_agent_name(params.agent_name or DEFAULT_AGENT)
    async with context.changing:  # two at once would overwrite each other's profiles
        with provider_settings.chosen(context, params.provider, {}, None) as choice:
            if context.store.read(find_boss) is not None:
                choice.undo()
                return _unchanged(context)
            result = await _execute(context, name, zone, agent, choice.columns)
    context.runner.refresh()
    return result


async def _execute(context: Context, name: str, zone: str, agent: str, chosen: dict[str, Any]) -> SetupResult:
    boss_token, agent_token = tokens.new("boss"), tokens.new("agent")
    now = clock.now()

    def write(tx: Tx) -> None:
        tokens.insert(tx, boss_token, "boss", add_boss(tx, name, zone, now), now)
        tokens.insert(tx, agent_token, "agent", agents.register(tx, agent, chosen, now), now)

    with (
        context.home.keeping("boss", boss_token) as boss_profile,
        context.home.keeping(agent, agent_token) as agent_profile,
    ):
        crashpoint(SETUP_PROFILES)
        await context.store.write(write)
    # Nobody else set this home up meanwhile: only the holder of the lock writes.
    return {
        "changed": True,
        "boss_name": name,
        "timezone": zone,
        "agent_name": agent,
        "boss_token": boss_token,
        "agent_token": agent_token,
        "profiles": [boss_profile, agent_profile],
    }


def _unchanged(context: Context) -> SetupResult:
    boss = context.store.read(find_boss)
    assert boss is not None
    listed = context.store.read(agents.list_all)
    return {
        "changed": False,
        "boss_name": boss["name"],
        "timezone": boss["timezone"],
        "agent_name": listed[0]["name"] if listed else None,
        "boss_token": None,
        "agent_token": None,
        "profiles": [],
    }


def _login_name() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # a uid without a name
        return "boss"
