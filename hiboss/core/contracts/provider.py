"""The contract of a provider: what it must do. The docstrings are the contract.

Every provider is held against it by the tests of hiboss/testing/provider_contract.py. To write your own
provider, see docs/providers.md.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple, Protocol, TypeGuard

from ..escaping import shows, visible
from ..option_models import Options

# What a provider can do beyond answering. It declares them, and only then is it asked to.
SESSION = "session"  # it has a memory of a conversation, and resumes it by an id
STEER = "steer"  # it takes words of a person during a turn
INTERRUPT = "interrupt"  # it can end a turn in an orderly way, so that its session stays usable
ASK = "ask"  # it asks people questions during a turn
COST = "cost"  # it says what a turn cost, in dollars
CAPABILITIES = (SESSION, STEER, INTERRUPT, ASK, COST)

# What Progress.kind can be. Those that are SHOWN go to whoever follows the run.
SHOWN = ("delta", "tool", "tool_result", "thinking")
KINDS = (*SHOWN, "usage", "model", "alive")
SESSION_CHARACTERS = 500
MOST_OPTIONS = 20
OPTION_CHARACTERS = 200
TOOL_CHARACTERS = 200


def storable_text(text: str) -> str:
    """Return the text with NUL and halves of surrogate pairs replaced: they cannot be stored.

    hiboss does this with every text that a provider reports or returns; a provider need not.
    """
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace").replace("\x00", "\ufffd")


def is_session(given: object) -> TypeGuard[str]:
    """Tell whether this can be stored as the id of a session: up to 500 printable characters."""
    return isinstance(given, str) and given.isprintable() and 0 < len(given) <= SESSION_CHARACTERS


class Usage(NamedTuple):
    """The tokens and the cost of a turn so far; None where unknown."""

    tokens_in: int | None = None  # model tokens that were read
    tokens_out: int | None = None  # model tokens that were written
    cost: float | None = None  # in dollars
    context: int | None = None  # tokens that the last model call read: how full the session is
    # Whether these are the final numbers of the turn. Else, if the turn ends without an answer, they are
    # stored as estimated.
    exact: bool = False


class Progress(NamedTuple):
    """Live output of a turn. It is shown and not stored; only the last usage is stored."""

    # delta: a piece of the answer; all deltas together are what a person reads while it is made.
    # tool: what the agent does now, in a line. tool_result: what came of it, shortened.
    # thinking: a piece of its reasoning. usage: totals so far. model: the name of the model that answers.
    # alive: it works, and has nothing to show.
    kind: str
    text: str = ""  # what is shown
    usage: Usage | None = None  # the totals so far; the last ones count, however the turn ends


class Reminder(NamedTuple):
    """A message to send later, to the conversation of the answer."""

    text: str  # what it says
    deliver_at: int  # when it arrives; milliseconds since 1970, UTC


@dataclass(frozen=True, kw_only=True, slots=True)
class TurnInput:
    """The input of one turn."""

    run: str  # the id of the run, like r9
    # A name for this run that no other run of any home has, also not a repetition of this turn: for an
    # idempotency key or a request id. HIBOSS_RUN in the environment is the same.
    delivery: str
    agent: str  # the name of the agent
    text: str  # the turn as text, exactly as `run get --turn` shows it
    envelopes: Sequence[Mapping[str, Any]]  # the same envelopes, in the JSON form of the API
    due: int | str  # how many envelopes were due for the agent, with those of the turn; '1000+' for more
    now: int  # when the turn began; milliseconds since 1970, UTC
    timezone: str  # the boss's time zone, an IANA name like Europe/Berlin
    workspace: str  # the absolute path of the agent's directory; it may be missing, the provider must check
    environment: Mapping[str, str]  # for a process: token, home, PATH with hiboss on it; no other secrets
    session: str | None = None  # the session to resume; None: begin one
    # Of providers with `own_session_ids`: `session` is an id that hiboss made, and no turn is known to have
    # begun it. It may exist all the same, if a turn was killed early: then resume it.
    session_is_new: bool = False
    # What the turns of `session` have cost, as they were reported: for providers whose programs name the
    # cost of a whole session. None: unknown.
    session_cost: float | None = None
    # Of providers that take instructions: who the agent is and how it works here, for the system prompt. It
    # seldom changes. `text` then begins with what does (BOSS.md, MEMORY.md, …), where it is new
    # to the session.
    instructions: str = ""
    answer_bytes: int  # the limit for the text of the answer, in UTF-8
    output_bytes: int  # the limit for everything that is read to get it; far higher


@dataclass(frozen=True, kw_only=True, slots=True)
class Answer:
    """The result of a successful turn. With an empty text no answer is sent."""

    text: str = ""  # what is sent, in full: nothing is added from the deltas
    tokens_in: int | None = None  # model tokens that were read; None: unknown, the last usage counts
    tokens_out: int | None = None  # model tokens that were written; None: unknown
    cost: float | None = None  # in dollars; None: unknown
    context: int | None = None  # tokens that the last model call read; None: unknown
    later: tuple[Reminder, ...] = ()  # messages to send later
    note: str | None = None  # a remark stored with the run, which `hiboss run get` shows


class Question(NamedTuple):
    """A question to people during a turn: with options of its own, or whether a tool may be used."""

    text: str  # what is asked, in one or a few lines
    options: tuple[str, ...] = ("allow", "deny")  # 1 to 20 different words; one of them is the answer
    default: str = ""  # the option that counts when nobody answers in time; empty: the last one
    tool: str = ""  # the name of the tool that would be used, like Bash; empty: a question of another kind
    detail: str = ""  # what the tool would do, in full: a command line, a patch
    # Exactly what an answer may be remembered for, like the command line; empty: it holds only once. Nothing
    # is matched but the same agent, tool and subject. So give all that makes a difference.
    subject: str = ""

    def mistake(self) -> str:
        """Return what is wrong with it, or an empty text."""
        given, words = self.options, isinstance(self.options, tuple)
        if not isinstance(self.text, str) or not self.text.strip():
            return "a question needs a text"
        if not words or not all(isinstance(one, str) and 0 < len(one) <= OPTION_CHARACTERS for one in given):
            return f"the options of a question are texts of up to {OPTION_CHARACTERS} characters"
        if not all(map(shows, given)) or any(visible(one) != one for one in given):
            return "each option of a question is a line that shows something, without control characters"
        if not 1 <= len(given) <= MOST_OPTIONS or len(set(given)) < len(given):
            return f"a question has 1 to {MOST_OPTIONS} options, each of them once"
        if self.default not in ("", *given):
            return "the default of a question is one of its options"
        return self._mistake_of_tool()

    def _mistake_of_tool(self) -> str:
        if not isinstance(self.tool, str) or not f"x{self.tool}".isprintable():
            return "the tool of a question is a name in one line"
        if len(self.tool) > TOOL_CHARACTERS:
            return f"the tool of a question is a name of up to {TOOL_CHARACTERS} characters"
        if not isinstance(self.detail, str) or not isinstance(self.subject, str):
            return "the detail and the subject of a question are texts"
        return "" if self.tool or not self.subject else "a question with a subject names its tool"


class Choice(NamedTuple):
    """The answer to a question."""

    option: str  # one of the options of the question, as it was given
    text: str = ""  # what the person added, like a reason; or why the default counts
    by: str | None = None  # the address of who answered; None: nobody did, and this is the default


class Finding(NamedTuple):
    """What a provider found when it looked for the program or the server that it needs."""

    found: str = ""  # in a line, like: claude 2.1.325 (/usr/bin/claude), logged in
    problem: str = ""  # why no turn could succeed now; empty: nothing seen
    help: str = ""  # the one command that helps, like: claude auth login


class LiveRun(Protocol):
    """The run, as its provider sees it: where it reports, and where it asks. Call it on the event loop."""

    def progress(self, part: Progress) -> None:
        """Show live output. Each call says that the turn is still alive (`runs.idle_seconds`).

        Raises TypeError or ValueError for what is no Progress of a known kind. Numbers that cannot be
        true are left out, with a note.
        """

    async def started(self, pid: int) -> None:
        """Report a process, before it gets its input: the daemon can pause it, and end it after a crash."""

    async def session(self, session: str) -> None:
        """Report the id of the session, as soon as it is known; it is stored when this returns.

        The next turn of this session's scope gets it as `TurnInput.session`, also if this turn fails or
        the daemon is killed. With `own_session_ids`, report the given id as soon as it is known to exist.
        An id that cannot be stored (see `is_session`) is left out, with a note.
        Needs the capability `session`.
        """

    async def ask(self, question: Question) -> Choice:
        """Ask a question and wait for its answer. Time limits stand still meanwhile.

        It is stored as an ask to the boss, who can answer at every door (`hiboss ask answer q2 --choice
        allow`, a button in a chat); the first answer counts. Nobody answers in `runs.question_seconds`: the
        default counts. When the run ends, its open asks are cancelled; cancel this call to take one back
        before. If the daemon dies, the ask stays open, and the repeated turn that asks the same gets this ask
        again, or its answer if there is one.

        With a `tool` and a `subject`, the boss can let his answer hold for the provider's session, or as a
        rule (`hiboss ask rules`): the same question then gets this answer at once, if it has this option.

        Up to 100 questions may wait at the same time, and 10 of them are shown to the boss; one more gets its
        default at once. Needs the capability `ask`. Raises ValueError for what is no question.
        """


class Provider(ABC):
    """Produces an agent's answers. Each turn makes a new instance; nothing is kept between turns.

    A provider returns the answer or raises TurnError, LaneError or SessionLost. Any other exception
    is a defect and counts as a TurnError. It never retries and sends no messages itself. It need
    not measure time: the daemon cancels a turn that takes too long. When cancelled, it ends
    everything it started, processes with all their children, and only then returns.
    """

    name: ClassVar[str]  # as in --provider <name>
    summary: ClassVar[str] = ""  # who answers, in a few words
    # The options of `hiboss agent set`: a model with a description for each field. Its validators
    # refuse (ValueError) what can never work. They check only what cannot change: a program that is
    # missing now may be installed later.
    Settings: ClassVar[type[Options]] = Options
    # When one of these settings is changed, the sessions begun before are not resumed.
    session_settings: ClassVar[frozenset[str]] = frozenset()
    # What it can do beyond answering, of: session, steer, interrupt, ask, cost. A class declares all that it
    # can; an instance may have fewer, if its settings say so.
    capabilities: frozenset[str] = frozenset()
    # Whether it takes `TurnInput.instructions`, and a turn that begins with the agent's memory.
    takes_instructions: ClassVar[bool] = False
    # Whether hiboss makes the ids of its sessions (a UUID), so that they are stored before the turn begins.
    own_session_ids: ClassVar[bool] = False
    # Whether each turn is taken by a program, which it reports (`LiveRun.started`): that can be paused.
    starts_program: ClassVar[bool] = False

    def __init__(self, settings: Any) -> None:
        """Keep the settings, an instance of `Settings` with the secrets in it. Do no I/O here."""
        self.settings = settings

    @abstractmethod
    async def take_turn(self, turn: TurnInput, run: LiveRun) -> Answer:
        """Take one turn and return its answer.

        If `turn.session` is given, resume that session. If it cannot be resumed, raise SessionLost: the
        daemon forgets it, and gives the turn once more, to a new instance, in a new session.
        """

    async def find(self, environment: Mapping[str, str], workspace: str) -> Finding | None:
        """Look for what it needs, and say what was found; None if there is nothing to look for.

        Called when an agent is registered or changed. It takes a few seconds at most, and changes nothing.
        """
        return None

    async def steer(self, text: str) -> bool:
        """Give the running turn these words of a person. Return False if it is too late for that.

        Needs the capability `steer`. Called while `take_turn` runs. It does not wait for the agent.
        """
        return False

    async def interrupt(self) -> None:
        """Let the running turn end soon, in an orderly way. Its answer is not used.

        Needs the capability `interrupt`. A turn that still runs after some seconds is cancelled.
        """
        return None
