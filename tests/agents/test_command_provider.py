"""The command provider (hiboss/agents/providers/command.py): what programs say, and what is made of it. No daemon."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from hiboss.agents import process_search
from hiboss.agents.providers.command import Command
from hiboss.core.contracts.failures import LaneError, TurnError
from hiboss.core.contracts.provider import Answer, Progress, TurnInput, Usage
from tests.agents.provider_rigs import plain_task
from tests.support.programs import Program

SECONDS = 30.0  # a bound for what must end; never a claim about speed


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(process_search, "STEP_SECONDS", 0.2)


@pytest.fixture
def program(tmp_path: Path) -> Program:
    return Program(tmp_path / "program")


def take_turn(program: Program, command: str | None = None, **facts: Any) -> tuple[Answer, list[Progress]]:
    heard: list[Progress] = []

    async def started(pid: int) -> None:
        assert process_search.members(pid)

    async def story() -> Answer:
        task: TurnInput = plain_task(program.directory, **facts)
        provider = Command(Command.configure({"command": command or program.command}))
        async with asyncio.timeout(SECONDS):
            return await provider.take_turn(task, heard.append, started)

    return asyncio.run(story()), heard


def said(heard: list[Progress]) -> list[Progress]:
    return [one for one in heard if one.kind != "alive"]


def says(program: Program, *text: str) -> None:
    program.says_bytes("".join(f"{line}\n" for line in text).encode())


def test_the_command_is_split_as_by_a_shell_and_run_without_one(program: Program) -> None:
    program.does('for word in "$@"; do echo "<$word>"; done')
    thought, _ = take_turn(program, f"""{program.command} 'two words' "it's" $HOME * a;b > out ~ a\\ b""")
    expected = ["two words", "it's", "$HOME", "*", "a;b", ">", "out", "~", "a b"]
    assert thought.text.splitlines() == [f"<{word}>" for word in expected]
    assert not (program.directory / "out").exists()


def test_pieces_tools_and_usage_are_heard_and_are_no_part_of_the_answer(program: Program) -> None:
    says(
        program,
        '{"hiboss": "delta", "text": "a pie"}',
        '{"hiboss": "tool", "name": "grep", "text": "for\\n it"}',
        '{"hiboss": "delta", "text": "ce"}',
        '{"hiboss": "usage", "tokens_in": 5, "cost": 1}',
        '{"hiboss": "usage", "tokens_in": 7}',
    )
    thought, heard = take_turn(program)
    assert thought == Answer(text="a piece", tokens_in=7, cost=1.0)
    assert said(heard) == [
        Progress("delta", "a pie"),
        Progress("tool", "grep for it"),
        Progress("delta", "ce"),
        Progress("usage", usage=Usage(tokens_in=5, cost=1.0)),
        Progress("usage", usage=Usage(tokens_in=7, cost=1.0)),
    ]


def test_the_answer_is_the_final_word_or_what_is_plain_or_the_pieces(program: Program) -> None:
    piece, plain, final = '{"hiboss": "delta", "text": "p"}', "plain", '{"hiboss": "final", "text": "f"}'
    found = []
    for words in ([piece, plain, final], [piece, plain], [piece], [final, final.replace('f"', 'g"')]):
        says(program, *words)
        found.append(take_turn(program)[0].text)
    assert found == ["f", "plain", "p", "g"]


@pytest.mark.parametrize(
    "line",
    [
        '{"hiboss": "song", "text": "x"}',
        '{"hiboss": 5}',
        '["hiboss"]',
        '{"hiboss": "final", "text": "x"',
        ' {"hiboss": "final", "text": "x"}',
        '{"other": "hiboss"}',
        '{"hiboss":' + "[" * 100_000,
    ],
    ids=lambda line: line[:40],
)
def test_a_line_that_only_looks_like_ours_is_part_of_the_answer(program: Program, line: str) -> None:
    says(program, "first", line, "last")
    assert take_turn(program, output_bytes=1_000_000)[0].text == f"first\n{line}\nlast"


def test_a_line_that_comes_in_pieces_is_one(program: Program) -> None:
    program.does(
        """printf '{"hiboss": "fin'; sleep 0.1; printf 'al", "text": "\\303'; sleep 0.1; printf '\\244"}'"""
    )
    thought, heard = take_turn(program)
    assert thought.text == "ä"
    assert len(heard) >= 3  # each piece is a sign of life
    assert said(heard) == []


@pytest.mark.parametrize(
    ("script", "kind", "words"),
    [
        ("echo first >&2; echo no such flour >&2; exit 1", "exit_status", ["status 1", "no such flour"]),
        ("exit 127", "exit_status", ["status 127"]),
        ("kill -KILL $$", "signal", ["signal 9"]),
        ("""echo '{"hiboss": "error", "text": "out of flour"}'""", "reported", ["out of flour"]),
        ("""echo '{"hiboss": "error"}'; exit 4""", "reported", ["without a word"]),
        ("head -c 200000 /dev/zero", "too_long", ["100000 bytes"]),
    ],
)
def test_what_went_wrong_is_said_in_words(program: Program, script: str, kind: str, words: list[str]) -> None:
    program.does(f"echo an answer\n{script}")
    with pytest.raises(TurnError) as caught:
        take_turn(program)
    assert caught.value.kind == kind
    assert [word for word in words if word not in caught.value.text] == []


def test_what_cannot_be_started_is_said_in_words(program: Program) -> None:
    found = []
    workspace = str(program.directory)

    def refused(command: str | None = None, **facts: Any) -> None:
        with pytest.raises(LaneError) as caught:
            take_turn(program, command, **facts)
        found.append((caught.value.kind, caught.value.text))

    refused("./nothing-there")
    refused(workspace=f"{workspace}/gone")
    program.path.chmod(0o600)
    refused()
    program.becomes("no program\n")
    refused()
    program.becomes("#!/no/such/shell\n")
    refused()
    kinds = [kind for kind, _ in found]
    assert kinds == ["no_program", "no_workspace", "no_program", "no_program", "no_program"]
    assert f"./nothing-there is not there (looked for from {workspace})" in found[0][1]
    assert f"{workspace}/gone is not there" in found[1][1]
    assert "Permission denied" in found[2][1]
    assert "Exec format error" in found[3][1]
    assert str(program.path) in found[4][1]
