"""The boss's phone in the tests: a chat with a scripted account."""

from __future__ import annotations

from typing import Any

from tests.support.parties import Envelope, Party, boss
from tests.support.scripted_channels import Place
from tests.support.waits import wait_until


class Phone(Place):
    """A chat with a scripted account."""

    def reached(self, **params: Any) -> Phone:
        boss(self.daemon).call("boss.set", reach=self.address, **params)
        return self

    def says(self, text: str, **facts: Any) -> Envelope:
        """Write something in the chat; return what its agent got."""
        return self.says_to(self.owner, text, **facts)

    def says_to(self, party: Party, text: str, **facts: Any) -> Envelope:
        """Write something in the chat; return what this party got."""
        self.comes_in(f"u{len(self.digested())}-{text[:10]}", text=text, **facts)
        wait_until(lambda: any(one["text"] == text for one in party.list(page_size=100)))
        [found] = [one for one in party.list(page_size=100) if one["text"] == text]
        return found

    def post_of(self, text: str) -> str:
        """Wait until a text is posted; return the platform's id of the post."""
        wait_until(lambda: any(text in one for one in self.texts()))
        [post] = [one for one in self.posts() if text in one["chunk"]]
        return f"{post['id']}.{post['number']}"


def box(chief: Party, text: str) -> Envelope:
    """Return the one envelope with this text in the boss's box."""
    [found] = [one for one in chief.list(page_size=100) if one["text"] == text]
    return found


def forwards(chief: Party, number: str) -> list[dict[str, Any]]:
    """Return the forwards of an envelope in the boss's box."""
    with chief.daemon.database() as database:
        rows = database.execute(
            "SELECT * FROM envelopes WHERE forwards = ? ORDER BY length(id), id", (number,)
        ).fetchall()
    return [dict(row) for row in rows]
