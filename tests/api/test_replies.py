"""Replies: to whom an answer goes, and the quote beside `in-reply-to:`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from hiboss.core.shortening import shorten
from hiboss.testing.running_daemon import RunningDaemon
from tests.support.parties import Party, agent, boss, person
from tests.support.python_agents import Boss, PythonAgent, Team, texts, wait_until_idle
from tests.support.waits import wait_until


def answered(ada: Boss, who: PythonAgent, text: str = "hello") -> list[str]:
    """Say something and hear what comes back."""
    ada.say_and_wait(who, text=text)
    return texts(ada.heard(who))


# --- one turn ------------------------------------------------------------------------------


def test_a_final_text_is_the_reply_and_made_by_a_machine(team: Team, chief: Boss) -> None:
    kai = team.hire('print("Four.")')
    asked = chief.say_and_wait(kai, text="two and two?")
    [reply] = chief.heard(kai)
    [run] = kai.runs()
    assert reply["text"] == "Four." and reply["to"] == "user:boss" and reply["auto"]
    assert (reply["reply_to"], reply["conversation"], reply["thread"]) == (
        asked["message"],
        asked["conversation"],
        asked["thread"],
    )
    assert (reply["run"], reply["trace"], reply["hops"]) == (run["id"], asked["message"], 1)
    assert run == run | {
        "status": "completed",
        "kind": "turn",
        "envelopes": asked["ids"],
        "conversation": asked["conversation"],
        "text": "Four.",
        "answer": reply["message"],
        "note": None,
        "error": None,
        "hops": 0,
        "pid": None,
    }
    done = chief.get(asked["ids"][0])
    assert done["status"] == "done" and done["read_at"] and done["attempts"] == 0 and not done["auto"]


def test_an_agent_that_replies_itself_keeps_its_final_text_in_the_run(team: Team, chief: Boss) -> None:
    kai = team.hire('print("thinking aloud")', reply="explicit")
    assert answered(chief, kai) == []
    [run] = kai.runs()
    assert (run["text"], run["answer"], run["status"]) == ("thinking aloud", None, "completed")
    assert run["note"] == "not sent: this agent sends its answers itself (reply explicit)"
    chief.call("agent.set", name=kai.name, reply="auto")
    assert answered(chief, kai) == ["thinking aloud"]


@pytest.mark.parametrize("said", ["NO_REPLY", "\\n  NO_REPLY \\n"])
def test_the_silent_word_is_sent_nowhere(team: Team, chief: Boss, said: str) -> None:
    kai = team.hire(f'print("{said}")')
    assert answered(chief, kai) == []
    [run] = kai.runs()
    assert run["status"] == "completed" and run["note"] == "not sent: the answer was NO_REPLY"


def test_the_silent_word_among_others_is_a_text(team: Team, chief: Boss) -> None:
    assert answered(chief, team.hire('print("I never say NO_REPLY.")')) == ["I never say NO_REPLY."]


def test_nothing_to_say_is_a_turn_that_went_well(team: Team, chief: Boss) -> None:
    kai = team.hire('print("  \\n")')
    number = chief.say_and_wait(kai)["ids"][0]
    [run] = kai.runs()
    assert (run["status"], run["answer"], chief.heard(kai)) == ("completed", None, [])
    assert (
        run["note"] == "not sent: the run ended without an answer" and chief.get(number)["status"] == "done"
    )


# --- already sent there --------------------------------------------------------------------


@pytest.mark.parametrize("text", ["done", "  done\\n\\n"])
def test_a_final_text_that_the_agent_already_sent_there_is_not_sent_again(
    team: Team, chief: Boss, text: str
) -> None:
    kai = team.hire(f'send("user:boss", "{text}"); print("done")')
    assert [one.strip() for one in answered(chief, kai)] == ["done"]
    [run] = kai.runs()
    assert (run["text"], run["note"]) == ("done", "not sent: the agent had already sent this text there")
    assert run["answer"] is None and not chief.heard(kai)[0]["auto"]


def test_progress_sent_by_hand_does_not_cost_the_final_text(team: Team, chief: Boss) -> None:
    kai = team.hire('send("user:boss", "half done"); send("user:boss", "nearly done"); print("done")')
    assert answered(chief, kai) == ["half done", "nearly done", "done"]
    [run] = kai.runs()
    assert (run["text"], run["note"]) == ("done", None)
    assert [one["auto"] for one in chief.heard(kai)] == [False, False, True]


def test_the_same_text_sent_there_in_an_earlier_run_does_not_count(team: Team, chief: Boss) -> None:
    kai = team.hire('if "first" in TEXTS[-1]: send("user:boss", "final")\nprint("final")')
    assert answered(chief, kai, "first") == ["final"] and answered(chief, kai, "second") == ["final", "final"]


def test_what_it_wrote_elsewhere_does_not_count(team: Team, chief: Boss) -> None:
    pull = agent(chief.daemon)
    kai = team.hire(
        f'send("{pull.address}", "final"); send(["user:boss", "{pull.address}"], "final"); print("final")'
    )
    assert answered(chief, kai) == ["final"]
    assert texts(pull.list()) == ["final", "final"]


def test_what_it_wrote_there_meanwhile_outside_the_run_does_not_count(team: Team, chief: Boss) -> None:
    kai = team.hire('wait_for("aside"); print("final")')
    chief.say(kai)
    wait_until(kai.turns)
    kai.send("user:boss", text="final")
    team.place("aside").touch()
    wait_until_idle(chief.daemon)
    assert texts(chief.heard(kai)) == ["final", "final"]


def test_a_reminder_for_later_is_no_answer(team: Team, chief: Boss) -> None:
    kai = team.hire('send("user:boss", "tea!", deliver_at="+1h"); print("tea!")')
    assert answered(chief, kai) == ["tea!"]


# --- what a run sends ------------------------------------------------------------------------


def test_what_a_run_sends_carries_run_trace_and_hops(team: Team, chief: Boss) -> None:
    pull = agent(chief.daemon)
    kai = team.hire(f"""
trace = call("run.list", status="running")["runs"][0]["trace"]
send("{pull.address}", "without")
send("{pull.address}", "with", trace_id=trace)
note(send("{pull.address}", "foreign", trace_id="mine"))
""")
    asked = chief.say_and_wait(kai)
    [run] = kai.runs()
    found = pull.list(oldest_first=True)
    assert texts(found) == ["without", "with"]
    assert {(one["run"], one["trace"], one["hops"], one["auto"]) for one in found} == {
        (run["id"], asked["message"], 1, False)
    }
    [refused] = kai.program.notes()
    assert refused["code"] == "invalid_params"


def test_a_trace_the_boss_gave_is_kept_along_the_way(team: Team, chief: Boss) -> None:
    zoe = team.hire('print("fine")')
    kai = team.hire(f'send("{zoe.address}", "and you?") if "how" in TEXTS[0] else print(TEXTS[0])')
    chief.say_and_wait(kai, text="how are you?", trace_id="spring")
    runs = chief.call("run.list", trace="spring")["runs"]
    [trace] = {one["trace"] for one in runs}
    assert trace.startswith("user:boss/spring/m")
    assert [(one["agent"], one["hops"]) for one in reversed(runs)] == [
        (kai.name, 0),
        (zoe.name, 1),
        (kai.name, 2),
    ]
    assert [(one["text"], one["trace"], one["hops"]) for one in chief.heard(kai)] == [("fine", trace, 3)]


def test_what_is_sent_outside_a_run_begins_a_new_errand(two: tuple[Party, Party]) -> None:
    kai, zoe = two
    sent = kai.send(zoe)
    one = zoe.get(sent["ids"][0])
    assert (one["run"], one["trace"], one["hops"]) == (None, sent["message"], 0)


def test_the_token_of_a_run_ends_with_the_run(team: Team, chief: Boss) -> None:
    kai = team.hire('note([os.environ["HIBOSS_TOKEN"], call("agent.self")])')
    chief.say_and_wait(kai)
    [[token, self]] = kai.program.notes()
    assert token.startswith("hbr_") and (self["kind"], self["address"]) == ("run", kai.address)
    late = Party(chief.daemon, kai.address, token)
    assert late.refusal("agent.self") == "bad_token"
    assert late.refusal("envelope.send", to="user:boss", text="late") == "bad_token"


def test_the_token_of_a_run_ends_also_when_it_fails(team: Team, chief: Boss) -> None:
    kai = team.hire('note(os.environ["HIBOSS_TOKEN"]); sys.exit(1)')
    chief.say_and_wait(kai)
    [token] = kai.program.notes()
    assert Party(chief.daemon, kai.address, token).refusal("agent.self") == "bad_token"
    assert kai.runs()[0]["status"] == "failed"
    chief.call("agent.delete", name=kai.name)


# --- what a machine made ---------------------------------------------------------------------


def test_an_answer_to_what_was_asked_outside_a_run_is_thought_about_and_not_answered(
    team: Team, chief: Boss
) -> None:
    zoe = team.hire('print("ping")')
    kai = team.hire('print("pong")')
    asked = kai.send(zoe, text="hello zoe")
    wait_until_idle(chief.daemon)
    said = chief.call("conversation.messages", **{"with": zoe.address}, address=kai.address)["envelopes"]
    assert texts(said) == ["hello zoe", "ping"]
    [run] = kai.runs()
    assert (run["text"], run["answer"], run["trace"]) == ("pong", None, asked["message"])
    assert run["note"] == "not sent: it would answer only automatic messages or the agent's own notes"


def test_answers_travel_back_along_a_chain_of_three(team: Team, chief: Boss) -> None:
    zoe = team.hire('print("zoe: it is done")')
    kai = team.hire(f"""
if "please" in TEXTS[0]: send("{zoe.address}", "please, zoe")
else: print("kai: " + TEXTS[0])
""")
    nex = team.hire(f"""
if "please" in TEXTS[0]: send("{kai.address}", "please, kai")
else: print("nex: " + TEXTS[0])
""")
    asked = chief.say_and_wait(nex, text="please, nex")
    [reply] = chief.heard(nex)
    assert (reply["text"], reply["reply_to"]) == ("nex: kai: zoe: it is done", asked["message"])
    runs = chief.call("run.list", trace=asked["message"])["runs"]
    assert [(one["agent"], one["hops"]) for one in reversed(runs)] == [
        (nex.name, 0),
        (kai.name, 1),
        (zoe.name, 2),
        (kai.name, 3),
        (nex.name, 4),
    ]
    between = chief.call("conversation.messages", **{"with": kai.address}, address=nex.address)["envelopes"]
    assert [(one["text"], one["auto"]) for one in between] == [
        ("please, kai", False),
        ("kai: zoe: it is done", True),
    ]


def test_results_of_two_errands_go_each_to_their_own_place(team: Team, chief: Boss) -> None:
    """Both come back in one conversation, and wait for one turn."""
    bob = person(chief.daemon, "bob-1")
    kai = team.hire('print("result of " + TEXTS[0])', busy="followup")
    nex = team.hire(f"""
for one in TEXTS:
    if "errand" in one and "result" not in one: send("{kai.address}", one)
results = [one for one in TEXTS if "result" in one]
if results: print(" & ".join(results))
""")
    chief.call("agent.pause", name=kai.name)
    chief.say(nex, text="errand of the boss")
    bob.send(nex, text="errand of bob")
    chief.say_and_wait(nex, text="another errand of the boss")
    chief.call("agent.pause", name=nex.name)
    chief.call_and_wait("agent.resume", name=kai.name)
    assert chief.status(nex)["due"] == 3
    chief.call_and_wait("agent.resume", name=nex.name)
    assert sorted(" & ".join(texts(chief.heard(nex))).split(" & ")) == [
        "result of another errand of the boss",
        "result of errand of the boss",
    ]
    assert texts([one for one in bob.list() if one["from"] == nex.address]) == ["result of errand of bob"]


def test_the_result_of_an_errand_and_a_question_beside_it_go_each_to_their_own_place(
    team: Team, chief: Boss
) -> None:
    kai = team.hire('print("result")')
    nex = team.hire(f"""
if "go" in TEXTS[0]: send("{kai.address}", "work")
else: print("heard: " + " + ".join(TEXTS))
""")
    chief.call("agent.pause", name=kai.name)
    chief.say_and_wait(nex, text="go")
    chief.call("agent.pause", name=nex.name)
    chief.call_and_wait("agent.resume", name=kai.name)
    asked = kai.send(nex, text="a question")
    chief.call_and_wait("agent.resume", name=nex.name)
    last = chief.call("conversation.messages", **{"with": nex.address}, address=kai.address)["envelopes"][-1]
    assert (last["from"], last["text"], last["reply_to"]) == (
        nex.address,
        "heard: a question",
        asked["message"],
    )
    assert texts(chief.heard(nex)) == ["heard: result"]


def test_a_reply_in_a_conversation_of_three_goes_to_the_two_others(team: Team, chief: Boss) -> None:
    kai, zoe = team.hire('print("I, kai")'), agent(chief.daemon)
    asked = chief.say_and_wait(kai, zoe, text="who is there?")
    [reply] = [one for one in zoe.list() if one["from"] == kai.address]
    [mine] = [one for one in chief.list() if one["from"] == kai.address]
    assert reply["message"] == mine["message"] and reply["conversation"] == asked["conversation"]
    assert reply["text"] == "I, kai" and kai.runs()[0]["answer"] == reply["message"]


def test_who_writes_to_one_of_three_has_not_answered_the_three(team: Team, chief: Boss) -> None:
    zoe = agent(chief.daemon)
    kai = team.hire('send("user:boss", "between us"); print("for all")')
    chief.say_and_wait(kai, zoe)
    assert texts([one for one in zoe.list() if one["from"] == kai.address]) == ["for all"]


def test_what_comes_of_a_note_to_oneself_goes_to_where_it_was_made(team: Team, chief: Boss) -> None:
    kai = team.hire(
        'send("agent:self-talker", "a thought") if "go" in TEXTS[0] else print("hm")', "self-talker"
    )
    assert answered(chief, kai, "go") == ["hm"]
    first, second = kai.runs()
    assert (second["conversation"], second["trace"]) != (first["conversation"], None)
    assert second["trace"] == first["trace"]


def test_a_note_to_oneself_made_outside_a_run_is_answered_nowhere(team: Team, chief: Boss) -> None:
    kai = team.hire('print("hm")')
    chief.call_and_wait("envelope.send", **{"from": kai.address, "to": kai.address, "text": "a thought"})
    [run] = kai.runs()
    assert (run["text"], run["answer"], run["status"]) == ("hm", None, "completed")
    assert "own notes" in run["note"]


def test_an_answer_to_somebody_who_has_left_is_kept_in_the_run(team: Team, chief: Boss) -> None:
    bob = person(chief.daemon, "bob-2")
    kai = team.hire('wait_for("gone"); print("too late")')
    bob.send(kai, text="I am leaving")
    wait_until(kai.turns)
    chief.call("user.delete", name=bob.name)
    team.place("gone").touch()
    wait_until_idle(chief.daemon)
    [run] = kai.runs()
    assert (run["status"], run["text"], run["answer"]) == ("completed", "too late", None)
    assert run["note"] == "not sent: nobody else is in the conversation"


# --- notices -----------------------------------------------------------------------------------


def test_a_notice_starts_no_turn_and_comes_along_with_the_next(team: Team, chief: Boss) -> None:
    zoe = team.hire('wait_for("never")')
    kai = team.hire('print("read")')
    number = kai.tell(zoe, text="are you well?")
    wait_until(zoe.turns)
    chief.call_and_wait("run.cancel", id=zoe.runs()[0]["id"], reason="enough")
    assert zoe.runs()[0]["status"] == "cancelled" and chief.get(number)["status"] == "cancelled"
    [notice] = kai.list()
    assert notice["from"] == "agent:system" and notice["status"] == "pending" and number in notice["text"]
    assert kai.turns() == [] and chief.status(kai)["state"] == "idle"

    # It belongs to what the two say to each other, and nobody else's turn shows it.
    assert answered(chief, kai, "and you?") == ["read"] and "agent:system" not in kai.turns()[0]
    zoe.tell(kai, text="good morning")
    turn = wait_until(lambda: kai.turns()[1:])[0]
    assert turn.index("good morning") < turn.index("from: agent:system")
    run = wait_until(lambda: [one for one in kai.runs() if notice["id"] in one["envelopes"]])[0]
    assert len(run["envelopes"]) == 2
    wait_until(lambda: kai.get(notice["id"])["status"] == "done")
    zoe.tell(kai, text="once more")
    assert "agent:system" not in wait_until(lambda: kai.turns()[2:])[0]


# --- quotes ------------------------------------------------------------------------


SECRET = "the vault opens at noon"


def turn_of(party: Party) -> str:
    return str(party.call("turn.preview")["text"])


def reply_line(party: Party, number: str) -> str:
    """What a turn says about the message answered."""
    block = turn_of(party).partition(f"envelope-id: {number}\n")[2].partition("\ntext:\n")[0]
    (line,) = [line for line in block.splitlines() if line.startswith("in-reply-to: ")]
    return line.removeprefix("in-reply-to: ")


def test_a_reply_quotes_what_it_answers_for_both_sides(ada: Party, bob: Party) -> None:
    sent = ada.send(bob, text=SECRET)
    reply = bob.tell(reply_to=sent["ids"][0], text="I know")
    for party in (ada, bob, boss(ada.daemon)):
        got = party.get(reply)
        assert (got["reply_to"], got["quote"]) == (sent["message"], SECRET)
    assert reply_line(ada, reply) == f'{sent["message"]} "{SECRET}"'
    assert bob.get(sent["ids"][0])["quote"] is None and bob.get(sent["ids"][0])["reply_to"] is None


def test_whoever_has_no_part_in_a_message_sees_no_quote_of_it(
    daemon: RunningDaemon, ada: Party, bob: Party, eve: Party
) -> None:
    sent = ada.send(bob, text=SECRET)
    reply = bob.tell(eve, reply_to=sent["ids"][0], text="can you help?")
    listed, (read,) = eve.list()[0], eve.call("envelope.read", ids=[reply])["envelopes"]
    assert {(got["reply_to"], got["quote"]) for got in (eve.get(reply), listed, read)} == {
        (sent["message"], None)
    }
    assert reply_line(eve, reply) == sent["message"] and SECRET not in turn_of(eve)
    assert bob.get(reply)["quote"] == boss(daemon).get(reply)["quote"] == SECRET


def test_one_page_quotes_for_each_message_what_its_reader_may_see(ada: Party, bob: Party, eve: Party) -> None:
    secret, known = ada.tell(bob, text=SECRET), bob.tell(eve, text="known")
    bob.tell(eve, reply_to=secret, text="1")
    bob.tell(eve, reply_to=known, text="2")
    eve.tell(bob, reply_to=known, text="3")
    assert [one["quote"] for one in eve.list(oldest_first=True)] == [None, None, "known"]
    assert [one["quote"] for one in bob.list()] == ["known", None]


def test_a_message_that_has_not_arrived_is_quoted_to_its_writer_only(ada: Party, bob: Party) -> None:
    reply = ada.tell(bob, reply_to=ada.tell(bob, text=SECRET, deliver_at="+1D"), text="about tomorrow")
    assert bob.get(reply)["quote"] is None and bob.get(reply)["reply_to"]
    assert ada.get(reply)["quote"] == SECRET and SECRET not in turn_of(bob)


def test_the_boss_sees_in_an_agents_turn_no_more_than_the_agent(
    daemon: RunningDaemon, ada: Party, bob: Party, eve: Party
) -> None:
    reply = bob.tell(eve, reply_to=ada.tell(bob, text=SECRET), text="help")
    text = boss(daemon).call("turn.preview", address=eve.address)["text"]
    assert reply in text and SECRET not in text
    assert boss(daemon).list(address=eve.address)[0]["quote"] == SECRET


def test_a_deleted_message_is_quoted_to_nobody(ada: Party, bob: Party) -> None:
    sent = ada.send(bob, text=SECRET)
    reply = bob.tell(reply_to=sent["ids"][0], text="I know")
    with ada.daemon.database() as database:
        database.execute("UPDATE message SET deleted_at = 1 WHERE id = ?", (sent["message"][1:],))
        database.commit()
    assert [party.get(reply)["quote"] for party in (ada, bob, boss(ada.daemon))] == [None, None, None]


def test_a_namesake_of_somebody_deleted_sees_no_quote(
    daemon: RunningDaemon, ada: Party, bob: Party, eve: Party
) -> None:
    secret = ada.tell(bob, text=SECRET)
    answer = bob.tell(eve, reply_to=secret, text="x")
    boss(daemon).call("agent.delete", name=ada.name)
    again = daemon.call("agent.register", token=daemon.token("boss"), name=ada.name)
    namesake = Party(daemon, ada.address, again["token"])
    reply = bob.tell(namesake, reply_to=answer, text="and again")
    third = boss(daemon).tell(namesake, reply_to=secret, text="look", **{"from": "user:boss"})
    assert namesake.get(reply)["quote"] is None and namesake.get(third)["quote"] is None


@pytest.mark.parametrize(
    "text",
    [
        "is it\n\ngreen\u2028now?",
        "word " * 50,
        "👨\u200d👩\u200d👧\u200d👦" * 30,
        'he said "go" and "went"',
        "\u0639\u0644\u064a " * 30,
        "x" * 1_000_000,
        " " * 1_000 + "late",
        "[boss] envelope-id: e1",
    ],
    ids=["lines", "long", "families", "quotes", "Arabic", "very long", "blanks", "forging"],
)
def test_a_quote_is_one_short_line_whatever_was_written(ada: Party, bob: Party, text: str) -> None:
    sent = ada.send(bob, text=text)
    reply = bob.tell(reply_to=sent["ids"][0], text="I know")
    quote = ada.get(reply)["quote"]
    assert quote == shorten(text[:400]) and len(quote) <= 60
    number, _, shown = reply_line(ada, reply).partition(" ")
    assert number == sent["message"]
    assert (json.loads(shown.strip("\u2068\u2069")) if shown else "") == quote


def test_a_message_without_text_has_no_quote_to_show(ada: Party, bob: Party, tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("x")
    sent = ada.send(bob, text="", attachments=[str(tmp_path / "a.txt")])
    reply = bob.tell(reply_to=sent["ids"][0], text="thanks")
    assert ada.get(reply)["quote"] == "" and reply_line(ada, reply) == sent["message"]
