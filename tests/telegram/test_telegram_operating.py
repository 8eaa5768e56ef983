"""Running a bot: gaps, what is kept, binding without a check, being blocked, quiet hours, and what an attack found."""

from __future__ import annotations

import json

import pytest

from hiboss.core import clock
from hiboss.testing.bot_api.chats import Chat
from hiboss.testing.bot_api.messages import Message
from tests.support.python_agents import QUIET, PythonAgent, wait_until_idle
from tests.support.quiet_nights import begin_night, end_night
from tests.support.telegram_bots import Cast, Stage, TelegramDaemon, address, answer_to, opened
from tests.support.waits import wait_until

DAY = 86_400_000  # milliseconds


def notices(office: TelegramDaemon, words: str) -> list[str]:
    found = office.boss.call("envelope.list", page_size=50)["envelopes"]
    return [one["text"] for one in found if words in one["text"]]


def test_after_more_than_a_day_the_boss_is_told_once_from_when_to_when_messages_may_be_missing(
    own_office: TelegramDaemon,
) -> None:
    bot = own_office.bound_bot("nexbot")
    with own_office.daemon.database() as database:
        wait_until(lambda: database.execute("SELECT position FROM binding").fetchone()[0] is not None)
    own_office.daemon.stop()
    since = clock.wall() - 2 * DAY
    with own_office.daemon.database() as database:
        position = json.loads(database.execute("SELECT position FROM binding").fetchone()[0])
        database.execute("UPDATE binding SET position = ?", (json.dumps(position | {"at": since}),))
        database.commit()
    own_office.start()
    wait_until(lambda: notices(own_office, "may be missing"))
    polls = len(own_office.polls(bot))
    own_office.daemon.stop()
    own_office.start()
    own_office.api.wait_for(lambda: len(own_office.polls(bot)) > polls)
    (told,) = notices(own_office, "may be missing")
    assert clock.iso(since)[:16] in told and "telegram:@nexbot" in told


def test_how_updates_came_is_forgotten_after_a_week_but_not_of_what_is_held_or_waits(
    own_office: TelegramDaemon,
) -> None:
    bot, ada, eve = (
        own_office.bound_bot("nexbot"),
        own_office.api.add_person("Ada"),
        own_office.api.add_person("Eve"),
    )
    chat = own_office.pair(ada, bot)
    ada.says(chat, "hello")
    stranger = eve.starts(bot)
    eve.says(stranger, "let me in")
    wait_until(lambda: own_office.texts(chat) == ["hello"] and own_office.contact(stranger)["held"] == 1)
    own_office.daemon.stop()
    with own_office.daemon.database() as database:
        database.execute("UPDATE platform_update SET received_at = received_at - ?", (8 * DAY,))
        before = database.execute("SELECT count(*) FROM platform_update WHERE raw IS NOT NULL").fetchone()[0]
        database.commit()
    assert before == 2
    own_office.start(HIBOSS_DAEMON_HEARTBEAT_SECONDS="1")

    def kept() -> list[str]:
        with own_office.daemon.database() as database:
            rows = database.execute("SELECT outcome FROM platform_update WHERE raw IS NOT NULL")
            return [row["outcome"] for row in rows]

    wait_until(lambda: kept() == ["held"])
    own_office.approve(stranger)
    wait_until(lambda: own_office.texts(stranger) == ["let me in"])
    (hello,) = [one for one in chat.messages if one.text == "hello"]
    ada.says(chat, "and now?", reply_to=hello)  # the row is still there, so the reply is linked
    assert own_office.wait_for_stored(chat, "and now?")["reply_to"] == own_office.stored(chat)[0]["id"]


def test_a_bot_is_bound_without_a_check_while_nothing_answers_and_works_later(
    own_office: TelegramDaemon,
) -> None:
    bot, ada = own_office.api.add_bot("nexbot"), own_office.api.add_person("Ada")
    own_office.api.stop_listening()
    params = {"name": "nex", "adapter_type": "telegram", "settings": {"adapter_token": bot.token}}
    assert own_office.boss.refusal("agent.bind", **params) == "account_refused"
    assert own_office.boss.call("agent.bind", **params, connect=False)["created"] is True
    wait_until(lambda: own_office.binding(bot)["last_error"])
    own_office.api.listen_again()
    chat = own_office.pair(ada, bot)
    ada.says(chat, "hello")
    wait_until(lambda: own_office.texts(chat) == ["hello"])


def test_the_boss_who_blocks_the_bot_and_lets_it_write_again_is_reached_again(
    own_office: TelegramDaemon,
) -> None:
    bot, ada = own_office.bound_bot("nexbot"), own_office.api.add_person("Ada")
    chat = own_office.pair(ada, bot)
    assert own_office.boss.call("boss.get")["reach"] == address(chat)
    ada.blocks(bot)
    wait_until(lambda: own_office.boss.call("boss.get")["reach"] is None)
    ada.unblocks(bot)
    wait_until(lambda: own_office.boss.call("boss.get")["reach"] == address(chat))


# --- quiet hours ----------------------------------------------------------------------


class Scene:
    """Ada, who is the boss, with a chat where her mail is posted; an agent, and strangers."""

    def __init__(self, office: TelegramDaemon) -> None:
        self.office = office
        self.ada = office.api.add_person("Ada", username="ada")
        self.kai = office.team.hire(QUIET, "kai")
        self.bot = office.bound_bot("kaibot", "kai")
        self.his = office.pair(self.ada, self.bot)
        office.boss.call("boss.set", reach=address(self.his))
        self._first = len(self.his.messages)

    def stranger(self, name: str) -> None:
        """Let somebody unknown write; return when the boss was told."""
        told = len(self.told())
        self.office.api.add_person(name).starts(self.bot)
        wait_until(lambda: len(self.told()) > told)

    def told(self) -> list[str]:
        return [one for one in self.office.boss.told() if "wants to write" in one]

    def posts(self) -> list[Message]:
        """Return what the bot has posted since the beginning, when nothing waits to be."""
        wait_until_idle(self.office.daemon)
        pending = "SELECT id FROM envelope WHERE binding IS NOT NULL AND status = 0 AND waits IS NULL"
        wait_until(lambda: not self.office.rows(pending))
        return [one for one in self.his.messages[self._first :] if one.sender is self.bot and not one.service]

    def fails(self, text: str) -> None:
        """Let the boss's mail to somebody who has blocked the bot fail; return when he was told."""
        told = len(self.office.boss.told())
        bob = self.office.api.add_person("Bob")
        chat = self.office.approved(bob, self.bot)
        bob.blocks(self.bot)
        self.office.boss.call("envelope.send", to=address(chat), text=text)
        wait_until(lambda: any("Not delivered" in one for one in self.office.boss.told()[told:]))


def test_a_night_ends_with_one_digest_and_strangers_can_be_approved_in_the_chat(
    own_office: TelegramDaemon,
) -> None:
    scene = Scene(own_office)
    begin_night(own_office.daemon)
    scene.stranger("Eve")
    scene.fails("hello")
    assert scene.posts() == []
    status = scene.ada.says(scene.his, "/status")
    assert "kai" in answer_to(scene.his, status).text  # he is awake: it comes at once
    own_office.boss.call("envelope.send", from_="agent:kai", to="user:boss", text="a letter")
    scene.his.wait_for_text("a letter")
    before = len(scene.posts())
    end_night(own_office.daemon)
    scene.his.wait_for_text("wants to write")
    digest, request = scene.posts()[before:]
    assert digest.text.count("in your quiet hours:") == 1 and "Not delivered" in digest.text
    assert "wants to write" in request.text
    [approve] = [one for one in request.buttons if one.text == "Approve"]
    assert scene.ada.presses(request, str(approve.data)).wait()["text"] == "Approved."
    assert own_office.rows("SELECT envelope FROM quiet_notice") == []


# --- what an attack from outside found ------------------------------------------------


SESSIONS = """
print(json.dumps({"hiboss": "session", "id": "the-session"}))
print("session " + os.environ.get("HIBOSS_RESUME", "none"))
"""


def asked_about(stage: Stage, name: str) -> Message:
    """Wait for the post that asks the boss about somebody, and return it."""

    def posts(found: list[Message]) -> list[Message]:
        return [one for one in found if name in one.text and "wants to write" in one.text]

    return posts(stage.notices.wait_for(lambda found: bool(posts(found))))[-1]


def button(post: Message, label: str) -> str:
    (data,) = [one.data for one in post.buttons if one.text == label]
    assert data is not None
    return data


# --- files and reactions ---------------------------------------------------------------


@pytest.mark.parametrize("who", ["boss", "approved person"])
def test_a_file_without_words_that_cannot_be_fetched_comes_as_a_message_with_a_note(
    theatre: Stage, who: str
) -> None:
    cast = Cast(theatre)
    person = cast.ada if who == "boss" else cast.bob
    chat = cast.private() if who == "boss" else cast.office.approved(cast.bob, cast.bot)
    assert cast.got(person.sends_document(chat, "big.bin", b"x", size=25 * 2**20)) is cast.kai
    wait_until(lambda: len(cast.kai.turns()) == 1)
    (turn,) = cast.kai.turns()
    assert "the file big.bin (25.0 MB) is missing: Telegram gives bots no file over 20 MB" in turn


def posted(cast: Cast, chat: Chat, post: Message) -> Message:
    """Wait until it is stored which post it is."""
    query = """
        SELECT 1 FROM post p JOIN envelope e ON e.id = p.envelope JOIN address a ON a.id = e.recipient
        WHERE p.platform_id = ? AND a.name = ?
    """
    place = address(chat, post.topic).partition(":")[2]
    wait_until(lambda: cast.office.rows(query, str(post.id), place))
    return post


@pytest.mark.parametrize("where", ["own topic", "forum topic"])
def test_a_reaction_to_a_post_in_a_topic_is_kept(theatre: Stage, where: str) -> None:
    own = where == "own topic"
    cast = Cast(theatre, topics=own, topic=own)
    chat: Chat
    if own:
        chat = cast.private()
        topic = cast.own_topic(chat, cast.mia)
    else:
        chat = forum = cast.group(forum=True, admins=[cast.bot])
        topic = forum.create_topic("Deploys")
    asked = cast.ada.says(chat, f"@{cast.mia.name} are you there?", topic=topic)
    post = posted(cast, chat, answer_to(chat, asked))
    assert post.topic == topic.id
    cast.ada.reacts(post, "👍")
    wait_until(lambda: "reacted" in cast.office.outcomes(chat))
    query = "SELECT emoji, from_boss FROM reaction r JOIN address a ON a.id = r.agent WHERE a.name = ?"
    assert cast.office.rows(query, cast.mia.name) == [{"emoji": "👍", "from_boss": 1}]


# --- chats that are asked about --------------------------------------------------------


def test_a_group_that_migrates_while_it_is_asked_about_has_one_notice_that_works(theatre: Stage) -> None:
    cast = Cast(theatre)
    tag, title = f"@{cast.bot.name}", f"Old {cast.bot.name}"
    group = cast.office.api.add_group(title, [cast.bob, cast.bot], supergroup=False)
    before = cast.bob.says(group, f"{tag} before")
    cast.office.settle()
    with cast.office.api.world.changed:  # in one batch: the new id is not known when this is stored
        new = group.migrate()
        after = cast.bob.says(new, f"{tag} after")
    wait_until(lambda: address(new) in [one["address"] for one in cast.office.contacts()])
    cast.office.settle()
    assert address(group) not in [one["address"] for one in cast.office.contacts()]
    assert cast.office.contact(new)["held"] == 2
    assert len([one for one in cast.office.boss.told() if title in one]) == 1
    post = asked_about(theatre, title)
    assert cast.ada.presses(post, button(post, "Approve")).wait()["text"] == "Approved."
    assert [cast.said(one)["text"] for one in (before, after)] == [f"{tag} before", f"{tag} after"]
    assert cast.office.contact(new)["state"] == "allowed"


@pytest.mark.parametrize(
    ("decision", "late", "state"),
    [("contact.block", "Approve", "blocked"), ("contact.approve", "Block", "allowed")],
)
def test_a_decision_in_the_terminal_takes_the_buttons_away_and_a_late_press_says_so(
    theatre: Stage, decision: str, late: str, state: str
) -> None:
    cast = Cast(theatre)
    chat = cast.office.api.private_chat(cast.bob, cast.bot)
    cast.bob.says(chat, "let me in")
    post = asked_about(theatre, f"@{cast.bob.username}")
    buttons = post.reply_markup
    cast.office.boss.call(decision, contact=address(chat))
    theatre.notices.wait_for(lambda found: not post.buttons)
    post.reply_markup = buttons  # as a client shows it that has not heard of it yet
    assert cast.ada.presses(post, button(post, late)).wait()["text"] == "This was decided before."
    cast.office.settle()
    assert cast.office.contact(chat)["state"] == state


def test_in_a_group_that_is_asked_about_only_edits_of_what_is_held_are_held(theatre: Stage) -> None:
    cast = Cast(theatre)
    cara = cast.office.api.add_person("Cara")
    group = cast.office.api.add_group(cast.bot.name, [cast.bob, cara, cast.bot])
    private = cara.says(group, "our secret")
    asked = cast.bob.says(group, f"@{cast.bot.name} helo")
    cast.office.settle()
    cara.edits(private, "our new secret")
    cast.bob.edits(asked, f"@{cast.bot.name} hello")
    cast.office.settle()
    kept = [(one["platform_id"], one["raw"] is not None) for one in cast.office.updates(group)]
    assert (str(private.id), True) not in kept and kept.count((str(asked.id), True)) == 2
    cast.office.approve(group)
    cast.said(asked)
    cast.office.settle()
    assert cast.said(asked)["text"] == f"@{cast.bot.name} hello"
    assert not any("secret" in one for one in cast.office.texts(group))


def test_unbinding_counts_and_tells_what_was_held(theatre: Stage) -> None:
    cast = Cast(theatre)
    chat = cast.office.api.private_chat(cast.bob, cast.bot)
    for text in ("one", "two"):
        cast.bob.says(chat, text)
    wait_until(lambda: cast.office.outcomes(chat) == ["held", "held"])
    ended = [
        cast.office.boss.call("agent.unbind", name=one.name, adapter_type="telegram")
        for one in (cast.kai, cast.mia)
    ]
    assert [(one["ended"], one["dropped_updates"]) for one in ended] == [(False, 0), (True, 2)]
    assert cast.office.outcomes(chat) == ["unbound", "unbound"]
    told = theatre.notices.wait_for_text(f"The binding of telegram:{cast.bot.id} ended").text
    assert "2 updates that had come in were not read yet" in told and f'"{chat.id}" (2)' in told


# --- the boss's topics and commands ----------------------------------------------------


def test_new_with_a_name_ends_only_the_session_of_that_agent(theatre: Stage) -> None:
    cast, chat = opened(theatre)

    def session(agent: PythonAgent) -> str:
        return cast.answers(chat, f"@{agent.name} go on").rpartition("session ")[2]

    for agent in (cast.kai, cast.mia):
        agent.program.write(SESSIONS)
        assert session(agent) == "none"
    answer = cast.answers(chat, f"/new {cast.kai.name}")
    assert answer == f"system:\n{cast.kai.name}: the next message here begins a new session."
    assert [session(one) for one in (cast.kai, cast.mia)] == ["none", "the-session"]
    assert cast.answers(chat, "/new nobody").startswith('system:\nThere is no agent "nobody".')
    assert session(cast.kai) == "the-session"
