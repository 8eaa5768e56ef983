"""The conversation on a terminal: the prompt stays at the bottom, everything else is above it.

The prompt has the main thread. One thread follows the conversation and the other mail, and one
carries out what was typed, in order. Imported only for a conversation: prompt_toolkit takes a
fifth of a second.
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

from ...core.address import BOSS
from ...core.errors import HibossError
from .. import output
from ..client import is_away
from ..text_layout import cut, flat, hanging
from . import ask_lines, formatting
from .above_prompt import AbovePrompt, columns_to_fill
from .asks import Ask, Asks
from .commands import Commands
from .conversation import ConversationClient, Envelope
from .edited_messages import EditedMessages
from .other_mail import OtherMail
from .typed_input import HELP, TypedInput, parse_input
from .typing_reports import TypingReports

FOLLOW = 3_600.0  # seconds that one call waits for news
RETRY = 1.0  # seconds between two tries to reach a daemon that is away
REFRESH = 0.5
OWN, OTHER, FAINT = "1;32", "1;36", "2"  # bold green, bold cyan, faint
CHECKED = 5  # messages without an answer that are looked at
STATE_LINES = 3
PROMPT = "> "


@dataclass
class Letter:
    """What was typed, and its files. Sent again unchanged, it is the same message."""

    text: str
    files: list[str]
    key: str = field(default_factory=lambda: uuid.uuid4().hex)


def talk(client: ConversationClient) -> None:
    """Talk until /quit or the end of the input."""
    gc.enable()  # other commands live for milliseconds; this one can live for days
    Screen(client).run()


class Screen:
    """The prompt and its threads."""

    def __init__(self, client: ConversationClient) -> None:
        self.client = client
        self.away = False
        self._gathered: list[str] = []
        self._unsent: Letter | None = None  # put back into the prompt, to be edited
        self._open: list[str] = []  # sent, and neither done nor failed yet
        self._failure = ""
        self._jobs: queue.Queue[Callable[[], None] | Letter | None] = queue.Queue()
        self._session: PromptSession[str] = PromptSession(
            self._prompt,
            multiline=True,
            prompt_continuation=" " * len(PROMPT),
            key_bindings=self._keys(),
            refresh_interval=REFRESH,
            erase_when_done=True,
            reserve_space_for_menu=0,
            enable_suspend=True,
        )
        self._session.default_buffer.accept_handler = self._entered
        self._typing = TypingReports(client)
        self._session.default_buffer.on_text_changed += lambda buffer: self._typing.typed(buffer.text)
        self._above = AbovePrompt(self._session)
        self._edits = EditedMessages(client)
        self._asks = Asks(client)
        self._commands = Commands(client, self._asks, self._say, self._above.print)

    def run(self) -> None:
        messages = self.client.history()
        self._show_all(messages)
        if self.client.other.fetches:
            self._say(formatting.fetches(self.client))
        for ask in self._asks.waiting():
            self._asks.note(ask)
            self._say(ask_lines.in_one_line(ask, self.client))
        self._say(f"Talking with {self.client.other.name}. Enter sends; /help shows the commands.")
        self.client.mark_read(messages)
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
        self._typing.start()
        threading.Thread(target=self._follow, daemon=True).start()

    # --- what is shown ---------------------------------------------------------------

    def _show_all(self, messages: list[Envelope]) -> None:
        for one in messages:
            self._show(one)
        self._edits.note(messages)

    def _show(self, one: Envelope) -> None:
        ask = self._asks.of(one)
        if one["type"] == "event":
            self._say(formatting.event(one, self.client))
        elif ask is not None and one["message"] == ask["reply"]:
            if not self._asks.is_told(ask):
                self._say(ask_lines.ended(ask, self.client))
            self._asks.note(ask)
        else:
            self._show_message(one, ask)

    def _show_message(self, one: Envelope, ask: Ask | None) -> None:
        """Print a message; under the question of an ask, how to answer it or how it ended."""
        style, below = OWN if one["sender"] == self.client.own else OTHER, ""
        if ask is not None:
            one, below = ask_lines.question(one, ask), ask_lines.below(ask, self.client)
            self._asks.note(ask)

        def lines() -> list[str]:
            cells = columns_to_fill()
            head = output.painted(formatting.header(one, self.client), style, sys.stdout)
            ours = [output.painted(row, FAINT, sys.stdout) for row in hanging(below, cells)] if below else []
            return [head, *formatting.content(one, cells), *ours, ""]

        self._above.print(lines)

    def _say(self, text: str) -> None:
        """Print a line of ours between the messages."""
        self._above.print(
            lambda: [
                *(
                    output.painted(row, FAINT, sys.stdout)
                    for line in text.splitlines()
                    for row in hanging(line, columns_to_fill())
                ),
                "",
            ]
        )

    def _fail(self, error: HibossError) -> None:
        self._above.print(lambda: [*output.error_lines(error), ""])

    def _prompt(self) -> StyleAndTextTuples:
        """The present state, then the prompt; drawn again whenever something changes."""
        cells = columns_to_fill()
        lines = [cut(text, cells) for text in self._going_on(cells) if text]
        style = "dim" if output.painted("x", FAINT, sys.stdout) != "x" else ""
        return [*((style, f"{text}\n") for text in lines), ("", PROMPT)]

    def _going_on(self, cells: int) -> list[str]:
        talk, live, lines = self.client, self.client.live, []
        if self.away:
            lines.append(
                "no daemon answers; hiboss tries again every second (to start it: hiboss daemon start)"
            )
        elif live is not None:
            lines += formatting.working(live, talk.other.name, cells, asks=talk.state == "asks")
        else:
            for text in (formatting.state(talk), self._failure):
                lines += hanging(text, cells)[:STATE_LINES]
        if talk.other_types and not self.away:
            lines.append(f"{talk.other.name} is typing")
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
        """Handle Enter; returns whether the typed text stays."""
        asked = parse_input(buffer.text, self._gathered)
        if asked.error:
            self._say(f"error: {asked.error}")
            return True
        self._gathered = asked.files
        if asked.command:
            self._run_command(asked)
        elif asked.sends:
            self._jobs.put(self._letter(asked.text, asked.files))
            self._gathered = []
        return False

    def _letter(self, text: str, files: list[str]) -> Letter:
        """The letter that was put back, if it is sent again unchanged: it can have arrived after all."""
        before, self._unsent = self._unsent, None
        if before is not None and (before.text, before.files) == (text, files):
            return before
        return Letter(text, files)

    def _run_command(self, asked: TypedInput) -> None:
        if asked.command == "quit":
            self._session.app.exit()
        elif asked.command == "help":
            self._say(HELP)
        else:
            self._jobs.put(self._commands.job(asked.command, asked.words))

    # --- sending -----------------------------------------------------------------------

    def _work(self) -> None:
        """In a thread of its own: one job after the other, until None."""
        while (job := self._jobs.get()) is not None:
            try:
                if isinstance(job, Letter):
                    self._send(job)
                else:
                    job()
            except HibossError as error:
                self._fail(error)
                if isinstance(job, Letter):
                    self._give_back(job)

    def _send(self, letter: Letter) -> None:
        if self.client.send(letter.text, letter.files, letter.key)["duplicate"]:
            self._say("It had already arrived, and was not sent again.")

    def _give_back(self, letter: Letter) -> None:
        """Put a letter that was not sent back into the prompt, with all letters after it."""
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

    # --- what arrives ----------------------------------------------------------------

    def _follow(self) -> None:
        """In a thread of its own: follow the conversation until it ends."""
        mail = OtherMail(self.client)
        while True:
            try:
                messages = self.client.follow(FOLLOW)
                if self.away:
                    self.away = False
                    self._say("The daemon is back.")
                self._show_all(messages)
                for one in self._edits.new():
                    self._show(one)
                self._tell_questions()
                for ask in self._asks.ended():
                    self._say(ask_lines.ended(ask, self.client))
                self._session.app.invalidate()
                self.client.mark_read(messages)
                self._check_own_messages(messages)
                if self.client.mail_came:
                    self._tell_other_mail(mail)
            except HibossError as error:
                if not is_away(error):
                    self._end(error)
                    return
                # Whichever call failed: else it would say `back`, find this connection dead, and say `away`.
                self.client.facts.close()
                self._wait_for_daemon()

    def _wait_for_daemon(self) -> None:
        if not self.away:
            self.away, self.client.live = True, None
            self._say("The daemon is away; the conversation continues when it is back.")
        time.sleep(RETRY)

    def _check_own_messages(self, messages: list[Envelope]) -> None:
        """Check our own messages when no run works on them any more."""
        if not self.client.other.is_agent or self.client.other.fetches:
            return
        self._open += [one["id"] for one in messages if one["sender"] == self.client.own]
        if self.client.live is not None:
            return
        failure = ""
        for number in self._open[:CHECKED]:
            one = self.client.envelope(number)
            if one["status"] != "pending":
                self._open.remove(number)  # a notice reports one that failed
            elif error := one["last_error"]:
                why = flat(error["text"] or error["kind"])
                failure = f"{self.client.other.name} failed: {formatting.tried_again(why)}"
        self._failure = failure

    def _tell_questions(self) -> None:
        """Print what the other side asks the boss, who is told by a notice himself."""
        for text in self.client.new_questions():
            if self.client.own != str(BOSS):
                self._say(formatting.asks(text, self.client))

    def _tell_other_mail(self, mail: OtherMail) -> None:
        """Print a line about each new envelope of another conversation."""
        for found in mail.new():
            for one in found:
                self._say(self._line_about(one))
            self.client.mark_read([one for one in found if formatting.told_in_full(one)])

    def _line_about(self, one: Envelope) -> str:
        ask = self._asks.of(one)
        if ask is None or one["message"] != ask["message"]:
            return formatting.elsewhere(one, self.client)
        self._asks.note(ask)
        return ask_lines.in_one_line(ask, self.client)

    def _end(self, error: HibossError) -> None:
        """End the command with this error."""
        app: Any = self._session.app
        app.loop.call_soon_threadsafe(lambda: app.exit(exception=error) if app.is_running else None)
