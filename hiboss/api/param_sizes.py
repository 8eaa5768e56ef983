"""How large a parameter may be. Every parameter is bounded, so that no request can keep the daemon busy.

A parameter that declares nothing has DEFAULT. One whose limit is a setting declares that as its type,
like `Text` or `Annotated[list[str], Size(values="recipients")]`. Checked before anything else looks
at the values; so is that the texts are text, without half a surrogate pair.
"""

from __future__ import annotations

from typing import Annotated, Any, NamedTuple, get_args, get_origin

from pydantic import BaseModel

from ..core.errors import InvalidParams, TooLarge
from ..core.quoting import printable
from ..core.settings import Settings

_ADVICE = {"text_bytes": "; send long content as an attachment"}


class Size(NamedTuple):
    """Limits of a parameter, as numbers or as names of settings."""

    text: int | str = 4096  # bytes of each text in it
    values: int | str = 100  # how many values it has, on all levels of lists and objects

    @property
    def by_setting(self) -> bool:
        return isinstance(self.text, str) or isinstance(self.values, str)


DEFAULT = Size()
Text = Annotated[str, Size(text="text_bytes")]
Line = Annotated[str, Size(text="subject_bytes")]
Word = Annotated[str, Size(text="word_bytes")]


def sizes(params: type[BaseModel]) -> dict[str, Size]:
    """Return the sizes that the parameters declare, by the names that requests use."""
    found = {}
    for name, field in params.model_fields.items():
        declared = next((one for one in field.metadata if isinstance(one, Size)), None)
        size = declared or _declared(field.annotation)
        if size is not None:
            found[field.alias or name] = size
    return found


def _declared(annotation: Any) -> Size | None:
    """Return the size somewhere in a type, like that of `Text | None`."""
    arguments = get_args(annotation)
    if get_origin(annotation) is Annotated:
        size = next((one for one in arguments[1:] if isinstance(one, Size)), None)
        return size or _declared(arguments[0])
    return next((size for one in arguments if (size := _declared(one)) is not None), None)


def check_sizes(operation: str, declared: dict[str, Size], given: dict[str, Any], settings: Settings) -> None:
    """Raise if a parameter is too large: TooLarge if a setting is its limit, else InvalidParams."""
    for name, value in given.items():
        kind = type(value)
        if kind in (str, list, dict):
            size = declared.get(name, DEFAULT)
            if kind is str and value.isascii() and len(value) <= _number(size.text, settings):
                continue  # nearly always
            _check(operation, name, value, size, settings)


def _check(operation: str, name: str, value: Any, size: Size, settings: Settings) -> None:
    most_bytes, most_values = _number(size.text, settings), _number(size.values, settings)
    left, to_do = most_values, [value]
    while to_do:
        one = to_do.pop()
        if isinstance(one, str):
            found = len(one) if one.isascii() else _encoded_length(operation, name, one)
            if found > most_bytes:
                _refuse(operation, name[:60], f"{found} bytes", most_bytes, size.text)
        elif isinstance(one, (list, dict)):
            left -= len(one)
            if left < 0:
                found = max(len(one), most_values + 1)
                _refuse(operation, name[:60], f"{found} values", most_values, size.values)
            to_do += one
            if isinstance(one, dict):
                to_do += one.values()


def _encoded_length(operation: str, name: str, text: str) -> int:
    """Return the bytes of a text; raise for half a surrogate pair, which the database cannot take."""
    try:
        return len(text.encode())
    except UnicodeEncodeError:
        what = "half a surrogate pair, which is no character"
        raise InvalidParams(detail=f"{operation}: {printable('name', name[:60])} contains {what}") from None


def _number(limit: int | str, settings: Settings) -> int:
    return limit if isinstance(limit, int) else int(getattr(settings, limit))


def _refuse(operation: str, name: str, found: str, most: int, limit: int | str) -> None:
    if isinstance(limit, str):
        raise TooLarge(what=name, size=found, limit=str(most), advice=_ADVICE.get(limit, ""))
    raise InvalidParams(detail=f"{operation}: {name} has {found}, and the limit is {most}")
