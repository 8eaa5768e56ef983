"""Words stay in their conversation: notices, reactions and context reach no turn and no screen of another one.

The agents say back everything that they are given, and ask each other with all of it.
"""

from __future__ import annotations

import random
import re
import sqlite3
from collections import defaultdict
from contextlib import closing
from pathlib import Path
from typing import ClassVar

import pytest

from hiboss.core.contracts.provider import Answer, LiveRun, Provider, Reminder, TurnInput
from hiboss.core.errors import HibossError
from hiboss.core.option_models import Options
from tests.support.in_process_daemon import InProcessDaemon, frozen
from tests.support.python_agents import is_idle

PEOPLE, AGENTS = ("ann", "bob", "cal"), ("echo", "kai")
OF_GROUP = ("ann", "bob")
SEEDS, STEPS, AT_ONCE = 10, 1_000, 40
CANARY = re.compile(r"zz-(\w+)-\d+-zz")
HOUR_MS = 3_600_000


class Parrot(Provider):
    """Says back its whole turn; now and then it asks the other agent, or sends itself a note for later."""

    name: ClassVar[str] = "parrot"
    Settings = Options
    daemon: ClassVar[InProcessDaemon]
    chance: ClassVar[random.Random]
    given: ClassVar[list[tuple[str, str]]] = []  # the agent, and what it was given

    async def take_turn(self, turn: TurnInput, run: LiveRun) -> Answer:
        self.given.append((turn.agent, turn.text))
        of_people = any(not one["auto"] and one["from"].startswith("user:") for one in turn.envelopes)
        what = self.chance.random() if of_people else 1.0
        if what < 0.3:
            [other] = {*AGENTS} - {turn.agent}
            token = turn.environment["HIBOSS_TOKEN"]
            await self.daemon.call("envelope.send", token=token, to=f"agent:{other}", text=turn.text)
        later = (Reminder(turn.text, turn.now + HOUR_MS),) if 0.3 < what < 0.4 else ()
        return Answer(text=turn.text[-20_000:], later=later)


PROVIDERS = [Parrot]


class Town:
    """People, agents and a group: what each person says has a canary of the conversation where it is said."""

    def __init__(self, daemon: InProcessDaemon, seed: int) -> None:
        self.daemon, self.chance = daemon, random.Random(seed)
        self.said: dict[str, list[str]] = defaultdict(list)  # messages, by the person that wrote them
        self.had: dict[str, set[str]] = {one: {"group"} if one in OF_GROUP else set() for one in PEOPLE}
        self.number, self.refused = 0, 0
        Parrot.daemon, Parrot.chance, Parrot.given = daemon, random.Random(seed), []

    async def begin(self) -> None:
        for name in PEOPLE:
            await self.daemon.ask("user.register", name=name, profile=True)
        for name in AGENTS:
            await self.daemon.ask("agent.register", name=name, profile=True, provider="parrot")
        parties = [f"user:{one}" for one in OF_GROUP] + [f"agent:{one}" for one in AGENTS]
        await self.daemon.ask("conversation.create", type="group", name="ops", participants=parties)

    def words(self, talk: str) -> str:
        self.number += 1
        return f"zz-{talk}-{self.number}-zz"

    async def says(self, who: str) -> None:
        agent = self.chance.choice(AGENTS)
        to, talk, more = f"agent:{agent}", f"{who}_{agent}", ""
        if who in OF_GROUP and self.chance.random() < 0.3:
            to, talk, more = "group:ops", "group", self.chance.choice(["", f"@{agent} "])
        self.had[who].add(talk)
        sent = await self.daemon.ask("envelope.send", who, to=to, text=more + self.words(talk))
        self.said[who].append((sent["message"], talk))

    async def edits(self, who: str) -> None:
        message, talk = self.chance.choice(self.said[who][-6:])
        await self.daemon.ask("message.edit", who, id=message, text=self.words(talk))

    async def deletes(self, who: str) -> None:
        message, _ = self.chance.choice(self.said[who][-6:])
        await self.daemon.ask("message.delete", who, message_id=message)

    async def reacts(self, who: str) -> None:
        found = await self.daemon.ask("envelope.list", who, page_size=10)
        message = self.chance.choice(found["envelopes"])["message"]
        await self.daemon.ask("reaction.set", who, id=message, emoji="👍")

    async def schedules(self, who: str) -> None:
        agent, talk = self.chance.choice(AGENTS), ""
        talk = f"{who}_{agent}"
        self.had[who].add(talk)
        text, minutes = self.words(talk), self.chance.randint(1, 120)
        await self.daemon.ask("cron.create", who, at=f"+{minutes}m", to=f"agent:{agent}", text=text)

    async def hands_over(self, who: str) -> None:
        """The boss gives a conversation of a person to the other agent or to another person; or back."""
        agent = self.chance.choice(AGENTS)
        other = self.chance.choice([f"agent:{one}" for one in AGENTS] + [f"user:{one}" for one in PEOPLE])
        found = await self.daemon.ask("conversation.messages", who, **{"with": f"agent:{agent}"})
        event = {"event": "stream.handoff", "conversation": found["conversation"], "to": other}
        await self.daemon.ask("control.send", **event)
        if other.startswith("user:"):
            self.had[other.removeprefix("user:")].add(f"{who}_{agent}")

    async def time_passes(self, who: str) -> None:
        await self.daemon.move(minutes=30)

    async def step(self) -> None:
        kinds = (self.says, self.edits, self.reacts, self.deletes, self.schedules, self.hands_over)
        [what] = self.chance.choices((*kinds, self.time_passes), (40, 20, 10, 5, 5, 2, 2))
        try:
            await what(self.chance.choice(PEOPLE))
        except IndexError:  # nothing is there yet
            pass
        except HibossError:
            self.refused += 1

    async def idle(self) -> None:
        with closing(sqlite3.connect(self.daemon.home.database)) as connection:
            await self.daemon.until(lambda: is_idle(connection))

    async def screen(self, who: str) -> list[str]:
        """Return everything that a person can read."""
        found, after = [], None
        while True:
            more = {} if after is None else {"cursor": after}
            page = await self.daemon.ask("message.list", who, page_size=100, **more)
            found.append(str(page))
            after = page["next"]
            if after is None:
                break
        for method in ("envelope.list", "thread.list", "conversation.list", "cron.list", "control.list"):
            found.append(str(await self.daemon.ask(method, who)))
        return found


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(SEEDS))
def test_what_is_said_in_one_conversation_is_shown_in_no_other(seed: int, tmp_path: Path) -> None:
    @frozen(quiet=False, provider_modules=__name__, runs_per_trace=100_000)
    async def story(daemon: InProcessDaemon) -> None:
        town = Town(daemon, seed)
        await town.begin()
        for number in range(STEPS):
            await town.step()
            if number % AT_ONCE == 0:
                await town.idle()
        await town.idle()
        wrong = [one for one in Parrot.given if len(set(CANARY.findall(one[1]))) > 1]
        assert wrong == [], f"{len(wrong)} of {len(Parrot.given)} turns: {wrong[0][1]}"
        for who in PEOPLE:
            seen = set(CANARY.findall("".join(await town.screen(who))))
            assert seen and seen <= town.had[who], (who, seen - town.had[who])
        assert len(Parrot.given) > STEPS / 10 and town.refused < STEPS / 10, (len(Parrot.given), town.refused)

    story(tmp_path)
