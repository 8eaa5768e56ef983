"""What the errors of an agent mean: for this turn alone, or for every turn.

The protocol has one code for a missing login, and none for the rest. So the words decide: names that an agent
puts beside the message, the HTTP status of its model, and what network errors look like.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, NamedTuple

from ....core.contracts.failures import LaneError, SessionLost, TurnError
from ....core.quoting import shortened
from ...child_process import ProcessResult
from ..error_texts import readable
from .connection import NO_METHOD, AgentError
from .known_agents import KnownAgent, known

AUTH_REQUIRED = -32000
NOT_FOUND = -32002
WORDS_CHARACTERS = 500
ACTIVE_WRITER = "already has an active writer"

# The names that claude-agent-acp puts beside a message (`data.errorKind`), and codex-acp (`codexErrorInfo`).
KINDS = {
    "authentication_failed": "not_logged_in",
    "oauth_org_not_allowed": "not_logged_in",
    "unauthorized": "not_logged_in",
    "verification_required": "refused",
    "cloud_credential_error": "refused",
    "billing_error": "usage_limit",
    "account_on_hold": "usage_limit",
    "usageLimitExceeded": "usage_limit",
    "rate_limit": "rate_limited",
    "rateLimitExceeded": "rate_limited",
    "overloaded": "overloaded",
    "serverOverloaded": "overloaded",
    "server_error": "overloaded",
    "internalServerError": "overloaded",
    "transport_lost": "unreachable",
    "model_not_found": "no_model",
    "invalid_request": "rejected",
    "badRequest": "rejected",
    "contextWindowExceeded": "too_long",
    "max_output_tokens": "too_long",
}
STATUSES = {
    401: "not_logged_in",
    403: "refused",
    404: "no_model",
    402: "usage_limit",
    429: "rate_limited",
    413: "rejected",
    400: "rejected",
    422: "rejected",
}
# In this order. Only words that an error of a model or of the network has.
PHRASES = (
    (r"usage limit|insufficient_quota|exceeded your current quota|credit balance is too low", "usage_limit"),
    (r"not logged in|authentication required|invalid api key|invalid_api_key", "not_logged_in"),
    (r"missing environment variable", "not_logged_in"),
    (r"rate.?limit|too many requests|resource_exhausted", "rate_limited"),
    (r"overloaded|service unavailable|server_is_overloaded|at capacity|high demand", "overloaded"),
    (r"context.?(window|length)|prompt is too long", "too_long"),
    (r"econnrefused|enotfound|econnreset|etimedout|eai_again|fetch failed|unable to connect", "unreachable"),
    (r"connection (error|failed|refused|closed)|stream disconnected|error sending request", "unreachable"),
    # claude-agent-acp: its Claude Code did not start. A session that it does not know is another matter.
    (r"process exited with code 1\b.*root/sudo", "bad_arguments"),
    (r"process exited with code 1\b(?!.*no conversation found)", "no_start"),
    (r"model.{0,80}(not found|not supported|does not exist|not exist)", "no_model"),
)
STATUS = re.compile(
    r"(?:API Error:?|[Ss]tatus:?(?: code:?)?|HTTP:?|got status:?|\"(?:code|status)\":)\s*\(?([45]\d\d)\b"
)
HELPS = {
    "bad_arguments": "remove bypassPermissions from its settings, or set IS_SANDBOX=1 in a sandbox",
    "no_start": "claude doctor",
}
REFINED = ("rate_limited", "overloaded")
OF_TURN = frozenset({"rejected", "too_long", "failed"})


class Agent(NamedTuple):
    """Who answers, for messages."""

    words: Sequence[str]  # its command
    whose: str = ""  # the name of hiboss's agent that thinks with it
    name: str = ""  # as it calls itself, with its version
    logins: Sequence[str] = ()  # the names of the ways to log in that it offers

    @property
    def shown(self) -> str:
        return self.name or self.words[0]

    @property
    def known(self) -> KnownAgent | None:
        return known(self.words, self.name.rsplit(" ", 1)[0])


def of_error(error: AgentError, agent: Agent) -> LaneError | TurnError:
    """Return what an error of the agent means."""
    if error.code == AUTH_REQUIRED:
        return of_words("not_logged_in", _words(error), agent)
    words = _words(error)
    kinds = [KINDS[name] for name in _names(error.data) if name in KINDS]
    status = error.code if 400 <= error.code < 600 else None
    kind = next(iter(kinds), "") or _of_status(status) or kind_of_text(words)
    return of_words(_refined(kind, words) or "failed", words, agent)


def of_resuming(error: AgentError, agent: Agent) -> LaneError | TurnError:
    """Return what it means that a session could not be resumed: it is lost, unless every turn would fail."""
    found = of_error(error, agent)
    lost = (
        error.code == NOT_FOUND
        or not isinstance(found, LaneError)
        or found.kind in ("no_model", "overloaded")
    )
    return SessionLost(f"{agent.shown} cannot resume it: {_words(error)}") if lost else found


def is_open_elsewhere(error: AgentError) -> bool:
    """Tell whether a session cannot be resumed because another program has it open: codex-acp says so."""
    return ACTIVE_WRITER in _words(error)


def of_words(kind: str, words: str, agent: Agent) -> LaneError | TurnError:
    """Return the error of this kind, with the command that helps."""
    said = f"{agent.shown}: {words}" if words else f"{agent.shown} gave no reason"
    if kind in OF_TURN:
        return TurnError(kind, said)
    if kind == "not_logged_in":
        helps = f"log in: {agent.known.login}" if agent.known else _offered(agent.logins)
        return LaneError(kind, f"{agent.shown} is not logged in, or its key is refused ({words}); {helps}")
    if kind == "no_model":
        return LaneError(kind, f"{said}; choose another one: hiboss agent set {agent.whose} --model …")
    return LaneError(kind, f"{said}; {HELPS[kind]}" if kind in HELPS else said)


def of_end(result: ProcessResult | None, agent: Agent, *, began: bool) -> LaneError | TurnError:
    """Return what it means that the program ended before it answered. `began`: it has spoken the protocol."""
    status = 0 if result is None else result.status
    how = f"exit status {status}" if status >= 0 else f"signal {-status}"
    last = result.stderr_tail.splitlines()[-1:] if result is not None else []
    text = f"{agent.shown} ended ({how}) before it answered" + (
        f": {shortened(last[0], WORDS_CHARACTERS)}" if last else ""
    )
    if began:
        return TurnError("no_result", text)
    return LaneError("bad_arguments", f"{text}; does this speak ACP? {' '.join(agent.words)[:200]}")


def of_first_call(error: AgentError, agent: Agent) -> LaneError:
    """Return what an error of `initialize` means."""
    if error.code == NO_METHOD:
        why = "it does not speak the Agent Client Protocol; many agents need an argument for it, like --acp"
        return LaneError("bad_arguments", f"{agent.shown}: {why}")
    found = of_error(error, agent)
    return found if isinstance(found, LaneError) else LaneError("bad_arguments", found.text)


def kind_of_text(text: str) -> str:
    """Return the kind of an error by its words; empty if they say nothing."""
    found = STATUS.search(text)
    kind = _of_status(int(found[1])) if found is not None else ""
    return _refined(kind, text) if kind else _of_phrase(text)


def _of_phrase(text: str) -> str:
    return next((kind for words, kind in PHRASES if re.search(words, text, re.I)), "")


def _refined(kind: str, text: str) -> str:
    """Return the kind that the words name, where one name or status stands for several.

    A limit of the account looks like one of a minute; claude-agent-acp calls a missing network an error of
    the server.
    """
    named = _of_phrase(text) if kind in REFINED else ""
    return named if named in ("usage_limit", "unreachable") else kind


def _of_status(status: int | None) -> str:
    if status is None:
        return ""
    return STATUSES.get(status, "overloaded" if status >= 500 else "rejected")


def _names(data: Any) -> list[str]:
    """Return the names of errors in what stands beside a message."""
    content = data if isinstance(data, dict) else {}
    found = [content.get("errorKind"), content.get("codexErrorInfo"), content.get("errorName")]
    return [one for one in found if isinstance(one, str)]


def _words(error: AgentError) -> str:
    """Return the words of an error, with its details, in one line."""
    data = error.data if isinstance(error.data, dict) else {"details": error.data}
    details = data.get("details") or data.get("message")
    said = error.message.removeprefix("Internal error: ")
    if isinstance(details, str) and details not in said:
        said = f"{said}: {details}" if said else details
    return shortened(" ".join(readable(said).split()), WORDS_CHARACTERS)


def _offered(logins: Sequence[str]) -> str:
    ways = ", ".join(logins[:5])
    return "log in with its own program" + (f" (it offers: {ways})" if ways else "")
