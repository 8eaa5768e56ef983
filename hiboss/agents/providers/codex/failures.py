"""What errors of the program mean: whether the lane waits, the turn failed, or the session is lost."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from ....core.contracts.failures import LaneError, SessionLost, TurnError
from ....core.quoting import shortened
from ...child_process import ProcessResult
from ..error_texts import readable
from .messages import fields, text
from .settings import CodexSettings

Failure = LaneError | TurnError

TEXT_CHARACTERS = 500
LOGGED_OUT = "codex is not logged in"
LOGIN = "run `codex login`"
INSTALL = "npm install -g @openai/codex"
RETRIED = "hiboss tries again later"
# What codex calls an error: our kind, and what helps.
OF_LANE = {
    "usageLimitExceeded": ("usage_limit", ""),
    "rateLimitExceeded": ("rate_limited", RETRIED),
    "serverOverloaded": ("overloaded", RETRIED),
    "internalServerError": ("overloaded", RETRIED),
    "flexUnavailable": ("overloaded", RETRIED),
    "policyCapacityUnavailable": ("overloaded", RETRIED),
    "unauthorized": ("refused", ""),
    "modelNotFound": ("no_model", ""),
    "httpConnectionFailed": ("unreachable", RETRIED),
    "responseStreamConnectionFailed": ("unreachable", RETRIED),
    "responseStreamDisconnected": ("unreachable", RETRIED),
    "responseTooManyFailedAttempts": ("overloaded", RETRIED),
}
OF_TURN = {"sessionBudgetExceeded": "over_budget", "tooManyDenials": "denied", "sandboxError": "sandbox"}
BY_STATUS = {401: "unauthorized", 403: "unauthorized", 429: "rateLimitExceeded", 529: "serverOverloaded"}
REJECTED = frozenset((400, 409, 413, 415, 422))
TOO_FULL = "contextWindowExceeded"
# What a text says, where the code says only `other`.
BY_TEXT = (
    ("missing environment variable", "not_logged_in", "set it where the daemon is started"),
    ("stream disconnected", "unreachable", RETRIED),
    ("connection failed", "unreachable", RETRIED),
    ("waiting for network", "unreachable", RETRIED),
    ("to use codex with your chatgpt plan", "usage_limit", ""),
    ("not supported when using codex with", "no_model", ""),
)
UNKNOWN_THREAD = (
    "no rollout found",
    "thread not found",
    "invalid session id",
    "invalid thread id",
    "rollout",
)
ENV_KEY = re.compile(r"""env_key["'\s]*=["'\s]*(\w+)""")
ACTIVE_WRITER = "already has an active writer"
CLOCK = re.compile(r"try again at (?:(\w{3} \d{1,2})\w{2}, (\d{4}) )?(\d{1,2}:\d{2} [AP]M)", re.IGNORECASE)
SPAN = re.compile(r"try again in ((?:\d+(?:\.\d+)?\s*[a-z]+[\s,]*)+)", re.IGNORECASE)
PART = re.compile(r"(\d+(?:\.\d+)?)\s*(ms|[dhms])", re.IGNORECASE)
SECONDS = {"d": 86_400.0, "h": 3_600.0, "m": 60.0, "s": 1.0, "ms": 0.001}


def login(settings: CodexSettings, agent: str, *, of_openai: bool) -> str:
    """Return what gives it an account that works. `of_openai`: its model provider needs a login there."""
    if not of_openai:
        named = ENV_KEY.search(settings.arguments)
        where = named[1] if named else "a variable, its env_key"
        return f"its model provider takes the key from {where}: set it where the daemon is started"
    return LOGIN if settings.api_key is None else f"run `hiboss agent set {agent} --api-key @FILE`"


def of_turn(error: Mapping[str, Any], agent: str, *, resumed: bool, now: int, login: str = LOGIN) -> Failure:
    """Return what the error of a turn means. `now`: milliseconds since 1970, for a named time."""
    said = shortened(_message(error), TEXT_CHARACTERS) or "codex reported an error without a text"
    code, status = _code(error.get("codexErrorInfo"))
    if code == TOO_FULL:
        return SessionLost(said) if resumed else TurnError("too_long", said)
    if status in REJECTED:
        return TurnError("rejected", said)
    if status == 404 and "model" in said.lower():
        code = "modelNotFound"
    kind, help_text = OF_LANE.get(_by_status(code, status), ("", ""))
    if not kind:
        kind, help_text = next((found for words, *found in BY_TEXT if words in said.lower()), ("", ""))
    if kind == "refused":
        help_text = login
    if kind == "no_model":
        help_text = f"choose another with `hiboss agent set {agent} --model …`"
    if kind:
        return LaneError(kind, _with(said, help_text), _retry_after(said, now) if kind in WAITS else None)
    kind = OF_TURN.get(code, "rejected")
    return TurnError(kind, said, repeat=kind != "over_budget")


WAITS = frozenset(("usage_limit", "rate_limited", "overloaded"))


def unreachable(error: Mapping[str, Any]) -> LaneError:
    """Return the error for a program that only waits for the network any more."""
    said = shortened(_message(error), TEXT_CHARACTERS)
    return LaneError("unreachable", _with(f"the model's server cannot be reached: {said}", RETRIED))


def of_thread(said: str, session: str | None) -> Failure:
    """Return what it means that a thread could not be begun or resumed."""
    said = shortened(said, TEXT_CHARACTERS)
    if session is not None and any(words in said.lower() for words in UNKNOWN_THREAD):
        return SessionLost(f"codex cannot resume {session}: {said}")
    return LaneError("bad_arguments", f"codex cannot begin: {said}; see `codex doctor`, and its config.toml")


def of_exit(result: ProcessResult, *, began: bool) -> Failure:
    """Return what it means that the program ended before its turn. `began`: it had a thread."""
    how = f"exit status {result.status}" if result.status >= 0 else f"signal {-result.status}"
    error = next(
        (one for one in result.stderr_tail.splitlines() if one.lower().startswith("error:")), ""
    ).partition(":")[2]
    said = shortened(error.strip(), TEXT_CHARACTERS)
    if "CODEX_HOME" in said:
        return LaneError("not_logged_in", f"{said}; create that directory, then {LOGIN}")
    if (
        not began and result.status in (1, 2) and said
    ):  # it does not start with these arguments, or this config.toml
        return LaneError("bad_arguments", f"codex does not start: {said}; see --arguments and config.toml")
    return TurnError("no_result", f"codex ended with {how} before its turn" + (f": {said}" if said else ""))


def not_logged_in() -> LaneError:
    return LaneError("not_logged_in", f"{LOGGED_OUT}: {LOGIN}, or give the agent an --api-key")


def no_program(program: str) -> LaneError:
    return LaneError("no_program", f"the program {program} was not found: run `{INSTALL}`")


def outdated(version: str, least: str) -> LaneError:
    text = f"codex {version} is too old, {least} is needed: run `{INSTALL}@latest`"
    return LaneError("outdated", text)


def _message(error: Mapping[str, Any]) -> str:
    said, more = readable(text(error.get("message")).strip()), text(error.get("additionalDetails")).strip()
    return f"{said} ({more})" if more and more not in said else said


def _code(info: Any) -> tuple[str, int | None]:
    """Return the name of an error, and the HTTP status that came with it."""
    if isinstance(info, str):
        return info, None
    name, facts = next(iter(info.items()), ("", None)) if isinstance(info, dict) else ("", None)
    status = fields(facts).get("httpStatusCode")
    return str(name), status if isinstance(status, int) else None


def _by_status(code: str, status: int | None) -> str:
    if status is None:
        return code
    return BY_STATUS.get(status, "internalServerError" if status >= 500 else code)


def _with(said: str, help_text: str) -> str:
    return f"{said.rstrip('.')}; {help_text}" if help_text else said


def _retry_after(said: str, now: int) -> float | None:
    """Return in how many seconds a named time is; None if none is named. Codex names it in local time."""
    if found := SPAN.search(said):
        return sum(float(number) * SECONDS[unit.lower()] for number, unit in PART.findall(found[1])) or None
    if (found := CLOCK.search(said)) is None:
        return None
    here = datetime.fromtimestamp(now / 1000, UTC).astimezone()
    day, year, time = found[1], found[2], found[3].upper()
    try:
        if day:
            then = datetime.strptime(f"{day} {year} {time}", "%b %d %Y %I:%M %p").astimezone()
        else:
            clock = datetime.strptime(time, "%I:%M %p")  # noqa: DTZ007
            then = here.replace(hour=clock.hour, minute=clock.minute, second=0, microsecond=0)
    except ValueError:
        return None
    if not day and then <= here:
        then += timedelta(days=1)
    return max((then - here).total_seconds(), 1.0)
