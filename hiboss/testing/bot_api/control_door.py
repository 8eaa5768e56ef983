"""The door for other processes: `POST /control/<verb>` with a JSON body does what a test does in Python.

Who: `person` and `bot` by username or id (the only one, if not named). Where: `chat` by id; without it, the
private chat of the person and the bot. Which message: `message` by id. The verbs:

- add_bot (username, token, privacy, topics), add_person (first_name, username, id),
  add_group (title, members, admins, forum, supergroup); each answers with an id
- starts, says (text, reply_to, topic), sends_document (name, text, caption), edits (message, text),
  deletes (message), reacts (message, emoji), presses (message, data), create_topic (name), blocks, unblocks
- stops_generation, messages (what a person sees), log (all that was ever seen), drafts (all of them),
  wait_for_text (text, seconds), calls (method), pending (bot), complaints, floods, carried_out
- limit (on), delay (seconds), random_faults (rate, seed, methods, kinds)
- advance (seconds, minutes, hours, days), fault (method, status, retry_after, do, times …), clear_faults
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict
from typing import Any, cast

from .bots import Bot
from .chat_log import Happening
from .chats import Chat
from .identities import Account
from .messages import Message
from .params import Params
from .people import Person
from .refusals import bad_request, not_found
from .server import BotApi
from .world import CarriedOut

Given = dict[str, Any]


def open_control_door(api: BotApi) -> None:
    """Let a server answer /control/<verb>. Call it before the server starts."""
    api.control = _ControlDoor(api).answer


class _ControlDoor:
    def __init__(self, api: BotApi) -> None:
        self._api = api
        self._verbs: dict[str, Callable[[Given], Any]] = {
            "add_bot": self._add_bot,
            "add_person": self._add_person,
            "add_group": self._add_group,
            "starts": lambda given: self._chat_json(self._person(given).starts(self._bot(given))),
            "says": self._says,
            "sends_document": self._sends_document,
            "edits": lambda given: _shown(self._person(given).edits(self._message(given), given.get("text"))),
            "deletes": lambda given: self._person(given).deletes(self._message(given)),
            "reacts": lambda given: self._person(given).reacts(self._message(given), given.get("emoji")),
            "presses": self._presses,
            "create_topic": self._create_topic,
            "blocks": lambda given: self._person(given).blocks(self._bot(given)),
            "unblocks": lambda given: self._person(given).unblocks(self._bot(given)),
            "messages": lambda given: [_shown(one) for one in self._chat(given).messages],
            "log": lambda given: [_happened(one) for one in self._chat(given).log],
            "drafts": lambda given: [asdict(one) for one in self._chat(given).drafts],
            "stops_generation": lambda given: self._person(given).stops_generation(self._chat(given)),
            "wait_for_text": self._wait_for_text,
            "calls": self._calls,
            "pending": lambda given: self._bot(given).pending,
            "complaints": lambda given: api.complaints,
            "floods": lambda given: [asdict(one) for one in api.floods],
            "carried_out": lambda given: [_unheard(one) for one in api.carried_out],
            "limit": lambda given: api.limit(bool(given.get("on", True))),
            "delay": lambda given: setattr(api, "delay", float(given["seconds"])),
            "random_faults": self._random_faults,
            "advance": lambda given: api.advance(**given),
            "fault": self._fault,
            "clear_faults": lambda given: api.clear_faults(),
        }

    def answer(self, verb: str, params: Params) -> Any:
        """Do what a verb says, or refuse with what is wrong."""
        do = self._verbs.get(verb)
        if do is None:
            raise not_found()
        try:
            return do(dict(params.values))
        except (AssertionError, KeyError, TypeError, ValueError) as error:
            raise bad_request(f"{type(error).__name__}: {error}") from error

    # --- who and where -------------------------------------------------------------------

    def _person(self, given: Given) -> Person:
        people = {str(one.id): one for one in self._api.world.people.values()}
        return cast("Person", _chosen("person", given.get("person"), people))

    def _bot(self, given: Given) -> Bot:
        bots = {str(one.id): one for one in self._api.world.bots.values()}
        return cast("Bot", _chosen("bot", given.get("bot"), bots))

    def _chat(self, given: Given) -> Chat:
        number = int(given.get("chat") or 0)
        if number < 0:
            return self._api.world.groups[number]
        if number:
            given = {**given, "person": number}
        return self._api.world.private_chat(self._person(given), self._bot(given))

    def _message(self, given: Given) -> Message:
        found = self._chat(given).history.get(int(given["message"]))
        if found is None:
            raise ValueError(f"there is no message {given['message']}")
        return found

    def _account(self, name: str | int) -> Account:
        everybody = [*self._api.world.people.values(), *self._api.world.bots.values()]
        return cast("Account", _chosen("account", name, {str(one.id): one for one in everybody}))

    # --- the verbs that take more than a line ---------------------------------------------

    def _add_bot(self, given: Given) -> Any:
        bot = self._api.add_bot(**given)
        return {"id": bot.id, "username": bot.username, "token": bot.token}

    def _add_person(self, given: Given) -> Any:
        return {"id": self._api.add_person(**given).id}

    def _add_group(self, given: Given) -> Any:
        for name in ("members", "admins"):
            given[name] = [self._account(one) for one in given.get(name, [])]
        return self._chat_json(self._api.add_group(**given))

    def _says(self, given: Given) -> Any:
        chat = self._chat(given)
        reply_to = chat.find(int(given.get("reply_to") or 0))
        message = self._person(given).says(chat, given["text"], reply_to=reply_to, topic=given.get("topic"))
        return _shown(message)

    def _sends_document(self, given: Given) -> Any:
        data = str(given.get("text", "")).encode()
        return _shown(
            self._person(given).sends_document(
                self._chat(given), given.get("name", "notes.txt"), data, caption=given.get("caption", "")
            )
        )

    def _presses(self, given: Given) -> Any:
        return {"id": self._person(given).presses(self._message(given), given["data"]).id}

    def _create_topic(self, given: Given) -> Any:
        return self._person(given).creates_topic(self._chat(given), given["name"]).as_json()

    def _wait_for_text(self, given: Given) -> Any:
        return _shown(self._chat(given).wait_for_text(given["text"], float(given.get("seconds", 30))))

    def _calls(self, given: Given) -> Any:
        calls = self._api.calls_of(given["method"]) if "method" in given else self._api.calls
        return [{"method": call.method, "params": call.params, "status": call.status} for call in calls]

    def _fault(self, given: Given) -> None:
        everywhere = given.get("bot") is None and given.get("chat") is None
        self._api.fault(given.pop("method", "*"), everywhere=everywhere, **given)

    def _random_faults(self, given: Given) -> None:
        self._api.random_faults(**given)

    def _chat_json(self, chat: Chat) -> Any:
        return {"id": chat.id}


def _chosen(what: str, name: Any, accounts: dict[str, Any]) -> Any:
    """Return the account with this username or id; the only one, if none is named."""
    if name is None and len(accounts) == 1:
        return next(iter(accounts.values()))
    for number, account in accounts.items():
        if str(name).lower() in (number, (account.username or "").lower()):
            return account
    raise ValueError(
        f"there is no {what} {name!r}" if name else f"name the {what}: there are {len(accounts)}"
    )


def _shown(message: Message) -> Any:
    """Return a message as a person sees it, with what a test may ask."""
    return message.facts()


def _happened(one: Happening) -> Any:
    return {"kind": one.kind, "message": one.message.id, "text": one.text, "date": one.date}


def _unheard(one: CarriedOut) -> Any:
    return {
        "method": one.call.method,
        "params": one.call.params,
        "why": one.why,
        "messages": list(one.message_ids),
    }
