"""The first steps with a process: from its start until it has a thread.

initialize · log in, if the agent has a key · account/read · thread/start, thread/resume or thread/fork. Each
step begins when the answer to the one before has come.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from .... import __version__
from ....core.contracts.failures import LaneError, SessionLost
from ....core.contracts.provider import LiveRun, TurnInput
from . import arguments, failures
from .messages import Line, Messages, Reply, fields, text
from .settings import CodexSettings

# Not needed here, and large.
UNWANTED = [
    "thread/started",
    "turn/diff/updated",
    "item/fileChange/outputDelta",
    "item/fileChange/patchUpdated",
]
NOT_UNDERSTOOD = f"hiboss does not understand this version of codex: run `{failures.INSTALL}@latest`"


class Opening:
    """Brings a process to its thread, and reports that. `on_thread` gets what it said about it."""

    def __init__(
        self,
        settings: CodexSettings,
        turn: TurnInput,
        run: LiveRun,
        messages: Messages,
        on_thread: Callable[[Line], Awaitable[None]],
    ) -> None:
        self._settings = settings
        self._turn = turn
        self._run = run
        self._messages = messages
        self._on_thread = on_thread
        self._thread = arguments.thread(settings, turn.workspace, turn.instructions)
        self.needs_login = True  # at OpenAI; else the model provider has a key of its own, or none
        self.forked = False  # the thread is a copy, for another program has it open

    def first(self) -> Line:
        """Return the first request."""
        about: Line = {"clientInfo": {"name": "hiboss", "version": __version__}}
        about["capabilities"] = {"optOutNotificationMethods": UNWANTED}
        return self._messages.first("initialize", about, self._initialized)

    def _initialized(self, reply: Reply) -> None:
        if reply.error is not None:
            raise LaneError("outdated", f"{NOT_UNDERSTOOD} ({reply.error})")
        self._messages.notify("initialized")
        if self._settings.api_key is None:
            self._logged_in(Reply({}))
            return
        key = self._settings.api_key.get_secret_value()
        self._messages.call("account/login/start", {"type": "apiKey", "apiKey": key}, self._logged_in)

    def _logged_in(self, reply: Reply) -> None:
        if reply.error is not None:
            help_text = failures.login(self._settings, self._turn.agent, of_openai=True)
            why = f"codex did not take the key of the agent: {reply.error}; {help_text}"
            raise LaneError("not_logged_in", why)
        self._messages.call("account/read", {}, self._account_read)

    def _account_read(self, reply: Reply) -> None:
        self.needs_login = reply.result.get("requiresOpenaiAuth") is not False
        if reply.result.get("requiresOpenaiAuth") is True and reply.result.get("account") is None:
            raise failures.not_logged_in()
        if self._turn.session is None:
            self._messages.call("thread/start", self._thread, self._thread_begun)
        else:
            known = {**self._thread, "threadId": self._turn.session, "excludeTurns": True}
            self._messages.call("thread/resume", known, self._thread_resumed)

    async def _thread_resumed(self, reply: Reply) -> None:
        if reply.error is not None and failures.ACTIVE_WRITER in reply.error:
            self.forked = True
            known = {**self._thread, "threadId": self._turn.session, "excludeTurns": True}
            self._messages.call("thread/fork", known, self._thread_forked)
            return
        await self._thread_begun(reply)

    async def _thread_forked(self, reply: Reply) -> None:
        if reply.error is not None:
            raise SessionLost(f"{self._turn.session} is open in another program: {reply.error}")
        await self._thread_begun(reply)

    async def _thread_begun(self, reply: Reply) -> None:
        if reply.error is not None:
            raise failures.of_thread(reply.error, self._turn.session)
        thread = fields(reply.result.get("thread"))
        if not text(thread.get("id")):
            raise LaneError("outdated", NOT_UNDERSTOOD)
        await self._run.session(text(thread.get("id")))
        await self._keep_instructions(text(thread.get("id")), text(thread.get("name")), reply.result)

    async def _keep_instructions(self, thread: str, name: str, result: Line) -> None:
        """Give a thread its instructions again if others were given before; then go on with it.

        Codex keeps those with which a thread began. The name of the thread says which it has.
        """
        given = self._turn.instructions
        title = arguments.thread_name(self._turn.agent, given)
        if given and title != name:
            self._messages.call("thread/name/set", {"threadId": thread, "name": title})
            if self._turn.session is not None:
                items = {"threadId": thread, "items": [arguments.new_instructions(given)]}
                self._messages.call("thread/inject_items", items, lambda reply: self._on_thread(result))
                return
        await self._on_thread(result)
