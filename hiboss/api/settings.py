"""Operations about the settings: show them, and read them again."""

from __future__ import annotations

from typing import Annotated, cast

from pydantic import Field
from typing_extensions import TypedDict

from ..core.errors import BadConfig, BadSetting, UnknownSetting
from ..core.settings import describe
from .auth import Caller
from .context import Context
from .operation import Level, Nothing, operation


class SettingJson(TypedDict):
    setting: Annotated[str, Field(description="its section and name, like limits.text_bytes")]
    value: Annotated[int | float | str | list[str], Field(description="in force now")]
    source: Annotated[str, Field(description="default, or where in the file or environment it was set")]
    default: Annotated[int | float | str | list[str], Field(description="what it is when nothing sets it")]
    variable: Annotated[str, Field(description="the environment variable that sets it")]
    about: Annotated[str, Field(description="what it does")]
    next_start: Annotated[bool, Field(description="a change takes effect at the next start")]
    next_value: Annotated[
        int | float | str | list[str] | None,
        Field(description="the value from the next start on, if it differs"),
    ]


class SettingList(TypedDict):
    file: Annotated[str, Field(description="the path of config.toml, whether it exists or not")]
    settings: Annotated[list[SettingJson], Field(description="every setting there is")]


class ReloadedSettings(TypedDict):
    changed: Annotated[list[str], Field(description="the names of settings with a new value in force")]
    next_start: Annotated[
        list[str], Field(description="those whose new value takes effect at the next start")
    ]


@operation("config.show", level=Level.OPEN, elsewhere=Level.BOSS, result=SettingList)
def show(context: Context, caller: Caller, params: Nothing) -> SettingList:
    """List every setting: the value in force, where it comes from, and its environment variable."""
    settings = cast(list[SettingJson], describe(context.configuration))
    return {"file": context.home.config, "settings": settings}


@operation(
    "config.reload",
    level=Level.BOSS,
    effect="idempotent",
    result=ReloadedSettings,
    errors=(BadConfig, BadSetting, UnknownSetting),
)
def reload(context: Context, caller: Caller, params: Nothing) -> ReloadedSettings:
    """Read the settings again, as SIGHUP does. With an error in them the last good ones stay in force."""
    changed = context.reload()
    return {
        "changed": [str(setting) for setting in changed],
        "next_start": [str(setting) for setting in context.configuration.waiting],
    }
