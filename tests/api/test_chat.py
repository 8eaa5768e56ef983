"""The chat of an agent and the boss: one list of what both said and what was changed, and positions in it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from hiboss.testing.running_daemon import RunningDaemon
from tests.support.parties import Party, agent, boss, checked_daemon


class Talk:
    """An agent and the boss, who speak in private."""

    def __init__(self, daemon: RunningDaemon) -> None:
        self.agent, self.boss = agent(daemon), boss(daemon)

    def human(self, content: str, **params: Any) -> Any:
        return self.boss.call("chat.post", agent=self.agent.name, content=content, **params)

    def assistant(self, content: str, **params: Any) -> Any:
        return self.agent.call("chat.post", content=content, **params)

    def read(self, who: Party | None = None, **params: Any) -> Any:
        reader = who or self.agent
        if reader is self.boss:
            params["agent"] = self.agent.name
        return reader.call("chat.read", **params)

    def said(self, **params: Any) -> list[tuple[str, str]]:
        return [(one["author"], one["content"]) for one in self.read(**params)["messages"]]


@pytest.fixture
def talk(daemon: RunningDaemon) -> Talk:
    return Talk(daemon)


def ids(page: Any) -> list[str]:
    return [one["id"] for one in page["messages"]]


def test_both_are_shown_what_both_said_in_order(talk: Talk) -> None:
    first = talk.human("CI is green", mime="text/plain")
    second = talk.assistant("*Deploying*")
    page = talk.read()
    assert page == talk.read(talk.boss)
    assert ids(page) == [first["id"], second["id"]] and page["last_id"] == second["id"] and not page["more"]
    one, other = page["messages"]
    assert (one["author"], one["mime"], one["content"]) == ("user", "text/plain", "CI is green")
    assert (other["author"], other["mime"], other["content"]) == ("assistant", "text/markdown", "*Deploying*")
    assert one["ts"] == first["ts"] and one["message"] == first["message"]


def test_what_came_by_another_door_is_in_the_chat(talk: Talk) -> None:
    talk.boss.tell(talk.agent, text="from the terminal")
    talk.agent.call("envelope.send", to="user:boss", text="an answer")
    assert talk.said() == [("user", "from the terminal"), ("assistant", "an answer")]


def test_what_others_say_is_not_in_the_chat(daemon: RunningDaemon, talk: Talk) -> None:
    other = agent(daemon)
    other.tell(talk.agent, text="psst")
    talk.agent.tell(other, text="what?")
    talk.boss.send(talk.agent, other, text="to both of you")
    assert talk.said() == [] and talk.said(who=talk.boss) == []


def test_an_empty_chat_ends_where_it_began(talk: Talk) -> None:
    assert talk.read() == {"messages": [], "last_id": "0", "more": False}
    assert talk.read(after_id="0")["last_id"] == talk.read(newest=True)["last_id"] == "0"
    posted = talk.human("first")
    assert talk.read(after_id=posted["id"]) == {"messages": [], "last_id": posted["id"], "more": False}


def test_reading_is_strictly_after_an_entry_and_pages_skip_nothing(talk: Talk) -> None:
    posted = [talk.human(f"number {number}")["id"] for number in range(7)]
    seen, after = [], "0"
    while True:
        page = talk.read(after_id=after, limit=3)
        seen += ids(page)
        after = page["last_id"]
        if not page["more"]:
            break
    assert seen == posted
    newest = talk.read(newest=True, limit=2)
    assert ids(newest) == posted[-2:] and newest["more"] and newest["last_id"] == posted[-1]


def test_a_huge_limit_is_a_page_and_the_rest_is_more(daemon: RunningDaemon, talk: Talk) -> None:
    talk.boss.flood(talk.agent, 105)
    page = talk.read(limit=10**12)
    assert len(page["messages"]) == 100 and page["more"]
    assert len(talk.read(after_id=page["last_id"], limit=10**12)["messages"]) == 5


def test_large_texts_make_a_short_page_and_none_is_skipped(talk: Talk) -> None:
    texts = [letter * 900_000 for letter in "abcdef"]
    for text in texts:
        talk.human(text)
    seen, after = [], "0"
    while True:
        page = talk.read(after_id=after)
        assert page["messages"]
        seen += [one["content"] for one in page["messages"]]
        after = page["last_id"]
        if not page["more"]:
            break
    assert seen == texts


# --- changes -----------------------------------------------------------------------------


def test_an_edit_is_a_new_entry_that_names_the_old_one(talk: Talk) -> None:
    first = talk.human("teh plan")
    talk.assistant("which one?")
    before = talk.read()["last_id"]
    talk.boss.call("message.edit", id=first["message"], text="the plan")
    (change,) = talk.read(after_id=before)["messages"]
    assert change["edits"] == first["id"] and change["content"] == "the plan" and change["author"] == "user"
    assert change["id"] not in (first["id"], before) and float(change["id"]) > float(before)
    # Nobody is shown an older wording.
    assert talk.said()[0] == ("user", "the plan")
    after = talk.assistant("done")
    assert float(after["id"]) > float(change["id"])
    assert ids(talk.read()) == [first["id"], before, change["id"], after["id"]]


def test_edits_between_two_messages_keep_their_order(talk: Talk) -> None:
    posted = talk.assistant("0")
    for number in range(1, 13):
        talk.agent.call("message.edit", id=posted["message"], text=str(number))
    page = talk.read(limit=5)
    rest = talk.read(after_id=page["last_id"])
    found = ids(page) + ids(rest)
    assert len(found) == 13 and found == sorted(found, key=float) and len(set(found)) == 13
    assert {one["edits"] for one in rest["messages"]} == {posted["id"]}


def test_an_edit_that_an_agent_is_told_of_is_one_entry(talk: Talk) -> None:
    posted = talk.human("one")
    talk.agent.call("envelope.ack", ids=[talk.agent.list()[0]["id"]])
    talk.boss.call("message.edit", id=posted["message"], text="two")
    assert [(one.get("edits"), one["content"]) for one in talk.read()["messages"]] == [
        (None, "two"),
        (posted["id"], "two"),
    ]


def test_a_deletion_is_an_entry_and_the_text_is_gone(talk: Talk) -> None:
    posted = talk.human("a secret")
    last = posted["id"]
    talk.boss.call("message.delete", id=posted["message"])
    (change,) = talk.read(after_id=last)["messages"]
    assert change["deleted"] is True and change["content"] == "" and change["edits"] == posted["id"]
    assert "secret" not in str(talk.read())
    talk.boss.call("message.restore", id=posted["message"])
    (back,) = talk.read(after_id=change["id"])["messages"]
    assert back["content"] == "a secret" and "deleted" not in back


def test_what_others_edit_is_no_entry(daemon: RunningDaemon, talk: Talk) -> None:
    other = agent(daemon)
    sent = other.send(talk.agent, text="hello")
    other.call("message.edit", id=sent["message"], text="hello!")
    with daemon.database() as database:
        found = database.execute(
            "SELECT count(*) FROM chat_change WHERE message = ?", (int(sent["message"][1:]),)
        )
        assert found.fetchone()[0] == 0


# --- positions ---------------------------------------------------------------------------


def test_reading_moves_nothing_and_an_acknowledgement_does(talk: Talk) -> None:
    posted = [talk.human(f"number {number}")["id"] for number in range(3)]
    assert ids(talk.read()) == ids(talk.read()) == posted
    assert talk.agent.call("chat.ack", id=posted[1]) == {"id": posted[1], "changed": True}
    assert ids(talk.read()) == posted[2:] and ids(talk.read(after_id="0")) == posted
    assert talk.agent.call("chat.status")["acknowledged"] == posted[1]


def test_a_position_never_goes_back(talk: Talk) -> None:
    posted = [talk.human(f"number {number}")["id"] for number in range(3)]
    talk.agent.call("chat.ack", id=posted[2])
    assert talk.agent.call("chat.ack", id=posted[0]) == {"id": posted[2], "changed": False}
    assert talk.agent.call("chat.ack", id=posted[2])["changed"] is False and ids(talk.read()) == []


def test_two_subscribers_are_apart_and_so_are_two_callers(talk: Talk) -> None:
    posted = [talk.human(f"number {number}")["id"] for number in range(3)]
    talk.agent.call("chat.ack", id=posted[2], subscriber="loop")
    talk.agent.call("chat.ack", id=posted[0], subscriber="page")
    assert ids(talk.read(subscriber="loop")) == [] and ids(talk.read(subscriber="page")) == posted[1:]
    assert ids(talk.read()) == ids(talk.read(talk.boss, subscriber="loop")) == posted


def test_a_position_is_kept_through_the_rotation_of_a_token(talk: Talk) -> None:
    posted = [talk.human(f"number {number}")["id"] for number in range(2)]
    talk.agent.call("chat.ack", id=posted[0], subscriber="loop")
    talk.agent.token = talk.boss.call("agent.token.rotate", name=talk.agent.name)["token"]
    assert ids(talk.read(subscriber="loop")) == posted[1:]


@pytest.mark.slow
def test_a_position_is_kept_through_a_restart(tmp_path: Path) -> None:
    with checked_daemon(tmp_path) as running:
        talk = Talk(running)
        posted = [talk.human(f"number {number}")["id"] for number in range(2)]
        talk.agent.call("chat.ack", id=posted[0], subscriber="loop")
        running.kill()
        running.start()
        assert ids(talk.read(subscriber="loop")) == posted[1:]


def test_an_edit_can_be_acknowledged(talk: Talk) -> None:
    talk.boss.call("message.edit", id=talk.human("one")["message"], text="two")
    change = ids(talk.read())[-1]
    talk.agent.call("chat.ack", id=change)
    assert ids(talk.read()) == [] and talk.agent.call("chat.status")["acknowledged"] == change


def test_an_entry_that_is_not_there_is_not_found(talk: Talk) -> None:
    assert talk.agent.refusal("chat.ack", id="1") == "not_found"
    assert talk.agent.refusal("chat.read", after_id="1") == "not_found"
    talk.human("one")
    assert talk.agent.refusal("chat.read", after_id="2") == "not_found"
    assert talk.agent.refusal("chat.ack", id="1.0001") == "not_found"
    assert talk.agent.refusal("chat.post", content="x", reply_to="7") == "not_found"


# --- posting -------------------------------------------------------------------------------


def test_a_post_answers_an_entry_in_its_thread(talk: Talk) -> None:
    asked = talk.human("ready?")
    answer = talk.assistant("yes", reply_to=asked["id"])
    assert talk.read(after_id=asked["id"])["messages"][0]["reply_to"] == asked["id"]
    found = talk.boss.call("message.get", message_id=answer["message"])["message"]
    assert found["thread_id"] == f"t{asked['message'][1:]}"


def test_a_key_posts_once(talk: Talk) -> None:
    first = talk.assistant("once", key="k1")
    again = talk.assistant("once", key="k1")
    assert (again["id"], again["ts"], again["duplicate"]) == (first["id"], first["ts"], True)
    assert talk.said() == [("assistant", "once")]


def test_an_unknown_type_of_content_is_refused(talk: Talk) -> None:
    assert talk.agent.refusal("chat.post", content="x", mime="image/png") == "invalid_params"
    assert talk.assistant("{}", mime="application/json; charset=utf-8")["id"]
    assert talk.read()["messages"][0]["mime"] == "application/json"


# --- whose chat ------------------------------------------------------------------------------


def test_the_boss_names_the_agent_and_others_have_only_their_own(daemon: RunningDaemon, talk: Talk) -> None:
    other = agent(daemon)
    talk.human("private")
    assert talk.boss.refusal("chat.read") == "invalid_params"
    assert talk.boss.refusal("chat.read", agent="nobody-here") == "unknown_address"
    assert talk.boss.refusal("chat.read", agent="user:boss") == "unknown_agent"
    for operation, params in (
        ("chat.read", {}),
        ("chat.status", {}),
        ("chat.ack", {"id": "1"}),
        ("chat.post", {"content": "x"}),
    ):
        assert other.refusal(operation, agent=talk.agent.name, **params) == "boss_only"
    assert other.call("chat.read")["messages"] == []
    assert talk.agent.call("chat.read", agent=talk.agent.name)["messages"]


def test_the_status_says_whether_an_agent_is_ready(talk: Talk) -> None:
    found = talk.agent.call("chat.status")
    assert found["agent"] == talk.agent.name and found["ui"] == {"ready": True} and found["last_id"] == "0"
    posted = talk.human("one")
    talk.boss.call("agent.pause", name=talk.agent.name, reason="lunch")
    found = talk.boss.call("chat.status", agent=talk.agent.name)
    assert found["ui"] == {"ready": False} and found["state"] == "paused" and "lunch" in found["why"]
    assert found["last_id"] == posted["id"]
    talk.boss.call("agent.delete", name=talk.agent.name)
    found = talk.boss.call("chat.status", agent=talk.agent.name)
    assert found["ui"] == {"ready": False} and found["state"] == "deleted"
    assert talk.boss.refusal("chat.post", agent=talk.agent.name, content="x") == "unknown_recipient"


def test_one_caller_has_at_most_a_thousand_subscribers(daemon: RunningDaemon, talk: Talk) -> None:
    posted = talk.human("one")
    talk.agent.call("chat.ack", id=posted["id"], subscriber="s0")
    with daemon.database() as database, database:
        database.execute(
            """
            WITH RECURSIVE t (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM t WHERE n < 999)
            INSERT INTO chat_position (holder, conversation, subscriber, seq, number, updated_at)
            SELECT p.holder, p.conversation, 's' || t.n, 1, 0, 1 FROM chat_position p JOIN t
            WHERE p.holder = (SELECT id FROM address WHERE fold = ?)
            """,
            (talk.agent.address,),
        )
    assert talk.agent.refusal("chat.ack", id=posted["id"], subscriber="one-more") == "busy"
    assert talk.agent.call("chat.ack", id=talk.human("two")["id"], subscriber="s5")["changed"]
