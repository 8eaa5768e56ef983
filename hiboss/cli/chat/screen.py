"""The conversation on a terminal: one prompt that stays below, and everything else above it.

The prompt has the main thread. One thread follows the conversation, one the rest of the box,
and one does what was asked for, in order. Imported only when somebody talks: prompt_toolkit
takes a fifth of a second.
"""

from __future__ import annotations

import gc
import queue
import sys
import threading
import time
import uuid
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from prompt_toolkit import PromptSession
from prompt_toolkit.buffer import Buffer
from prompt_toolkit.document import Document
from prompt_toolkit.enums import DEFAULT_BUFFER
from prompt_toolkit.filters import has_focus
from prompt_toolkit.formatted_text import StyleAndTextTuples
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from prompt_toolkit.patch_stdout import patch_stdout

from ...core.errors import HibossError
from .. import output
from ..table_layout import cut, flat
from . import formatting
from .conversation import Box, Envelope, Line, is_away
from .typed_input import HELP, Asked, understand

FOLLOW = 10.0  # seconds; when nothing happens, the other one's state is as old as this
AT_ONCE = 0.001  # to hear how things stand, also when nothing happens
SOON = 1.0
BOX = 30.0
AGAIN = 1.0  # between two tries to reach a daemon that is away
REFRESH = 0.5
OWN, OTHER, FAINT = "1;32", "1;36", "2"  # bold green, bold cyan, faint
LOOKED_AFTER = 5  # of the messages not dealt with yet
STATE_LINES = 3
PROMPT = "> "


@dataclass
class Letter:
    """What was typed, and the files with it. Sent again unchanged, it is the same message."""

    text: str
    files: list[str]
    key: str = field(default_factory=lambda: uuid.uuid4().hex)


def talk(line: Line) -> None:
    """Until /quit or the end of the input."""
    gc.enable()  # a command lives for milliseconds; this one may live for days
    Screen(line).run()


class Screen:
    def __init__(self, line: Line) -> None:
        self.line = line
        self.away = False
        self._gathered: list[str] = []
        self._unsent: Letter | None = None  # given back, to be edited
        self._open: list[str] = []  # sent, and not dealt with yet
        self._trouble = ""
        self._jobs: queue.Queue[Callable[[], None] | Letter | None] = queue.Queue()
        self._session: PromptSession[str] = PromptSession(
            self._above,
            multiline=True,
            prompt_continuation=" " * len(PROMPT),
            key_bindings=self._keys(),
            refresh_interval=REFRESH,
            erase_when_done=True,
            reserve_space_for_menu=0,
            enable_suspend=True,
        )
        self._session.default_buffer.accept_handler = self._entered

    def run(self) -> None:
        said = self.line.history()
        for one in said:
            self._show(one)
        if self.line.other.fetches:
            self._say(formatting.fetches(self.line))
        self._say(f"Talking with {self.line.other.name}. Enter sends; /help says the rest.")
        self.line.mark_read(said)
        worker = threading.Thread(target=self._work, daemon=True)
        with patch_stdout(raw=True):
            try:
                self._session.prompt(pre_run=lambda: self._begin(worker))
            except (EOFError, KeyboardInterrupt):
                pass
            self._jobs.put(None)
            worker.join()  # what was typed before /quit is still sent

    def _begin(self, worker: threading.Thread) -> None:
        worker.start()
        for loop in (self._follow, self._look_elsewhere):
            threading.Thread(target=loop, daemon=True).start()

    # --- what is shown ---------------------------------------------------------------

    def _show(self, one: Envelope) -> None:
        own = one["from"] == self.line.own
        head = output.painted(formatting.header(one, self.line), OWN if own else OTHER, sys.stdout)
        lines = formatting.wrapped(formatting.content(one), output.columns(sys.stdout) - 1, whole_words=True)
        output.line("\n".join([head, *lines, ""]))

    def _say(self, text: str) -> None:
        """A line of ours, between the messages."""
        lines = formatting.wrapped(text, output.columns(sys.stdout) - 1)
        output.line("\n".join(output.painted(one, FAINT, sys.stdout) for one in lines) + "\n")

    def _above(self) -> StyleAndTextTuples:
        """What is going on just now, then the prompt; drawn anew whenever something changes."""
        cells = output.columns(sys.stdout) - 1
        lines = [cut(text, cells) for text in self._going_on(cells) if text]
        style = "dim" if output.painted("x", FAINT, sys.stdout) != "x" else ""
        return [*((style, f"{text}\n") for text in lines), ("", PROMPT)]

    def _going_on(self, cells: int) -> list[str]:
        line, live, lines = self.line, self.line.live, []
        if self.away:
            lines.append("no daemon answers; trying again every second (hiboss daemon start)")
        elif live is not None:
            lines += formatting.working(live, line.other.name, cells)
        else:
            for text in (formatting.state(line), self._trouble):
                lines += formatting.wrapped(text, cells)[:STATE_LINES]
        if self._gathered:
            names = ", ".join(map(flat, self._gathered))
            lines.append(f"with your next message: {names}")
        return lines

    # --- what is typed ---------------------------------------------------------------

    def _keys(self) -> KeyBindings:
        keys = KeyBindings()
        typing = has_focus(DEFAULT_BUFFER)

        @keys.add("enter", filter=typing)
        def enter(event: KeyPressEvent) -> None:
            buffer = event.current_buffer
            if buffer.document.is_cursor_at_the_end and buffer.text.endswith("\\"):
                buffer.delete_before_cursor()
                buffer.newline(copy_margin=False)
            else:
                buffer.validate_and_handle()

        @keys.add("escape", "enter", filter=typing)
        @keys.add("c-j", filter=typing)
        def new_line(event: KeyPressEvent) -> None:
            event.current_buffer.newline(copy_margin=False)

        @keys.add("c-c", filter=typing)
        def stop(event: KeyPressEvent) -> None:
            if event.current_buffer.text:
                event.current_buffer.reset()
                self._unsent = None
            elif self._gathered:
                self._gathered = []
            else:
                event.app.exit()

        return keys

    def _entered(self, buffer: Buffer) -> bool:
        """Enter was pressed; whether what is typed stays."""
        asked = understand(buffer.text, self._gathered)
        if asked.error:
            self._say(f"error: {asked.error}")
            return True
        self._gathered = asked.files
        if asked.command:
            self._obey(asked)
        elif asked.sends:
            self._jobs.put(self._letter(asked.text, asked.files))
            self._gathered = []
        return False

    def _letter(self, text: str, files: list[str]) -> Letter:
        """The one given back, when it is sent again as it was: it may have arrived after all."""
        before, self._unsent = self._unsent, None
        if before is not None and (before.text, before.files) == (text, files):
            return before
        return Letter(text, files)

    def _obey(self, asked: Asked) -> None:
        if asked.command == "quit":
            self._session.app.exit()
        elif asked.command == "help":
            self._say(HELP)
        else:
            self._jobs.put(
                {"status": self._status, "agents": self._agents, "cancel": self._cancel}[asked.command]
            )

    # --- what was asked for ----------------------------------------------------------

    def _work(self) -> None:
        """In a thread of its own: one thing after the other, until None."""
        while (job := self._jobs.get()) is not None:
            try:
                if isinstance(job, Letter):
                    self._send(job)
                else:
                    job()
            except HibossError as error:
                output.fail(error)
                output.line()
                if isinstance(job, Letter):
                    self._give_back(job)

    def _send(self, letter: Letter) -> None:
        if self.line.send(letter.text, letter.files, letter.key)["duplicate"]:
            self._say("It had arrived before, and was not sent again.")

    def _give_back(self, letter: Letter) -> None:
        """It was not sent: it can be edited and sent again, with all that was to follow it."""
        rest: list[Letter] = []
        ends = False
        while not self._jobs.empty():
            job = self._jobs.get()
            ends = ends or job is None
            rest += [job] if isinstance(job, Letter) else []
        if ends:
            self._jobs.put(None)
        loop = self._session.app.loop
        if ends or loop is None or not self._session.app.is_running:
            self._say("not sent: " + " ".join(flat(one.text) for one in (letter, *rest)))
            return
        loop.call_soon_threadsafe(self._put_back, letter, rest)

    def _put_back(self, letter: Letter, rest: list[Letter]) -> None:
        buffer = self._session.default_buffer
        texts = [one.text for one in (letter, *rest)] + ([buffer.text] if buffer.text else [])
        self._unsent = letter if len(texts) == 1 else None
        self._gathered = [*letter.files, *(path for one in rest for path in one.files), *self._gathered]
        text = "\n".join(texts)
        buffer.document = Document(f"/{text}" if text.startswith("/") else text)

    def _status(self) -> None:
        found = self.line.call("agent.status", name=self.line.other.address.removeprefix("agent:"))
        output.record(formatting.status(found["agent"], found["timezone"]))
        output.line()

    def _agents(self) -> None:
        found = self.line.call("agent.team")["team"]
        output.table(*formatting.team(found))
        output.line()

    def _cancel(self) -> None:
        live = self.line.live
        if live is None:
            self._say(f"{self.line.other.name} is not working on anything of this conversation.")
            return
        self.line.call("run.cancel", id=live.id)

    # --- what comes ------------------------------------------------------------------

    def _follow(self) -> None:
        """In a thread of its own: the conversation, for as long as it lasts."""
        seconds = AT_ONCE
        while True:
            try:
                said = self.line.follow(seconds)
                if self.away:
                    self.away = False
                    self._say("The daemon is back.")
                for one in said:
                    self._show(one)
                self._session.app.invalidate()
                self.line.mark_read(said)
                self._look_after(said)
                seconds = SOON if self._is_open() else FOLLOW
            except HibossError as error:
                if not is_away(error):
                    self._end(error)
                    return
                self._wait_for_daemon()
                seconds = AT_ONCE

    def _is_open(self) -> bool:
        """Whether something should happen soon of which following alone does not tell."""
        return (
            bool(self._open) and self.line.live is None and self.line.state in ("idle", "retrying", "running")
        )

    def _wait_for_daemon(self) -> None:
        if not self.away:
            self.away, self.line.live = True, None
            self._say("The daemon is away; going on when it is back.")
        time.sleep(AGAIN)

    def _look_after(self, said: list[Envelope]) -> None:
        """What became of our own messages, when nobody is at work on them any more."""
        if not self.line.other.is_agent or self.line.other.fetches:
            return
        self._open += [one["id"] for one in said if one["from"] == self.line.own]
        if self.line.live is not None:
            return
        trouble = ""
        for number in self._open[:LOOKED_AFTER]:
            one = self.line.envelope(number)
            if one["status"] != "pending":
                self._open.remove(number)  # of one that failed a notice tells
            elif error := one["last_error"]:
                why = flat(error["text"] or error["kind"])
                trouble = f"{self.line.other.name} did not manage: {why}; it is tried again"
        self._trouble = trouble

    def _look_elsewhere(self) -> None:
        """In a thread of its own: a line about each piece of mail that belongs to another conversation."""
        box = Box(self.line)
        while True:
            try:
                found = box.wait(BOX)
                for one in found:
                    self._say(formatting.elsewhere(one, self.line))
                self.line.mark_read([one for one in found if formatting.told_in_full(one)])
            except HibossError as error:
                if not is_away(error):
                    return  # whoever follows meets the same, and says so
                time.sleep(AGAIN)

    def _end(self, error: HibossError) -> None:
        """There is no going on: the command ends with this error."""
        app: Any = self._session.app
        app.loop.call_soon_threadsafe(lambda: app.exit(exception=error) if app.is_running else None)
