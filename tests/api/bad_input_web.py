"""Bad input of the operations for people with a browser (`bad_input.py`). HTTP is off in that scene."""

from __future__ import annotations

from collections.abc import Iterator

from tests.api.bad_input_row import LONG, NUL, Row, row


def browsers() -> Iterator[Row]:
    for name, words in (("web.link", "web --print"), ("web.logout", "web --logout")):
        yield row(name, {}, "not_a_person", f"{name} is for people|agent:nex", words, by="nex")
    for value in ("", " ", "gone", "user:gone", "agent:nex", NUL, "' OR 1=1 --", LONG):
        yield row("web.link", {"name": value}, "unknown_user", "no user|user list")
    yield row("web.link", {"name": "bea"}, "boss_only", "web.link for others", by="ann")
    yield row("web.link", {}, "web_unavailable", "web.enabled")
    yield row("web.logout", {"browser": 1}, "invalid_params", "browser", by="ann")
