"""Where bad input is tried: a daemon, people, mail and files to be wrong about, and what may not change.

The facts of a scene stand in the table (`bad_input.py`) as `%name`, since ids, tokens and paths
are known only here.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import socket
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from hiboss.core import errors
from hiboss.testing.running_daemon import RunningDaemon, running_daemon
from tests.support.daemons import answers, line, set_up
from tests.support.parties import Party, agent, person
from tests.support.parties import boss as the_boss
from tests.support.uploaded_files import put
from tests.support.waits import wait_until

ATTACHMENT_BYTES = 1_000
CLASSES = {cls.code: cls for cls in errors.tree()}
SECRET = re.compile(r"(hb[abru]|whsec)_[A-Za-z0-9_+/-]{8,}")
# What Python, pydantic or SQLite would say, and a person should not have to read.
NOISE = re.compile(
    r"Traceback|Errno|[Pp]ydantic|sqlite|ValidationError|NoneType|<class|<function| object at 0x"
    r"|\blist\[|\bdict\[|\.(str|int|bool): |value error|valid int|in the range|dictionary|after validation|\{\w*\}|\(\)|\b[ub]'"
)
LONGEST_MESSAGE = 1_000  # a message is read by people and paid for by agents, whatever was sent
Shot = dict[str, Any]


class Scene:
    """A daemon with everything that a row of the table may name."""

    def __init__(self, daemon: RunningDaemon, directory: Path) -> None:
        self.daemon = daemon
        self.facts: dict[str, str] = {}
        self.tokens: dict[str, str | None] = {"nobody": None}
        self._people()
        self._runs(directory)
        self._asks()
        self._schedules()
        self._mail()
        self._files(directory)
        self._folders(directory)
        self._contacts(directory)
        self._groups()
        self._webhooks()
        self._reader = sqlite3.connect(daemon.home.database)
        self._version: int | None = None  # of the database, when its tables were read
        self._tables: Shot = {}

    def close(self) -> None:
        self._reader.close()

    def _people(self) -> None:
        daemon = self.daemon
        chief = the_boss(daemon)
        self.party = {
            name: agent(daemon, name)
            for name in ("ada", "bob", "low", "spare", "gone", "ended", "left", "watched")
        }
        nex = Party(daemon, "agent:nex", daemon.token("nex"))
        self.party |= {"nex": nex, "boss": chief, "turned": agent(daemon, "turned")}
        chief.call("agent.permission.set", name="low", level="restricted")
        chief.call("agent.delete", name="gone")
        chief.call("agent.token.revoke", name="ended")
        chief.call("agent.token.rotate", name="turned")
        for name in ("ann", "parted"):
            self.party[name] = person(daemon, name)
        chief.call("user.delete", name="parted")
        self.tokens |= {name: party.token for name, party in self.party.items()}
        self.tokens |= {"wrong": "hba_wrong", "empty": "", "nul": "hba_\x00", "endless": "x" * 100_000}
        self.facts["token"] = chief.token  # a secret, given where none belongs

    def _runs(self, directory: Path) -> None:
        """One of nex, who has nothing to think with afterwards, that is over; and one that goes on and on."""
        chief, kept = (
            self.party["boss"],
            {name: directory / f"token-of-{name}" for name in ("nex", "thinker")},
        )
        programs = {name: f"umask 077; echo $HIBOSS_TOKEN > {path}" for name, path in kept.items()}
        programs["thinker"] += ".new; mv {0}.new {0}; exec sleep 100000".format(kept["thinker"])
        self.party["thinker"] = agent(self.daemon, "thinker")
        for name, program in programs.items():
            chief.call("agent.set", name=name, provider="command", settings={"command": f"sh -c '{program}'"})
            chief.send(f"agent:{name}", from_="user:boss", text="think")
        wait_until(lambda: chief.call("run.list", status="completed")["runs"])
        wait_until(kept["thinker"].exists)
        chief.call("agent.set", name="nex", provider="none")
        self.facts |= {
            fact: chief.call("run.list", status=status)["runs"][0]["id"]
            for fact, status in (("run", "completed"), ("running", "running"))
        }
        self._question(directory)
        self.tokens["thinker"] = self.party["thinker"].token
        self.tokens |= {"over": kept["nex"].read_text().strip(), "run": kept["thinker"].read_text().strip()}

    def _question(self, directory: Path) -> None:
        """A run that asks and waits for ever; of its two questions one was answered by a rule."""
        chief, program = self.party["boss"], directory / "asks.sh"
        question = {"hiboss": "ask", "text": "now?", "options": ["yes", "no"]}
        permission = {"hiboss": "ask", "text": "this?", "tool": "Bash", "subject": "ls"}
        lines = "".join(f"echo '{json.dumps(one)}'\n" for one in (permission, question))
        program.write_text(f"{lines}exec sleep 100000\n")
        self.party["asker"] = agent(
            self.daemon, "asker", settings={"command": f"sh {program}", "input": "open"}
        )
        chief.send("agent:asker", from_="user:boss", text="ask me")
        wait_until(lambda: chief.call("run.list", agent="asker", status="running")["runs"])
        [run] = chief.call("run.list", agent="asker")["runs"]
        self.facts["asking"] = run["id"]
        wait_until(lambda: len(chief.call("run.get", id=run["id"])["questions"]) == 2)
        first, second = chief.call("run.get", id=run["id"])["questions"]
        ask = first if first["tool"] else second
        chief.call("ask.answer", id=ask["id"], choice="allow", scope="rule")
        [rule] = chief.call("ask.rules")["rules"]
        self.facts["rule"] = rule["number"]

    def _asks(self) -> None:
        """One of nex, one for nex, and one that is settled."""
        ada, nex = (self.party[name] for name in ("ada", "nex"))
        made = {
            "ask": nex.call("ask.create", question="x", to=ada.address),
            "asked": ada.call("ask.create", question="x", to=nex.address),
            "settled": nex.call("ask.create", question="x", to=ada.address),
        }
        self.facts |= {name: one["ask"]["id"] for name, one in made.items()}
        nex.call("ask.cancel", id=self.facts["settled"])
        done = ada.call("ask.create", question="x", to=nex.address)["ask"]["id"]
        self.facts["question"] = made["ask"]["ask"]["message"]
        self.facts["answer"] = nex.call("ask.answer", id=done, choice="yes")["ask"]["reply"]
        self.facts["question_mail"] = next(
            one["id"] for one in ada.list() if one["message"] == self.facts["question"]
        )

    def _schedules(self) -> None:
        """None is due while anything is tried; one is in the name of somebody who will leave."""
        ada, nex, chief = (self.party[name] for name in ("ada", "nex", "boss"))
        hourly = {"every": "8784h", "to": "agent:ada", "text": "x"}
        made = {
            "schedule": nex.call("cron.create", **hourly),
            "foreign": ada.call("cron.create", **hourly),
            "deleted": nex.call("cron.create", **hourly),
            "orphan": chief.call("cron.create", from_="agent:left", **hourly),
        }
        self.facts |= {name: one["id"] for name, one in made.items()}
        nex.call("cron.delete", id=self.facts["deleted"])
        # The boss is asked once: what is tried afterwards stores no other question.
        nex.refusal("cron.create", every="59s", to="agent:ada", text="x")

    def _mail(self) -> None:
        ada, bob, nex = (self.party[name] for name in ("ada", "bob", "nex"))
        self.facts |= {"upload": put(nex), "foreign_upload": put(ada)}
        mail = {
            "pending": ada.tell(nex),
            "own": nex.tell(nex),
            "sent": nex.tell(ada, key="used"),
            "others": ada.tell(bob),
            "deferred": ada.tell(nex, deliver_at="+2h"),
            "cancelled": ada.tell(nex),
            "held": nex.tell(nex),
            "claimed": ada.tell(nex, priority="critical"),
            "failed": nex.tell(ada),
            "lost": nex.tell(self.party["left"]),
            "removed": nex.tell(ada),
        }
        nex.call("message.delete", id=mail["removed"])
        self.party["boss"].call("agent.delete", name="left")  # and what it had not read fails
        (taken,) = nex.call("envelope.claim", limit=1, lease="24h")["envelopes"]
        assert taken["id"] == mail["claimed"]
        nex.call("envelope.ack", ids=[mail["own"]])
        ada.call("envelope.cancel", ids=[mail["cancelled"]])
        # As while a run has it in hand, and as after one was given up: nothing that lies with
        # an agent that fetches ever gets there, and what goes to a channel does not stay there.
        with self.daemon.database() as database:
            boot = "(SELECT value FROM counter WHERE name = 'boot')"
            sql = f"UPDATE envelope SET held_by = {boot} WHERE id = ?"
            held = int(mail["held"][1:])
            database.execute(sql, (held,))
            sql = "INSERT INTO run_envelope (run, envelope) VALUES (?, ?)"
            database.execute(sql, (int(self.facts["running"][1:]), held))
            sql = "UPDATE envelope SET status = 2, done_at = 1, error_kind = 'network' WHERE id = ?"
            database.execute(sql, (int(mail["failed"][1:]),))
            database.commit()
        self.facts |= mail
        self.facts["outbox_cursor"] = nex.call("envelope.list", box="outbox", page_size=1)["next"]
        self.facts["others_message"] = ada.get(mail["others"])["message"]
        self.facts["conversation"] = nex.call("conversation.messages", **{"with": ada.address})[
            "conversation"
        ]

    def _files(self, directory: Path) -> None:
        home, private = self.daemon.home, directory / "private"
        for name, size in (("file", 10), ("full", ATTACHMENT_BYTES), ("over", ATTACHMENT_BYTES + 1)):
            (directory / name).write_bytes(b"x" * size)
            self.facts[name] = str(directory / name)
        os.mkdir(private)
        (private / "key").write_text("private")
        os.mkfifo(directory / "pipe")
        os.symlink(directory / "loop", directory / "loop")
        os.symlink(home.database, directory / "link")
        os.symlink(private / "key", directory / "to-private")
        os.link(home.profile("boss"), directory / "hard-link")
        with socket.socket(socket.AF_UNIX) as listener:
            listener.bind(str(directory / "socket"))
        here = ("pipe", "loop", "link", "to-private", "hard-link", "socket", "missing")
        self.facts |= {name: str(directory / name) for name in here}
        (directory / "latin").write_bytes(b"\xff\xfe")
        self.facts |= {
            "directory": str(directory),
            "slash": f"{directory}/",
            "private": str(private / "key"),
            "database": home.database,
            "profile": home.profile("boss"),
            "latin": str(directory / "latin"),
            "below-a-file": str(directory / "file" / "below"),
        }

    def _folders(self, directory: Path) -> None:
        """nex has two, ada one of them as well; and directories nobody has, or could have."""
        home, chief = self.daemon.home, self.party["boss"]
        where = directory / "folders"
        for path in ("box", "more", "free", "again/box", "two words", "a:b", "refusing"):
            os.makedirs(where / path)
        (where / "refusing" / "settings.json").write_text('{"refuses": "401 Unauthorized"}')
        for name, folder in (("nex", "box"), ("nex", "more"), ("ada", "more")):
            bound = chief.call(
                "agent.bind", name=name, adapter_type="folder", settings={"path": str(where / folder)}
            )
            self.facts["lane"] = bound["address"]
        self.facts |= {
            "unbound": str(where / "free"),
            "refusing": str(where / "refusing"),
            "namesake": str(where / "again" / "box"),
            "blank": str(where / "two words"),
            "colon": str(where / "a:b"),
            "home": home.path,
            "around": str(directory),
        }
        wait_until(lambda: {one["state"] for one in chief.call("agent.bindings")["bindings"]} == {"running"})

    def _contacts(self, directory: Path) -> None:
        """Two accounts of ada's, which both know one chat; and a chat that is the boss's."""
        chief = self.party["boss"]
        for account, places in (("one", ["shared", "mine"]), ("two", ["shared"])):
            where = directory / "scripted" / account
            os.makedirs(where)
            (where / "settings.json").write_text(json.dumps({"places": places}))
            chief.call("agent.bind", name="ada", adapter_type="scripted", settings={"path": str(where)})
        chief.call("boss.set", ids={"scripted": "mine"})
        chief.call("boss.set", reach="")  # nothing is posted while anything is tried
        self.facts["contact"] = "channel:scripted:one"
        wait_until(lambda: {one["state"] for one in chief.call("agent.bindings")["bindings"]} == {"running"})

    def _webhooks(self) -> None:
        """One of each direction. What the one posts never happens."""
        chief = self.party["boss"]
        chief.call("webhook.create", name="scene-hook", to="agent:ada")
        url, topics = "http://127.0.0.1:9/", ["breaker.pulled"]
        chief.call("webhook.subscribe", name="scene-out", url=url, topics=topics)
        wait_until(lambda: {one["state"] for one in chief.call("agent.bindings")["bindings"]} == {"running"})

    def _groups(self) -> None:
        """Of nex: one with a channel, one without anybody else, one that is archived, one it visits, one it left.

        And of others: one that anybody may join, and one that nobody may.
        """
        nex, ada = self.party["nex"], self.party["ada"]
        make = "conversation.create"
        nex.call(make, name="house", participants=["agent:ada", self.facts["lane"]])
        nex.call(make, name="lonely")
        nex.call(make, name="shut", participants=["agent:ada"])
        self.facts["shut_mail"] = nex.send("group:shut", text="x")["message"]
        nex.call("conversation.archive", conversation="shut")
        ada.call(make, name="open-house", open=True)
        for name in ("visited", "left-house"):
            ada.call(make, name=name, participants=["agent:nex"])
        ada.call(make, name="theirs", participants=["agent:bob"])
        self.facts["left_mail"] = nex.send("group:left-house", text="x")["message"]
        nex.call("participant.leave", conversation="left-house")
        self.facts |= {"group": "house", "open_group": "open-house", "visited": "visited"}
        self.facts |= {"left_group": "left-house", "foreign_group": "theirs"}

    @contextmanager
    def watching(self) -> Iterator[None]:
        """Somebody watches for one to whom nobody ever writes."""
        with self.daemon.connect() as connection:
            connection.sendall(line("envelope.watch", timeout="1h", token=self.party["watched"].token))
            connection.sendall(line("daemon.ping"))
            answers(connection, 1)  # so the watch is active by now
            yield

    def fill(self, value: Any) -> Any:
        """The value, with the facts of this scene where it names them."""
        if isinstance(value, dict):
            return {key: self.fill(one) for key, one in value.items()}
        if isinstance(value, (list, tuple)):
            return [self.fill(one) for one in value]
        return self.facts[value[1:]] if isinstance(value, str) and value.startswith("%") else value

    def request(self, operation: str, params: Any, by: str, id_: int = 1) -> bytes:
        """A line for the wire, with the token of whoever asks."""
        filled, token = self.fill(params), self.tokens[by]
        if isinstance(filled, list):  # by position: the token is given by auth.login
            return (
                json.dumps({"jsonrpc": "2.0", "method": operation, "params": filled, "id": id_}).encode()
                + b"\n"
            )
        return line(operation, id_, **({} if token is None else {"token": token}) | filled)

    def ask(self, *requests: bytes) -> list[Any]:
        """Every answer, in order, on one connection."""
        with self.daemon.connect() as connection:
            connection.sendall(b"".join(requests))
            found = answers(connection, len(requests))
        assert len(found) == len(requests), "the daemon hung up"
        return found

    def shot(self) -> Shot:
        """All that is stored: every row of every table, and every file of the home but what SQLite runs on.

        All but when somebody was last seen: whoever asks is there, also when it is refused.
        """
        found: Shot = dict(self._stored())
        for directory, _, names in os.walk(self.daemon.home.path):
            for name in names:
                path = Path(directory, name)
                if not name.startswith("hiboss.db") and path.suffix != ".log" and path.is_file():
                    found[str(path)] = hashlib.sha256(path.read_bytes()).hexdigest()
        return found

    def _stored(self) -> Shot:
        """What is in the tables. It is read again only if somebody wrote: SQLite says so."""
        (version,) = self._reader.execute("PRAGMA data_version").fetchone()
        if version != self._version:
            self._version = version
            named = self._reader.execute("SELECT name FROM sqlite_schema WHERE type = 'table'").fetchall()
            found = {name: _digest(self._reader.execute(_all_of(self._reader, name))) for (name,) in named}
            self._tables = found
        return self._tables

    @contextmanager
    def given(self, config: str | None, policy: dict[str, str] | None) -> Iterator[None]:
        """With other words in config.toml, or another policy, for a while."""
        file, chief = Path(self.daemon.home.config), self.party["boss"]
        if config is not None:
            file.write_text(config)
        if policy is not None:
            chief.call("permission.policy.set", policy=policy)
        try:
            yield
        finally:
            file.unlink(missing_ok=True)
            if policy is not None:
                chief.call("permission.policy.set", policy={})

    @contextmanager
    def unchanged(self) -> Iterator[None]:
        before = self.shot()
        yield
        assert self.shot() == before
        assert self.daemon.call("daemon.ping")["pong"] is True


def _all_of(database: Any, table: str) -> str:
    columns = [row[1] for row in database.execute(f'PRAGMA table_info("{table}")')]
    kept = ", ".join(f'"{name}"' for name in columns if name != "last_seen_at")
    return f'SELECT {kept} FROM "{table}"'


def _digest(rows: Any) -> tuple[int, str]:
    found = sorted(repr(tuple(row)) for row in rows)
    return len(found), hashlib.sha256("\n".join(found).encode()).hexdigest()


@contextmanager
def open_scene(directory: Path, **env: str) -> Iterator[Scene]:
    """At its end the store is as it must be, and the log knows of no trouble."""
    set_up(directory)
    private = {
        "HIBOSS_ATTACHMENTS_FORBIDDEN_PATHS": str(directory / "private"),
        "HIBOSS_LIMITS_ATTACHMENT_BYTES": str(ATTACHMENT_BYTES),
        "HIBOSS_SCHEDULES_LEAST_SECONDS": "60",
        "HIBOSS_RUNS_FINISH_SECONDS": "0",
        "HIBOSS_ADAPTERS_MODULES": "hiboss.testing.scripted_adapter",
    }
    with running_daemon(directory, set_up=False, **private, **env) as daemon:
        scene = Scene(daemon, directory)
        with closing(scene), scene.watching():
            yield scene
        daemon.check()
        check_log(daemon)


def check_log(daemon: RunningDaemon) -> None:
    log = Path(daemon.home.log_file).read_text()
    assert not re.search(r"Traceback|internal_error| error \[| critical \[", log), log[-2000:]
    assert not SECRET.search(log)


def check_words(message: str, says: tuple[str, ...] = ()) -> None:
    """A message names what was wrong, in words for people, on one line that does nothing to a terminal."""
    assert all(word in message for word in says), (says, message)
    assert not NOISE.search(message), message
    assert not SECRET.search(message), "a secret was said again"
    assert message.isprintable() and not message.startswith((" is ", " can")), message
    assert 0 < len(message) <= LONGEST_MESSAGE, len(message)


def check_message(code: str, message: str, facts: dict[str, Any], says: tuple[str, ...] = ()) -> None:
    """And it is its class's own, with the facts in it that travel along."""
    check_words(message, says)
    assert message == CLASSES[code](**facts).message
    told = json.dumps(facts)
    assert not SECRET.search(told), "a secret was said again"
    assert len(told) <= 2 * LONGEST_MESSAGE, "the facts repeat what was sent"
