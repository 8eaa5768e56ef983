"""Channels whose platform can change posts: what was sent there is edited and deleted."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.support.live_places import LivePlace
from tests.support.waits import wait_until

CHANGES = ("edit", "delete", "threads")


class ChangingPlace(LivePlace):
    """A channel whose platform can change posts, in chunks of five characters."""

    def __init__(self, root: Path, *capabilities: str, **settings: Any) -> None:
        super().__init__(root, *(capabilities or CHANGES), **{"chunk": 5, **settings})

    def posted(self, text: str) -> str:
        """Send a text, and return its envelope when it is posted."""
        number = self.send(text)
        self.wait_for_status(number, "done")
        return number

    def edit(self, number: str, text: str) -> None:
        assert self.owner.call("message.edit", id=number, text=text)["changed"]

    def delete(self, number: str) -> dict[str, Any]:
        return self.owner.call("message.delete", id=number)

    def left(self) -> list[dict[str, Any]]:
        """Return the changes here that are not made."""
        with self.daemon.database() as database:
            rows = database.execute(
                """
                SELECT c.* FROM post_change c JOIN envelope e ON e.id = c.envelope
                JOIN address a ON a.id = e.recipient WHERE instr(a.name, ?) ORDER BY c.envelope
                """,
                (f"{self.kind}:{self.name}",),
            )
            return [dict(row) for row in rows]

    def wait_until_in_line(self, *texts: str) -> None:
        """Wait until there is nothing left to do; then people see exactly this."""
        wait_until(lambda: self.left() == [])
        assert self.seen() == list(texts)
        self.daemon.check()

    def calls(self) -> list[tuple[str, str]]:
        return [(one["do"], one["id"].partition(".")[2]) for one in self.changes()]
