"""One process: its turn, from the moment that it has a thread until all has ended."""

from __future__ import annotations

import asyncio
from typing import Any

from ....core.contracts.failures import LaneError, TurnError
from ....core.contracts.provider import Answer, LiveRun, Progress, TurnInput
from ...json_lines import JsonLines
from . import approvals, failures
from .asking import Asking
from .messages import Line, Messages, Reply, Then, fields, text
from .opening import NOT_UNDERSTOOD, Opening
from .settings import CodexSettings
from .turn_events import TurnEvents

END_SECONDS = 5.0  # after its turn the program ends in some milliseconds, if nothing is wrong with it
# It tells of a missing network at once, after 5 s, 15 s and 35 s. A turn that did something waits longer.
MOST_WAITS, MOST_WAITS_LATER = 2, 4
MOST_RETRIES = 15  # since the model answered last; codex itself ends after 5 of one kind
BAD_CONFIG = "Invalid configuration"  # it goes on with defaults then: another model, another provider
# When a budget is looked at: after a model call, and when another one has begun. A whole answer is kept.
AFTER_CALL = frozenset(("thread/tokenUsage/updated", "item/started"))
FORKED = "its session is open in another program, so it goes on in a copy of it"


class Conversation:
    """One turn with one process."""

    def __init__(self, settings: CodexSettings, turn: TurnInput, run: LiveRun, lines: JsonLines) -> None:
        self._settings = settings
        self._turn = turn
        self._run = run
        self._lines = lines
        self._messages = Messages(lines.write, self._noticed, self._requested)
        self._opening = Opening(settings, turn, run, self._messages, self._thread_begun)
        self._events: TurnEvents | None = None  # when there is a thread
        self._asking = Asking(run, self._messages.answer, self._say)
        self._begun: asyncio.Future[bool] = asyncio.get_running_loop().create_future()  # the turn has an id
        self._steering: set[asyncio.Future[bool]] = set()  # words that nobody has confirmed yet
        self._ending: asyncio.Task[None] | None = None
        self._failure: LaneError | TurnError | None = None
        self._interrupted = False

    async def hold(self) -> Answer:
        """Hold it to the end, and return the answer."""
        try:
            result = await self._lines.converse([self._opening.first()], self._messages.take)
        finally:
            self._close()
        if self._failure is not None:
            raise self._failure
        if self._events is None or self._events.ended is None:
            if self._interrupted:
                return Answer()
            raise failures.of_exit(result, began=self._events is not None)
        return self._answer(self._events)

    async def steer(self, words: str) -> bool:
        """Give the turn words. Return whether the program has taken them."""
        if not await asyncio.shield(self._begun):
            return False
        taken: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        if not self._say(words, lambda reply: _settle(taken, reply.error is None)):
            return False
        self._steering.add(taken)
        try:
            return await taken
        finally:
            self._steering.discard(taken)

    def interrupt(self) -> None:
        """Let the turn end. Before it has begun, the program ends."""
        self._interrupted = True
        if self._events is not None and self._events.turn:
            self._call_about_turn("turn/interrupt", {"turnId": self._events.turn})
        else:
            self._end()

    # --- while it works -----------------------------------------------------------------

    async def _thread_begun(self, result: Line) -> None:
        """Begin the turn in its thread."""
        thread = text(fields(result.get("thread")).get("id"))
        self._events = TurnEvents(self._run.progress, thread, is_new=self._turn.session is None)
        if model := text(result.get("model")):
            self._run.progress(Progress("model", model))
        if self._interrupted:
            return
        turn: Line = {"input": _input(self._turn.text)}
        if self._settings.effort is not None:
            turn["effort"] = self._settings.effort
        self._call_about_turn("turn/start", turn, self._turn_begun)

    def _turn_begun(self, reply: Reply) -> None:
        assert self._events is not None
        if reply.error is not None:
            raise failures.of_thread(reply.error, self._turn.session)
        self._events.turn = text(fields(reply.result.get("turn")).get("id"))
        if not self._events.turn:
            raise LaneError("outdated", NOT_UNDERSTOOD)
        _settle(self._begun, True)
        if self._interrupted:
            self.interrupt()

    def _noticed(self, method: str, params: Line) -> None:
        if method == "configWarning" and BAD_CONFIG in text(params.get("summary")):
            said = text(params.get("summary")).strip()
            raise LaneError("bad_arguments", f"codex cannot read its config.toml: {said}")
        if method == "serverRequest/resolved":
            self._asking.resolved(params.get("requestId"))
        if (events := self._events) is None or events.ended is not None:
            return
        events.take(method, params)
        if events.ended is not None:
            self._turn_ended(events, events.ended)
        elif method == "error":
            self._count_retries(events)
        elif method in AFTER_CALL and not events.concluded and self._over_budget(events):
            self._call_about_turn("turn/interrupt", {"turnId": events.turn})

    def _count_retries(self, events: TurnEvents) -> None:
        """End a turn that only tries again and again."""
        if events.waits >= (MOST_WAITS_LATER if events.called else MOST_WAITS):
            raise failures.unreachable(events.error)
        if events.retries >= MOST_RETRIES:
            raise self._failure_of(events.error)

    def _turn_ended(self, events: TurnEvents, turn: Line) -> None:
        error = fields(turn.get("error")) or events.error
        if turn.get("status") == "failed":
            self._failure = self._failure_of(error)
        elif turn.get("status") != "completed" and not self._interrupted:
            self._failure = self._stopped(events)
        # What was read and written in a call that broke off is told by nobody.
        whole = turn.get("status") == "completed" or getattr(self._failure, "kind", "") in WHOLE
        if (usage := events.tokens.usage(exact=whole and not events.broke_off)) is not None:
            self._run.progress(Progress("usage", usage=usage))
        self._end()

    def _failure_of(self, error: Line) -> LaneError | TurnError:
        resumed = self._turn.session is not None
        agent = self._turn.agent
        login = failures.login(self._settings, agent, of_openai=self._opening.needs_login)
        return failures.of_turn(error, agent, resumed=resumed, now=self._turn.now, login=login)

    def _stopped(self, events: TurnEvents) -> TurnError:
        """Return why the turn was stopped in its middle, if not by a person."""
        if used := self._over_budget(events):
            said = f"it used {used:,} tokens, more than the {self._settings.max_tokens:,} of --max-tokens"
            return TurnError("over_budget", said, repeat=False)
        return TurnError("interrupted", "codex stopped the turn before its end")

    def _over_budget(self, events: TurnEvents) -> int:
        """Return how many tokens were used, if these are too many; else 0."""
        usage, limit = events.tokens.usage(), self._settings.max_tokens
        used = 0 if usage is None else (usage.tokens_in or 0) + (usage.tokens_out or 0)
        return used if limit is not None and used > limit else 0

    def _requested(self, method: str, params: Line, number: Any) -> bool:
        """Ask people what the program asks. Return False if it is no question for people."""
        begun = self._events.items if self._events is not None else {}
        asked = approvals.read(method, params, begun)
        if asked is None or any(one.mistake() for one in asked.questions):
            return False
        of_turn = self._events is not None and params.get("threadId") == self._events.thread
        self._asking.ask(asked, number, of_turn=of_turn)
        return True

    def _say(self, words: str, then: Then = lambda reply: None) -> bool:
        """Give the running turn words. Return False if there is none."""
        if self._events is None or not self._events.turn or self._events.ended is not None:
            return False
        given = {"expectedTurnId": self._events.turn, "input": _input(words)}
        return self._call_about_turn("turn/steer", given, then)

    def _call_about_turn(self, method: str, params: Line, then: Then = lambda reply: None) -> bool:
        assert self._events is not None
        return self._messages.call(method, {"threadId": self._events.thread, **params}, then)

    # --- its end ------------------------------------------------------------------------

    def _end(self) -> None:
        """Let the program end: it does when its input ends. If it does not, it is ended."""
        self._lines.close()
        if self._ending is None:
            self._ending = asyncio.create_task(self._end_late())

    async def _end_late(self) -> None:
        await asyncio.sleep(END_SECONDS)
        await self._lines.end()

    def _close(self) -> None:
        self._asking.close()
        if self._ending is not None:
            self._ending.cancel()
        for waiting in (self._begun, *self._steering):
            _settle(waiting, False)

    def _answer(self, events: TurnEvents) -> Answer:
        notes = [FORKED] if self._opening.forked else []
        if used := self._over_budget(events):
            notes.append(f"it used {used:,} tokens, more than --max-tokens, with its last model call")
        usage = events.tokens.usage()
        return Answer(
            text=events.answer,
            tokens_in=None if usage is None else usage.tokens_in,
            tokens_out=None if usage is None else usage.tokens_out,
            context=None if usage is None else usage.context,
            note="; ".join(notes) or None,
        )


# Failures after which all tokens are known: no model call was under way, or it had read nothing.
WHOLE = frozenset(
    ("over_budget", "refused", "rate_limited", "usage_limit", "overloaded", "no_model", "rejected")
)


def _input(words: str) -> list[Line]:
    return [{"type": "text", "text": words}]


def _settle(waiting: asyncio.Future[bool], value: bool) -> None:
    if not waiting.done():
        waiting.set_result(value)
