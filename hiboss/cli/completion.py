"""What can come next on a command line, for the tab key of a shell.

Typer finds the option or argument; here are the values that it cannot know (names, profiles,
ids), and the answers in the format of each shell. Imported only when a shell asks.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable
from typing import Any

from typer._click.shell_completion import (
    CompletionItem,
    ShellComplete,
    _resolve_context,
    _resolve_incomplete,
    split_arg_string,
)
from typer._completion_classes import BashComplete, FishComplete, ZshComplete
from typer.core import TyperGroup

from ..core.paths import Home
from . import client, output
from .credentials import find_token
from .plain_commands import COMPLETE
from .text_layout import cut, flat

PROGRAM = "hiboss"
SECONDS = 2.0  # a person waits for this
NUMBER = 50
PREVIEW = 70
# Shells evaluate parts of what we answer, and the previews are texts of others.
_SAFE_VALUE = re.compile(r"[\w:.@/+=-]+")
_UNSAFE_HELP = re.compile(r"[^\w .,;:?!@%+/()…’-]+")

Found = Iterable[tuple[str, str]]  # a value, and what it is


def suggest(cli: Any, instruction: str) -> int:
    """Answer a shell; when anything goes wrong, suggest nothing."""
    output.Mode.json = True  # no notes and no bar in a person's command line
    shell = SHELLS.get(instruction.removeprefix("complete_"))
    if shell is None:
        return 1
    try:
        if answer := shell(cli, {}, PROGRAM, COMPLETE).complete():
            output.line(answer)
    except Exception:  # noqa: BLE001 - see its reason in tests/shape
        return 1
    return 0


class _Suggesting(ShellComplete):
    """Reads the line, asks Typer, and adds what only hiboss knows."""

    def get_completion_args(self) -> tuple[list[str], str]:
        line = os.environ.get("_TYPER_COMPLETE_ARGS", "")
        words = split_arg_string(line)
        while words and "=" in words[0]:  # HIBOSS_HOME=… hiboss …
            words.pop(0)
        open_word = len(words) > 1 and not line.endswith((" ", "\t"))
        return (words[1:-1], words[-1]) if open_word else (words[1:], "")

    def get_completions(self, args: list[str], incomplete: str) -> list[CompletionItem]:
        option, sign, value = incomplete.partition("=")
        if sign and option.startswith("--"):  # the shell replaces the whole word
            found = self._values([*args, option], value)
            items = [CompletionItem(f"{option}={item.value}", help=item.help) for item in found]
        else:
            items = self._values(args, incomplete)
        return [_harmless(item) for item in items if _SAFE_VALUE.fullmatch(item.value)]

    def _values(self, args: list[str], incomplete: str) -> list[CompletionItem]:
        context = _resolve_context(self.cli, self.ctx_args, self.prog_name, args)
        place, incomplete = _resolve_incomplete(context, args, incomplete)
        if place is not context.command:
            completer = _completer(context, place)
            if completer is not None:
                start = incomplete.lower()
                found = completer(context)
                return [CompletionItem(v, help=h) for v, h in found if v.lower().startswith(start)]
        elif not incomplete and not isinstance(place, TyperGroup):
            incomplete = "-"  # when nothing positional is left, only options can come
        return place.shell_complete(context, incomplete)


def _harmless(item: CompletionItem) -> CompletionItem:
    words = " ".join(_UNSAFE_HELP.sub(" ", (item.help or "").replace("'", "’")).split())
    return CompletionItem(item.value, help=cut(words, PREVIEW) or None)


class _Bash(_Suggesting, BashComplete):
    def complete(self) -> str:
        args, incomplete = self.get_completion_args()
        # To bash `agent:ne` is three words, and only the last is replaced.
        breaks = [sign for sign in ":=" if sign in os.environ.get("COMP_WORDBREAKS", ":=")]
        start = max((incomplete.rfind(sign) + 1 for sign in breaks), default=0)
        return "\n".join(item.value[start:] for item in self.get_completions(args, incomplete))


class _Zsh(_Suggesting, ZshComplete):
    def format_completion(self, item: CompletionItem) -> str:
        value = item.value.replace(":", r"\\:")
        return f'"{value}":"{item.help}"' if item.help else f'"{value}"'


class _Fish(_Suggesting, FishComplete):
    def format_completion(self, item: CompletionItem) -> str:
        return f"{item.value}\t{item.help}" if item.help else str(item.value)


SHELLS: dict[str, type[ShellComplete]] = {"bash": _Bash, "zsh": _Zsh, "fish": _Fish}


# --- what only hiboss knows ----------------------------------------------------------


def _completer(context: Any, place: Any) -> Callable[[Any], Found] | None:
    """What completes an option or an argument: by its noun, else by its own name."""
    words = context.command_path.split()[1:]
    is_argument = place.param_type_name == "argument"
    if is_argument and (words[1:] == ["register"] or words in _OF_NEW_NAMES):
        return None
    names = [place.name] if is_argument else place.opts
    own = [(words[0], name) for name in names if words]
    found = next((_OWN_COMPLETERS[one] for one in own if one in _OWN_COMPLETERS), None)
    return found or next((_COMPLETERS[name] for name in names if name in _COMPLETERS), None)


def _profiles(context: Any) -> Found:
    return [(name, "") for name in Home().profiles()]


def _names(context: Any) -> Found:
    for agent in _call(context, "agent.list", {})["agents"]:
        yield agent["name"], agent["description"] or agent["role"] or ""


def _addresses(context: Any) -> Found:
    agents = [(f"agent:{name}", what) for name, what in _names(context)]
    users = _call(context, "user.list", {})["users"]
    return [*agents, *((one["address"], "" if one["boss"] else one["display"]) for one in users)]


def _correspondents(context: Any) -> Found:
    """Agents and people by name: names are unique over both."""
    return [(address.partition(":")[2], what) for address, what in _addresses(context)]


def _group_names(context: Any) -> Found:
    """The groups that one is in; those that one can join where the verb is that."""
    scope = "open" if context.command_path.split()[-1] == "join" else "own"
    params = {"type": "group", "scope": scope, "page_size": NUMBER}
    for one in _call(context, "conversation.list", params)["conversations"]:
        if one["name"] != "all":  # nobody sends to everybody by accident
            yield one["name"], one["description"] or ""


def _named_recipients(context: Any) -> Found:
    return [*_correspondents(context), *_group_names(context)]


def _recipients(context: Any) -> Found:
    return [*_addresses(context), *((f"group:{name}", what) for name, what in _group_names(context))]


def _conversations(context: Any) -> Found:
    params = {"page_size": NUMBER, "address": context.params.get("address")}
    for one in _call(context, "conversation.list", params)["conversations"]:
        yield one["id"], one["name"] or " ".join(one["others"])


def _threads(context: Any) -> Found:
    for one in _call(context, "thread.list", {"page_size": NUMBER})["threads"]:
        yield one["thread_id"], f"{one['last_sender']} {flat(one['title'])}"


def _users(context: Any) -> Found:
    for one in _call(context, "user.list", {})["users"]:
        if not one["boss"]:
            yield one["name"], one["display"]


def _runs(context: Any) -> Found:
    """The runs that the verb can be used on."""
    verb = context.command_path.split()[-1]
    status = "running" if verb in ("answer", "cancel", "pause", "resume", "steer") else None
    for one in _call(context, "run.list", {"status": status, "page_size": NUMBER})["runs"]:
        yield one["id"], f"{one['agent']} {one['status']} {flat(one['text'] or one['error'] or '')}"


def _asks(context: Any) -> Found:
    """The asks that the verb can be used on."""
    verb = context.command_path.split()[-1]
    state = "all" if verb == "get" else "open"
    for one in _call(context, "ask.list", {"state": state, "page_size": NUMBER})["asks"]:
        yield one["id"], f"{one['asker']} {flat(one['question'])}"


def _providers(context: Any) -> Found:
    for one in _call(context, "provider.list", {})["providers"]:
        yield one["name"], one["summary"]
    yield "none", "it fetches its mail itself"


def _schedules(context: Any) -> Found:
    for one in _call(context, "cron.list", {})["schedules"]:
        yield one["id"], one["name"] or flat(one["subject"] or one["text"])


def _lanes(context: Any) -> Found:
    for one in _call(context, "lane.list", {})["lanes"]:
        yield one["address"], one["state"]


def _contacts(context: Any) -> Found:
    """The chats that the verb changes something about."""
    verb = context.command_path.split()[-1]
    states = {"approve": ("asking", "blocked"), "block": ("asking", "allowed")}
    for one in _call(context, "contact.list", {})["contacts"]:
        if one["state"] in states.get(verb, (one["state"],)):
            yield one["address"], f"{one['name'] or ''} {one['state']}"


def _webhooks(context: Any) -> Found:
    """The webhooks that the verb can be used on."""
    verb = context.command_path.split()[-1]
    directions = {"delete": ("in",), "unsubscribe": ("out",)}.get(verb, ("in", "out"))
    for one in _call(context, "webhook.list", {})["webhooks"]:
        if one["direction"] in directions:
            yield one["name"], one["to"] or one["url"]


def _ids(context: Any) -> Found:
    """The envelopes of the boxes that the verb can be used on."""
    noun, verb = context.command_path.split()[-2:]
    own = {"control": ["inbox", "outbox"], "message": ["outbox"], "reaction": ["inbox", "outbox"]}
    boxes = {
        "cancel": ["outbox"],
        "retry": ["outbox"],
        "restore": ["archived", "trash"],
        "unsnooze": ["snoozed"],
        **{word: ["inbox", "outbox"] for word in ("get", "thread", "trace")},
    }
    of_sender = noun in own and verb not in ("get", "read")  # messages of others are read too
    for box in own[noun] if of_sender else boxes.get(verb, ["inbox"]):
        params = {"box": box, "page_size": NUMBER, "address": context.params.get("address")}
        if verb in ("cancel", "ack", "release"):
            params["status"] = "pending"
        for status in ("failed", "cancelled") if verb == "retry" else (params.get("status"),):
            for one in _call(context, "envelope.list", params | {"status": status})["envelopes"]:
                yield one["id"], f"{one['from']} {flat(one['subject'] or one['text'])}"


# By the name of an option, or of the parameter of an argument.
_COMPLETERS: dict[str, Callable[[Any], Found]] = {
    "--as": _profiles,
    "--to": _addresses,
    "--from": _addresses,
    "--address": _addresses,
    "--reply-to": _ids,
    "--thread": _ids,
    "--conversation": _conversations,
    "--up-to": _ids,
    "--provider": _providers,
    "id_": _ids,
    "ids": _ids,
}
# What is different for one noun.
_OWN_COMPLETERS: dict[tuple[str, str], Callable[[Any], Found]] = {
    ("agent", "name"): _names,
    ("ask", "--agent"): _names,
    ("ask", "id_"): _asks,
    ("chat", "agent"): _correspondents,
    ("contact", "contact"): _contacts,
    ("conversation", "id_"): _conversations,
    ("conversation", "with_"): _correspondents,
    ("control", "--agent"): _names,
    ("control", "--envelope"): _ids,
    ("control", "--run"): _runs,
    ("contact", "--agent"): _names,
    ("cron", "--to"): _recipients,
    ("cron", "id_"): _schedules,
    ("envelope", "--to"): _recipients,
    ("group", "name"): _group_names,
    **dict.fromkeys([("group", word) for word in ("member", "addresses", "--member")], _correspondents),
    ("inbox", "--from"): _correspondents,
    ("lane", "address"): _lanes,
    ("mcp", "--agent"): _names,
    ("message", "--run"): _runs,
    ("message", "--unread-for"): _names,
    ("notify", "name"): _names,
    ("presence", "address"): _correspondents,
    ("prime", "name"): _names,
    ("run", "--agent"): _names,
    ("run", "id_"): _runs,
    ("send", "to"): _named_recipients,
    ("thread", "id_"): _threads,
    ("user", "name"): _users,
    ("web", "--user"): _users,
    ("webhook", "--to"): _names,
    ("webhook", "name"): _webhooks,
}
# Commands whose argument is the name of something that is not there yet.
_OF_NEW_NAMES = (["group", "create"], ["webhook", "create"], ["webhook", "subscribe"])


def _call(context: Any, method: str, params: dict[str, Any]) -> Any:
    """Call with the token that the command itself would use; standard input is not read."""
    home = Home()
    token, profile = context.params.get("token"), context.params.get("as_")
    wanted = {name: value for name, value in params.items() if value is not None}
    wanted["token"] = find_token(home, None if token == "-" else token, profile)
    return client.call(home, method, wanted, timeout=SECONDS)
