"""docs/reference/errors.md, from the tree of errors."""

from __future__ import annotations

from hiboss.core import errors

from .markdown import code, page, table

INTRO = """
Every error has a code that stays the same from version to version. It is what a program should look at:
`code:` on standard error, `error.code` with `--json`, `error.data.code` over the socket. The
message says what was wrong and what would be right; words in braces are filled in, and travel beside the
message under the same name. An error *below* another one is a special case of it.
"""


def make() -> str:
    # Some classes exist only to be told apart in the code.
    rows = list({tuple(row): row for row in map(_row, errors.tree())}.values())
    titles = ("code", "below", "RPC", "HTTP", "exit", "message")
    return page("Errors", INTRO, table(titles, rows))


def says(cls: type[errors.HibossError]) -> str:
    """The message, before anything is filled in."""
    return " ".join((cls.__doc__ or "").split())


def _row(cls: type[errors.HibossError]) -> list[str]:
    parent = cls.__mro__[1]
    below = code(parent.code) if issubclass(parent, errors.HibossError) else ""
    return [code(cls.code), below, str(cls.rpc), str(cls.http), str(cls.exit), says(cls)]
