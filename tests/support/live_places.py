"""Channels whose platform can change posts, and agents that write their answers bit by bit."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from tests.support.python_agents import PythonAgent, Team
from tests.support.scripted_channels import Place, Step
from tests.support.waits import wait_until

LIVE = ("edit", "delete", "typing", "threads")
QUICK = {"live_seconds": "0.02"}  # what takes a second for people


class LivePlace(Place):
    """A scripted channel, and what people see there."""

    def __init__(self, root: Path, *capabilities: str, **settings: Any) -> None:
        super().__init__(root)
        self.settings(capabilities=capabilities or LIVE, **settings)

    def seen(self) -> list[str]:
        """Return the texts that are there now, in the order in which they were posted."""
        texts = {f"{one['id']}.{one['number']}": one["chunk"] for one in self.posts()}
        for change in self.changes():
            if change["do"] == "delete":
                texts.pop(change["id"], None)
            elif change["id"] in texts:
                texts[change["id"]] = change["chunk"]
        return list(texts.values())

    def changes(self, do: str | None = None) -> list[dict[str, Any]]:
        return [one for one in self._lines("changes") if do in (None, one["do"])]

    def signs(self, sign: str) -> list[dict[str, Any]]:
        return [one for one in self._lines("signs") if one["sign"] == sign]

    def script_for(self, call: str, *steps: Step) -> None:
        """Say what happens to the next edits, deletes or signs."""
        new = self.root / f"{call}.written"
        new.write_text("".join(json.dumps(step) + "\n" for step in steps))
        os.replace(new, self.root / f"{call}.jsonl")

    def wait_until_seen(self, *texts: str) -> None:
        wait_until(lambda: self.seen() == list(texts))

    def rows(self) -> list[dict[str, Any]]:
        """Return the live posts of the store."""
        with self.daemon.database() as database:
            return [dict(row) for row in database.execute("SELECT * FROM live_post ORDER BY run")]

    def is_settled(self) -> bool:
        return not [row for row in self.rows() if row["binding"] == self.binding]

    def _lines(self, name: str) -> list[dict[str, Any]]:
        file = self.root / f"{name}.jsonl"
        return [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []


class Writer:
    """An agent that says something, waits for the test, and ends with what the test chose."""

    def __init__(
        self, team: Team, name: str, end: str = 'print("and done")', first: str = 'print("well…")'
    ) -> None:
        self.go = team.place(f"{name}.go")
        self.agent: PythonAgent = team.hire(
            f'{first}; sys.stdout.flush(); wait_for("{name}.go"); {end}', name=name
        )

    def goes_on(self) -> None:
        self.go.touch()

    def status(self) -> str:
        return str(self.agent.runs()[-1]["status"])
