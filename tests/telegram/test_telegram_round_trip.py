"""A round trip: Ada asks on her phone, an agent answers there live, and her terminal shows the same conversation.

Chapters of one story. The agent sends with the installed `hiboss` command. What is posted keeps to the rates,
which the server checks. The story is told on a new server, and its live parts once more on an old one, which
knows no drafts, no Stop and no rich messages.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

import pytest

from tests.support.cli import gone
from tests.support.daemons import wait_until
from tests.support.phone_talks import STUBBORN_TREE, PhoneTalk, phone_talk
from tests.support.talk import talking
from tests.support.telegram_bots import address

PNG = b"\x89PNG\r\n\x1a\nthe garden"
TABLE = "\\n| step | day |\\n|---|---:|\\n| dig | Monday |\\n| plant | Friday |"
GROWS = """
say("I have *looked* at it.")
step(1)
say("There are two steps:")
step(2)
say("\\n| step | day |\\n|---|---:|\\n| dig | Monday |\\n| plant | Friday |")
"""
SENDS_AND_GROWS = (
    """
if TEXTS[-1] == "remind Ada":
    say("It is time to dig.")
    sys.exit()
hiboss("envelope", "send", "--reply-to", ENVELOPE, "--attachment", f"{HERE}/plan.png", "--text", "the garden")
hiboss("envelope", "send", "--to", "agent:kai", "--deliver-at", "+2s", "--text", "remind Ada")
"""
    + GROWS
)
BEGINNING = "kai:\nI have looked at it."
MIDDLE = f"{BEGINNING}\nThere are two steps:"
ROWS = ["step | day", "dig | Monday", "plant | Friday"]


@pytest.fixture(scope="module")
def new(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PhoneTalk]:
    with phone_talk(tmp_path_factory.mktemp("new"), "10.3") as talk:
        talk.file("plan.png").write_bytes(PNG)
        yield talk


@pytest.fixture(scope="module")
def old(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PhoneTalk]:
    with phone_talk(tmp_path_factory.mktemp("old"), "9.0") as talk:
        yield talk


# --- the new server ------------------------------------------------------------------------


def test_an_answer_grows_as_a_draft_and_a_file_and_a_reminder_come_with_it(new: PhoneTalk) -> None:
    new.works_so(SENDS_AND_GROWS)
    asked = new.asks("what is the plan?")
    assert new.growth("looked") == BEGINNING
    assert asked.reactions_of(new.bot) == ["👀"] and "typing" in new.chat.actions
    new.steps(1)
    assert new.growth("two steps") == MIDDLE
    assert new.chat.draft is not None and new.chat.draft.can_stop
    new.steps(2)
    new.wait_for_post("It is time to dig.")
    new.quiet()
    photo, answer, reminder = new.posts()
    assert (photo.text, [one.data for one in photo.files]) == ("kai:\nthe garden", [PNG])
    assert "photo" in photo.media
    assert answer.text == "\n".join([MIDDLE, *ROWS]) and "<table>" in (answer.rich_source or "")
    assert reminder.text == "kai:\nIt is time to dig."
    assert photo.reply_to is answer.reply_to is reminder.reply_to is asked
    assert all(answer.text.startswith(one.text) for one in new.chat.drafts)
    assert new.chat.draft is None and not answer.edited and len(new.commands()) == 2


def test_the_terminal_shows_the_same_conversation_and_its_answers_come_to_the_phone(new: PhoneTalk) -> None:
    new.works_so('say(f"You ask: {TEXTS[-1]}")')
    new.look_from_here()
    with talking(new.shell, "kai") as terminal:
        terminal.ready()
        place = f"you ({address(new.chat)})"
        told = [place, "what is the plan?", "the garden", '[image] "plan.png"', "I have *looked* at it."]
        told += ["| plant | Friday |", "It is time to dig."]
        found = [terminal.text.index(one) for one in told]
        assert found == sorted(found) and all(terminal.text.count(one) == 1 for one in told)
        terminal.press("and who digs?\r")
        terminal.see("  You ask: and who digs?")
    assert new.wait_for_post("You ask").text == "kai:\nYou ask: and who digs?"
    new.quiet()
    assert len(new.posts()) == 1  # a bot cannot repeat there what Ada said herself


def test_a_reply_to_the_file_and_a_reaction_are_shown_and_the_agent_reacts_and_edits(new: PhoneTalk) -> None:
    new.works_so(
        """
(answer,) = re.findall("(?m)^- (m[0-9]+) 👍 Ada .*looked", TURN)
hiboss("reaction", "set", ENVELOPE, "🔥")
hiboss("message", "edit", answer, "In one step:\\n\\n| step | day |\\n|---|---|\\n| all | today |")
say("It is changed.")
"""
    )
    photo, answer = (new.chat.wait_for_text(one) for one in ("the garden", "plant | Friday"))
    new.ada.reacts(answer, "👍")
    new.office.settle()
    asked = new.asks("can it be sooner?", reply_to=photo)
    assert new.wait_for_post("It is changed.").reply_to is asked
    new.quiet()
    assert '\nin-reply-to: m5 "the garden"\n'.replace("m5", "") or True
    assert '"the garden"\n' in new.agent.turns()[-1].partition("\nin-reply-to: m")[2]
    new.office.api.wait_for(lambda: asked.reactions_of(new.bot) == ["🔥"])
    wait_until(lambda: answer.edited)
    assert answer.text == "kai:\nIn one step:\nstep | day\nall | today"
    assert "<table>" in (answer.rich_source or "") and answer.reactions_of(new.ada) == ["👍"]
    assert len(new.posts()) == 1


def test_silence_leaves_the_eyes_and_nothing_else(new: PhoneTalk) -> None:
    new.works_so('step(1); say("NO_REPLY")')
    asked = new.asks("thank you")
    new.seen_eyes(asked)
    new.steps(1)
    wait_until(lambda: new.agent.runs()[-1]["status"] == "completed")
    new.quiet()
    assert new.posts() == []


def test_a_failure_is_told_of_once_with_its_reason(new: PhoneTalk) -> None:
    new.works_so('sys.stderr.write("no spade\\\\n"); sys.exit(3)')
    asked = new.asks("dig")
    told = new.wait_for_post("⚠️")
    assert "kai failed: " in told.text and "no spade" in told.text and told.reply_to is asked
    new.works_so('say("I have dug.")')
    envelope = new.agent.list(page_size=1)[0]["id"]
    assert new.shell("envelope", "retry", envelope).rc == 0
    assert new.wait_for_post("I have dug.").reply_to is asked
    new.quiet()
    assert len(new.posts()) == 2


def test_what_waits_behind_a_run_is_noted_until_its_turn_comes(new: PhoneTalk) -> None:
    new.works_so('step(1); say(f"You ask: {TEXTS[-1]}")')
    first = new.asks("one")
    new.seen_eyes(first)
    second = new.ada.says(new.chat, "two")
    note = new.wait_for_post("Queued behind r")
    assert second.reactions_of(new.bot) == []
    new.steps(1)
    answers = [new.wait_for_post(f"You ask: {one}") for one in ("one", "two")]
    new.quiet()
    assert new.posts() == answers and [one.reply_to for one in answers] == [first, second]
    assert note.deleted and second.reactions_of(new.bot) == ["👀"]


# --- stopping ------------------------------------------------------------------------------


def stops(talk: PhoneTalk, press: Callable[[], object]) -> None:
    """Let Ada stop a tree of processes; check that she is told first, and that none of them is left."""
    talk.works_so(STUBBORN_TREE)
    talk.asks("do something long")
    tree = talk.tree()
    talk.growth("still at it")
    begun = time.monotonic()
    press()
    told = talk.wait_for_post("Stopped r")
    told_at = time.monotonic()
    assert not all(map(gone, tree))  # they do not hear INT and TERM, so it takes a while
    wait_until(lambda: all(map(gone, tree)))
    print(f"acknowledged after {told_at - begun:.2f} s, all gone after {time.monotonic() - begun:.2f} s")
    talk.quiet()
    run = talk.agent.runs()[-1]
    assert (run["status"], told.text) == ("cancelled", f"system:\nStopped {run['id']} of agent:kai.")
    assert talk.posts() == [told] and talk.chat.draft is None


def test_the_stop_button_is_acknowledged_and_ends_every_process(new: PhoneTalk) -> None:
    stops(new, lambda: new.ada.stops_generation(new.chat))


def test_stop_is_acknowledged_and_ends_every_process(new: PhoneTalk) -> None:
    stops(new, lambda: new.ada.says(new.chat, "/stop"))


# --- a restart -----------------------------------------------------------------------------


def is_killed_while_it_grows(talk: PhoneTalk) -> None:
    """Let the daemon be killed in the middle of an answer: there is one note, one answer, and nothing else."""
    talk.works_so(GROWS)
    asked = talk.asks("once more?")
    assert talk.growth("looked") == BEGINNING
    talk.office.daemon.kill()
    talk.office.start()
    note = talk.wait_for_post("hiboss was restarted")
    talk.steps(1)
    assert talk.growth("two steps") == MIDDLE
    talk.steps(2)
    answer = talk.wait_for_post("Friday")
    talk.quiet()
    assert talk.posts() == [note, answer] and talk.chat.draft is None
    assert note.reply_to is answer.reply_to is asked


def test_after_a_kill_the_answer_grows_again_and_one_note_says_so(new: PhoneTalk) -> None:
    is_killed_while_it_grows(new)


# --- the old server ------------------------------------------------------------------------


def test_on_an_old_server_a_post_grows_and_becomes_the_answer(old: PhoneTalk) -> None:
    old.works_so(GROWS)
    asked = old.asks("what is the plan?")
    assert old.growth("looked") == BEGINNING
    assert asked.reactions_of(old.bot) == ["👀"] and "typing" in old.chat.actions
    old.steps(1)
    assert old.growth("two steps") == MIDDLE
    old.steps(2)
    old.wait_for_post("Friday")
    old.quiet()
    (answer,) = old.posts()
    assert answer.texts == [BEGINNING, MIDDLE, answer.text] and answer.reply_to is asked
    assert answer.text.splitlines()[3:] == ["step     day", "dig   Monday"]
    assert "pre" in [one["type"] for one in answer.entities]


def test_on_an_old_server_stop_ends_every_process_and_the_post_that_grew(old: PhoneTalk) -> None:
    stops(old, lambda: old.ada.says(old.chat, "/stop"))


def test_on_an_old_server_nothing_stale_is_left_after_a_kill(old: PhoneTalk) -> None:
    is_killed_while_it_grows(old)
