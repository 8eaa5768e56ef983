"""Tokens used in every way a person or a program can give one, rightly and wrongly, and all that this leaves.

The story runs once; the tests look through its evidence.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from functools import partial, reduce
from itertools import cycle, islice
from pathlib import Path
from typing import Any

import psutil
from typer.main import get_command

from hiboss.api import dispatch  # noqa: F401 - it declares the operations
from hiboss.api.operation import REGISTRY
from hiboss.cli.main import app
from hiboss.core.settings import DEFAULTS
from hiboss.store import migrations, tokens
from hiboss.store.connection import connect
from hiboss.testing.running_daemon import RunningDaemon
from tests.acceptance.canary import Canary, Evidence, watched
from tests.acceptance.canary_words import (
    COMMANDS,
    CONFIGS,
    GOOD,
    MISPLACED,
    POLICIES,
    SHOW_A_TOKEN,
    TOO_LATE,
    Words,
)
from tests.support.cli import Done, Shell
from tests.support.waits import wait_until

Given = tuple[Words, dict[str, Any]]  # more words, and how else the command is run
Way = Callable[[str], Given]
TURN = "output of hiboss envelope list --as nex --as-turn"
LOUD = {"HIBOSS_LOG_LEVEL": "debug", "HIBOSS_LOG_BYTES": "1 KiB", "HIBOSS_LOG_FILES": "1000"}
BREAKER = ("stop", "go")
SERVED = {"HIBOSS_WEB_ENABLED": "on", "HIBOSS_WEB_PORT": "0"}

# An agent: it keeps its run's token for us, and says and does something with it, well or badly.
ASK = """echo $HIBOSS_TOKEN >> {}/run-tokens
echo '{{"hiboss": "ask", "text": "now?", "tool": "Bash", "subject": "ls"}}'
read -r turn; read -r answered; read -r steered
"""
THINK = """
turn=$(cat)
echo "$HIBOSS_TOKEN" >> "{0}/run-tokens"
case "$turn" in
*hang*) exec sleep 1000 ;;
*fail*) echo "odd: $HIBOSS_TOKEN" >&2; exit 1 ;;
esac
hiboss envelope send --to agent:nex --text "said in a run" > /dev/null
echo fine
"""


def commands_with_a_token() -> set[str]:
    """From the command tree itself."""

    def walk(command: Any, path: Words) -> Iterator[str]:
        names = getattr(command, "commands", None)
        if names is None and hasattr(command, "list_commands"):
            names = command.list_commands(None)
        for name in names or ():
            yield from walk(command.get_command(None, name), (*path, name))
        if not names and any("--token" in option.opts for option in command.params):
            yield " ".join(path)

    root = get_command(app)
    return {
        found for noun in root.list_commands(None) for found in walk(root.get_command(None, noun), (noun,))
    }  # type: ignore[attr-defined]


def _filled(word: str, facts: dict[str, str]) -> str:
    for name, value in facts.items():
        word = word.replace(name, value)
    return word


class Story:
    """A home, the tokens that were ever in it or tried on it, and what could be read of all that."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.shell = Shell(directory / "home")
        self.evidence = Evidence()
        self.canaries: dict[str, Canary] = {}
        self.ends: dict[str, int] = {}  # how each command ended
        self.answer = ""  # what the thinker said to the boss
        self.sent = ""  # what the boss wrote to nex
        self.asks: dict[str, str] = {}  # what nex asks the boss
        self.misplaced = self.know("the misplaced token", tokens.new("boss"))
        self.strange = self.know("the token of another home", tokens.new("agent"))
        # Of a setting in the environment: the daemon that refuses it has got it.
        self.setting = self.know("the token as a setting", tokens.new("agent"), "process")
        # Whoever writes a token into a message or a description has written it: it is content.
        self.content = self.know(
            "the token in a text", tokens.new("user"), "file hiboss.db", "file backups", TURN
        )

    def know(self, name: str, token: str, *may: str) -> str:
        self.canaries[name] = Canary(name=name, token=token, may=may)
        return token

    def run(self, words: str, *more: str, shows: str = "", **how: Any) -> Done:
        """Run a command and keep what it said; a token it shows on purpose it may show once."""
        starts = words.startswith(("daemon", "setup", "up"))  # a daemon, whose words are evidence
        if words.startswith("hooks"):
            how["env"] = {"CLAUDE_CONFIG_DIR": str(self.directory / "claude"), **how.get("env", {})}
        done = self.shell(*words.split(), *more, forked=not starts, **how)
        said = done.stdout
        for place in filter(None, shows.split(",")):
            shown = reduce(lambda found, key: found[key], place.split("."), done.json)
            said = said.replace(self.know(f"{place} of `{words}`", shown), "", 1)
        label = f"{words} {' '.join(more)}".replace(self.misplaced, "TOKEN")
        self.ends[f"{label} {len(self.ends)}"] = done.rc
        self.evidence.add(f"output of hiboss {label}", f"{said}\n{done.stderr}")
        return done

    # --- the chapters ----------------------------------------------------------------

    def tell(self) -> None:
        with watched(self.shell.home.path, self.evidence):
            roots = {"HIBOSS_ATTACHMENTS_ROOTS": str(self.directory)}
            environment = {**LOUD, **SERVED, **roots, "HIBOSS_TOKEN": self.strange}
            self.run("up --detach --json", shows="boss_token,agent_token", env=environment)
            self.right_commands()
            self.wrong_tokens()
            self.wrong_places()
            self.wrong_settings()
            self.over_the_socket()
            self.killed_and_restarted()
        self.evidence.add_home(self.shell.home.path, "at the end")
        self._learn_of_runs()

    def right_commands(self) -> None:
        """Every command, with the boss's token given in each way in turn."""
        self.run("agent set --as boss --name nex --provider none")
        self.run("envelope send --as nex --to agent:nex --text", "one")
        self.run("envelope send --as nex --to agent:nex --deliver-at +1D --text", "later")
        self._fail_to_post()
        self._think()
        self.sent = self.run("send nex hello --json").json["ids"][0]
        for name in ("OPEN", "TAKEN"):
            self.asks[name] = self.run("ask create Ready? --json --as nex").json["ask"]["id"]
        ways = cycle([self._by_profile, self._by_file, self._by_input, self._by_variable, self._by_value])
        steps = list(zip(COMMANDS, ways, strict=False))
        last = steps.pop()  # it changes the token that the others use
        breaker = [step for step in steps if step[0] in BREAKER]  # it ends the runs that others speak to
        with ThreadPoolExecutor(3) as pool:
            nouns: dict[
                str, list[tuple[str, Way]]
            ] = {}  # those of one noun in their order, one after another
            for step in (one for one in steps if one not in breaker):
                nouns.setdefault(step[0].split()[0], []).append(step)
            list(pool.map(self._right_commands, nouns.values()))
        self._right_commands([*breaker, last])

    def _fail_to_post(self) -> None:
        """Leave e3 failed: its file is gone before it can be posted."""
        attached = self.directory / "attached"
        attached.write_text("file")
        box = self.directory / "box"
        self.run("agent bind --as boss --name nex --adapter-type folder --path", str(box))
        self.run("lane pause --as boss --address channel:folder:box")
        self.run("envelope send --as nex --to channel:folder:box --attachment", str(attached))
        shutil.rmtree(self.shell.home.media)
        self.run("lane resume --as boss --address channel:folder:box")
        wait_until(lambda: "failed" in self.run("envelope get --as boss --id e3").stdout)

    def _think(self) -> None:
        """Runs: r1 is over, r2 goes on, r3 asks and takes words, and one fails and says its token; and a webhook that nobody answers."""
        program = self.directory / "think"
        program.write_text(THINK.format(self.directory))
        register = "agent register --as boss --json --provider"
        for name in ("thinker", "talker", "failing"):
            words = ("--command", f"sh {program}")
            self.run(f"{register} command --name {name}", *words, shows="token")
        hook = ("--url", "http://127.0.0.1:1/turns")
        self.run(f"{register} webhook --name hooked", *hook, shows="token,secrets.secret")
        change = "agent set --as boss --json --name hooked --provider webhook"
        self.run(change, *hook, shows="secrets.secret")  # the one before ends
        self.run("send thinker hello")
        wait_until(lambda: self.run("run list --status completed --json").json["runs"])
        (answer,) = self.run("inbox --from thinker --peek --json").json["envelopes"]
        self.answer = answer["id"]
        self.run("send thinker hang")
        wait_until(lambda: self.run("run list --status running --json").json["runs"])
        asks = self.directory / "ask"
        asks.write_text(ASK.format(self.directory))
        words = ("--command", f"sh {asks}", "--input", "open")
        self.run("agent register --as boss --json --name asker", *words, shows="token")
        self.run("send asker hello")
        wait_until(lambda: "now?" in self.run("run get r3 --as boss").stdout)
        self.run("ask answer q1 --as boss --choice allow --scope rule")  # rule 1
        self.run("send failing fail")
        self.run("send hooked hello")
        wait_until(lambda: len(self.run("run list --status failed --json").json["runs"]) >= 2)
        for name in ("failing", "hooked"):
            self.run(f"agent status --as boss --name {name}")
            self.run(f"agent pause --as boss --name {name}")

    def _learn_of_runs(self) -> None:
        """The tokens of all runs. The processes of a run have its token, and nothing else does."""
        scripts = [f"process sh {self.directory}/{name}" for name in ("think", "ask")]
        own = (*scripts, "process sleep 1000", "process cat")
        for number, token in enumerate((self.directory / "run-tokens").read_text().split(), 1):
            self.know(f"the token of run {number}", token, *own)

    def _right_commands(self, steps: list[tuple[str, Way]]) -> None:
        for command, way in steps:
            given, how = way(self.shell.token("boss"))
            shows = "token" if command in SHOW_A_TOKEN else ""
            facts = {"DIRECTORY": str(self.directory), "ANSWER": self.answer, "SENT": self.sent, **self.asks}
            words = [_filled(word, facts) for word in COMMANDS[command]]
            done = self.run(command, *words, *given, "--json", shows=shows, **how)
            assert done.rc == (1 if command in TOO_LATE else 0), (command, done.stderr)

    def _by_profile(self, token: str) -> Given:
        return ("--as", "boss"), {}

    def _by_file(self, token: str) -> Given:
        kept = self.directory / "kept"
        fresh = self.directory / f"kept.{threading.get_ident()}"
        fresh.write_text(token)
        fresh.rename(kept)  # in one step: another thread may read it now
        return ("--token", f"@{kept}"), {}

    def _by_input(self, token: str) -> Given:
        return ("--token", "-"), {"stdin": f"{token}\n"}

    def _by_variable(self, token: str) -> Given:
        return (), {"env": {"HIBOSS_TOKEN": token}}

    def _by_value(self, token: str) -> Given:
        return ("--token", token), {}

    def at_once(self, works: list[Callable[[], Done]]) -> None:
        """Commands that must fail, a few at a time."""
        with ThreadPoolExecutor(3) as pool:
            ended = list(pool.map(lambda work: work(), works))
        assert [done.stdout for done in ended if done.rc == 0] == []

    def wrong_tokens(self) -> None:
        """Commands with a token that is not, or no longer, in force; they all ask in the same way."""
        ended = next(one.token for name, one in self.canaries.items() if name.startswith("boss_token"))
        said = cycle([(self.strange, ()), (ended, ("--json",)), (self.strange, ("--json",)), (ended, ())])
        self.at_once(
            [
                partial(self.run, command, *words, "--token", "-", *json_, stdin=token)
                for (command, words), (token, json_) in zip(
                    islice(COMMANDS.items(), 0, None, 3), said, strict=False
                )
            ]
        )

    def wrong_places(self) -> None:
        lines = [line.format(self.misplaced).split() for line in MISPLACED]
        given: dict[str, Any] = {"env": {"HIBOSS_TOKEN": self.shell.token("boss")}}
        works = [
            partial(self.run, *words, *json_, **given)
            for words, json_ in zip(lines, cycle([(), ("--json",)]), strict=False)
        ]
        command = "permission policy set --as boss --file -"
        works += [partial(self.run, command, stdin=text.replace("{}", self.misplaced)) for text in POLICIES]
        self.at_once(works)

    def wrong_settings(self) -> None:
        """In config.toml and in the environment; told by the command, by a reload, and by SIGHUP."""
        config = Path(self.shell.home.config)
        for number, text in enumerate(CONFIGS, 1):
            config.write_text(text.format(self.misplaced))
            if number <= 3:
                self.run(("config check", "config reload --as boss --json", "config show")[number % 3])
            assert self.shell.pid
            os.kill(self.shell.pid, signal.SIGHUP)
            wait_until(partial(self._refused_settings, number))
        config.unlink()
        self.at_once(
            [
                partial(self.run, "config check", env={"HIBOSS_LOG_LEVEL": self.setting}),
                partial(self.run, "config check --json", env={f"HIBOSS_LOG_{self.misplaced}": "1"}),
            ]
        )

    def _refused_settings(self, times: int) -> bool:
        try:
            return self.logged().count("The settings were not changed") >= times
        except FileNotFoundError:  # a log was put aside just now
            return False

    def logged(self) -> str:
        directory = Path(self.shell.home.log_file).parent
        return "".join(path.read_text() for path in directory.iterdir())

    def over_the_socket(self) -> None:
        daemon, boss, bad = RunningDaemon(self.shell.home), self.shell.token("boss"), self.misplaced
        login = {"jsonrpc": "2.0", "method": "auth.login", "params": {"token": boss}, "id": 1}
        lines: list[Any] = [login, {**login, "params": {"token": self.strange}}, {**login, "params": [boss]}]
        lines += [{**login, "method": bad}, {**login, "jsonrpc": bad}, {**login, "params": bad}]
        lines += [
            {**login, "params": {"token": [boss]}},
            {**login, "id": [boss]},
            {**login, "id": {bad: bad}},
        ]
        lines += [
            [bad],
            [{bad: bad}],
            f'{{"{bad}',
            f'{bad}"',
            f'[{{"token": "{boss}"}}',
            f'"{bad}"',
            f'{{"{bad}": 1}}',
        ]
        lines += [
            {"jsonrpc": "2.0", "method": name, "params": params, "id": 1}
            for name in sorted(REGISTRY)
            for params in self._wrong_params(name)
        ]
        lines += [{**one, "params": {**one["params"], "token": self.strange}} for one in lines[-200:]]
        for start in range(0, len(lines), 50):  # it does not read on while its answers are not read
            part = lines[start : start + 50]
            for line, answer in zip(
                part, daemon.exchange(login, *part, answers=len(part) + 1)[1:], strict=True
            ):
                for one in answer if isinstance(answer, list) else [answer]:
                    if "error" in one:
                        self.evidence.add(f"answer to {line!r:.150}", json.dumps(one["error"]))

    def _wrong_params(self, name: str) -> Iterator[dict[str, Any]]:
        good, text = GOOD.get(name, {}), self.content
        yield {**good, self.misplaced: 1}
        yield {**good, "policy": {self.misplaced: self.misplaced}}
        for param in REGISTRY[name].param_names:
            for value in (text, [text], {text: text}, 7):
                yield {**good, param: value}
            yield {**good, param: text, "nonsense": text}

    def killed_and_restarted(self) -> None:
        assert self.shell.pid
        psutil.Process(self.shell.pid).kill()
        wait_until(lambda: self.shell.pid is None)
        self.evidence.add_home(self.shell.home.path, "after kill -9")
        boss = {"HIBOSS_TOKEN": self.shell.token("boss")}
        self.run("boss token rotate --offline --json", shows="token", env=boss)
        self.run("daemon start", env={"HIBOSS_LOG_LEVEL": self.setting})
        self.run("daemon start", env={**LOUD, "HIBOSS_TOKEN": self.shell.token("boss")})
        self.run("agent self --json", env=boss)  # which has ended
        self.run("daemon restart", env={**LOUD, "HIBOSS_TOKEN": self.shell.token("boss")})
        self.run("envelope list --as nex --as-turn")  # which shows what was said
        self.run("daemon logs -n 1000")
        # What a migration does first; there is no second one yet.
        with closing(connect(self.shell.home, wait_seconds=DEFAULTS.lock_wait_seconds)) as connection:
            migrations._back_up(connection, self.shell.home, "0001_first_light")
        self.run("daemon stop")
