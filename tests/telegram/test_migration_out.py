"""A group of Telegram that gets another id: what is posted follows it, announced or not, once and in order."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from hiboss.routing import handover
from hiboss.testing.bot_api.bots import Bot
from hiboss.testing.bot_api.faults import Fault
from hiboss.testing.bot_api.groups import Group
from tests.support.crash_groups import groups_of
from tests.support.python_agents import PythonAgent
from tests.support.telegram_bots import TelegramDaemon, address, answer_to, telegram_daemon
from tests.support.waits import wait_until

pytestmark = pytest.mark.slow

ANSWERS = 'print(f"heard {TEXTS[-1]}")'
LONG = "".join(f"{number:04}\n" for number in range(1_600))  # more than one post


@pytest.fixture
def office(tmp_path: Path) -> Iterator[TelegramDaemon]:
    with telegram_daemon(tmp_path) as running:
        yield running


class Desk:
    """An agent, its bot, and a small group that can become a large one."""

    def __init__(self, office: TelegramDaemon) -> None:
        self.office = office
        self.ada = office.api.add_person("Ada", username="ada")
        self.bob = office.api.add_person("Bob", username="bob")
        self.kai: PythonAgent = office.team.hire(ANSWERS, "kai")
        self.bot: Bot = office.bound_bot("kaibot", "kai", privacy=False)
        self.his = office.pair(self.ada, self.bot)
        self.group = office.api.add_group("Ops", [self.ada, self.bob, self.bot], supergroup=False)
        office.approve(self.group)

    def silence(self, *others: Bot) -> list[Fault]:
        """Let nothing come in; return when each bot has met that, also with a poll that had just begun."""
        api = self.office.api
        faults = [api.fault("getUpdates", status=500, times=None, bot=one.id) for one in (self.bot, *others)]

        def met() -> bool:
            api.interrupt_polls()
            return all(one.hits for one in faults)

        wait_until(met)
        return faults

    def hear_again(self, silence: list[Fault]) -> None:
        for one in silence:
            one.clear()
        self.office.settle(60)

    def send(self, to: Group, text: str, **params: Any) -> str:
        return str(self.kai.send(address(to), text=text, **params)["ids"][0])

    def wait_until_done(self, *envelopes: str) -> None:
        wait_until(lambda: {self.status(one) for one in envelopes} == {"done"})

    def status(self, envelope: str) -> str:
        return str(self.office.boss.call("envelope.get", id=envelope)["envelope"]["status"])

    def texts(self, group: Group, bot: Bot | None = None) -> list[str]:
        """Return what the bot posted in a group."""
        own = [one for one in group.messages if one.sender is (bot or self.bot)]
        return [one.text for one in own if not one.service]

    def chats(self) -> list[tuple[str, str | None, str]]:
        """Return the groups that are known, each with the id that it had before."""
        rows = self.office.rows(
            "SELECT platform_id, was, state FROM contact WHERE kind = 'group' ORDER BY id"
        )
        return [(row["platform_id"], row["was"], row["state"]) for row in rows]

    def moved(self, new: Group) -> tuple[str, str, str]:
        return (str(new.id), str(self.group.id), "allowed")


def test_what_is_posted_follows_a_group_before_its_move_is_announced(office: TelegramDaemon) -> None:
    desk = Desk(office)
    desk.wait_until_done(desk.send(desk.group, "before"))
    silence = desk.silence()
    new = desk.group.migrate()
    sent = [desk.send(desk.group, "message 0")]
    new.wait_for_text("message 0")
    desk.wait_until_done(*sent, *(desk.send(new, f"message {number}") for number in (1, 2)))
    assert desk.texts(desk.group) == ["before"]
    assert desk.texts(new) == [f"message {number}" for number in range(3)]
    assert desk.chats() == [desk.moved(new)]
    facts = office.boss.call("envelope.get", id=sent[0])["envelope"]
    assert (facts["to"], facts["attempts"]) == (address(new), 0)
    assert not office.rows("SELECT id FROM lane WHERE failures > 0")
    # Now it is announced: nothing changes, and people there are heard.
    desk.hear_again(silence)
    assert desk.chats() == [desk.moved(new)]
    assert answer_to(new, desk.bob.says(new, "@kai hello")).text == "heard @kai hello"
    desk.wait_until_done(desk.send(new, "after"))
    assert desk.texts(new)[-1] == "after"


def test_what_came_late_with_the_old_id_is_of_the_same_chat(office: TelegramDaemon) -> None:
    desk = Desk(office)
    silence = desk.silence()
    desk.bob.says(desk.group, "@kai just before")
    new = desk.group.migrate()
    desk.wait_until_done(desk.send(desk.group, "one"))
    desk.hear_again(silence)
    new.wait_for_text("heard @kai just before")
    assert (desk.chats(), desk.texts(desk.group)) == ([desk.moved(new)], [])


def test_a_move_that_is_announced_while_something_is_posted_counts_once(office: TelegramDaemon) -> None:
    desk = Desk(office)
    hangs = office.api.fault("sendMessage", chat=desk.group, do="hang")
    sent = [desk.send(desk.group, f"message {number}") for number in range(3)]
    wait_until(lambda: hangs.hits)
    new = desk.group.migrate()
    wait_until(lambda: desk.chats() == [desk.moved(new)])
    hangs.release()
    desk.wait_until_done(*sent)
    assert (desk.texts(new), desk.texts(desk.group)) == ([f"message {number}" for number in range(3)], [])


def test_the_rest_of_a_long_text_follows(office: TelegramDaemon) -> None:
    desk = Desk(office)
    silence = desk.silence()
    late = office.api.fault("sendMessage", chat=desk.group, do="hang", carry_out=True)
    sent = desk.send(desk.group, LONG)
    desk.group.wait_for_text("0000")
    new = desk.group.migrate()
    late.release()
    desk.wait_until_done(sent)
    assert "\n".join([*desk.texts(desk.group), *desk.texts(new)]).split() == LONG.split()
    assert len(desk.texts(desk.group)) == 1
    desk.hear_again(silence)
    (post,) = [one for one in new.messages if one.text == desk.texts(new)[0]]
    assert answer_to(new, desk.bob.says(new, "why?", reply_to=post)).text == "heard why?"


def test_two_bots_in_a_group_both_follow(office: TelegramDaemon) -> None:
    desk = Desk(office)
    mia = office.team.hire(ANSWERS, "mia")
    other = office.bound_bot("miabot", "mia", privacy=False)
    desk.group.add(other)
    wait_until(lambda: len(desk.chats()) == 2)
    binding = office.binding(other)["binding"]
    office.boss.call("contact.approve", contact=address(desk.group), binding=binding)
    office.wait_until_posted(desk.group)  # a post of the other bot would be told of the move
    silence = desk.silence(other)
    new = desk.group.migrate()
    desk.wait_until_done(desk.send(desk.group, "from kai"))
    (second,) = mia.send(address(new), text="from mia")["ids"]
    desk.wait_until_done(second)
    assert (desk.texts(new), desk.texts(new, other)) == (["from kai"], ["from mia"])
    assert desk.moved(new) in desk.chats()  # of the bot that was told; the other one has heard nothing yet
    desk.hear_again(silence)
    assert desk.chats() == [desk.moved(new)] * 2


def test_schedules_and_an_answer_that_grows_follow(office: TelegramDaemon) -> None:
    desk = Desk(office)
    made = desk.kai.call("cron.create", to=[address(desk.group)], text="tick", every="1h")
    desk.kai.program.write(
        'print("growing", flush=True); wait_for("go"); print("and done")', office.daemon.home.socket
    )
    desk.bob.says(desk.group, "@kai grow")
    desk.group.wait_for_text("growing")
    silence = desk.silence()
    new = desk.group.migrate()
    office.team.place("go").touch()
    new.wait_for_text("and done")
    desk.wait_until_done(*desk.kai.call("cron.run", id=made["id"])["ids"])
    assert desk.texts(new) == ["growing\nand done", "tick"]
    wait_until(lambda: not office.rows("SELECT run FROM live_post"))
    desk.hear_again(silence)
    assert desk.chats() == [desk.moved(new)]


@pytest.mark.parametrize("point", ["delivery.moved", "delivery.settled", "store.after_commit"])
def test_killed_at_that_moment_it_follows_after_the_next_start(
    office: TelegramDaemon, tmp_path: Path, point: str
) -> None:
    desk = Desk(office)
    office.daemon.stop()
    armed = tmp_path / "armed"
    office.start(HIBOSS_CRASH_AT=f"{point}@{armed}", **groups_of(handover._moved))
    silence = desk.silence()
    new = desk.group.migrate()
    hangs = office.api.fault("sendMessage", chat=desk.group, do="hang")
    sent = [desk.send(desk.group, f"message {number}") for number in range(3)]
    wait_until(lambda: hangs.hits)
    armed.touch()
    hangs.release()
    office.daemon.wait_for_death()
    office.start()
    desk.wait_until_done(*sent)
    assert desk.texts(new) == [f"message {number}" for number in range(3)]
    desk.hear_again(silence)
    assert desk.chats() == [desk.moved(new)]


def test_a_group_that_is_said_to_have_moved_to_itself_waits(office: TelegramDaemon) -> None:
    desk = Desk(office)
    body = {
        "ok": False,
        "error_code": 400,
        "description": "Bad Request: group chat was upgraded to a supergroup chat",
        "parameters": {"migrate_to_chat_id": desk.group.id},
    }
    office.api.fault("sendMessage", chat=desk.group.id, status=400, body=body)
    sent = desk.send(desk.group, "one")
    wait_until(lambda: office.rows("SELECT id FROM lane WHERE error_kind = 'chat_moved'"))
    assert desk.chats() == [(str(desk.group.id), None, "allowed")]
    desk.wait_until_done(sent, desk.send(desk.group, "two"))
    assert desk.texts(desk.group) == ["one", "two"]
