"""The options of adapters and providers, as operations show them."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BaseModel, Field
from typing_extensions import TypedDict

from ..core.option_models import describe


class OptionField(TypedDict):
    name: Annotated[str, Field(description="as in `settings`")]
    flag: Annotated[str, Field(description="on the command line")]
    type: Annotated[
        str, Field(description="text, integer, number, boolean, path (an absolute one) or json (an object)")
    ]
    repeated: Annotated[bool, Field(description="true: it is a list of such values")]
    choices: Annotated[list[str], Field(description="the only values; empty: any")]
    required: Annotated[bool, Field(description="true: nothing works without it")]
    secret: Annotated[bool, Field(description="true: it is stored apart, and never shown")]
    default: Annotated[Any, Field(description="what counts when it is not given; null: nothing")]
    description: Annotated[str, Field(description="what it is for")]


def option_fields(model: type[BaseModel]) -> list[OptionField]:
    return [
        {
            "name": one.name,
            "flag": one.flag,
            "type": one.type,
            "repeated": one.repeated,
            "choices": list(one.choices),
            "required": one.required,
            "secret": one.secret,
            "default": one.default,
            "description": one.description,
        }
        for one in describe(model)
    ]
