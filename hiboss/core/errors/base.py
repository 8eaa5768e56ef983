"""The base class of all errors: a message with facts, a stable code, and the status for each door.

Also the exit statuses of the command line.
"""

from __future__ import annotations

from ..quoting import printable, redact

TYPE_CHECKING = False  # importing typing would cost every command 3 ms
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any, ClassVar

EXIT_REFUSED = 1
EXIT_USAGE = 2
EXIT_UNREACHABLE = 3
EXIT_TIMEOUT = 4
EXIT_WATCHED = 5
EXIT_STOPPED = 6


class HibossError(Exception):
    """something went wrong"""

    code: ClassVar[str] = "error"
    rpc: ClassVar[int] = -32000
    http: ClassVar[int] = 400
    exit: ClassVar[int] = EXIT_REFUSED

    def __init__(self, **facts: Any) -> None:
        # A token given in the wrong place (as an address, a name, a parameter) must not be shown again.
        self.facts = facts = {k: redact(v) if isinstance(v, str) else v for k, v in facts.items()}
        template = " ".join((type(self).__doc__ or self.code).split())
        shown = {name: printable(name, fact) for name, fact in facts.items()}
        super().__init__(redact(template.format(**shown)))

    def __getattr__(self, name: str) -> Any:
        # Python calls this only for names that are not real attributes: the facts.
        try:
            return self.__dict__["facts"][name]
        except KeyError:
            raise AttributeError(name) from None

    @property
    def message(self) -> str:
        return str(self)

    def payload(self) -> dict[str, Any]:
        """Return the code and the facts, which every door sends with the message."""
        return {"code": self.code, **self.facts}


def tree(root: type[HibossError] = HibossError) -> Iterator[type[HibossError]]:
    """Yield every error class, parents before children."""
    yield root
    for child in root.__subclasses__():
        yield from tree(child)


def exit_status(code: str) -> int:
    """Return the exit status for a stable code; EXIT_REFUSED for an unknown code of a newer daemon."""
    return next((cls.exit for cls in tree() if cls.code == code), EXIT_REFUSED)
