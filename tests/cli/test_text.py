"""What is sent: text from everywhere, files, metadata; it arrives as it was given."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from hiboss.core.escaping import mark_lines
from tests.support.cli import Done, Office, open_office

SCRIPTS = [
    "naïve café ÄÖÜ ß",
    "👩‍👩‍👧‍👦 🏳️‍🌈 e\u0301",
    "\u05e9\u05dc\u05d5\u05dd \u0645\u0631\u062d\u0628\u0627 \u200f(RTL)\u200e",
    "漢字 かな 한국어 \U0001f600\U00020000",
    "tab\there, 'quotes' \"double\" \\back $HOME `x` %s {y}",
    "\u2028 line separator \u2029 \x85 \x0b",
    "  leading and trailing  \n\n",
]


@pytest.fixture(scope="module")
def office(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Office]:
    with open_office(tmp_path_factory.mktemp("d")) as running:
        running.daemon.register("kai")
        yield running


def send(office: Office, *words: str, **given: Any) -> Done:
    return office("envelope", "send", "--as", "nex", "--to", "agent:kai", *words, **given)


def text_of(office: Office, done: Done) -> str:
    assert (done.rc, done.stderr) == (0, "")
    (id_,) = done.values("id")
    return str(office.envelope(id_)["text"])


@pytest.mark.parametrize("text", SCRIPTS, ids=ascii)
def test_a_text_comes_out_as_it_went_in(office: Office, text: str) -> None:
    done = send(office, "--text", text, "--subject", text.strip().splitlines()[0])
    assert text_of(office, done) == text
    shown = office("envelope", "get", "--as", "kai", "--id", *done.values("id"))
    assert f"\ntext:\n{mark_lines(text)}\n\nreceipt: " in shown.stdout


def test_text_comes_from_standard_input_unchanged(office: Office) -> None:
    text = "first\r\nsecond\n\n  third 😀\n"
    assert text_of(office, send(office, "--text", "-", stdin=text)) == text
    assert text_of(office, send(office, "--text-file", "-", stdin=text)) == text


def test_a_text_without_an_end_is_refused(office: Office) -> None:
    done = send(office, "--text-file", "/dev/zero")
    assert done.rc == 1 and "/dev/zero has more than" in done.stderr and "--attachment" in done.stderr


def test_text_comes_from_a_file_unchanged(office: Office, tmp_path: Path) -> None:
    text = "first\r\nsecond\n\n  third 😀\n"
    (tmp_path / "letter.txt").write_bytes(text.encode())
    assert text_of(office, send(office, "--text-file", "letter.txt", cwd=tmp_path)) == text
    assert text_of(office, send(office, "--text-file", "~/letter.txt", env={"HOME": str(tmp_path)})) == text


def test_a_here_document_sends_several_lines(office: Office) -> None:
    script = "hiboss envelope send --as nex --to agent:kai --text - <<'END'\nDear kai,\n\n$HOME stays.\nEND\n"
    assert text_of(office, office.sh(script)) == "Dear kai,\n\n$HOME stays.\n"


def test_a_token_and_a_text_cannot_both_be_standard_input(office: Office) -> None:
    for text in (("--text", "-"), ("--text-file", "-")):
        done = office(
            "envelope",
            "send",
            "--token",
            "-",
            "--to",
            "agent:kai",
            *text,
            stdin=office.token("nex") + "\nhello",
        )
        assert done.rc == 2 and "standard input" in done.stderr and "@FILE" in done.stderr


def test_what_is_no_utf8_is_refused_and_pointed_to_attachments(office: Office, tmp_path: Path) -> None:
    (tmp_path / "picture").write_bytes(b"\x89PNG\xff")
    from_file = send(office, "--text-file", "picture", cwd=tmp_path)
    from_stdin = send(office, "--text", "-", stdin=b"\x89PNG\xff")
    for done, where in ((from_file, "picture"), (from_stdin, "standard input")):
        assert done.rc == 2
        assert where in done.stderr and "UTF-8" in done.stderr and "--attachment" in done.stderr


def test_an_argument_that_is_no_utf8_is_wrong_usage_and_speaks_of_the_text(office: Office) -> None:
    done = office.sh("hiboss envelope send --as nex --to agent:kai --text \"$(printf 'bad\\377')\"")
    assert done.rc == 2 and "text" in done.stderr and "JSON" not in done.stderr


def test_closed_standard_input_is_no_reason_for_a_traceback(office: Office) -> None:
    text = office.sh("hiboss envelope send --as nex --to agent:kai --text - <&-")
    for done in (text, office.sh("hiboss agent self --token - <&-")):
        assert done.rc in (1, 2) and done.stderr.startswith("error: ")


def test_output_that_cannot_show_a_character_still_shows_the_rest(office: Office) -> None:
    send(office, "--text", "smile 😀 on")
    done = office("envelope", "list", "--as", "kai", "-n", "1", env={"PYTHONIOENCODING": "ascii"})
    assert done.rc == 0 and "smile " in done.stdout and " on\n" in done.stdout


def test_a_text_over_the_limit_is_refused_with_the_limit(office: Office, tmp_path: Path) -> None:
    (tmp_path / "fits").write_text("x" * 1024 * 1024)
    assert len(text_of(office, send(office, "--text-file", "fits", cwd=tmp_path))) == 1024 * 1024
    for size in (1024 * 1024 + 1, 5 * 1024 * 1024):
        (tmp_path / "big").write_text("x" * size)
        done = send(office, "--text-file", "big", cwd=tmp_path)
        assert done.rc == 1 and "attachment" in done.stderr


# --- metadata ------------------------------------------------------------------------


def test_metadata_is_json_where_it_can_be_and_text_otherwise(office: Office) -> None:
    given = {
        "number=1": 1,
        "words=two words": "two words",
        'object={"b": [1, null, "ü"]}': {"b": [1, None, "ü"]},
        "truth=true": True,
        'digit="1"': "1",
        "nothing=": "",
        "signs==x=y": "=x=y",
        "broken={broken": "{broken",
        "zeros=007": "007",
        "nan=NaN": "NaN",  # only Python takes these for JSON
        "infinite=-Infinity": "-Infinity",
        "huge=1e999": "1e999",
    }
    done = send(office, "--text", "x", *(word for pair in given for word in ("--meta", pair)))
    assert (done.rc, done.stderr) == (0, "")
    stored = office.envelope(done.values("id")[0])["metadata"]
    assert stored == {pair.partition("=")[0]: value for pair, value in given.items()}


# --- attachments ---------------------------------------------------------------------


def test_attachments_are_found_from_here_and_from_home_and_kept(office: Office, tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "plän 1.txt").write_text("the plan")
    (tmp_path / "dot.png").write_bytes(b"\x89PNG")
    done = send(
        *(office, "--attachment", "sub/plän 1.txt", "--attachment", "~/dot.png"),
        cwd=tmp_path,
        env={"HOME": str(tmp_path)},
    )
    assert (done.rc, done.stderr) == (0, "")
    first, second = office.envelope(done.values("id")[0])["attachments"]
    (tmp_path / "sub" / "plän 1.txt").unlink()
    assert (first["name"], Path(first["path"]).read_text()) == ("plän 1.txt", "the plan")
    assert (second["name"], second["mime"]) == ("dot.png", "image/png")
    shown = office("envelope", "get", "--as", "kai", "--id", *done.values("id")).stdout
    files = f'- [file] "plän 1.txt" ({first["path"]})\n- [image] "dot.png" ({second["path"]})\n'
    assert f"text:\n(none)\nattachments:\n{files}\nreceipt: " in shown
