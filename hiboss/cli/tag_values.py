"""TYPE:VALUE options: the scopes and refs of messages, like module:auth."""

from __future__ import annotations

from ..core.errors import InvalidParams


def tag(text: str | None, option: str) -> dict[str, str] | None:
    """Return the scope or ref that an option means; None if it was not given."""
    if text is None:
        return None
    type_, colon, value = text.partition(":")
    if not (colon and type_.strip() and value.strip()):
        raise InvalidParams(detail=f"{option} {text[:60]} is not TYPE:VALUE, like module:auth or issue:42")
    return {"type": type_.strip(), "value": value.strip()}


def tags(given: list[str] | None, option: str) -> list[dict[str, str]]:
    """Return the scopes or refs of an option that may be repeated."""
    return [found for one in given or [] if (found := tag(one, option))]


def filters(scope: str | None, ref: str | None, *, mentions: bool) -> dict[str, object]:
    """Return the filters of a list as parameters; those that were not given are left out."""
    found = {"scope": tag(scope, "--scope"), "ref": tag(ref, "--ref"), "mentions": mentions or None}
    return {name: value for name, value in found.items() if value is not None}
