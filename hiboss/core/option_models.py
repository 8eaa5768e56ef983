"""The options of an adapter or a provider, declared once as a pydantic model.

    class Settings(Options):
        url: str = Field(description="where turns are sent")
        key: SecretStr = Field(description="the key of the account")

From the model come the flags of the command line (`--url`), the parameters of the API, the docs and
the check. A field of type SecretStr is a secret: it is stored in a file, never in the database, and
never shown. A secret with a `default_factory` is made by hiboss when it is not given, and shown once.
"""

from __future__ import annotations

import json
import math
import types
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple, TypeVar, Union, get_args, get_origin

from pydantic import BaseModel, ConfigDict, SecretStr, ValidationError
from pydantic.fields import FieldInfo
from pydantic_core import ErrorDetails, PydanticUndefined

from .contracts.failures import Refused
from .quoting import LONGEST_SECRET, hide, nearest, printable, redact

LONGEST_TEXT = LONGEST_SECRET  # characters of one value
LONGEST_NAME = 60  # characters of an unknown name that a message shows
PROBLEMS_TOLD = 5
MOST = 2**63 - 1  # of an integer, also below zero: more bits cannot be sent as JSON to everybody
TOO_LARGE = f"must be a number of at most {MOST}"
Model = TypeVar("Model", bound=BaseModel)


class Options(BaseModel):
    """The base of every model of options. Its values do not change, and errors never show them."""

    model_config = ConfigDict(extra="forbid", frozen=True, hide_input_in_errors=True)


class Option(NamedTuple):
    """One option, as `adapter.list` and `provider.list` show it."""

    name: str  # of the field, and of the parameter in the API
    flag: str  # on the command line
    type: str  # text, integer, number, boolean, path (absolute), json
    repeated: bool  # it is a list: the flag can be given several times
    choices: tuple[str, ...]  # the only values; empty: any
    required: bool
    secret: bool
    default: Any  # as JSON; None when there is none
    description: str


class Validated(NamedTuple):
    """Checked options: what is stored as JSON, and the secrets, which are stored elsewhere."""

    settings: dict[str, Any]
    secrets: dict[str, str]
    made: tuple[str, ...] = ()  # the names of secrets that were not given but made: show these once


def flag(name: str) -> str:
    """Return the flag of a field: `--max-size` for `max_size`."""
    return "--" + name.replace("_", "-")


def shown_flag(name: str) -> str:
    """Return the flag of a name that somebody gave, for a message: it may be anything, also a secret."""
    return flag(str(printable("name", redact(name[:LONGEST_NAME]))))


def describe(model: type[BaseModel]) -> list[Option]:
    """Return the options of a model, in its order."""
    return [_option(name, field) for name, field in model.model_fields.items()]


def validate(model: type[BaseModel], given: Mapping[str, Any], whose: str) -> Validated:
    """Check what was given and return settings and secrets; raise Refused, with what would be right.

    `given` comes from the command line (texts) or from the API (any JSON). None stands for "not given".
    `whose` is the name of the adapter or provider, for messages. Only what was given is stored: a
    default may change in a later version.
    """
    options = {one.name: one for one in describe(model)}
    named = {name.replace("-", "_"): value for name, value in given.items() if value is not None}
    if unknown := sorted(named.keys() - options.keys()):
        raise Refused(_unknown(unknown[0], options, whose))
    read = {name: _read(options[name], value) for name, value in named.items()}
    checked = _checked(model, read, options)
    for name, value in checked.model_dump(exclude_unset=True).items():
        if problem := _unstorable(value):
            raise Refused(f"{flag(name)} {problem}")
    settings, found, _ = split(checked)
    made = tuple(name for name in found if name not in named)
    return Validated(settings, found, made)


def split(checked: BaseModel) -> Validated:
    """Return the settings and the secrets of a model with its values, apart from each other."""
    names = [one.name for one in describe(type(checked)) if one.secret]
    secrets = {name: _secret(getattr(checked, name)) for name in names}
    settings = checked.model_dump(mode="json", exclude_unset=True, exclude={*secrets})
    return Validated(settings, {name: value for name, value in secrets.items() if value is not None})


def presentable(value: Any) -> Any:
    """Return stored settings as they can be shown, whatever is stored: a number beyond JSON as a text."""
    if isinstance(value, dict):
        return {name: presentable(one) for name, one in value.items()}
    if isinstance(value, list):
        return [presentable(one) for one in value]
    return str(value) if isinstance(value, (int, float)) and _unstorable(value) else value


def load(model: type[Model], settings: Mapping[str, Any], secrets: Mapping[str, str]) -> Model:
    """Return the model with stored values; raise Refused when they fit no longer (its code was changed)."""
    for name, field in model.model_fields.items():  # a secret that was made, and is lost, is not made again
        if (
            field.default_factory is not None
            and name not in secrets
            and _item_type(field.annotation)[0] is SecretStr
        ):
            raise Refused(f"{flag(name)} is missing: {field.description}")
    return _checked(model, {**settings, **secrets}, {one.name: one for one in describe(model)})


def mistakes(model: object, reserved: Iterable[str] = ()) -> list[str]:
    """Return what is wrong with a model itself, for its author. `reserved`: names the command has already."""
    if not isinstance(model, type) or not issubclass(model, BaseModel):
        return ["Settings must be a pydantic model (class Settings(Options))"]
    found = []
    for one in describe(model):
        if not one.description:
            found.append(f"{one.name} needs a description: Field(description=…)")
        if one.name in reserved:
            found.append(f"{one.name} is taken by the command itself; choose another name")
    return found


# --- describe ------------------------------------------------------------------------


def _option(name: str, field: FieldInfo) -> Option:
    annotation, repeated = _item_type(field.annotation)
    secret = annotation is SecretStr
    default = None if secret or field.default is PydanticUndefined else _plain(field.default)
    return Option(
        name=name,
        flag=flag(name),
        type=_type_word(annotation),
        repeated=repeated,
        choices=tuple(map(str, get_args(annotation))) if get_origin(annotation) is Literal else (),
        required=field.is_required(),
        secret=secret,
        default=default,
        description=field.description or "",
    )


def _item_type(annotation: Any) -> tuple[Any, bool]:
    """Return the type of one value without `| None`, and whether there can be several of them."""
    annotation = _bare(annotation)
    if get_origin(annotation) in (list, tuple, set, frozenset):
        return _bare(get_args(annotation)[0]), True
    return annotation, False


def _bare(annotation: Any) -> Any:
    if get_origin(annotation) is Annotated:
        return _bare(get_args(annotation)[0])
    if get_origin(annotation) in (Union, types.UnionType):
        inside = [one for one in get_args(annotation) if one is not type(None)]
        return _bare(inside[0]) if len(inside) == 1 else str
    return annotation


def _type_word(annotation: Any) -> str:
    words = {bool: "boolean", int: "integer", float: "number", Path: "path", dict: "json"}
    origin = get_origin(annotation) or annotation
    if isinstance(origin, type) and issubclass(origin, BaseModel):
        return "json"
    return words.get(origin, "text")


def _plain(value: Any) -> Any:
    """Return a default in a form that JSON has."""
    if isinstance(value, (list, tuple, set, frozenset)):
        return [_plain(one) for one in value]
    return value if value is None or isinstance(value, (str, int, float, bool, dict)) else str(value)


# --- validate ------------------------------------------------------------------------


def _read(option: Option, value: Any) -> Any:
    """Return a value in the form that pydantic takes: the command line gives only texts."""
    if option.repeated and not isinstance(value, (list, tuple)):
        value = [value]
    for one in value if option.repeated else [value]:
        if isinstance(one, str) and (problem := _unusable(one)):
            raise Refused(f"{option.flag} {problem}")
    if option.type == "json" and isinstance(value, str):
        try:
            return json.loads(value)
        except (ValueError, RecursionError):
            raise Refused(f"{option.flag} must be a JSON object") from None
    return value


def _unusable(text: str) -> str:
    if len(text) > LONGEST_TEXT:
        return f"is longer than {LONGEST_TEXT} characters"
    try:
        text.encode()
    except UnicodeEncodeError:
        return "contains half of a surrogate pair"
    return "contains a NUL" if "\x00" in text else ""


def _unstorable(value: Any) -> str:
    """Return why a value, or one inside it, cannot be stored and shown as JSON; empty: it can."""
    if isinstance(value, Mapping):
        return next(filter(None, map(_unstorable, value.values())), "")
    if isinstance(value, (list, tuple, set, frozenset)):
        return next(filter(None, map(_unstorable, value)), "")
    if isinstance(value, int) and abs(value) > MOST:
        return TOO_LARGE
    if isinstance(value, float) and not math.isfinite(value):
        return "must be a finite number"
    return ""


def _checked(model: type[Model], values: Mapping[str, Any], options: Mapping[str, Option]) -> Model:
    """Return the model with these values. From now on its secrets are shown nowhere, also in errors."""
    secrets = [name for name, one in options.items() if one.secret]
    hide(str(values[name]) for name in secrets if values.get(name) is not None)
    try:
        checked = model.model_validate(values)
        hide(filter(None, (_secret(getattr(checked, name)) for name in secrets)))  # also those it made
        return checked
    except ValidationError as error:
        told = [_problem(one, options) for one in error.errors(include_url=False)[:PROBLEMS_TOLD]]
        raise Refused("; ".join(dict.fromkeys(told))) from None  # its values may be secrets


def _unknown(name: str, options: Mapping[str, Option], whose: str) -> str:
    listed = ", ".join(one.flag for one in options.values()) or "no options"
    hint = nearest(flag(name), [one.flag for one in options.values()])
    return f"{shown_flag(name)} is not an option of {whose}{hint}; it takes {listed}"


def _problem(problem: ErrorDetails, options: Mapping[str, Option]) -> str:
    """Return one problem as a sentence: which option, and what would be right. It never shows the value."""
    where, kind, facts = problem["loc"], problem["type"], problem.get("ctx", {})
    if kind == "value_error" and not where:  # a validator of the whole model names the options itself
        return str(facts["error"])
    option = options.get(str(where[0])) if where else None
    name = option.flag if option else ".".join(map(str, where))
    if kind == "missing":
        return f"{name} is missing" + (f": {option.description}" if option else "")
    if kind == "value_error":
        return f"{name}: {facts['error']}"
    if kind == "int_parsing_size":
        return f"{name} {TOO_LARGE}"
    if kind == "path_type":
        return f"{name} must be a path"
    if kind == "literal_error" and option is not None:
        given = problem["input"]
        hint = nearest(given, list(option.choices)) if isinstance(given, str) and not option.secret else ""
        return f"{name} must be one of {', '.join(option.choices)}{hint}"
    text = problem["msg"].replace("Input should", "must").replace("Value should", "must")
    return f"{name} {text[:1].lower()}{text[1:]}"


def _secret(value: SecretStr | None) -> str | None:
    return None if value is None else value.get_secret_value()
