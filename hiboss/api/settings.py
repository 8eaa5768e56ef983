"""Operations about the settings: show them, and read them again."""

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
    source: str  # default, or where in the file or environment it was set
    default: int | float | str | list[str]
    variable: str  # the environment variable that sets it
    about: str  # what it does
    next_start: bool  # a change takes effect at the next start
    next_value: int | float | str | list[str] | None  # the value from the next start on, if it differs


class SettingList(TypedDict):
    file: str
    settings: list[SettingJson]


class ReloadedSettings(TypedDict):
    changed: list[str]  # the names of settings with a new value in force
    next_start: list[str]  # those whose new value takes effect at the next start


@operation("config.show", level=Level.OPEN, result=SettingList)
def show(context: Context, caller: Caller, params: Nothing) -> SettingList:
    """List every setting: the value in force, where it comes from, and its environment variable."""
    settings = cast(list[SettingJson], describe(context.configuration))
    return {"file": context.home.config, "settings": settings}


@operation(
    "config.reload", level=Level.BOSS, result=ReloadedSettings, errors=(BadConfig, BadSetting, UnknownSetting)
)
def reload(context: Context, caller: Caller, params: Nothing) -> ReloadedSettings:
    """Read the settings again, as SIGHUP does. With an error in them the last good ones stay in force."""
    changed = context.reload()
    return {
        "changed": [str(setting) for setting in changed],
        "next_start": [str(setting) for setting in context.configuration.waiting],
    }
