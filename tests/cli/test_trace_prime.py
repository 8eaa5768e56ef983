"""`hiboss trace`, the receipt of `hiboss envelope get`, and `hiboss prime`, as people run them."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest

from tests.support.cli import Office, open_office
from tests.support.waits import wait_until

TIME = r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d[+-]\d\d:\d\d"


@pytest.fixture(scope="module")
def office(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Office]:
    """nex thinks with the demo provider; kai fetches its mail."""
    with open_office(tmp_path_factory.mktemp("d")) as running:
        running.daemon.call("agent.set", token=running.token("boss"), name="nex", provider="demo")
        running.daemon.register("kai", role="reviewer", description="reads what others wrote")
        yield running


def sent(office: Office, *words: str) -> str:
    return office.ok("send", *words).record["id"]


def test_a_trace_prints_the_steps_of_an_envelope_with_local_times_and_what_came_of_it(office: Office) -> None:
    number = sent(office, "nex", "hello")
    wait_until(lambda: office.envelope(number)["status"] == "done")
    lines = office.ok("trace", number).stdout.splitlines()
    assert f"{number} to agent:nex: done" in lines and 'says: "hello"' in lines
    words = [line.split(" ", 3)[3] for line in lines if re.match(rf"  {TIME} (?!m)", line)]
    assert [re.sub(r"r\d+", "r1", one) for one in words] == [
        "accepted",
        "arrived",
        "handed over (to r1)",
        "seen",
        "done",
    ]
    at = lines.index("what came of it:")
    assert re.match(rf"  {TIME} m\d+ agent:nex \(r\d+\) to user:boss: \"", lines[at + 1])


def test_a_trace_of_a_message_is_the_same_as_of_its_envelope_also_as_json(office: Office) -> None:
    number = sent(office, "kai", "hello")
    message = office.envelope(number)["message"]
    assert office("trace", message).stdout == office("trace", number).stdout
    found = office("trace", number, "--json").json
    assert found == office("trace", message, "--json").json
    assert (found["message"]["id"], found["envelopes"][0]["receipt"]["state"]) == (message, "arrived")


def test_an_envelope_is_shown_with_who_has_read_it_and_how_far_it_got(office: Office) -> None:
    number = sent(office, "kai", "hello", "--deliver-at", "+1h")
    done = office("envelope", "get", number)
    assert "receipt: deferred" in done.stdout.splitlines()
    assert re.search(rf"(?m)^step: {TIME} deferred until {TIME}$", done.stdout)
    number = sent(office, "kai", "hello")
    assert "read-by" not in office("envelope", "get", number).stdout
    assert office("read", number, "--as", "kai").rc == 0
    done = office("envelope", "get", number)
    assert re.search(rf"(?m)^read-by: agent:kai {TIME}$", done.stdout)
    assert "receipt: seen" in done.stdout.splitlines()


def test_the_error_of_a_program_cannot_look_like_a_line_of_a_trace(office: Office) -> None:
    forged = "e1 to user:boss: done"
    program = f"""sh -c 'printf "\\n{forged}" >&2; exit 3'"""
    office.daemon.register("odd", provider="command", settings={"command": program})
    number = sent(office, "odd", "hello")
    wait_until(lambda: office.envelope(number)["last_error"])
    shown = [line for line in office("trace", number).stdout.splitlines() if forged in line]
    assert shown and not [line for line in shown if line.startswith(forged)]


def test_prime_prints_the_briefing_of_whoever_calls(office: Office) -> None:
    done = office.ok("prime", "--as", "kai")
    first = 'You are agent:kai, role "reviewer", description "reads what others wrote", level standard, mode pull.'
    assert done.stdout.splitlines()[0] == first
    assert office("prime").stdout.startswith("You are the boss")
    found = office("prime", "--as", "kai", "--json").json
    assert found["address"] == "agent:kai" and found["text"].splitlines()[0] == first


@pytest.mark.parametrize("command", ["trace", "prime"])
def test_help_names_an_example(office: Office, command: str) -> None:
    assert f"hiboss {command}" in office(command, "--help").stdout
