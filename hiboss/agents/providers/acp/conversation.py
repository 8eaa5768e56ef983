"""One turn with an agent: open a session, give the prompt, take its answer; pass on what it asks."""

from __future__ import annotations

from ....core.contracts.failures import LaneError, SessionLost, TurnError
from ....core.contracts.provider import Answer, LiveRun, TurnInput
from ...json_lines import Line
from ..error_texts import readable
from . import failures, forms, opening, questions, resumption
from .connection import AgentEnded, AgentError, Answering, BadRequest, Connection
from .failures import Agent
from .opening import Hello
from .output import Output
from .questions import Permission
from .settings import AcpSettings

MOST_PROMPTS = 5  # in one turn
# An error that comes as an answer is short.
ERROR_CHARACTERS = 2_000
ERROR_BEGINNINGS = (
    "API Error",
    "Error running remote compact task",
    "Error: ",
    "Internal error",
    "Invalid API key",
    "Missing environment variable",
    "You've hit your usage limit",
    "exceeded retry limit",
    "stream disconnected before completion",
    "stream error",
    "unexpected status ",
    '{"error":',
    '{"error" :',
    '{"detail":',
)


class Conversation:
    """The turn. It is the `Requests` of its connection: what the agent tells and asks comes here."""

    def __init__(self, settings: AcpSettings, agent: Agent, turn: TurnInput, run: LiveRun) -> None:
        self._settings = settings
        self._agent = agent
        self._turn = turn
        self._run = run
        self._output = Output(run, turn.answer_bytes)
        self._connection: Connection | None = None
        self._session: str | None = None
        self._note: str | None = None  # about its session
        self._prompted = False
        self._over = False  # a prompt has its answer, and no other was given
        self._denied: list[str] = []  # what people did not allow, for the agent
        self.interrupted = False

    async def talk(self, connection: Connection) -> Answer:
        """Take the turn and return its answer."""
        self._connection = connection
        hello = await opening.say_hello(connection, self._agent)
        self._agent = hello.agent
        try:
            await self._open_session(connection, hello)
            if self.interrupted:
                return Answer()
            return await self._prompt(connection, self._blocks(hello))
        except AgentEnded:
            raise failures.of_end(connection.result, self._agent, began=True) from None

    def interrupt(self) -> None:
        """Let the prompt end; questions that are open then are cancelled, as the protocol wants it."""
        self.interrupted = True
        if self._connection is not None and self._prompted:
            self._connection.notify("session/cancel", {"sessionId": self._session})
        if self._connection is not None:
            self._connection.cancel_answers(tell=True)

    async def _open_session(self, connection: Connection, hello: Hello) -> None:
        command = self._settings.command
        session = await opening.open_session(connection, hello, self._turn, command)
        self._session, self._note = session.id, session.note
        if self._turn.session is not None:
            self._output.resumed(self._turn.session_cost)
        # What cannot be resumed would be given to us, and be lost, with every turn.
        if hello.resume is not None and not resumption.given_up(command):
            await self._run.session(session.id)
        model = await opening.choose_model(connection, self._agent, self._settings, session)
        if model is not None:
            self._output.model(model)

    # --- the prompt --------------------------------------------------------------------

    def _blocks(self, hello: Hello) -> list[Line]:
        """Return the content of the prompt; a new session without a system prompt gets the instructions."""
        text = self._turn.text
        texts = [f"\n{text}" if text.startswith("/") else text]  # no slash command
        if self._turn.session is None and self._turn.instructions and not hello.takes_instructions:
            texts.insert(0, self._turn.instructions)
        return [{"type": "text", "text": one} for one in texts]

    async def _prompt(self, connection: Connection, blocks: list[Line]) -> Answer:
        self._output.begin()
        result = await self._call_prompt(connection, blocks)
        prompts = 1
        # codex-acp ends the prompt when something is denied. The turn is to go on without it.
        while result.get("stopReason") == "cancelled" and self._denied and not self.interrupted:
            if prompts == MOST_PROMPTS:
                raise TurnError("denied", f"{self._agent.shown} stopped after each of {prompts} denials")
            prompts += 1
            told = "\n".join([*self._denied, "Go on without it."])
            self._denied.clear()
            self._output.separate()
            result = await self._call_prompt(connection, [{"type": "text", "text": told}])
        usage = self._output.finished(result, whole=prompts == 1)
        self._output.end()
        if self.interrupted:
            return Answer(text=self._output.text)
        self._check_text(result)
        notes = [self._note, self._stopped(str(result.get("stopReason")), self._output.text)]
        return Answer(
            text=self._output.text,
            tokens_in=usage.tokens_in,
            tokens_out=usage.tokens_out,
            cost=usage.cost,
            context=usage.context,
            note="; ".join(filter(None, notes)) or None,
        )

    async def _call_prompt(self, connection: Connection, blocks: list[Line]) -> Line:
        self._prompted, self._over = True, False
        try:
            return await connection.call("session/prompt", {"sessionId": self._session, "prompt": blocks})
        except AgentError as error:
            if self.interrupted:
                return {"stopReason": "cancelled"}
            raise self._failed(failures.of_error(error, self._agent)) from None
        finally:
            self._prompted, self._over = False, True
            connection.cancel_answers(tell=False)  # what it still asks decides nothing any more

    def _check_text(self, result: Line) -> None:
        """Raise an error that came as an answer, as codex-acp does it: it is short, and nothing was used.

        codex-acp also says that the turn failed, and gives such a text no id.
        """
        failed = self._output.unsigned.strip() if self._output.failed else ""
        text, said_so = failed or self._output.text.strip(), bool(failed)
        looks_so = "usage" in result and result["usage"] is None and text.startswith(ERROR_BEGINNINGS)
        if text and len(text) <= ERROR_CHARACTERS and (said_so or looks_so):
            words = " ".join(text.split())
            kind = failures.kind_of_text(words) or "rejected"
            raise self._failed(failures.of_words(kind, readable(words), self._agent))

    def _failed(self, error: LaneError | TurnError) -> LaneError | TurnError:
        """Return the error of a prompt. A session that is full is lost; what had begun did start."""
        if error.kind == "no_start" and self._output.worked:
            return TurnError("no_result", error.text)
        full = error.kind == "too_long" and self._turn.session is not None
        return SessionLost(error.text) if full else error

    def _stopped(self, reason: str, text: str) -> str | None:
        """Return a note about why it stopped; raise a TurnError if there is no answer for that."""
        if reason == "max_turn_requests":
            raise TurnError("max_turns", f"{self._agent.shown} reached its limit of model calls for one turn")
        if reason == "cancelled":
            raise TurnError("cancelled", f"{self._agent.shown} cancelled the turn itself")
        if reason == "max_tokens":
            if not text:
                raise TurnError(
                    "too_long", f"{self._agent.shown} reached the limit of tokens before an answer"
                )
            return "the answer was cut off at the limit of tokens of the model"
        if reason == "refusal":
            if not text:
                raise TurnError("refusal", f"{self._agent.shown}: the model refused to answer")
            return "the model refused to go on"
        return None

    # --- what the agent tells and asks -----------------------------------------------------

    def notified(self, method: str, given: Line) -> None:
        update = given.get("update")
        ours = self._session is None or given.get("sessionId") in (self._session, None)
        if method == "session/update" and isinstance(update, dict) and ours:
            self._output.update(update)

    def answering(self, method: str, given: Line) -> Answering | None:
        try:
            if method == "session/request_permission":
                answering = self._permit(given)
            elif method == "elicitation/create":
                answering = Answering(forms.fill_in(given, self._run.ask), forms.CANCELLED)
            else:
                return None
        except RecursionError:
            raise BadRequest("it is nested too deeply") from None
        if self.interrupted or self._over:
            answering.answer.close()
            return Answering(_at_once(answering.cancelled), answering.cancelled)
        return answering

    def _permit(self, given: Line) -> Answering:
        wanted = questions.permission(given, self._output.calls, self._turn.workspace)
        if self._settings.autonomy == "high" and wanted.is_plain:
            return Answering(_at_once(wanted.reply(questions.ALLOW)), questions.CANCELLED)
        return Answering(self._ask(wanted), questions.CANCELLED)

    async def _ask(self, wanted: Permission) -> Line:
        choice = await self._run.ask(wanted.question)
        if choice.option == wanted.question.default:
            self._denied.append(wanted.denied(choice))
        return wanted.reply(choice.option)


async def _at_once(reply: Line) -> Line:
    return reply
