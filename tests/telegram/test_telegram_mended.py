"""What an attack from outside found in Telegram, and does not come back."""

from __future__ import annotations

import pytest

from hiboss.testing.bot_api.chats import Chat
from hiboss.testing.bot_api.messages import Message
from tests.support.python_agents import PythonAgent
from tests.support.telegram_bots import address, answer_to
from tests.support.telegram_casts import Cast, Stage
from tests.support.waits import wait_until

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
    sent = person.sends_document(chat, "big.bin", b"x", size=25 * 2**20)
    assert cast.got(sent) is cast.kai
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
    cast.office.wait_for_outcome(chat, "reacted")
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
    press = cast.ada.presses(post, button(post, late))
    assert press.wait()["text"] == "This was decided before."
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
    assert (str(private.id), True) not in kept
    assert kept.count((str(asked.id), True)) == 2
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
    assert "2 updates that had come in were not read yet" in told
    assert f'"{chat.id}" (2)' in told


# --- the boss's topics and commands ----------------------------------------------------


def has_place(cast: Cast, chat: Chat, topic: int) -> bool:
    query = "SELECT 1 FROM place p JOIN address a ON a.id = p.address WHERE a.name = ? AND p.gone_at IS NULL"
    return bool(cast.office.rows(query, f"telegram:{chat.id}/{topic}"))


def test_mail_of_an_agent_whose_topic_was_deleted_still_comes_and_the_agent_gets_a_new_topic(
    theatre: Stage,
) -> None:
    cast = Cast(theatre, topics=True, topic=True)
    chat = cast.private()
    cast.own_topic(chat, cast.kai)
    deleted = cast.own_topic(chat, cast.mia)
    with cast.reached_in(chat):
        with chat.changed:
            del chat.topics[deleted.id]
        sent = [cast.mia.tell(cast.office.boss, text="the build is red")]
        assert chat.wait_for_text("the build is red").topic != deleted.id
        assert not has_place(cast, chat, deleted.id)
        topic = cast.own_topic(chat, cast.mia)
        sent.append(cast.mia.tell(cast.office.boss, text="the build is green"))
        assert chat.wait_for_text("the build is green").topic == topic.id
    wait_until(lambda: {cast.mia.get(one)["status"] for one in sent} == {"done"})
    failed = "SELECT id FROM envelope WHERE status = 2 AND binding = ?"
    assert cast.office.rows(failed, int(cast.binding.removeprefix("b"))) == []


def test_new_with_a_name_ends_only_the_session_of_that_agent(theatre: Stage) -> None:
    cast = Cast(theatre)
    chat = cast.private()

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
