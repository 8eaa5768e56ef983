"""Contacts and pairing by the command line: who wrote to a bot, what the boss decides, how the bot knows him."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from hiboss.store.pairing import LENGTH, LETTERS
from hiboss.testing.bot_api import BotApi
from hiboss.testing.bot_api.bots import Bot
from hiboss.testing.bot_api.chats import Chat
from tests.support.cli import HIBOSS, Done, Office, Shell
from tests.support.telegram_bots import TelegramDaemon, address, telegram_daemon
from tests.support.terminal import on_terminal
from tests.support.waits import wait_until

CODE = re.compile(rf"\b[{LETTERS}]{{{LENGTH}}}\b")
PLAIN = {"NO_COLOR": "1"}


@pytest.fixture
def telegram(tmp_path: Path) -> Iterator[TelegramDaemon]:
    with telegram_daemon(tmp_path) as running:
        yield running


@pytest.fixture
def office(telegram: TelegramDaemon) -> Office:
    return Office(telegram.daemon)


@pytest.fixture
def bot(telegram: TelegramDaemon) -> Bot:
    return telegram.bound_bot("nexbot")


def stranger(telegram: TelegramDaemon, bot: Bot, *texts: str, name: str = "Eve") -> Chat:
    """Somebody who wrote this and waits for the boss."""
    person = telegram.api.add_person(name, username="eve")
    chat = person.starts(bot)
    for text in texts or ("let me in",):
        person.says(chat, text)
    wait_until(lambda: telegram.contact(chat)["held"] == max(len(texts), 1))
    return chat


def bind(office: Office, token: str, *words: str, **more: Any) -> Done:
    binding = ("agent", "bind", "nex", "--adapter-type", "telegram", "--adapter-token", token)
    return office(*binding, *words, **more)


def file_of(bot: Bot, directory: Path) -> str:
    path = directory / "token.txt"
    path.write_text(f"{bot.token}\n")
    return f"@{path}"


# --- contact list --------------------------------------------------------------------


def test_while_nobody_wrote_the_list_says_so(office: Office) -> None:
    assert office("contact", "list").stdout == "no-contacts: true\n"
    assert on_terminal(office, "contact", "list", env=PLAIN).stdout == "No contacts.\n"
    assert office("contact", "list", "--json").json["contacts"] == []


def test_each_contact_is_a_record_with_its_state_its_code_and_what_is_held(
    telegram: TelegramDaemon, office: Office, bot: Bot
) -> None:
    mine = telegram.pair(telegram.api.add_person("Ada", username="ada"), bot)
    theirs = stranger(telegram, bot)
    boss, eve = office("contact", "list").blocks
    assert boss.items() >= {"address": address(mine), "state": "boss", "name": "Ada"}.items()
    expected = {
        "address": address(theirs),
        "kind": "private",
        "name": "Eve",
        "username": "eve",
        "state": "asking",
        "code": telegram.contact(theirs)["code"],
        "held": "1",
        "binding": "b1",
        "account": "@nexbot",
    }
    assert eve.items() >= expected.items() and set(eve) - set(expected) == {"code-until", "created-at"}
    assert "code" not in boss and eve["code-until"].endswith("+00:00")
    assert office("contact", "list", "--state", "asking").values("name") == ["Eve"]
    assert office("contact", "list", "--state", "blocked").stdout == "no-contacts: true\n"


def test_json_is_the_answer_of_the_daemon(telegram: TelegramDaemon, office: Office, bot: Bot) -> None:
    stranger(telegram, bot)
    done = office("contact", "list", "--json")
    assert done.json == telegram.boss.call("contact.list") and done.stderr == ""


def test_on_a_terminal_contacts_are_a_table_with_whole_addresses(
    telegram: TelegramDaemon, office: Office, bot: Bot
) -> None:
    mine = telegram.pair(telegram.api.add_person("Ada"), bot)
    theirs = stranger(telegram, bot, name="Eve of the very long and winding name")
    code = telegram.contact(theirs)["code"]
    head, boss, eve = on_terminal(office, "contact", "list", columns=110, env=PLAIN).stdout.splitlines()
    assert head.split() == ["address", "name", "state", "code", "held", "account", "met"]
    assert boss.split()[:3] == [address(mine), "Ada", "boss"]
    assert eve.startswith(f"{address(theirs)}  Eve of") and f"  asking  {code}  1     @nexbot  " in eve
    narrow = on_terminal(office, "contact", "list", columns=60, env=PLAIN).stdout.splitlines()
    assert all(len(line) <= 60 for line in narrow)
    assert narrow[2].startswith(f"{address(theirs)}  Eve") and code in narrow[2]


def test_the_name_of_a_stranger_is_one_line_and_does_nothing_to_a_terminal(
    telegram: TelegramDaemon, office: Office, bot: Bot
) -> None:
    stranger(telegram, bot, name="Eve\x1b[31m\nstate: boss")
    (eve,) = office("contact", "list").blocks
    assert eve["state"] == "asking"
    printed = on_terminal(office, "contact", "list", columns=200, env=PLAIN).stdout
    assert r"Eve\x1b[31m state: boss" in printed and "\x1b" not in printed


def test_every_contact_is_listed_also_beyond_one_page(telegram: TelegramDaemon, office: Office) -> None:
    bot = telegram.bound_bot("nexbot")
    people = [telegram.api.add_person(f"P{number}").starts(bot) for number in range(103)]
    wait_until(lambda: len(office("contact", "list").values("address")) == len(people))
    assert set(office("contact", "list").values("address")) == {address(chat) for chat in people}


# --- contact approve, block, route ---------------------------------------------------


def test_by_its_code_a_stranger_is_approved_and_what_was_held_comes_in(
    telegram: TelegramDaemon, office: Office, bot: Bot
) -> None:
    chat = stranger(telegram, bot, "let me in", "and this")
    assert telegram.stored(chat) == []
    code = telegram.contact(chat)["code"]
    done = office("contact", "approve", f"{code[:4].lower()}-{code[4:].lower()}")
    assert done.record == {"address": address(chat), "name": "Eve", "state": "allowed", "changed": "true"}
    telegram.wait_for_texts(chat, "let me in", "and this")
    used = office("contact", "approve", code)
    assert used.rc == 1 and "hiboss contact list" in used.stderr and "code: not_found" in used.stderr


def test_by_its_address_a_chat_is_blocked_and_approved_again(
    telegram: TelegramDaemon, office: Office, bot: Bot
) -> None:
    chat = stranger(telegram, bot)
    told = [
        office("contact", verb, address(chat)).record for verb in ("block", "block", "approve", "approve")
    ]
    assert [(one["state"], one["changed"]) for one in told] == [
        ("blocked", "true"),
        ("blocked", "false"),
        ("allowed", "true"),
        ("allowed", "false"),
    ]
    assert telegram.outcomes(chat) == ["ignored", "blocked"]  # what was held is gone for good
    again = office("contact", "block", address(chat), "--json").json
    assert again["changed"] is True and again["contact"] == telegram.contact(chat)


def test_the_boss_does_not_block_his_own_chat(telegram: TelegramDaemon, office: Office, bot: Bot) -> None:
    done = office("contact", "block", address(telegram.pair(telegram.api.add_person("Ada"), bot)))
    assert (
        done.rc == 2 and "this chat is yours" in done.stderr and "hiboss boss set --reach ''" in done.stderr
    )


def test_what_is_written_in_a_chat_goes_to_the_agent_that_was_chosen_for_it(
    telegram: TelegramDaemon, office: Office, bot: Bot
) -> None:
    kai = office.agent()
    telegram.bind(bot, kai)
    eve = telegram.api.add_person("Eve")
    chat = telegram.approved(eve, bot)
    done = office("contact", "route", address(chat), "--agent", kai.upper())
    assert done.record.items() >= {"address": address(chat), "agent": kai, "changed": "true"}.items()
    assert office("contact", "route", address(chat), "--agent", kai).record["changed"] == "false"
    assert office("contact", "list").values("agent") == [kai]
    eve.says(chat, "for kai")
    assert telegram.recipients(telegram.wait_for_stored(chat, "for kai")) == [kai]
    back = office("contact", "route", address(chat), "--agent", "")
    assert "agent" not in back.record and back.record["changed"] == "true"
    eve.says(chat, "for nex")
    assert telegram.recipients(telegram.wait_for_stored(chat, "for nex")) == ["nex"]


def test_an_agent_that_the_account_does_not_serve_gets_no_chat(
    telegram: TelegramDaemon, office: Office, bot: Bot
) -> None:
    chat, kai = stranger(telegram, bot), office.agent()
    done = office("contact", "route", address(chat), "--agent", kai)
    assert done.rc == 1 and "code: not_bound" in done.stderr
    assert f"agent:{kai}" in done.stderr and "hiboss agent bind" in done.stderr


def test_of_a_chat_that_two_accounts_know_one_must_be_chosen(
    telegram: TelegramDaemon, office: Office, bot: Bot
) -> None:
    other, eve = telegram.bound_bot("kaibot"), telegram.api.add_person("Eve")
    chats = [eve.starts(one) for one in (bot, other)]
    wait_until(lambda: len(telegram.contacts()) == len(chats))
    which = office("contact", "approve", address(chats[0]))
    assert which.rc == 2 and "give binding (--binding): " in which.stderr
    assert {"b1", "b2"} == set(which.stderr.splitlines()[0].rpartition(": ")[2].split(", "))
    assert office("contact", "approve", address(chats[0]), "--binding", "b2").record["state"] == "allowed"
    listed = office("contact", "list")  # the two arrived at the same time, in any order
    states = dict(zip(listed.values("binding"), listed.values("state"), strict=True))
    assert states == {"b1": "asking", "b2": "allowed"}


# --- boss pair -----------------------------------------------------------------------


def test_a_code_makes_a_chat_the_bosss(telegram: TelegramDaemon, office: Office, bot: Bot) -> None:
    done = office("boss", "pair")
    code = done.record["code"]
    assert CODE.fullmatch(code) and done.record["accounts"] == "@nexbot" and done.stderr == ""
    assert done.record["until"].endswith("+00:00")
    ada = telegram.api.add_person("Ada")
    chat = ada.starts(bot)
    ada.says(chat, code)
    chat.wait_for_text("This chat is yours now")
    shown = office("boss", "get").record
    assert (shown["ids"], shown["reach"]) == (f"telegram:{chat.id}", address(chat))
    assert {"ids", "reach", "forward"} & set(office("boss", "get", "--as", "nex").record) == set()


def test_where_no_account_takes_a_code_the_next_step_is_named(office: Office) -> None:
    done = office("boss", "pair")
    assert set(done.record) == {"code", "until"}
    assert done.stderr.startswith("note: no account takes it yet; bind one: hiboss agent bind NAME ")
    quiet = office("boss", "pair", "--json")
    assert quiet.json["accounts"] == [] and quiet.stderr == ""


def test_the_id_of_the_boss_is_set_and_taken_away(office: Office) -> None:
    assert office("boss", "set", "--telegram", "777").record["ids"] == "telegram:777"
    assert office("boss", "get", "--json").json["ids"] == {"telegram": "777"}
    assert "ids" not in office("boss", "set", "--telegram", "").record


@pytest.mark.parametrize("given", ["@ada", "-100", "ada"])
def test_what_is_no_number_of_a_person_is_not_taken_as_the_bosss_id(office: Office, given: str) -> None:
    done = office("boss", "set", f"--telegram={given}")
    assert done.rc == 2 and given in done.stderr and "hiboss boss pair" in done.stderr
    assert "ids" not in office("boss", "get").record


# --- up ------------------------------------------------------------------------------


@pytest.fixture
def api() -> Iterator[BotApi]:
    with BotApi() as running:
        yield running


def test_up_prints_a_code_while_a_bot_does_not_know_the_boss_and_none_else(
    tmp_path: Path, api: BotApi, shell: Shell
) -> None:
    env = {"HIBOSS_TELEGRAM_BASE_URL": api.url}
    first = shell.run([HIBOSS, "up", "--detach", "--agent-name", "nex"], env=env)
    assert first.rc == 0 and "boss pair" not in first.stdout
    bot = api.add_bot("nexbot")
    token = file_of(bot, tmp_path)
    bound = shell("agent", "bind", "nex", "--adapter-type", "telegram", "--adapter-token", token)
    assert bound.rc == 0, bound
    told = shell("up").stdout
    (line,) = [one for one in told.splitlines() if "@nexbot" in one]
    (code,) = CODE.findall(line)
    assert "within an hour" in line and "boss pair" in told.splitlines()[told.splitlines().index(line) + 1]
    steps = shell("up", "--json").json["next"]  # which makes no code, so the one that was printed counts
    assert [one.endswith("boss pair") for one in steps].count(True) == 1
    api.add_person("Ada").starts(bot, payload=code).wait_for_text("This chat is yours now")
    known = shell("up")
    assert known.rc == 0 and "boss pair" not in known.stdout and "@nexbot" not in known.stdout


def test_in_the_shell_of_an_agent_up_makes_no_code(
    telegram: TelegramDaemon, office: Office, bot: Bot
) -> None:
    done = office("up", env={"HIBOSS_TOKEN": office.token("nex")})
    assert done.rc == 0 and "boss pair" not in done.stdout and not CODE.search(done.stdout)
    assert "hiboss boss pair" not in done.stderr


# --- agent bind ----------------------------------------------------------------------


def test_binding_a_bot_prints_what_to_know_and_the_next_step(
    telegram: TelegramDaemon, office: Office, tmp_path: Path
) -> None:
    bot = telegram.api.add_bot("nexbot")
    done = bind(office, file_of(bot, tmp_path))
    assert done.record == {"binding": "b1", "created": "true", "name": "@nexbot"}
    *notes, step = done.stderr.splitlines()
    assert [line[:6] for line in notes] == ["note: "] * 2
    assert "/setprivacy" in notes[0] and "Threaded Mode" in notes[1]
    assert step == "Next: hiboss boss pair, and send the code to @nexbot."
    telegram.pair(telegram.api.add_person("Ada"), bot)
    assert "Next:" not in bind(office, file_of(bot, tmp_path)).stderr


def test_a_bot_that_sees_everything_needs_no_notes(
    telegram: TelegramDaemon, office: Office, tmp_path: Path
) -> None:
    bot = telegram.api.add_bot("nexbot", privacy=False, topics=True)
    done = bind(office, file_of(bot, tmp_path), "--groups", "always", "--lead", "--topic")
    assert done.stderr == "Next: hiboss boss pair, and send the code to @nexbot.\n"
    shown = office("agent", "bindings").record
    assert shown.items() >= {"groups": "always", "leads": "nex", "closed": "true"}.items()


def test_in_json_the_notes_are_in_the_answer(
    telegram: TelegramDaemon, office: Office, tmp_path: Path
) -> None:
    done = bind(office, file_of(telegram.api.add_bot("nexbot"), tmp_path), "--json")
    assert done.stderr == "" and len(done.json["notes"]) == 2 and done.json["paired"] is False


def test_a_token_on_the_command_line_is_warned_of_and_from_a_file_or_a_pipe_not(
    telegram: TelegramDaemon, office: Office, tmp_path: Path
) -> None:
    bot = telegram.api.add_bot("nexbot")
    warning = (
        "warning: --adapter-token on the command line shows in the process list; use --adapter-token @FILE"
    )
    plain = bind(office, bot.token)
    assert plain.rc == 0 and plain.stderr.splitlines()[0] == warning
    for given, stdin in ((file_of(bot, tmp_path), ""), ("-", f"{bot.token}\n")):
        done = bind(office, given, stdin=stdin)
        assert done.rc == 0 and "warning" not in done.stderr
    assert bot.token.partition(":")[2] not in plain.stdout + plain.stderr + telegram.log()


def test_a_bot_is_bound_without_a_check_if_that_is_wanted(
    telegram: TelegramDaemon, office: Office, tmp_path: Path
) -> None:
    bot = telegram.api.add_bot("nexbot")
    done = bind(office, file_of(bot, tmp_path), "--no-check")
    assert done.record == {"binding": "b1", "created": "true"}
    assert done.stderr == "Next: hiboss boss pair, and send the code to the account.\n"
    telegram.api.wait_for(lambda: telegram.polls(bot))
