"""What every error of ours is: a message with its facts, a stable code, and what each door makes of it.

The errors themselves are in `errors`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar

from ..quoting import redact, shown

EXIT_REFUSED = 1
EXIT_USAGE = 2
EXIT_UNREACHABLE = 3
EXIT_TIMEOUT = 4
EXIT_ARMED = 5
EXIT_STOPPED = 6


class HibossError(Exception):
    """something went wrong"""

    code: ClassVar[str] = "error"
    rpc: ClassVar[int] = -32000
    http: ClassVar[int] = 400
    exit: ClassVar[int] = EXIT_REFUSED

    def __init__(self, **facts: Any) -> None:
        # A token given in the wrong place (as an address, a name, a parameter) must not be said again.
        self.facts = facts = {k: redact(v) if isinstance(v, str) else v for k, v in facts.items()}
        template = " ".join((type(self).__doc__ or self.code).split())
        super().__init__(redact(template.format(**{name: shown(name, fact) for name, fact in facts.items()})))

    def __getattr__(self, name: str) -> Any:
        # Only reached for names that are not real attributes: the facts.
        try:
            return self.__dict__["facts"][name]
        except KeyError:
            raise AttributeError(name) from None

    @property
    def message(self) -> str:
        return str(self)

    def payload(self) -> dict[str, Any]:
        """What every door sends along with the message."""
        return {"code": self.code, **self.facts}


def tree(root: type[HibossError] = HibossError) -> Iterator[type[HibossError]]:
    """Every error class, parents before children."""
    yield root
    for child in root.__subclasses__():
        yield from tree(child)


def exit_status(code: str) -> int:
    """The exit status of the error with this stable code (also of one from a newer daemon)."""
    return next((cls.exit for cls in tree() if cls.code == code), EXIT_REFUSED)
