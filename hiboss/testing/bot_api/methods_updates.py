"""Methods about the bot itself and its updates: getMe, getUpdates, webhooks, commands."""

from __future__ import annotations

import re
from typing import Any

from .bots import Bot, Webhook
from .params import Params
from .refusals import bad_request, webhook_is_active
from .world import World

LONGEST_POLL = 50  # seconds
_COMMAND = re.compile(r"[a-z0-9_]{1,32}")


def get_me(world: World, bot: Bot, params: Params) -> Any:
    me = bot.me()
    if not world.has("9.3"):
        del me["has_topics_enabled"]
    if not world.has("9.4"):
        del me["allows_users_to_create_topics"]
    return me


def get_updates(world: World, bot: Bot, params: Params) -> Any:
    if bot.webhook.url:
        raise webhook_is_active()
    allowed = params.object("allowed_updates", "allowed updates")
    if allowed is not None:
        bot.updates.allowed = [str(kind) for kind in allowed]
    limit = params.number("limit", 100)
    return bot.updates.fetch(
        params.number("offset"),
        limit if 1 <= limit <= 100 else 100,
        min(max(params.real("timeout"), 0), LONGEST_POLL),
    )


def set_webhook(world: World, bot: Bot, params: Params) -> Any:
    url = params.text("url")
    if url and not url.startswith("https://"):
        raise bad_request("bad webhook: An HTTPS URL must be provided for webhook")
    if params.flag("drop_pending_updates"):
        bot.updates.clear()
    allowed = params.object("allowed_updates", "allowed updates")
    if allowed is not None:
        bot.updates.allowed = [str(kind) for kind in allowed]
    bot.webhook = Webhook(url=url)
    return True


def delete_webhook(world: World, bot: Bot, params: Params) -> Any:
    if params.flag("drop_pending_updates"):
        bot.updates.clear()
    bot.webhook = Webhook()
    return True


def get_webhook_info(world: World, bot: Bot, params: Params) -> Any:
    info: dict[str, Any] = {
        "url": bot.webhook.url,
        "has_custom_certificate": False,
        "pending_update_count": len(bot.pending),
    }
    if bot.updates.allowed:
        info["allowed_updates"] = bot.updates.allowed
    return info


def set_my_commands(world: World, bot: Bot, params: Params) -> Any:
    commands = params.object("commands", "commands") or []
    if len(commands) > 100:
        raise bad_request("BOT_COMMANDS_TOO_MUCH")
    kept = []
    for one in commands:
        command = str(one.get("command", "")).removeprefix("/")
        description = str(one.get("description", "")).strip()
        if not _COMMAND.fullmatch(command):
            raise bad_request("BOT_COMMAND_INVALID")
        if not 1 <= len(description) <= 256:
            raise bad_request("BOT_COMMAND_DESCRIPTION_INVALID")
        kept.append({"command": command, "description": description})
    bot.commands[_scope(params)] = kept
    return True


def get_my_commands(world: World, bot: Bot, params: Params) -> Any:
    return bot.commands.get(_scope(params), [])


def delete_my_commands(world: World, bot: Bot, params: Params) -> Any:
    bot.commands.pop(_scope(params), None)
    return True


def _scope(params: Params) -> str:
    """Return a key for the scope and the language of a list of commands."""
    scope = params.object("scope", "BotCommandScope") or {"type": "default"}
    facts = [str(scope.get(name, "")) for name in ("type", "chat_id", "user_id")]
    return "/".join([*facts, params.text("language_code")])


def answer_callback_query(world: World, bot: Bot, params: Params) -> Any:
    press = bot.presses.get(params.text("callback_query_id"))
    late = press is not None and world.clock.now() - press.date > 15
    # A query that was answered counts as gone: nobody waits for a second answer.
    if press is None or late or press.answer is not None:
        raise bad_request("query is too old and response timeout expired or query ID is invalid")
    text = params.text("text")
    if len(text) > 200:
        raise bad_request("MESSAGE_TOO_LONG")
    press.answer = {"text": text, "show_alert": params.flag("show_alert"), "url": params.text("url")}
    return True


def no_answer_needed(world: World, bot: Bot, params: Params) -> Any:
    """Answer methods that change nothing a test looks at: logOut, close, setMyName and the like."""
    return True
