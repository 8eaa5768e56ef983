"""Operations about the settings."""

from __future__ import annotations

from typing import cast

from typing_extensions import TypedDict

from ..core.errors import BadConfig, BadSetting, UnknownSetting
from ..core.settings import describe
from .auth import Caller
from .context import Context
from .operation import Level, Nothing, operation


class SettingJson(TypedDict):
    setting: str
    value: int | float | str | list[str]
    source: str
    default: int | float | str | list[str]
    variable: str
    about: str
    next_start: bool  # it changes with the next start
    next_value: int | float | str | list[str] | None


class Shown(TypedDict):
    file: str
    settings: list[SettingJson]


class Reloaded(TypedDict):
    changed: list[str]
    next_start: list[str]


@operation("config.show", level=Level.OPEN, result=Shown)
async def show(context: Context, caller: Caller, params: Nothing) -> Shown:
    """Every setting: the value in force, where it comes from, and its environment variable."""
    settings = cast(list[SettingJson], describe(context.configuration))
    return {"file": context.home.config, "settings": settings}


@operation("config.reload", level=Level.BOSS, result=Reloaded, errors=(BadConfig, BadSetting, UnknownSetting))
async def reload(context: Context, caller: Caller, params: Nothing) -> Reloaded:
    """Read the settings again, as SIGHUP does; wrong ones are refused and the last good ones stay."""
    changed = context.reload()
    return {
        "changed": [str(setting) for setting in changed],
        "next_start": [str(setting) for setting in context.configuration.waiting],
    }
