"""Agents at work while the daemon dies: each message to them has one answer, whatever happens.

`Workshop` hires three agents into a post office. All say what they heard; echo now and then
gives a task to the background, lead has errands run by echo and heeds what it is told it
had already sent, shaky sometimes fails and sometimes leaves a process behind.
"""

from __future__ import annotations

import json
import re
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from hiboss.core import clock
from tests.acceptance.soak_clients import Asked, Client
from tests.acceptance.soak_post import Post, Row
from tests.support.python_agents import Team, is_idle
from tests.support.shell_agents import left_behind
from tests.support.waits import wait_until

NAMES = ("echo", "lead", "shaky")
ASKERS = 2
PARKED_AFTER = 3  # crashes of the daemon in a row, with the same envelope in hand

# A text is "ask KEY. WHAT"; what is made of it says "errand KEY." or "task KEY.".
_HEARD = """
TURN = re.sub(r"(?m)^> ?", "", TURN)  # the marks of hiboss before the lines of a text
TEXTS = [re.sub(r"(?m)^> ?", "", one) for one in TEXTS]
SENT = TURN.partition("\\nalready-sent:\\n")[2]
KEYS = {what: re.findall(rf"(?m)^ask (\\S+)\\. {what}$", TURN) for what in ("task", "errand", "once", "child")}


def hiboss(*words):
    if subprocess.run(["hiboss", *words], stdout=subprocess.DEVNULL).returncode:
        sys.exit("hiboss did not do it")
    time.sleep(0.2)  # so that a death may come between what it sends and its answer


def say():
    print(f"{os.environ['HIBOSS_AGENT']} heard [{'; '.join(TEXTS)}]")

"""
BODIES = {
    "echo": """
for key in KEYS["task"]:
    hiboss("agent", "background", "--task", f"task {key}.")
say()
""",
    "lead": """
for key in KEYS["errand"]:
    if f"errand {key}." not in SENT:
        hiboss("envelope", "send", "--to", "agent:echo", "--text", f"errand {key}.")
say()
""",
    "shaky": """
fresh = [key for key in KEYS["once"] if not os.path.exists(os.path.join(HERE, key))]
for key in fresh:
    open(os.path.join(HERE, key), "w").close()
if fresh:
    sys.exit(f"not at first: {fresh[0]}")
for key in KEYS["child"]:
    subprocess.Popen(["sleep", "1000"])
say()
""",
}
WHATS = {"echo": ("task",), "lead": ("errand", "errand"), "shaky": ("once", "child")}


class Asker(Client):
    """Asks agents that are given turns, as user:boss or agent:nex."""

    def __init__(self, post: Post, name: str, seed: int) -> None:
        super().__init__(post.daemon, name, seed, agents=("nex", "boss"))
        self._is_boss = self._token == post.daemon.token("boss")

    def next(self, number: int) -> Asked:
        chance = self._chance
        time.sleep(chance.uniform(0, 0.12))
        key, agent = f"{self.name}-{number}", chance.choice(NAMES)
        what = chance.choice((*WHATS[agent], *["nothing"] * 3))
        params: dict[str, Any] = {"token": self._token, "key": key, "to": f"agent:{agent}"}
        params["text"] = f"ask {key}. {what}"
        if self._is_boss:
            params["from"] = "user:boss"
        if chance.random() < 0.2:
            params["deliver_at"] = clock.iso(clock.now() + chance.randrange(10, 700))
        return Asked(key=key, params=params)


@dataclass(kw_only=True)
class Turns:
    """What came of all that agents at work were asked."""

    asked: int = 0
    answered_once: int = 0
    answered_never: int = 0
    answered_more: int = 0
    sent_by_runs: int = 0
    sent_again: int = 0  # by a run whose forerunner had not ended well
    processes_left: int = 0
    runs: Counter[str] = field(default_factory=Counter)

    def __str__(self) -> str:
        runs = ", ".join(f"{status} {number}" for status, number in sorted(self.runs.items()))
        return "\n".join(
            (
                f"asked-of-agents: {self.asked}",
                f"answered-once: {self.answered_once}",
                f"answered-never: {self.answered_never}",
                f"answered-more-than-once: {self.answered_more}",
                f"runs: {self.runs.total()} ({runs})",
                f"sent-within-runs: {self.sent_by_runs}",
                f"sent-again-by-careless-runs: {self.sent_again}",
                f"processes-left: {self.processes_left}",
            )
        )

    def add(self, other: Turns) -> None:
        for name in ("asked", "answered_once", "answered_never", "answered_more", "sent_by_runs"):
            setattr(self, name, getattr(self, name) + getattr(other, name))
        self.sent_again += other.sent_again
        self.processes_left += other.processes_left
        self.runs += other.runs


class Workshop:
    """The agents of a post office that are given turns, and what is wrong with what they did."""

    def __init__(self, post: Post, directory: Path) -> None:
        self.post = post
        self.turns = Turns()
        self._left: set[str] = set()
        directory.mkdir()
        team = Team(post.daemon, directory)
        for name, body in BODIES.items():
            team.hire(_HEARD + body, name)

    def askers(self, name: str, seeds: list[int]) -> list[Asker]:
        return [Asker(self.post, f"{name}-a{number}", seed) for number, seed in enumerate(seeds)]

    def quiet(self, *, to_the_end: bool = False) -> None:
        """Wait until no run is under way and none begins by itself; to the end: nor later."""

        def over() -> bool:
            with self.post.daemon.database() as connection:
                return is_idle(connection) and not (to_the_end and self._pending())

        try:
            wait_until(over, 120)
        except AssertionError:
            raise AssertionError(f"stuck: {self._pending()[:5]}, {self._under_way()}") from None

    def _pending(self) -> list[Row]:
        return self.post.rows(
            f"""
            SELECT e.id, a.name, e.waits, e.wake_at, e.held_by, e.attempts, e.error_text, l.state
            FROM envelope e JOIN address a ON a.id = e.recipient LEFT JOIN lane l ON l.address = a.id
            WHERE e.status = 0 AND a.kind = 'agent' AND a.name IN {_AT_WORK}
            """
        )

    def _under_way(self) -> list[Row]:
        return self.post.rows("SELECT id, agent, pid, boot FROM run WHERE status = 'running'")

    # --- looking -----------------------------------------------------------------------

    def faults(self, *, to_the_end: bool = False) -> list[str]:
        """All is quiet: what nothing explains. What waits to be tried again is looked at in the end."""
        found = [*self._processes(), *self._envelopes(to_the_end=to_the_end), *self._answers_of_runs()]
        return [*found, *self._asked(to_the_end=to_the_end), *self._sent_by_runs(to_the_end=to_the_end)]

    def _processes(self) -> list[str]:
        """One that waited to be tried again may have begun while we looked; then look again."""
        for _ in range(50):
            before = self.post.rows("SELECT max(id), sum(status = 'running') AS going FROM run")
            left = left_behind(self.post.daemon, [])
            after = self.post.rows("SELECT max(id), sum(status = 'running') AS going FROM run")
            if before == after and not before[0]["going"]:
                self._left |= set(left)
                break
            time.sleep(0.1)
        self.turns.processes_left = len(self._left)
        return [f"a process is left: {one}" for one in sorted(self._left)]

    def _envelopes(self, *, to_the_end: bool) -> list[str]:
        rows = self.post.rows(
            f"""
            SELECT 'e' || e.id AS id, e.status, e.waits, e.handovers, e.crashes, e.error_kind, e.error_text,
                   count(r.id) AS runs,
                   ifnull(sum(r.status = 'completed'), 0) AS completed
            FROM envelope e JOIN address a ON a.id = e.recipient
            LEFT JOIN run_envelope x ON x.envelope = e.id LEFT JOIN run r ON r.id = x.run
            WHERE a.kind = 'agent' AND a.name IN {_AT_WORK} GROUP BY e.id
            """
        )
        found = []
        for row in rows:
            if row["handovers"] != row["runs"]:
                found.append(f"{row['id']} was handed over {row['handovers']} times, in {row['runs']} runs")
            waits = not to_the_end and row["status"] == 0
            parked = (row["status"], row["error_kind"], row["completed"]) == (2, "crashed", 0)
            if parked and row["runs"] < PARKED_AFTER:
                found.append(f"{row['id']} was parked too early: {row}")
            if (row["status"], row["completed"]) != (1, 1) and not waits and not parked:
                found.append(f"{row['id']} was not done by one run: {row}")
        return found

    def _answers_of_runs(self) -> list[str]:
        """One from each that went well, of exactly what it had; none from any other."""
        rows = self.post.rows(
            """
            SELECT r.id, r.status, r.answer, r.final_text, r.note, a.name, (
                SELECT json_group_array(m.text) FROM run_envelope x
                JOIN envelope e ON e.id = x.envelope JOIN message m ON m.id = e.message WHERE x.run = r.id
            ) AS texts, (SELECT json_group_array(m.id) FROM message m WHERE m.run = r.id AND m.auto) AS made
            FROM run r JOIN address a ON a.id = r.agent
            """
        )
        self.turns.runs = Counter(row["status"] for row in rows)
        found = []
        for row in rows:
            completed = row["status"] == "completed"
            if json.loads(row["made"]) != ([row["answer"]] if completed else []):
                found.append(f"r{row['id']} {row['status']}, and sent {row['made']}: {row['note']}")
            if completed and not _heard(row["final_text"], json.loads(row["texts"])):
                found.append(f"r{row['id']} was about {row['texts']}, and heard {row['final_text']}")
        return found

    def _asked(self, *, to_the_end: bool) -> list[str]:
        """By their keys, whatever the runs say of themselves."""
        rows = self.post.rows(
            """
            SELECT m.text, min(e.status) AS status, max(e.error_kind = 'crashed') AS parked
            FROM message m JOIN envelope e ON e.message = m.id
            WHERE m.text LIKE 'ask %' AND m.run IS NULL GROUP BY m.id
            """
        )
        times = self._mentions("ask", "m.auto")
        self.turns.asked = len(rows)
        answers = {_key(row["text"]): times[_key(row["text"])] for row in rows}
        never = {_key(row["text"]) for row in rows if row["status"] == 0} if not to_the_end else set()
        never |= {_key(row["text"]) for row in rows if row["parked"]}
        self.turns.answered_once = sum(number == 1 for number in answers.values())
        self.turns.answered_more = sum(number > 1 for number in answers.values())
        self.turns.answered_never = sum(number == 0 for number in answers.values())
        return [
            f"{key} was answered {number} times"
            for key, number in answers.items()
            if number != (0 if key in never else 1)
        ]

    def _sent_by_runs(self, *, to_the_end: bool) -> list[str]:
        """What a careful agent sends, it sends once; what a careless one repeats, a crash explains."""
        broke_off, completed = self._runs_of_asks()
        self.turns.sent_by_runs = self.turns.sent_again = 0
        found = []
        for what in ("errand", "task"):
            sent, back = self._mentions(what, "NOT m.auto"), self._mentions(what, "m.auto")
            wanted = {_key(text) for text in completed if text.endswith(f" {what}")}
            self.turns.sent_by_runs += sent.total()
            self.turns.sent_again += sent.total() - len(sent)
            for key, number in sent.items():
                explained = broke_off[key] if what == "task" else 0
                if number - 1 > explained:
                    found.append(f"{what} {key} was sent {number} times, and {explained} may repeat it")
            found += [f"{what} {key} was to be sent, and was not" for key in wanted - set(sent)]
            if to_the_end:
                missing = sent.keys() - back.keys() - self._parked(what)
                found += [f"{what} {key} came to nothing" for key in missing]
        return found

    def _parked(self, what: str) -> set[str]:
        """The keys of what runs sent and the daemon crashed with three times."""
        rows = self.post.rows(
            """
            SELECT m.text FROM message m JOIN envelope e ON e.message = m.id
            WHERE m.run IS NOT NULL AND e.error_kind = 'crashed'
            """
        )
        return {key for row in rows for key in re.findall(rf"\b{what} (\S+)\.", row["text"])}

    def _runs_of_asks(self) -> tuple[Counter[str], set[str]]:
        """How many runs broke off, by the keys they were about; and the texts that were done."""
        rows = self.post.rows(
            """
            SELECT m.text, r.status FROM run r JOIN run_envelope x ON x.run = r.id
            JOIN envelope e ON e.id = x.envelope JOIN message m ON m.id = e.message
            WHERE m.text LIKE 'ask %' AND m.run IS NULL
            """
        )
        broke_off = Counter(_key(row["text"]) for row in rows if row["status"] != "completed")
        return broke_off, {row["text"] for row in rows if row["status"] == "completed"}

    def _mentions(self, what: str, which: str) -> Counter[str]:
        """How many messages that runs sent speak of each key."""
        found: Counter[str] = Counter()
        for row in self.post.rows(f"SELECT m.text FROM message m WHERE m.run IS NOT NULL AND {which}"):
            found.update(set(re.findall(rf"\b{what} (\S+)\.", row["text"])))
        return found


_AT_WORK = f"('background', {', '.join(map(repr, NAMES))})"


def _key(text: str) -> str:
    return text.split()[1].removesuffix(".")


def _heard(said: str, texts: list[str]) -> bool:
    """Whether an agent heard these, each once and nothing else, in any order."""
    rest = said.partition(" heard [")[2]
    for text in sorted(texts, key=len, reverse=True):
        if text not in rest:
            return False
        rest = rest.replace(text, "", 1)
    return not rest.strip("; ]")
