"""What can go wrong with a call of the Bot API, and what that means: the one place that decides it.

None of these exceptions names the token, and none is chained to one that does.
"""

from __future__ import annotations

from ...core.contracts.failures import AccountError, EnvelopeError, LaneError

# A server answers 404 for a token that is malformed, and for a method that it does not have. These it has.
_OLD_METHODS = (
    "getMe",
    "getUpdates",
    "getFile",
    "sendMessage",
    "sendPhoto",
    "sendDocument",
    "sendChatAction",
    "editMessageText",
    "deleteMessage",
)
_KINDS = (  # of a 400, by words of its description
    ("chat not found", "chat_not_found"),
    ("message thread not found", "topic_not_found"),
    ("too long", "too_long"),
    ("message is not modified", "not_modified"),
    ("not found", "not_found"),
    ("reaction_invalid", "reaction_invalid"),
    ("too big", "too_big"),
    ("must be non-empty", "empty"),
)


class CallFailed(Exception):
    """A call did not succeed; its text is one sentence for people."""


class Unreachable(CallFailed):
    """There is no connection, or no answer in time."""


class Stalled(CallFailed):
    """The server was reached, and then sent nothing more of a file."""


class Garbled(CallFailed):
    """The answer is not one of the Bot API: a broken server, or a proxy that answers in its place."""


class ApiRefusal(CallFailed):
    """The Bot API answered that it did not do it."""

    def __init__(
        self,
        method: str,
        code: int,
        description: str,
        *,
        retry_after: float | None = None,
        migrated_to: str | None = None,
    ) -> None:
        super().__init__(f"Telegram answered {method} with {code}: {description}")
        self.method = method
        self.code = code
        self.description = description
        self.retry_after = retry_after  # seconds
        self.migrated_to = migrated_to  # the new id of the chat

    @property
    def kind(self) -> str:
        """A short code for what a 400 says."""
        words = self.description.lower()
        return next((kind for phrase, kind in _KINDS if phrase in words), "refused")


def as_failure(error: CallFailed) -> LaneError | EnvelopeError:
    """Return what a call that failed means for what was to be posted."""
    if isinstance(error, Unreachable):
        return AccountError("unreachable", str(error))
    if not isinstance(error, ApiRefusal):
        return LaneError("not_understood", str(error))
    if (account := as_account_error(error)) is not None:
        return account
    if error.migrated_to is not None:
        text = f"the group has become {error.migrated_to}; this waits until Telegram announces it"
        return LaneError("chat_migrated", text)
    if error.code == 429:
        return LaneError("rate_limited", str(error), error.retry_after)
    if error.code == 403:
        return EnvelopeError("forbidden", str(error))
    if error.code == 404:
        return EnvelopeError("unsupported", f"this server of the Bot API has no {error.method}")
    if error.code == 413:
        return EnvelopeError("too_big", str(error))
    if error.code == 400:
        return EnvelopeError(error.kind, str(error))
    return LaneError("server_error", str(error))


def as_account_error(error: ApiRefusal) -> AccountError | None:
    """Return what a refusal means that stops the whole account; None: it does not."""
    if error.code == 401 or (error.code == 404 and error.method in _OLD_METHODS):
        return AccountError(
            "unauthorized",
            "Telegram does not accept the token any more; ask @BotFather for a new one (/token) and bind "
            "the bot again with it (hiboss agent bind AGENT --adapter-type telegram --adapter-token -)",
        )
    if error.code != 409:
        return None
    if "webhook" in error.description.lower():
        return AccountError(
            "webhook",
            "the bot has a webhook, so its messages go to another program; delete it (the method "
            "deleteWebhook of the Bot API), and do not set it again",
        )
    return AccountError(
        "other_poller",
        "another program fetches the messages of this bot; stop it, or give hiboss a bot of its own: "
        "only one program can use a token",
    )


def as_digest_failure(error: CallFailed) -> AccountError | None:
    """Return why nothing can be fetched now; None: it is about this file alone."""
    if isinstance(error, Stalled):
        return None
    if not isinstance(error, ApiRefusal):
        return AccountError("unreachable", str(error))
    if (account := as_account_error(error)) is not None:
        return account
    if error.code == 429 or error.code >= 500:
        return AccountError("server_error", str(error), error.retry_after)
    return None
