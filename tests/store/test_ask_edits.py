"""Asks stay what they were: their mail, who may answer them, what a permission shows, and what is remembered."""

from __future__ import annotations

from typing import Any

import pytest

from hiboss.agents.questions import _shown
from hiboss.core.contracts.provider import Question
from hiboss.core.errors import AskFixed, HibossError, NotFound, OwnAsk
from hiboss.core.escaping import exposed, shows
from hiboss.store import ask_mail, ask_messages, asks
from hiboss.store.asks import NewAsk
from tests.store.test_ask_rules import PUSH, Office
from tests.store.test_ask_rules import office as office
from tests.support.in_process_daemon import InProcessDaemon, frozen


async def refused(daemon: InProcessDaemon, method: str, who: str, **params: Any) -> HibossError:
    with pytest.raises(HibossError) as caught:
        await daemon.ask(method, who, **params)
    return caught.value


async def asked(daemon: InProcessDaemon, to: str = "user:boss", **params: Any) -> dict[str, Any]:
    made = await daemon.ask("ask.create", "nex", **{"question": "Water the plants?", "to": to, **params})
    found: dict[str, Any] = made["ask"]
    return found


async def state(daemon: InProcessDaemon, number: str) -> tuple[str, str | None]:
    ask = (await daemon.ask("ask.get", id=number))["ask"]
    return ask["state"], ask["answer"]


def envelope_of(daemon: InProcessDaemon, message: str) -> str:
    [row] = daemon.rows("SELECT id FROM envelope WHERE message = ? AND forwards IS NULL", int(message[1:]))
    return f"e{row['id']}"


# --- the mail of an ask stays as it was sent ---------------------------------------------


@frozen()
async def test_nobody_edits_the_question_of_an_ask(daemon: InProcessDaemon) -> None:
    ask = await asked(daemon)
    for again in range(2):  # open, and settled
        error = await refused(daemon, "message.edit", "nex", id=ask["message"], text="Delete production?")
        assert isinstance(error, AskFixed) and f"hiboss ask cancel {ask['id']}" in str(error)
        if not again:
            await daemon.ask("ask.answer", id=ask["id"], choice="yes")
    assert (await daemon.inbox("boss"))[0].startswith("Water the plants?")


@frozen()
async def test_nobody_edits_a_reminder_of_an_ask(daemon: InProcessDaemon) -> None:
    await asked(daemon)
    await daemon.move(minutes=6)
    [row] = daemon.rows("SELECT id FROM message WHERE text LIKE '%has waited for your answer%'")
    for who in ("nex", "boss"):
        error = await refused(daemon, "message.edit", who, id=f"m{row['id']}", text="Delete?")
        assert error.code in ("not_author", "not_found")


@frozen()
async def test_who_answered_neither_edits_nor_deletes_nor_cancels_the_answer(daemon: InProcessDaemon) -> None:
    await daemon.register("zed", "kai")
    made = await daemon.ask("ask.create", "kai", question="Go?", to="agent:zed")
    ask = (await daemon.ask("ask.answer", "zed", id=made["ask"]["id"], choice="yes"))["ask"]
    envelope = envelope_of(daemon, ask["reply"])
    for method, params in (
        ("message.edit", {"id": ask["reply"], "text": "no"}),
        ("message.delete", {"id": ask["reply"]}),
        ("envelope.cancel", {"ids": [envelope]}),
    ):
        error = await refused(daemon, method, "zed", **params)
        assert error.code == "ask_fixed" and f"hiboss ask get {ask['id']}" in str(error)
    mail = await daemon.get(envelope)
    assert (mail["status"], mail["text"]) == ("pending", f'Answer to {ask["id"]} ("Go?"): yes')


@frozen()
async def test_the_asker_takes_a_question_back_by_cancel_or_delete_and_not_by_its_envelope(
    daemon: InProcessDaemon,
) -> None:
    await daemon.register("zed")
    ask = await asked(daemon, "agent:zed")
    envelope = envelope_of(daemon, ask["message"])
    error = await refused(daemon, "envelope.cancel", "nex", ids=[envelope])
    assert error.code == "ask_fixed" and f"hiboss ask cancel {ask['id']}" in str(error)
    assert (await daemon.get(envelope))["status"] == "pending"
    await daemon.ask("message.delete", "nex", id=ask["message"])
    assert await state(daemon, ask["id"]) == ("cancelled", None)


@frozen()
async def test_an_ask_ends_when_the_boss_cancels_its_envelope(daemon: InProcessDaemon) -> None:
    await daemon.register("zed")
    ask = await asked(daemon, "agent:zed")
    await daemon.ask("envelope.cancel", ids=[envelope_of(daemon, ask["message"])])
    assert await state(daemon, ask["id"]) == ("cancelled", None)


def test_an_agent_cannot_get_rid_of_the_ask_of_its_limit(office: Office) -> None:
    from hiboss.store import ask_answers, own_messages

    new = NewAsk(office.nex, office.boss, "May it go on?", ("go on", "no"), kind="limit")
    made = asks.create(office.tx, new, office.now)
    row = own_messages.visible(office.tx, ("message", made.message), office.nex)
    with pytest.raises(AskFixed, match="only the boss"):
        ask_answers.cancel(office.tx, made.id, office.nex, office.now)
    with pytest.raises(AskFixed, match="only the boss"):
        own_messages.delete(office.tx, row, None, office.nex, office.now, boss=False)
    with pytest.raises(AskFixed):
        own_messages.edit(office.tx, row, "A cookie?", office.nex, office.now)
    with pytest.raises(OwnAsk):
        ask_answers.answer(office.tx, made.id, "go on", office.nex, office.now)
    assert asks.need(office.tx, made.id)["state"] == "open"
    assert ask_answers.cancel(office.tx, made.id, office.boss, office.now)["state"] == "cancelled"


# --- who holds the question --------------------------------------------------------------


@frozen()
async def test_whoever_holds_a_routed_question_sees_and_answers_it(daemon: InProcessDaemon) -> None:
    await routed(daemon, "envelope")


@frozen()
async def test_whoever_gets_the_mail_of_a_conversation_sees_and_answers_what_is_asked_there(
    daemon: InProcessDaemon,
) -> None:
    await routed(daemon, "conversation")


async def routed(daemon: InProcessDaemon, way: str) -> None:
    await daemon.register("kai", "zed", "yan", "bob")
    ask = (await daemon.ask("ask.create", "kai", question="Deploy?", to="agent:zed"))["ask"]
    target: dict[str, Any] = {"envelope": envelope_of(daemon, ask["message"])}
    if way == "conversation":
        target = {"conversation": ask["conversation"], "agent": "zed"}
    assert (await refused(daemon, "ask.answer", "yan", id=ask["id"], choice="yes")).code == NotFound.code
    sent = await daemon.ask("control.send", event="stream.route", to="agent:yan", **target)
    assert sent["outcome"] == "applied"
    if way == "conversation":  # also what is asked later
        ask = (await daemon.ask("ask.create", "kai", question="And now?", to="agent:zed"))["ask"]
    assert (await daemon.ask("ask.list", "yan"))["asks"][0]["id"] == ask["id"]
    assert (await daemon.ask("ask.list", "bob"))["asks"] == []
    assert (await refused(daemon, "ask.answer", "bob", id=ask["id"], choice="yes")).code == NotFound.code
    assert (await refused(daemon, "ask.answer", "kai", id=ask["id"], choice="yes")).code == OwnAsk.code
    settled = (await daemon.ask("ask.answer", "yan", id=ask["id"], choice="yes"))["ask"]
    assert settled["answered_by"] == "agent:yan"
    assert any(f"Answer to {ask['id']}" in text for text in await daemon.inbox("kai"))


# --- a repeated turn ---------------------------------------------------------------------


def test_a_repeated_turn_gets_the_asks_of_the_same_words_in_their_order(office: Office) -> None:
    from hiboss.store import ask_answers

    def again(run: int) -> int:
        new = NewAsk(office.nex, office.boss, "Again?", ("a", "b"), run=run)
        return asks.create(office.tx, new, office.now).id

    def has(ask: int) -> int:
        ask_answers.received(office.tx, ask, office.now)
        return ask

    first = office.begins()
    given = []
    for choice in ("a", "b", None):
        given.append(again(first.run))
        if choice is not None:
            ask_answers.answer(office.tx, given[-1], choice, office.boss, office.now)
            has(given[-1])
    office.crashes()
    second = office.begins(boot=2, mail=False)
    assert [has(again(second.run)) for _ in range(3)] == given
    assert [asks.need(office.tx, one)["answer"] for one in given] == ["a", "b", None]


# --- what a permission shows -------------------------------------------------------------


def posted(office: Office, question: Question) -> tuple[str, list[str]]:
    """Let a run with a session ask; return the text of the message, and the labels of its buttons."""
    made = office.asks(office.begins(session="s-1"), question)
    assert made.ask is not None
    message = asks.need(office.tx, made.ask)["message"]
    text = office.tx.execute("SELECT text FROM message WHERE id = ?", (message,)).fetchone()["text"]
    rows = office.tx.execute("SELECT label FROM button WHERE message = ? ORDER BY id", (message,))
    return str(text), [row["label"] for row in rows]


REMEMBERS = ["allow for this session", "always allow exactly this"]


@pytest.mark.parametrize(
    "question",
    [
        PUSH._replace(detail="ls", subject="rm -rf /prod"),
        PUSH._replace(text="May I list the files? " + " " * 9_000, detail="x", subject="rm -rf /prod"),
        PUSH._replace(text="\n" * 9_000 + ".", detail="x" * 99_000, subject="rm -rf /prod"),
        PUSH._replace(detail="", subject="rm -rf /prod"),
    ],
    ids=["another detail", "spaces", "lines", "no detail"],
)
def test_a_permission_shows_tool_and_subject_before_all_else(office: Office, question: Question) -> None:
    text, labels = posted(office, question)
    assert text.startswith("Tool: Bash\nFor exactly: rm -rf /prod\n\n")
    assert labels == ["allow", "deny", *REMEMBERS] and len(text) < 3_500
    assert "\n\n\n" not in text and " " * 40 not in text


@pytest.mark.parametrize(
    ("subject", "shown"),
    [
        ("echo \u202egnihton\u202c", '"echo \\u202egnihton\\u202c"'),
        ("git\u200bpush", '"git\\u200bpush"'),
        ("ls\nrm x", '"ls\\nrm x"'),
        ("ls ", '"ls "'),
        ("a\u00a0\u2800\U000e0041", '"a\\u00a0\\u2800\\U000e0041"'),
        ("rm \u05d0\u05d1", '"rm \\u05d0\\u05d1"'),
        ("printf 'ä' \\n", "printf 'ä' \\n"),
    ],
)
def test_nothing_in_a_subject_is_hidden(office: Office, subject: str, shown: str) -> None:
    assert exposed(subject) == shown
    text, labels = posted(office, PUSH._replace(detail=subject, subject=subject))
    assert text.splitlines()[1] == f"For exactly: {shown}" and labels[2:] == REMEMBERS


@pytest.mark.parametrize("subject", ["x" * 1_501, "ls" + "\n" * 1_000 + "; rm -rf /prod"])
def test_what_a_post_does_not_show_whole_has_no_button_that_remembers(office: Office, subject: str) -> None:
    text, labels = posted(office, PUSH._replace(detail=subject, subject=subject))
    assert labels == ["allow", "deny"] and "… (to read all: hiboss ask get q1)\n" in text
    assert len(text) < 3_500


def test_a_permission_that_fills_more_than_a_post_has_no_button_that_remembers(office: Office) -> None:
    options = tuple(f"{number:03}" + "x" * 197 for number in range(20))
    _, labels = posted(office, PUSH._replace(options=options))
    assert len(labels) == 20


def test_the_end_of_what_is_too_long_is_shown_too(office: Office) -> None:
    question = Question("May I list the files?" + "." * 9_000, tool="Bash", detail="rm -rf /prod")
    text, _ = posted(office, question)
    assert text.startswith("Tool: Bash\n\nMay I list the files?") and "rm -rf /prod\n" in text


@frozen()
async def test_reminders_are_shortened_like_the_first_post(daemon: InProcessDaemon) -> None:
    await asked(daemon, question="word " * 20_000 + "?")
    await daemon.move(minutes=6)
    [reminder] = [one for one in await daemon.inbox("boss") if "has waited" in one]
    assert len(reminder) < 3_500 and "hiboss ask get q1" in reminder and "1. yes" in reminder


def test_a_reminder_of_a_permission_begins_like_its_first_post(office: Office) -> None:
    made = office.asks(office.begins(), PUSH._replace(detail="y" * 300_000))
    assert made.ask is not None
    reminder = ask_messages.reminder(office.tx, asks.need(office.tx, made.ask))
    lines = reminder.splitlines()
    assert lines[1:3] == ["Tool: Bash", f"For exactly: {PUSH.subject}"] and len(reminder) < 3_500


# --- options and tools -------------------------------------------------------------------


@pytest.mark.parametrize("option", [" ", "\u200b", "\u2800", "a\nb", "\u2028", "\t", "\u202eyes", "\u3164"])
def test_options_of_a_provider_that_show_nothing_or_control_something_are_refused(option: str) -> None:
    assert "option" in Question("Pick", (option, "deny")).mistake()


def test_options_of_people_and_emojis_are_right() -> None:
    family = "👨\u200d👩\u200d👧"
    assert Question("Pick", ("Ärger!", family, "a b", "A B")).mistake() == ""
    assert shows(family) and not shows("\u200b \u2800")


@frozen()
async def test_an_option_that_shows_nothing_cannot_be_asked(daemon: InProcessDaemon) -> None:
    for option in ("\u200b\u200b", "\u2800"):
        error = await refused(daemon, "ask.create", "nex", question="Odd?", options=["a", option])
        assert error.code == "bad_options" and "shows nothing" in str(error)


@pytest.mark.parametrize("option", ["\u202eyes", "x" * 300, "\u200d"])
def test_the_label_of_a_button_is_never_empty_and_hides_nothing(option: str) -> None:
    label = ask_messages.label(option, 40)
    assert label and "\u202e" not in label and len(label) <= 40


def test_a_tool_whose_name_has_a_secret_gets_no_rule() -> None:
    secret = "T hba_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"
    shown = _shown(Question("May I?", tool=secret, subject="x"), 1_000)
    assert shown.tool != secret and shown.subject == ""
    assert _shown(Question("May I?", tool="Bash", subject="x"), 1_000).subject == "x"


def test_what_is_no_mail_of_an_ask_can_be_changed(office: Office) -> None:
    office.begins()
    ask_mail.check_edit(office.tx, 1)
    ask_mail.check_delete(office.tx, 1, office.boss, boss=True)
    assert ask_mail.about(office.tx, 1, None) is None
