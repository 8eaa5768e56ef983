"""What can go wrong with a call of the Bot API, and what that means: the one place that decides it.

None of these exceptions names the token, and none is chained to one that does.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from ...core.contracts.failures import (
    TOPIC_CLOSED,
    TOPIC_NOT_FOUND,
    AccountError,
    ChatMoved,
    EnvelopeError,
    LaneError,
)

# A server answers 404 for a token that is malformed, and for a method that it does not have. These it has.
_OLD_METHODS = (
    "getMe",
    "getUpdates",
    "getFile",
    "sendMessage",
    "sendPhoto",
    "sendDocument",
    "sendAudio",
    "sendVoice",
    "sendVideo",
    "sendMediaGroup",
    "sendChatAction",
    "editMessageText",
    "editMessageCaption",
    "deleteMessage",
)
_KINDS = (  # of a 400, by words of its description; the first that fits
    ("chat not found", "chat_not_found"),
    ("peer_id_invalid", "chat_not_found"),
    ("message thread not found", TOPIC_NOT_FOUND),
    ("topic_deleted", TOPIC_NOT_FOUND),
    ("topic_id_invalid", TOPIC_NOT_FOUND),
    ("topic_closed", TOPIC_CLOSED),
    ("not enough rights", "no_rights"),
    ("have no rights", "no_rights"),
    ("administrator rights", "no_rights"),
    ("chat_write_forbidden", "no_rights"),
    ("chat_restricted", "no_rights"),
    ("replied not found", "reply_not_found"),
    ("reply message not found", "reply_not_found"),
    ("too long", "too_long"),
    ("too_long", "too_long"),
    ("message is not modified", "not_modified"),
    ("can't be edited", "not_editable"),
    ("can't be deleted", "not_deletable"),
    ("in the message to edit", "no_text"),
    ("not found", "not_found"),
    ("message_id_invalid", "not_found"),
    ("reaction_invalid", "reaction_invalid"),
    ("too big", "too_big"),
    ("entit", "markup"),
    ("must be non-empty", "empty"),
    ("is empty", "empty"),
)
# What is said so is not about the content: no other form of it can change the answer.
_NOT_OF_CONTENT = (
    "chat_not_found",
    TOPIC_NOT_FOUND,
    TOPIC_CLOSED,
    "no_rights",
    "reply_not_found",
    "not_modified",
    "not_editable",
    "not_deletable",
    "no_text",
    "not_found",
)


class CallFailed(Exception):
    """A call did not succeed; its text is one sentence for people."""


class Unreachable(CallFailed):
    """There is no connection, so nothing was done."""


class NoAnswer(CallFailed):
    """The connection broke, or no answer came in time: it may have been done, or not."""


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

    @property
    def is_about_content(self) -> bool:
        """Whether this is about what was to be posted, so that another form of it may be taken."""
        return self.code == 400 and self.migrated_to is None and self.kind not in _NOT_OF_CONTENT


def as_failure(error: CallFailed, *, everywhere: bool = False) -> LaneError | EnvelopeError:
    """Return what a call that failed means for what was to be posted. `everywhere`: a 429 is the bot's."""
    if isinstance(error, Unreachable):
        return AccountError("unreachable", str(error))
    if isinstance(error, NoAnswer):
        return LaneError("no_answer", str(error))
    if not isinstance(error, ApiRefusal):
        return LaneError("not_understood", str(error))
    return as_account_error(error) or _of_refusal(error, everywhere=everywhere)


def _of_refusal(error: ApiRefusal, *, everywhere: bool) -> LaneError | EnvelopeError:
    if error.migrated_to is not None:
        return ChatMoved(error.migrated_to, f"the group has become {error.migrated_to}")
    if error.code == 429:
        limited = AccountError if everywhere else LaneError
        return limited("rate_limited", str(error), error.retry_after)
    if error.code == 403:
        return EnvelopeError("forbidden", str(error))
    if error.code == 404:
        return EnvelopeError("unsupported", f"this server of the Bot API has no {error.method}")
    if error.code == 413:
        return EnvelopeError("too_big", str(error))
    if error.code == 400:
        return EnvelopeError(error.kind, str(error))
    return LaneError("server_error", str(error))


@contextmanager
def as_failures() -> Iterator[None]:
    """Raise the errors of `Adapter.post` for calls that fail inside."""
    try:
        yield
    except CallFailed as error:
        failure = as_failure(error)
    else:
        return
    raise failure


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
