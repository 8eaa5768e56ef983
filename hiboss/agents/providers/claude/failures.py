"""What the errors of the program mean: for this turn, for every turn, or for the session.

A turn is judged by its last `result`, and not by the exit status: an API error has the subtype "success", and
an interrupt the exit status 0. Without a result, it is judged by what was written on standard error.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from ....core import clock
from ....core.contracts.failures import LaneError, SessionLost, TurnError
from ....core.quoting import shortened
from ...child_process import ProcessResult
from .output import Result
from .settings import ClaudeSettings

INSTALL = "npm install -g @anthropic-ai/claude-code"
UPDATE = "claude update"
LOGIN = "claude auth login"
LONGEST_WAIT = 24 * 3600.0
SHOWN = 500  # characters of what the program said
IN_USE = re.compile(r"Session ID \S+ is already in use")
UNKNOWN_SESSION = re.compile(
    r"No conversation found|Failed to resume session|--resume requires a valid session"
)
UNKNOWN_OPTION = re.compile(r"unknown option '?(-[^'\s=]+)")
USAGE_LIMIT = re.compile(r"usage limit|hit your .*limit|limit reached", re.IGNORECASE)
OF_SERVER = re.compile(r"\b5\d\d\b|overloaded", re.IGNORECASE)  # older versions give no status for some
RESET_AT = re.compile(r"\|(\d{10})\b")  # older versions: "usage limit reached|1750000000"
OUTDATED = re.compile(
    r"(?:needs an update|version .*(?:too old|no longer supported)|please update)", re.IGNORECASE
)


@dataclass(frozen=True, kw_only=True, slots=True)
class Circumstances:
    """What an explanation needs to know about the turn."""

    agent: str
    settings: ClaudeSettings
    environment: Mapping[str, str]
    resumed: bool  # the turn continues a session
    limit_resets_at: float | None = None  # seconds since 1970

    @property
    def login(self) -> str:
        """The one command that gives it an account that works."""
        if self.settings.api_key is not None or self.environment.get("ANTHROPIC_API_KEY"):
            return f"hiboss agent set {self.agent} --api-key @FILE"
        return "claude setup-token" if self.environment.get("CLAUDE_CODE_OAUTH_TOKEN") else LOGIN


def of_result(result: Result, about: Circumstances) -> Exception:
    """Return what to raise for a result that is an error."""
    said = _cut(result.words)
    if UNKNOWN_SESSION.search(result.words):
        return SessionLost(f"claude does not know it any more: {said}")
    if result.cut_short:
        return TurnError("interrupted", "it was interrupted from outside before it had an answer")
    if result.subtype == "error_max_turns":
        most = about.settings.max_turns
        calls = "1 model call" if most == 1 else f"{most} model calls"
        return TurnError("max_turns", f"it has not finished in {calls} (--max-turns)")
    if result.subtype == "error_max_budget_usd":
        limit = about.settings.max_cost
        if limit is None:
            return TurnError("over_budget", said, repeat=False)
        more = f"hiboss agent set {about.agent} --max-cost {2 * limit:g}"
        text = f"it reached its budget of ${limit:g} for one run; {more}"
        return TurnError("over_budget", text, repeat=False)
    if result.api_error or result.status is not None:
        return _of_api(result, about, said)
    return TurnError("failed", f"claude ended the turn with an error: {said or result.subtype}")


def _of_api(result: Result, about: Circumstances, said: str) -> Exception:
    """Return what to raise for an answer of the API that is an error."""
    word, status = result.api_error, result.status
    by_server = word in ("server_error", "overloaded")
    connection = by_server and status is None and not OF_SERVER.search(result.words)
    if word == "model_not_found" or status == 404:
        return LaneError("no_model", f"{said}; hiboss agent set {about.agent} --model opus")
    if word == "billing_error":
        return LaneError("usage_limit", f"{said}; add credit, or use another account: {about.login}")
    if word in ("authentication_failed", "oauth_org_not_allowed") or status in (401, 403):
        if status is None:
            return LaneError("not_logged_in", f"claude is not logged in; {about.login}")
        return LaneError("refused", f"the account was refused ({status}): {said}; {about.login}")
    if word == "rate_limit" or status == 429:
        return _of_limit(result, about, said)
    if connection or result.line.get("api_error") == "connection_failed":
        return LaneError("unreachable", f"the API cannot be reached: {said}")
    if by_server or (status is not None and status >= 500):
        return LaneError("overloaded", f"the API has an error: {said}")
    if result.line.get("terminal_reason") == "prompt_too_long" or "rompt is too long" in result.text:
        if about.resumed:
            return SessionLost(f"it is full: {said}")
        return TurnError("too_long", said)
    return TurnError("rejected", f"the API refused the request: {said}")


def _of_limit(result: Result, about: Circumstances, said: str) -> LaneError:
    named = RESET_AT.search(result.words)
    resets_at = about.limit_resets_at or (float(named[1]) if named else None)
    wait = None if resets_at is None else min(max(resets_at - clock.now() / 1000, 1.0), LONGEST_WAIT)
    if resets_at is None and not USAGE_LIMIT.search(result.words):
        return LaneError("rate_limited", f"the API takes no more requests for now: {said}")
    return LaneError("usage_limit", f"{said}; to go on before that, use another account: {about.login}", wait)


def without_result(ended: ProcessResult, about: Circumstances, *, had_begun: bool) -> Exception:
    """Return what to raise for a program that ended without a result. `had_begun`: it took the turn."""
    stderr = ended.stderr_tail
    said = _cut(_last_line(stderr))
    how = _how(ended)
    if unknown := UNKNOWN_OPTION.search(stderr):
        if unknown[1] in about.settings.arguments:
            why = f"claude does not know {unknown[1]}; hiboss agent set {about.agent} --arguments '…'"
            return LaneError("bad_arguments", why)
        return LaneError("outdated", f"this claude is too old: it does not know {unknown[1]}; {UPDATE}")
    if OUTDATED.search(stderr):
        return LaneError("outdated", f"{said}; {UPDATE}")
    if UNKNOWN_SESSION.search(stderr):
        return SessionLost(f"claude does not know it any more: {said}")
    if "root/sudo" in stderr:
        return LaneError("bad_arguments", f"{said}; hiboss agent set {about.agent} --autonomy medium")
    if ended.status > 0 and not had_begun:
        return LaneError(
            "no_start", f"claude did not begin ({how}): {said or 'it said nothing'}; claude doctor"
        )
    return TurnError("no_result", f"it ended with {how} and without a result" + (f": {said}" if said else ""))


def before_last_result(ended: ProcessResult) -> TurnError:
    """Return what to raise for a program that ended after a result, while another one had to come."""
    return TurnError("no_result", f"it ended with {_how(ended)} before it had answered all that it was told")


def is_in_use(ended: ProcessResult) -> bool:
    """Tell whether a session that should be new exists already: a turn was killed after it had begun."""
    return IN_USE.search(ended.stderr_tail) is not None


def _how(ended: ProcessResult) -> str:
    return f"exit status {ended.status}" if ended.status >= 0 else f"signal {-ended.status}"


def _last_line(text: str) -> str:
    lines = [one.strip() for one in text.splitlines() if one.strip()]
    return lines[-1] if lines else ""


def _cut(text: str) -> str:
    return shortened(" ".join(text.split()), SHOWN)
