"""Operations about the settings."""

from __future__ import annotations

from typing import cast

from typing_extensions import TypedDict

from ..core.errors import BadConfig, BadSetting, UnknownSetting
from ..core.settings import described
from .auth import Caller
from .context import House
from .operation import Level, Nothing, operation


class SettingShape(TypedDict):
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
    settings: list[SettingShape]


class Reloaded(TypedDict):
    changed: list[str]
    next_start: list[str]


@operation("config.show", level=Level.OPEN, result=Shown)
async def show(house: House, caller: Caller, params: Nothing) -> Shown:
    """Every setting: the value in force, where it comes from, and its environment variable."""
    settings = cast(list[SettingShape], described(house.configuration))
    return {"file": house.home.config, "settings": settings}


@operation("config.reload", level=Level.BOSS, result=Reloaded, errors=(BadConfig, BadSetting, UnknownSetting))
async def reload(house: House, caller: Caller, params: Nothing) -> Reloaded:
    """Read the settings again, as SIGHUP does; wrong ones are refused and the last good ones stay."""
    changed = house.reload()
    return {
        "changed": [str(setting) for setting in changed],
        "next_start": [str(setting) for setting in house.configuration.waiting],
    }
