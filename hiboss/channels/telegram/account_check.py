"""Who the bot is, and what its owner should know when it is bound."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ...core.contracts.failures import AccountError, LaneError, Refused
from .api_errors import ApiRefusal, CallFailed, as_failure
from .message_facts import Me, number, text

if TYPE_CHECKING:
    from .bot_client import BotClient

_PRIVACY = (
    "In groups the bot sees only commands, replies to it and messages that name it: this is its privacy "
    "mode. To let it read everything, send /setprivacy to @BotFather, choose the bot, then Disable; then "
    "remove the bot from the group and add it again."
)
_TOPICS = (
    "The bot has no topics in private chats, which --topic needs. To switch them on: in @BotFather choose "
    "the bot, then Bot Settings, then Threads Settings, and turn Threaded Mode on."
)
_WEBHOOK = (
    "The bot has a webhook, so nothing comes in here. Delete it: call the method deleteWebhook of the Bot "
    "API, without drop_pending_updates."
)


async def who_it_is(client: BotClient) -> dict[str, Any]:
    """Return what the server says about the bot. Raises AccountError."""
    try:
        found = await client.call("getMe")
    except CallFailed as error:
        failure = as_failure(error)
        named = failure.retry_after if isinstance(failure, LaneError) else None
        raise AccountError(failure.kind, failure.text, named) from None
    if not isinstance(found, dict) or number(found, "id") is None:
        raise AccountError("not_understood", "the server did not say who the bot is")
    return found


async def checked(client: BotClient) -> dict[str, Any]:
    """Return the same for a new binding. Raises Refused if the token is wrong, else AccountError."""
    try:
        return await who_it_is(client)
    except AccountError as error:
        if error.kind != "unauthorized":
            raise
    raise Refused(
        "Telegram does not know this token; copy it again from @BotFather (/mybots, then API Token), "
        "or make a new one there (/token)"
    )


async def notes(client: BotClient, found: dict[str, Any]) -> list[str]:
    """Return what the owner of the bot should know or do next, one sentence or two each."""
    said = []
    if found.get("can_read_all_group_messages") is False:
        said.append(_PRIVACY)
    if found.get("has_topics_enabled") is not True:
        said.append(_TOPICS)
    if await _has_webhook(client):
        said.append(_WEBHOOK)
    return said


async def _has_webhook(client: BotClient) -> bool:
    try:
        return bool(text(await client.call("getWebhookInfo"), "url"))
    except ApiRefusal:
        return False
    except CallFailed as error:
        failure = as_failure(error)
    raise failure if isinstance(failure, LaneError) else AccountError(failure.kind, failure.text)


def me(found: dict[str, Any], token: str) -> Me:
    """Return the bot, by what the server says of it."""
    return Me(number(found, "id") or int(token.partition(":")[0]), text(found, "username") or None)
