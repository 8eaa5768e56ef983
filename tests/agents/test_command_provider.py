"""The command provider (hiboss/agents/providers/command.py): what a program prints, and its answer. No daemon."""

from __future__ import annotations

import asyncio
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hiboss.agents.providers.command import Command, CommandSettings
from hiboss.agents.providers.command_output import OutputReader
from hiboss.core.contracts.failures import LaneError, TurnError
from hiboss.core.contracts.provider import Answer, Progress, TurnInput, Usage
from hiboss.testing.recorded_run import RecordedRun
from tests.agents.provider_rigs import plain_task
from tests.support.raising import raised
from tests.support.shell_agents import Program

pytestmark = pytest.mark.usefixtures("quick")

SECONDS = 30.0  # a limit for what must end; not an assertion about speed


def take_turn(
    program: Program, command: str | None = None, run: RecordedRun | None = None, **facts: Any
) -> tuple[Answer, list[Progress]]:
    run = run or RecordedRun()

    async def story() -> Answer:
        task: TurnInput = plain_task(program.directory, **facts)
        provider = Command(CommandSettings(command=command or program.command))
        async with asyncio.timeout(SECONDS):
            return await provider.take_turn(task, run)

    return asyncio.run(story()), run.heard


def shown(progress: list[Progress]) -> list[Progress]:
    return [one for one in progress if one.kind != "alive"]


def prints(program: Program, *text: str) -> None:
    program.says_bytes("".join(f"{line}\n" for line in text).encode())


def test_the_command_is_split_as_by_a_shell_and_run_without_one(program: Program) -> None:
    program.does('for word in "$@"; do echo "<$word>"; done')
    answer, _ = take_turn(program, f"""{program.command} 'two words' "it's" $HOME * a;b > out ~ a\\ b""")
    expected = ["two words", "it's", "$HOME", "*", "a;b", ">", "out", "~", "a b"]
    assert answer.text.splitlines() == [f"<{word}>" for word in expected]
    assert not (program.directory / "out").exists()


def test_pieces_tools_and_usage_are_reported_and_are_not_part_of_the_answer(program: Program) -> None:
    prints(
        program,
        '{"hiboss": "delta", "text": "a pie"}',
        '{"hiboss": "tool", "name": "grep", "text": "for\\n it"}',
        '{"hiboss": "delta", "text": "ce"}',
        '{"hiboss": "usage", "tokens_in": 5, "cost": 1}',
        '{"hiboss": "usage", "tokens_in": 7}',
    )
    answer, progress = take_turn(program)
    assert answer == Answer(text="a piece", tokens_in=7, cost=1.0)
    assert shown(progress) == [
        Progress("delta", "a pie"),
        Progress("tool", "grep for it"),
        Progress("delta", "ce"),
        Progress("usage", usage=Usage(tokens_in=5, cost=1.0)),
        Progress("usage", usage=Usage(tokens_in=7, cost=1.0)),
    ]


def test_the_answer_is_the_final_text_or_the_plain_output_or_the_pieces(program: Program) -> None:
    piece, plain, final = '{"hiboss": "delta", "text": "p"}', "plain", '{"hiboss": "final", "text": "f"}'
    found = []
    for words in ([piece, plain, final], [piece, plain], [piece], [final, final.replace('f"', 'g"')]):
        prints(program, *words)
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
def test_a_line_that_only_looks_like_a_control_line_is_part_of_the_answer(
    program: Program, line: str
) -> None:
    prints(program, "first", line, "last")
    assert take_turn(program, answer_bytes=1_000_000)[0].text == f"first\n{line}\nlast"


def test_a_control_line_may_come_in_pieces(program: Program) -> None:
    program.does(
        """printf '{"hiboss": "fin'; sleep 0.1; printf 'al", "text": "\\303'; sleep 0.1; printf '\\244"}'"""
    )
    answer, progress = take_turn(program)
    assert answer.text == "ä"
    assert len(progress) >= 3  # each piece counts as output
    assert shown(progress) == []


def test_output_without_a_line_break_is_shown_at_once(program: Program) -> None:
    program.does(
        """printf 'half an'; while [ ! -e "$D/go" ]; do sleep 0.02; done; printf ' answer\\nand more'"""
    )

    class LettingGo(RecordedRun):
        def progress(self, part: Progress) -> None:
            super().progress(part)
            if part.text == "half an":  # the program has not ended: it waits for this
                program.let_go()

    answer, progress = take_turn(program, run=LettingGo())
    assert answer.text == "half an answer\nand more"
    assert "".join(one.text for one in shown(progress)) == "half an answer\nand more\n"


def read(*parts: bytes) -> tuple[Answer, list[Progress]]:
    """Read output that comes in these parts."""
    run = RecordedRun()

    async def story() -> Answer:
        reader = OutputReader(run, 100_000, lambda control: None, lambda: None)
        for part in parts:
            await reader.read(part)
        await reader.close()
        return reader.answer()

    return asyncio.run(story()), run.heard


def test_a_line_that_may_become_a_control_line_is_shown_when_it_ends() -> None:
    answer, progress = read(b'{"a": ', b"1}", b"\nplain {", b'"hiboss"')
    assert progress[:2] == [Progress("alive"), Progress("alive")]
    assert shown(progress) == [
        Progress("delta", '{"a": 1}\n'),
        Progress("delta", "plain {"),
        Progress("delta", '"hiboss"'),
        Progress("delta", "\n"),
    ]
    assert answer.text == '{"a": 1}\nplain {"hiboss"'


def test_control_lines_work_among_output_without_line_breaks() -> None:
    answer, progress = read(b"one", b' two\n{"hiboss": "to', b'ol", "name": "grep"}\nth', b"ree")
    assert shown(progress) == [
        Progress("delta", "one"),
        Progress("delta", " two\n"),
        Progress("tool", "grep"),
        Progress("delta", "th"),
        Progress("delta", "ree"),
        Progress("delta", "\n"),
    ]
    assert answer.text == "one two\nthree"


@given(st.text(alphabet='ab{"\n ä\u2028😀', max_size=40), st.lists(st.integers(0, 60), max_size=6))
def test_the_parts_shown_are_together_the_answer_however_the_output_is_cut(
    text: str, cuts: list[int]
) -> None:
    data = text.encode()
    places = [0, *sorted(min(one, len(data)) for one in cuts), len(data)]
    answer, progress = read(*(data[start:end] for start, end in pairwise(places) if start < end))
    assert "".join(one.text for one in progress).strip("\n") == answer.text == text.strip("\n")


@pytest.mark.parametrize(
    ("script", "kind", "words"),
    [
        ("echo first >&2; echo no such flour >&2; exit 1", "exit_status", ["status 1", "no such flour"]),
        ("exit 127", "exit_status", ["status 127"]),
        ("kill -KILL $$", "signal", ["signal 9"]),
        ("""echo '{"hiboss": "error", "text": "out of flour"}'""", "reported", ["out of flour"]),
        ("""echo '{"hiboss": "error"}'; exit 4""", "reported", ["without a text"]),
        ("head -c 200000 /dev/zero", "too_long", ["100000 bytes"]),
    ],
)
def test_the_error_says_how_a_program_failed(
    program: Program, script: str, kind: str, words: list[str]
) -> None:
    program.does(f"echo an answer\n{script}")
    caught = raised(TurnError, take_turn, program)
    assert caught.kind == kind
    assert [word for word in words if word not in caught.text] == []


def test_the_error_says_why_a_program_cannot_start(program: Program) -> None:
    found = []
    workspace = str(program.directory)

    def refused(command: str | None = None, **facts: Any) -> None:
        caught = raised(LaneError, take_turn, program, command, **facts)
        found.append((caught.kind, caught.text))

    refused("./nothing-there")
    refused(workspace=f"{workspace}/gone")
    refused(workspace=str(program.path))
    program.path.chmod(0o600)
    refused()
    program.becomes("no program\n")
    refused()
    program.becomes("#!/no/such/shell\n")
    refused()
    assert [kind for kind, _ in found] == ["no_program", "no_workspace", "no_workspace", *["no_program"] * 3]
    assert f"./nothing-there was not found (started in {workspace})" in found[0][1]
    assert f"{workspace}/gone does not exist" in found[1][1]
    assert found[2][1] == f"its workspace {program.path} is not a directory"
    assert "Permission denied" in found[3][1] and "Exec format error" in found[4][1]
    assert str(program.path) in found[5][1]
