"""Every bad input by the command line: the code the socket gives, a clear word on standard error, nothing stored."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import starmap

import pytest

from hiboss.api.operation import REGISTRY
from hiboss.core.errors import exit_status
from tests.api.bad_input import written
from tests.api.bad_input_row import WORDS, Row, row
from tests.api.bad_input_scene import Scene, check_message, check_words, open_scene
from tests.support import bulk
from tests.support.cli import Done, Shell
from tests.support.sweeps import sweep

NO_COMMAND = {
    "breaker.status": "hiboss stop --all asks it until all runs have ended, and gives it nothing",
    "auth.login": "a command is one request, and brings its token along",
    "rpc.discover": "it is for programs that speak JSON-RPC",
    "setup.check": "hiboss setup asks it on a terminal, and gives it nothing",
    "conversation.news": "hiboss chat asks it with what it was told before",
    "presence.typing": "hiboss chat says it while somebody types",
    "event.subscribe": "hiboss chat and hiboss run tail follow what happens by it",
    "envelope.unread": "hiboss inbox and hiboss message list tell it",
    "upload.list": "at a terminal a file is attached by its path",
    "upload.delete": "at a terminal a file is attached by its path",
    **dict.fromkeys(
        (f"chat.{verb}" for verb in ["read", "post", "ack", "status"]),
        "the tools of MCP call it; at a terminal there is hiboss chat",
    ),
    "event.unsubscribe": "a command that ends takes its connection along",
    **dict.fromkeys(
        (
            f"attached.{verb}"
            for verb in ["start", "prompt", "step", "stop", "break", "end", "wait", "permit", "list"]
        ),
        "the hooks of a harness call it; hiboss team shows the list",
    ),
}
SENDING = f"envelope send {WORDS}"


def _wrong(operation: str, cli: str, code: str, says: str, **more: str) -> Row:
    """A row that only the command line can say."""
    return row(operation, {}, code, says, cli, **more)


# What is found before the daemon is asked: options, their values, files.
USAGE = {
    "envelope.send": (
        ("envelope sned", "sned|send?"),
        ("envelop list", "envelop|envelope?"),
        ("agent tokn rotate", "tokn|token?"),
        (f"{SENDING} --subjct x", "--subjct|--subject?"),
        (f"{SENDING} --priority urgnt", "--priority|urgnt|critical"),
        ("envelope list -n many", "-n|whole number|many"),
        ("daemon logs -n -1", "-n|whole number from 0|-1"),
        ("envelope list '--bo\ngus\x1b[31m'", r"--bo\ngus\x1b[31m"),
        ("envelope get", "ID is missing|envelope get ID"),
        ("envelope get --id", "--id"),
        ("envelope list extra", "extra"),
        ("agent permission set --name spare --level bos", "--level|bos|restricted"),
        ("agent delete --name spare", "--yes"),
        ("contact aprove K7QM2XPA", "aprove|approve?"),
        ("contact approve", "CONTACT is missing|contact approve CONTACT"),
        ("contact list --state none", "--state|none|asking"),
        ("contact route channel:scripted:one", "--agent"),
        ("boss pare", "pare|pair?"),
        ("agent bind spare --adapter-type folder --path %unbound --groups never", "--groups|never|mentioned"),
        ("send", "TO|missing"),
        ("read", "ID|missing"),
        ("reply", "ID|missing"),
        ("inbox extra", "extra"),
        ("send nex hello there", "there"),
        ("chat nex --tiemout 5s", "--tiemout|--timeout?"),
    ),
    "ask.create": (
        ("ask crate x", "crate|create?"),
        ("ask create", "QUESTION is missing|ask create QUESTION"),
        ("ask answer q1", "--choice"),
        ("ask answer --choice yes", "ID is missing|ask answer ID"),
        ("ask list --state none", "--state|none|open"),
        ("ask answer q1 --choice yes --scope always", "--scope|always|once"),
    ),
    "cron.create": (
        ("cron crate", "crate|create?"),
        ("cron show", "ID is missing|cron show ID"),
        ("cron explain", "EXPR is missing|cron explain EXPR"),
        ("cron explain --cron @daily --count many", "--count|whole number|many"),
        ("cron create --every 1h --to agent:ada --text x --overlap wait", "--overlap|wait|queue"),
        ("cron create --every 1h --to agent:ada --text x --catch-up never", "--catch-up|never|once"),
        ("poll --format xml", "--format|xml|hook"),
        ("wach", "wach|watch?"),
        ("envelope wait 5s", "5s"),
    ),
    "run.list": (
        ("run tial", "tial|tail?"),
        ("run get", "ID is missing|run get ID"),
        ("run list --status done", "--status|done|completed"),
        ("run list -n many", "-n|whole number|many"),
        ("agent set --name spare --reply always", "--reply|always|explicit"),
        ("agent set --name spare --busy wait", "--busy|wait|followup"),
        ("agent set --name spare --session-scope chat", "--session-scope|chat|person"),
        ("agent set --name spare --session-context much", "--session-context|whole number|much"),
        ("agent set --name spare --daily-tokens many", "--daily-tokens|whole number|many"),
        ("agent set --name spare --daily-cost much", "--daily-cost|number|much"),
        ("agent register --name fresh --mode push", "--mode|push|pull"),
        ("agent background", "--task|missing"),
        ("agent puase --name spare", "puase|pause?"),
        ("user tokn rotate --name ann", "tokn|token?"),
        ("user delete --name ann", "--yes"),
        ("user register", "NAME is missing|user register NAME"),
        ("taem", "taem|team?"),
        ("notify nex --when bored", "--when|bored|finished"),
    ),
}
TIMES = (  # of commands that wait
    ("--timeout 0s", "bad_duration", "0s"),
    ("--timeout 55", "bad_duration", "55"),
    ("--timeout 2h", "bad_duration", "2h"),
    ("--after nonsense", "bad_cursor", "nonsense"),
    ("--address agent:boss-only", "boss_only", "address"),
)
WRONG = (
    ("envelope.send", f"{SENDING} --meta x", "invalid_params", "--meta x|KEY=VALUE"),
    ("envelope.send", f"{SENDING} --meta a={'[' * 5_000}", "invalid_params", "--meta a|deep"),
    ("envelope.send", f"{SENDING} --meta a=\udcff", "bad_text", "metadata|UTF-8"),
    ("envelope.send", f"{SENDING} --meta a='\"\\ud800\"'", "bad_text", "metadata|UTF-8"),
    ("envelope.send", f"{SENDING} --token ''", "bad_token", "not valid"),
    ("envelope.send", f"{SENDING} --as ''", "unknown_profile", "no profile ''"),
    (
        "envelope.send",
        "envelope send --to agent:ada --attachment ''",
        "invalid_params",
        "--attachment is empty",
    ),
    ("envelope.send", f"{SENDING} --text-file %file", "invalid_params", "--text|--text-file"),
    ("envelope.send", f"{SENDING} --as nex --token @%file", "invalid_params", "--token|--as"),
    ("envelope.send", f"{SENDING} --as nxe", "unknown_profile", "nxe|nex?"),
    ("envelope.send", f"{SENDING} --token @/missing", "unreadable_file", "/missing"),
    ("envelope.send", "envelope send --to agent:ada --text-file %missing", "unreadable_file", "%missing"),
    (
        "envelope.send",
        "envelope send --to agent:ada --text-file %directory",
        "unreadable_file",
        "%directory|directory",
    ),
    ("envelope.send", "envelope send --to agent:ada --text-file %latin", "not_utf8", "%latin|--attachment"),
    ("envelope.send", "envelope send --to agent:ada --attachment missing", "attachment_outside", "/missing"),
    ("envelope.send", f"{SENDING} --subject \udcff", "bad_text", "subject|UTF-8"),
    ("envelope.send", f"{SENDING} --subject {'s' * 1025}", "too_large", "subject|1025 bytes|1024"),
    ("envelope.send", f"{SENDING} --deliver-at +101Y", "too_far", "+101Y|100 years"),
    ("cron.set", "cron set --id %schedule", "invalid_params", "nothing to change"),
    ("agent.set", "agent set --name spare", "invalid_params", "--description"),
    ("envelope.ack", "envelope ack", "invalid_params", "e81|--all"),
    *(
        ("agent.permission.set", f"agent permission set spare --level {one}", "usage", "privileged")
        for one in ("boss", "open", "''")
    ),
    *(
        ("turn.preview", f"envelope list --as-turn {words}", "invalid_params", "--as-turn")
        for words in (
            *(
                "--box inbox",
                "--status pending",
                "--unread",
                "--from user:boss",
                "--to agent:nex",
                "--thread t1",
            ),
            *(
                "--created-after -1D",
                "--created-before -1D",
                "-n 5",
                "--after x",
                "--oldest-first",
                "--count",
            ),
        )
    ),
    *(
        (f"envelope.{verb}", f"envelope {verb} {words}", code, says)
        for verb in ("wait",)
        for words, code, says in TIMES
    ),
    *(("envelope.watch", f"watch {words}", code, says) for words, code, says in TIMES),
    # The short words for the same operations.
    ("envelope.send", "send spar x", "unknown_recipient", "spar |did you mean spare?"),
    ("envelope.send", "send spare,spar x", "unknown_recipient", "did you mean spare?"),
    ("envelope.send", "send spare,,ada x", "bad_address", "agent:"),
    ("envelope.send", "send spare", "invalid_params", "the text is missing"),
    ("envelope.send", "send spare ' '", "empty_message", "--text"),
    ("envelope.send", "send spare x --attachment missing", "attachment_outside", "/missing"),
    ("envelope.send", "send spare x --deliver-at soon", "bad_time", "soon|+2h"),
    ("envelope.send", "reply %pending", "invalid_params", "the text is missing"),
    ("envelope.send", "reply x1 x", "bad_id", "x1|e81"),
    ("envelope.send", "reply %others x", "not_found", "%others"),
    ("envelope.read", "read x1", "bad_id", "x1|e81"),
    ("envelope.read", "read %pending %others", "not_found", "%others"),
    ("envelope.list", "inbox -n 1000", "invalid_params", "page_size|1000|1 to 100"),
    ("envelope.list", "inbox --from spar", "unknown_address", "did you mean spare?"),
    ("envelope.list", "inbox --after x", "bad_cursor", "x is not a valid cursor"),
    ("envelope.list", "inbox --address user:boss", "boss_only", "address|agent:nex"),
    ("conversation.messages", "chat spar --once x", "unknown_address", "did you mean spare?"),
    ("conversation.messages", "chat group:none --once x", "unknown_group", "none"),
    ("conversation.messages", "chat spare --once x --timeout soon", "bad_duration", "soon|90s, 10m"),
    ("conversation.messages", "chat spare --once x --timeout 25h", "bad_duration", "25h|at most 24h"),
    ("conversation.messages", "chat spare --once ' '", "empty_message", "--text"),
    (
        "conversation.messages",
        "chat spare --once x --attachment missing",
        "attachment_outside",
        "/missing",
    ),
    ("mcp.start", "mcp instal", "usage", "instal|install?"),
    ("mcp.start", "mcp --agnt nex", "usage", "--agnt|--agent?"),
    ("mcp.start", "mcp install --client emacs", "usage", "--client|emacs|claude"),
    ("mcp.start", "mcp install --client cursor", "usage", "cursor|--agent|--as-boss"),
    ("mcp.start", "mcp --as-boss --as nex", "invalid_params", "--as-boss|--as"),
    ("mcp.start", "mcp --token -", "invalid_params", "standard input|@FILE"),
    ("mcp.start", "mcp --as nobody", "unknown_profile", "no profile nobody"),
)


def _own() -> Iterator[Row]:
    for operation, rows in USAGE.items():
        yield from (_wrong(operation, cli, "usage", says) for cli, says in rows)
    yield from starmap(_wrong, WRONG)
    reading = "envelope send --to agent:ada --text -"
    yield _wrong("envelope.send", reading, "too_large", "text|1048577 bytes", stdin="x" * (1024 * 1024 + 1))
    yield _wrong("envelope.send", reading, "frame_too_large", "4194304 bytes", stdin="x" * (5 * 1024 * 1024))
    yield _wrong("envelope.send", reading, "bad_text", "text|NUL", stdin="a\x00b")
    yield _wrong("envelope.send", reading, "empty_message", "--text", stdin=" \n")
    policy = "permission policy set --file -"
    for text, says in (
        ('{"a": ', "no JSON"),
        ('{"a": ' * 5_000, "deep"),
        ("envelope.send", "line 1"),
        ("a: boss\na: standard", "line 2"),
    ):
        yield _wrong("permission.policy.set", policy, "invalid_params", says, stdin=text)
    yield _wrong("agent.set", "agent set --role r --name 'x\ncode: ok'", "unknown_agent", r"x\ncode: ok")
    yield _wrong("envelope.send", "send spare -", "bad_text", "text|NUL", stdin="a\x00b")
    yield _wrong(
        "conversation.messages",
        "chat spare --once - --token -",
        "invalid_params",
        "standard input",
        stdin="x",
    )
    yield _wrong("conversation.messages", "chat spare", "empty_message", "--text", stdin="\n")


def _callers() -> Iterator[Row]:
    for by, code, says in (
        ("wrong", "bad_token", "not valid"),
        ("ended", "bad_token", "revoked"),
        ("turned", "bad_token", "revoked"),
        ("gone", "bad_token", "not valid"),
        ("parted", "bad_token", "not valid"),
        ("over", "bad_token", "not valid"),
    ):
        yield _wrong("agent.self", "agent self", code, says, by=by)
        yield _wrong("mcp.start", "mcp", code, says, by=by)
    yield _wrong("agent.register", "agent register --name fresh", "forbidden", "boss|standard", by="nex")
    yield _wrong("webhook.create", "webhook create mine --to nex", "forbidden", "boss|standard", by="nex")
    for by in ("ann", "run"):  # a person has the level of an agent, and a run has its agent's
        yield _wrong("user.register", "user register --name zoe", "forbidden", "boss|standard", by=by)
    yield _wrong("envelope.send", SENDING, "forbidden", "standard|restricted", by="low")


PLAIN = {
    "agent.list": "agent list",
    "agent.bindings": "agent bindings",
    "provider.list": "agent providers",
    "adapter.list": "agent adapters",
    "agent.team": "team",
    "presence.list": "presence",
    "agent.notify.list": "notify --list",
    "user.list": "user list",
    "agent.self": "agent self",
    "agent.heartbeat": "agent heartbeat",
    "boss.get": "boss get",
    "boss.pair": "boss pair",
    "contact.list": "contact list",
    "boss.token.rotate": "boss token rotate",
    "config.show": "config show",
    "cron.list": "cron list",
    "breaker.release": "go",
    "daemon.ping": "daemon ping",
    "daemon.status": "daemon status",
    "daemon.stop": "daemon stop",
    "daemon.time": "daemon time",
    "lane.list": "lane list",
    "permission.policy.get": "permission policy get",
    "webhook.list": "webhook list",
    "webhook.rotate": "webhook rotate scene-hook",
    "webhook.unsubscribe": "webhook unsubscribe scene-out",
}
OWN = [
    *_own(),
    *_callers(),
    # Of commands about which nothing else can be wrong: an option that does not exist.
    *(_wrong(name, f"{cli} --jsn", "usage", "--jsn|did you mean --json?") for name, cli in PLAIN.items()),
]
PASSED_ON = [one for one in written() if one.cli]  # tests/api asks the socket all of them
ROWS = [*PASSED_ON, *OWN]
TOLD = [
    *bulk.some(PASSED_ON, lambda one: one.cli[:2]),
    *bulk.some(PASSED_ON, lambda one: one.code),
    *bulk.some(OWN, lambda one: (one.cli[:2], one.code)),
]
JSON_ROWS = list({one.code: one for one in ROWS}.values())  # one of each code


@pytest.fixture(scope="module")
def scene(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    with open_scene(tmp_path_factory.mktemp("d")) as opened:
        with opened.given(None, {}):
            pass  # from now on a policy is stored, and putting another one back changes nothing
        yield opened


@pytest.fixture(scope="module")
def terminal(scene: Scene) -> Shell:
    return Shell(scene.daemon.home.path)


def asked(scene: Scene, one: Row, *more: str) -> tuple[list[str], dict[str, str]]:
    """The words of a row, and the environment of whoever asks."""
    words = [f"@{scene.facts['file']}" if word == "@%file" else word for word in scene.fill(one.cli)]
    token = scene.tokens[one.by]
    return [*words, *more], {"HIBOSS_TOKEN": token} if token else {}


def run(scene: Scene, terminal: Shell, one: Row, *more: str) -> Done:
    """Run it as whoever asks; it must fail with its status, and print nothing."""
    words, env = asked(scene, one, *more)
    with scene.given(one.config, one.policy):
        done = terminal(*words, stdin=one.stdin, env=env)
    assert (done.rc, done.stdout) == (exit_status(one.code), ""), done
    return done


def test_every_operation_is_asked_by_a_command() -> None:
    assert {one.operation for one in ROWS} | set(NO_COMMAND) == set(REGISTRY)


@pytest.mark.parametrize("noun", sorted({one.operation.partition(".")[0] for one in TOLD}))
def test_a_person_is_told_what_was_wrong_and_nothing_is_stored(
    scene: Scene, terminal: Shell, noun: str
) -> None:
    with scene.unchanged(), sweep() as row:
        for one in TOLD:
            if one.operation.partition(".")[0] == noun:
                with row(" ".join(one.cli)[:200]):
                    check_told(scene, one, run(scene, terminal, one).stderr.splitlines())


def check_told(scene: Scene, one: Row, told: list[str]) -> None:
    first, second, *rest = [line for line in told if not line.startswith(("warning: ", "note: "))]
    assert second == f"code: {one.code}" and first.startswith("error: ")
    check_words(first.removeprefix("error: "), tuple(scene.fill(one.says)))
    assert [line.startswith("help: hiboss") for line in rest] == ([True] if one.code == "usage" else [])


def test_a_program_is_told_the_same_as_json(scene: Scene, terminal: Shell) -> None:
    with scene.unchanged(), sweep() as row:
        for one in JSON_ROWS:
            with row(one.code):
                error = run(scene, terminal, one, "--json").error
                assert set(error) == {"code", "message", "data"} and error["code"] == one.code
                facts = {name: fact for name, fact in error["data"].items() if name != "code"}
                check_message(one.code, error["message"], facts, tuple(scene.fill(one.says)))


def test_the_installed_command_ends_as_the_forked_one(scene: Scene, terminal: Shell) -> None:
    with sweep() as row:
        for one in ROWS[::60]:
            words, env = asked(scene, one)
            with row(one.cli), scene.given(one.config, one.policy):
                forked = terminal(*words, stdin=one.stdin, env=env)
                assert terminal(*words, stdin=one.stdin, env=env, forked=False) == forked
