"""What the commands of a conversation do. Each runs in the thread that carries out what was typed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...core.choices import first_option
from .. import output
from ..views import agents as views
from .asks import Asks
from .conversation import ConversationClient

Block = Callable[[], list[str]]


class Commands:
    """Carries out a command; `say` prints a line of ours, and `show` a block."""

    def __init__(
        self,
        client: ConversationClient,
        asks: Asks,
        say: Callable[[str], None],
        show: Callable[[Block], None],
    ) -> None:
        self._client = client
        self._asks = asks
        self._say = say
        self._show = show
        self._all: dict[str, Callable[[str], None]] = {
            "status": self._status,
            "agents": self._agents,
            "answer": self._answer,
            "new": self._new,
            "cancel": self._cancel,
            "pause": self._pause,
            "resume": self._resume,
            "stop": self._stop,
            "go": self._go,
        }

    def job(self, name: str, words: str) -> Callable[[], None]:
        """Return what carries out a command with what was written behind it."""
        return lambda: self._all[name](words)

    # --- what is going on --------------------------------------------------------------

    def _status(self, words: str) -> None:
        found = self._client.call("agent.status", name=self._client.other.address.removeprefix("agent:"))
        facts = views.status_record(found["agent"], found["timezone"])
        self._show(lambda: [*output.record_lines(facts), ""])

    def _agents(self, words: str) -> None:
        found = self._client.call("agent.team")
        headed, rows = views.team_table(found["team"], found["timezone"])
        self._show(lambda: [*output.table_lines(headed, rows)[0], ""])

    # --- asks --------------------------------------------------------------------------

    def _answer(self, words: str) -> None:
        """Answer an ask. That it was answered is shown when the daemon tells so, like an answer from elsewhere."""
        number, _, said = words.partition(" ")
        ask = self._client.call("ask.get", id=number)["ask"]
        option, comment = first_option(ask["options"], said)
        self._asks.note(ask)
        choice = said if option is None else option  # the daemon says what would be right
        self._client.call("ask.answer", id=number, choice=choice, comment=comment if option else None)

    # --- its session -------------------------------------------------------------------

    def _new(self, words: str) -> None:
        """Begin a new session, if something was said here: else there is none."""
        name = self._client.other.address.removeprefix("agent:")
        if self._client.conversation is not None:
            self._client.call("agent.refresh", name=name, conversation=self._client.conversation)
        self._say("The next message here begins a new session.")

    # --- controls ----------------------------------------------------------------------

    def _cancel(self, words: str) -> None:
        run = self._live_run()
        if run is not None and self._control("cancel", run=run):
            ids = " ".join(self._client.call("run.get", id=run)["run"]["envelopes"])
            self._say(f"Cancelled. To retry: hiboss envelope retry {ids}")

    def _pause(self, words: str) -> None:
        run = self._live_run()
        if run is not None and self._control("pause", run=run):
            self._say("Paused. /resume lets it go on; /cancel cancels it.")

    def _resume(self, words: str) -> None:
        """Resume the run; or the conversation, if the run was ended because its pause was long."""
        live, conversation = self._client.live, self._client.conversation
        if live is None and conversation is None:
            self._say("Nothing is paused here.")
        elif self._control("resume", **({"run": live.id} if live else {"conversation": conversation})):
            self._say("It goes on.")

    def _live_run(self) -> str | None:
        if self._client.live is None:
            self._say(f"{self._client.other.name} is not working on anything in this conversation.")
            return None
        return self._client.live.id

    def _control(self, event: str, **target: Any) -> bool:
        """Send a control; returns whether it was applied, and says why if not."""
        sent = self._client.call("control.send", event=f"stream.{event}", **target)
        if sent["outcome"] != "applied":
            why = f": {sent['why']}" if sent["why"] else ""
            self._say(f"/{event} was {sent['outcome'].replace('-', ' ')}{why}")
        return bool(sent["outcome"] == "applied")

    def _stop(self, words: str) -> None:
        found = self._client.call("breaker.pull")
        number = len(found["runs"])
        ended = {0: "Nothing was running", 1: "1 run ends"}.get(number, f"{number} runs end")
        self._say(f"Everything is stopped. {ended}, and nobody gets a turn until /go (or hiboss go).")

    def _go(self, words: str) -> None:
        meant = self._client.call("breaker.status")["pull"] or ""
        changed = self._client.call("breaker.release", pull=meant)["changed"]
        self._say("Everybody works again." if changed else "Nothing was stopped.")
