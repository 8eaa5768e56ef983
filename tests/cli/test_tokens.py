"""Who calls: tokens on the command line, from a file, standard input, the environment, or a profile."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.cli import Done, Office, open_office


@pytest.fixture(scope="module")
def office(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Office]:
    with open_office(tmp_path_factory.mktemp("d")) as running:
        yield running


def who(done: Done) -> str:
    assert done.rc == 0, done.stderr
    return done.record["address"]


def test_a_token_on_the_command_line_works_and_warns(office: Office) -> None:
    done = office("agent", "self", "--token", office.token("nex"))
    assert who(done) == "agent:nex"
    assert done.stderr.startswith("warning: ") and "process list" in done.stderr
    assert "--token @FILE" in done.stderr and office.token("nex") not in done.stderr


def test_a_token_comes_from_standard_input_a_file_or_the_environment_without_a_warning(
    office: Office, tmp_path: Path
) -> None:
    token = office.token("nex")
    (tmp_path / "token").write_text(f"  {token}\n\n")
    for done in (
        office("agent", "self", "--token", "-", stdin=f"{token}\n"),
        office("agent", "self", "--token", "-", stdin=token),
        office("agent", "self", "--token", "@token", cwd=tmp_path),
        office("agent", "self", "--token", "@~/token", env={"HOME": str(tmp_path)}),
        office("agent", "self", env={"HIBOSS_TOKEN": f"{token}\n"}),
    ):
        assert who(done) == "agent:nex" and done.stderr == ""


def test_a_profile_is_found_whatever_the_case(office: Office) -> None:
    assert who(office("agent", "self", "--as", "NEX")) == "agent:nex"
    assert who(office("agent", "self", "--as", "Boss")) == "user:boss"


def test_what_is_said_on_the_command_line_wins_over_the_environment(office: Office) -> None:
    environment = {"HIBOSS_TOKEN": office.token("boss")}
    assert who(office("agent", "self", env=environment)) == "user:boss"
    assert who(office("agent", "self", "--as", "nex", env=environment)) == "agent:nex"
    other = office("agent", "self", "--token", "-", stdin=office.token("nex"), env=environment)
    assert who(other) == "agent:nex"


def test_both_token_and_profile_are_refused(office: Office) -> None:
    done = office("agent", "self", "--token", "@x", "--as", "nex")
    assert done.rc == 2 and "--token" in done.stderr and "--as" in done.stderr


def test_an_unknown_profile_hears_the_nearest_and_all(office: Office) -> None:
    done = office("agent", "self", "--as", "nx")
    assert done.rc == 1
    assert "did you mean nex?" in done.stderr and "boss, nex" in done.stderr


def test_a_profile_cannot_be_a_way_out_of_the_directory(office: Office, tmp_path: Path) -> None:
    (tmp_path / "token").write_text(office.token("nex"))
    for name in (str(tmp_path / "token"), "../tokens/nex", "", "."):
        done = office("agent", "self", "--as", name)
        assert done.rc == 1 and "code: unknown_profile" in done.stderr


def test_no_token_at_all_teaches_every_way_to_give_one(office: Office) -> None:
    for environment in ({}, {"HIBOSS_TOKEN": ""}, {"HIBOSS_TOKEN": " "}):
        done = office("agent", "self", env=environment)
        assert done.rc == 1 and "code: no_token" in done.stderr
        assert all(way in done.stderr for way in ("--as", "--token @", "HIBOSS_TOKEN"))


def test_an_empty_token_is_refused_and_not_taken_for_none(office: Office, tmp_path: Path) -> None:
    (tmp_path / "empty").write_text("\n")
    environment = {"HIBOSS_TOKEN": office.token("nex")}
    for words in (("--token", "-"), ("--token", "@empty"), ("--token", "")):
        done = office("agent", "self", *words, cwd=tmp_path, env=environment)
        assert done.rc == 1 and "code: bad_token" in done.stderr


@pytest.mark.parametrize("json_", [(), ("--json",)])
def test_a_token_never_stands_in_an_error(office: Office, tmp_path: Path, json_: tuple[str, ...]) -> None:
    secret = "hba_" + "S3cret" * 7
    (tmp_path / "token").write_text(secret)
    for words in (
        ("agent", "self", "--token", secret),
        ("agent", "self", "--token", "@token"),
        ("agent", "self", "--token", "-"),
        ("envelope", "send", "--token", "@token", "--to", "nobody", "--text", "x"),
        ("envelope", "list", "--token", "@token", "-n", "0"),
    ):
        done = office(*words, *json_, stdin=secret, cwd=tmp_path)
        assert done.rc in (1, 2) and "S3cret" not in done.stdout + done.stderr
    assert "S3cret" not in Path(office.home.log_file).read_text()


@pytest.mark.parametrize("content", [b"\xff\xfe\n", b"\x00\x00\n"])
def test_a_token_that_is_no_text_is_refused_in_words_about_the_token(
    office: Office, tmp_path: Path, content: bytes
) -> None:
    (tmp_path / "token").write_bytes(content)
    for words in (("--token", "-"), ("--token", "@token")):
        done = office("agent", "self", *words, stdin=content, cwd=tmp_path)
        assert done.rc in (1, 2) and "Traceback" not in done.stderr
        assert "attachment" not in done.stderr and "JSON" not in done.stderr


def test_a_token_file_that_is_not_there_is_said(office: Office, tmp_path: Path) -> None:
    done = office("agent", "self", "--token", "@nowhere", cwd=tmp_path)
    assert done.rc == 2 and "nowhere cannot be read: No such file" in done.stderr
