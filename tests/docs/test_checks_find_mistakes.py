"""The checks of the documentation find mistakes, and accept what is right."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from docs.makers.markdown import slug
from hiboss.core.errors import exit_status
from tests.docs import checks, terminal
from tests.docs.pages import Block, Page
from tests.docs.terminal import Drifted, Terminal
from tests.support import talk


def page(text: str, path: str = "docs/sample.md") -> Page:
    return Page(path=path, text=text)


@pytest.mark.parametrize(
    ("check", "good", "drifted"),
    [
        (checks.commands, "`hiboss envelope list --unread`", "`hiboss envelope list --not-read`"),
        (checks.commands, "`hiboss envelope list -n 3`", "`hiboss envelope list -q 3`"),
        (checks.commands, "`hiboss agent token rotate kai`", "`hiboss agent token renew kai`"),
        (checks.commands, "`hiboss envelope`", "`hiboss letter`"),
        (checks.commands, "`--deliver-at +2h`", "`--deliver-when +2h`"),
        (checks.commands, "`--priority high`", "`--priority higher`"),
        (
            checks.commands,
            "`hiboss agent permission set --level standard`",
            "`hiboss agent permission set --level usual`",
        ),
        (checks.mentions, "run: hiboss daemon start", "run: hiboss daemon begin"),
        (checks.mentions, "a file to attach (--attachment)", "a file to attach (--enclosure)"),
        (checks.names, "`limits.text_bytes`", "`limits.text_size`"),
        (checks.names, "`envelope.send`", "`envelope.post`"),
        (checks.names, "`key_reused`", "`key_used_again`"),
        (checks.names, "`acked_at`", "`acknowledged_at`"),
        (checks.names, "HIBOSS_LIMITS_TEXT_BYTES", "HIBOSS_LIMITS_TEXT_SIZE"),
        (checks.names, "`HIBOSS_HOME`", "`HIBOSS_HOUSE`"),
        (checks.defaults, "`limits.text_bytes` (1 MiB)", "`limits.text_bytes` (2 MiB)"),
        (checks.defaults, "`limits.batch_requests` (1,000)", "`limits.batch_requests` (500)"),
        (checks.files, "`hiboss/routing/router.py`", "`hiboss/routing.py`"),
        (checks.files, "`hiboss/store/schema/`", "`hiboss/store/tables/`"),
        (checks.files, "`docs/route.md`", "`route.md`"),
        (checks.links, "[route](route.md)", "[route](path.md)"),
        (checks.links, "[arrival](route.md#arrival)", "[arrival](route.md#departure)"),
        (checks.links, "# It is\n[up](#it-is)", "# It was\n[up](#it-is)"),
        (checks.links, "[elsewhere](https://example.org/x.md)", "[elsewhere](x.md)"),
        (checks.toml, "```toml\n[log]\nlevel = 'debug'\n```", "```toml\n[log]\nlevel = 'loud'\n```"),
        (checks.toml, "```toml\n[log]\nfiles = 3\n```", "```toml\n[log]\nkept = 3\n```"),
        (checks.toml, "```toml\n[log]\n```", "```toml\n[log\n```"),
        (
            checks.requests,
            '```json\n{"method": "envelope.get", "params": {"id": "e1", "token": "x"}}\n```',
            '```json\n{"method": "envelope.get", "params": {"number": "e1"}}\n```',
        ),
        (
            checks.requests,
            '```json\n{"method": "daemon.ping"}\n```',
            '```json\n{"method": "daemon.pong"}\n```',
        ),
        (checks.requests, '```json\n{"ids": ["e1"]}\n```', "```json\n{ids: e1}\n```"),
        (checks.languages, "```sh\nls\n```", "```console\n$ ls\n```"),
        (checks.languages, "```text\nok: true\n```", "```\nok: true\n```"),
    ],
)
def test_a_drifted_sample_is_refused_and_a_true_one_passes(
    check: Callable[[Page], list[str]], good: str, drifted: str
) -> None:
    assert check(page(good)) == []
    assert len(check(page(drifted))) == 1


def test_a_reference_without_a_setting_or_an_error_is_refused() -> None:
    sample = page("| `limits.text_bytes` | `busy` |")
    assert checks.missing_names(sample, ["limits.text_bytes", "busy"]) == []
    assert checks.missing_names(sample, ["log.level", "gap"]) == [
        "docs/sample.md: log.level is missing",
        "docs/sample.md: gap is missing",
    ]


def test_code_in_blocks_or_comments_is_not_part_of_the_text() -> None:
    sample = page("```sh\n`hiboss letter`\n```\n<!-- `hiboss letter` -->\n`hiboss  \nenvelope` [a](b.md)")
    assert sample.inline() == ["hiboss envelope"] and sample.links() == ["b.md"]


def test_anchors_are_made_as_github_makes_them() -> None:
    assert slug("Who may call what?") == "who-may-call-what"
    assert slug("envelope.send") == "envelopesend"


@pytest.fixture(scope="module")
def reader(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Terminal]:
    with Terminal(tmp_path_factory.mktemp("reader"), installed=True) as found:
        found.type("hiboss up --detach")
        found.type("hiboss envelope send --as nex --to agent:nex --text hello")
        yield found


def sh(body: str) -> Block:
    return Block(language="sh", body=body, line=1)


@pytest.mark.parametrize(
    ("good", "drifted", "why"),
    [
        ("hiboss envelope list --as nex", "hiboss envelope list --as nex --not-read", "ended with 2"),
        ("hiboss daemon ping", "hiboss daemon pong", "ended with 2"),
        ("hiboss daemon ping | cat", "hiboss daemon pong | cat", "ended with 2"),
        (
            "hiboss envelope list --as nex",
            "hiboss envelope list --as nex --unread --from user:boss",
            "nothing",
        ),
        ("echo note >&2", "echo warning: a token >&2", "ended with 0"),
        (
            "hiboss envelope get --as nex e999  # refused: not_found",
            "hiboss envelope get --as nex e1  # refused: not_found",
            "not refused as not_found",
        ),
        (
            "hiboss envelope list --as kay  # refused: unknown_profile",
            "hiboss envelope list --as kay  # refused: unknown_agent",
            "not refused as unknown_agent",
        ),
        ("true", "exit 3", "ended the shell"),
    ],
)
def test_a_drifted_command_is_found_by_running_it(
    reader: Terminal, good: str, drifted: str, why: str
) -> None:
    reader.follow(sh(good))
    with pytest.raises(Drifted, match=why):
        reader.follow(sh(drifted))


def test_a_drifted_program_or_output_is_found(reader: Terminal) -> None:
    reader.follow(Block(language="python", body="print('hello')", line=1))
    reader.follow(Block(language="text", body="he…\n", line=1))
    reader.follow(Block(language="sql", body="SELECT id FROM envelopes", line=1))
    for language, body in [
        ("text", "hallo"),
        ("python", "import hiboss_of_old"),
        ("python", "pass"),
        ("sql", "SELECT number FROM envelopes"),
        ("sql", "SELECT id FROM envelopes WHERE status = 'failed'"),
    ]:
        with pytest.raises(Drifted):
            reader.follow(Block(language=language, body=body, line=1))


TALK = """\
```sh
hiboss chat lin
```

```text
Talking with lin. Enter sends; /help shows the commands.

you  10:00
  hello there

lin  10:00
  Hello Ada! I am lin. Say help to see what I can do.
```
"""


@pytest.mark.slow
def test_a_conversation_that_differs_from_the_page_is_found(
    reader: Terminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    reader.type("hiboss agent register lin --provider demo")
    reader.read(page(TALK))
    monkeypatch.setattr(talk, "SECONDS", 1)  # for what never comes
    with pytest.raises(Drifted, match=r"sample\.md:1: hiboss chat lin"):
        reader.read(page(TALK.replace("Say help", "Ask me")))
    with pytest.raises(Drifted, match="hiboss chat max"):
        reader.read(page(TALK.replace("chat lin", "chat max")))


def test_a_command_that_does_not_end_is_found_and_the_reader_continues(
    reader: Terminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reader, "seconds", 0.5)  # of those that it would need
    with pytest.raises(Drifted, match="did not end"):
        reader.follow(sh("sleep 100"))
    monkeypatch.undo()
    reader.follow(sh("hiboss daemon ping"))


def test_a_drifted_page_is_named_with_the_line_of_its_block(reader: Terminal) -> None:
    with pytest.raises(Drifted, match=r"docs/sample\.md:3: false"):
        reader.read(page("# Sample\n\n```sh\ntrue\nfalse\n```\n"))


def test_a_block_is_split_into_complete_commands() -> None:
    script = "a=1  # one\n\n# only words\ncat > x <<'END'\n[log]\nEND\necho \\\n  two 'three\nfour'\n"
    assert terminal.commands(script) == [
        "a=1  # one",
        "cat > x <<'END'\n[log]\nEND",
        "echo \\\n  two 'three\nfour'",
    ]
    with pytest.raises(Drifted):
        terminal.commands("echo 'three\n")


def test_a_refusal_must_have_the_exit_status_of_its_error() -> None:
    assert exit_status("unknown_setting") == 2 and exit_status("not_found") == 1
